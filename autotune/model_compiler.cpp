#include "autotune/model_compiler.h"

#include "autotune/task.h"

namespace tilewright::autotune {

ModelCompiler::ModelCompiler(const passes::LowerOptions& lower,
                             const codegen::AssembleOptions& assemble, int threads)
    : lower_(lower),
      assemble_(assemble),
      threads_(threads),
      pool_(std::make_shared<ThreadPool>(threads)) {
  assemble_.progress = nullptr;
  lower_.on_kernel = nullptr;
  lower_.find_schedule = nullptr;
  lower_.find_answers = nullptr;
}

Result<ir::Program> ModelCompiler::program(const ir::Graph& fused,
                                           const Schedules& schedules) const {
  passes::LowerOptions lower = lower_;
  lower.find_schedule =
      [&](const ir::Kernel& k,
          const std::set<std::string>& constants) -> std::optional<passes::Trace> {
    const auto it = schedules.find(task_key(k, constants));
    return it == schedules.end() ? std::nullopt : std::optional(it->second);
  };
  return passes::lower_fused(fused, lower);
}

Result<std::shared_ptr<Executable>> ModelCompiler::assemble(ir::Program program) const {
  std::vector<ir::Program> programs;
  programs.push_back(std::move(program));
  return codegen::assemble_in_memory(std::move(programs), assemble_);
}

Result<std::unique_ptr<Session>> ModelCompiler::session(
    std::shared_ptr<const Executable> executable) const {
  return Session::create(std::move(executable), {.threads = threads_, .pool = pool_, .seed = 1});
}

Result<std::unique_ptr<Session>> ModelCompiler::compile(const ir::Graph& fused,
                                                        const Schedules& schedules) const {
  TW_ASSIGN(ir::Program lowered, program(fused, schedules));
  TW_ASSIGN(std::shared_ptr<Executable> executable, assemble(std::move(lowered)));
  return session(std::move(executable));
}

}  // namespace tilewright::autotune
