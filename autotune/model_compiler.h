// A model's graph, or a kernel, to a session, with whatever schedules are to be tried.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "codegen/assemble_executable.h"
#include "ir/graph/graph.h"
#include "passes/lower.h"
#include "runtime/session.h"

namespace tilewright::autotune {

using Schedules = std::map<std::string, passes::Trace>;  // by task_key
// A program of kernels that somebody lowers.
using Plan =
    std::function<Result<ir::Program>(const passes::LowerOptions&, const passes::LowerKernel&)>;
Plan plan_of(ir::Graph fused);  // what lower_graph leaves
Plan plan_of(ir::Kernel kernel, std::map<std::string, ir::ConstantRef> constants);  // plan_kernel

// Used by one thread at a time.
class ModelCompiler {
 public:
  // Says for which machine, threads and numerics; `threads`: of the sessions.
  ModelCompiler(const passes::LowerOptions& lower, const codegen::AssembleOptions& assemble,
                int threads);

  // Tasks without a schedule here have their usual one.
  Result<passes::LoweredKernel> lower_kernel(ir::Kernel kernel,
                                             const std::set<std::string>& constants,
                                             const Schedules& schedules) const;
  Result<ir::Program> program(const Plan& plan, const Schedules& schedules) const;
  Result<std::shared_ptr<Executable>> assemble(ir::Program program) const;
  Result<std::unique_ptr<Session>> session(std::shared_ptr<const Executable> executable) const;
  Result<std::unique_ptr<Session>> session(ir::Program program) const;
  // All three.
  Result<std::unique_ptr<Session>> compile(const Plan& plan, const Schedules& schedules) const;

  // Of a kernel that was assembled with these options, by its content_symbol: object_code; else the symbol.
  std::string object_code(const std::string& symbol) const;

  const passes::LowerOptions& lower() const { return lower_; }
  const codegen::AssembleOptions& assemble_options() const { return assemble_; }
  const std::shared_ptr<ThreadPool>& pool() const { return pool_; }

 private:
  // Kernels of the last few programs, by task and schedule: from one to the next few differ.
  struct Known {
    passes::LoweredKernel lowered;
    size_t used = 0;  // the number of the last program that has it
  };
  mutable std::map<std::string, Known> known_;
  mutable size_t programs_ = 1;  // and the next one
  const std::shared_ptr<std::map<std::string, std::string>> codes_;
  passes::LowerOptions lower_;
  codegen::AssembleOptions assemble_;
  const int threads_;
  // One for all sessions: workers of another would wait for work on the same CPUs.
  const std::shared_ptr<ThreadPool> pool_;
};

}  // namespace tilewright::autotune
