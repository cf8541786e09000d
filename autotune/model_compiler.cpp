#include "autotune/model_compiler.h"

#include "autotune/database/task.h"
#include "passes/plan_kernel.h"

namespace tilewright::autotune {

Plan plan_of(ir::Graph fused) {
  const auto graph = std::make_shared<const ir::Graph>(std::move(fused));
  return [graph](const passes::LowerOptions& options, const passes::LowerKernel& lower) {
    return passes::lower_fused(*graph, options, lower);
  };
}
Plan plan_of(ir::Kernel kernel, std::map<std::string, ir::ConstantRef> constants) {
  return [kernel = std::move(kernel), constants = std::move(constants)](
             const passes::LowerOptions& options, const passes::LowerKernel& lower) {
    return passes::plan_kernel(kernel, constants, options, lower);
  };
}

ModelCompiler::ModelCompiler(const passes::LowerOptions& lower,
                             const codegen::AssembleOptions& assemble, int threads)
    : codes_(std::make_shared<std::map<std::string, std::string>>()),
      lower_(lower),
      assemble_(assemble),
      threads_(threads),
      pool_(std::make_shared<ThreadPool>(threads)) {
  assemble_.progress = nullptr;
  assemble_.on_code = [codes = codes_](const std::string& symbol, const std::string& code) {
    (*codes)[symbol] = code;
  };
  lower_.on_kernel = nullptr;
  lower_.find_schedule = nullptr;
  lower_.find_answers = nullptr;
}

Result<passes::LoweredKernel> ModelCompiler::lower_kernel(ir::Kernel kernel,
                                                          const std::set<std::string>& constants,
                                                          const Schedules& schedules) const {
  const std::string task = task_key(kernel, constants);
  const auto schedule = schedules.find(task);
  Known& known =
      known_[schedule == schedules.end() ? task
                                         : task + "\n" + passes::to_string(schedule->second)];
  const std::string name = kernel.name;
  if (known.used == 0) {
    passes::LowerOptions lower = lower_;
    if (schedule != schedules.end())
      lower.find_schedule = [&](const ir::Kernel&, const std::set<std::string>&) {
        return std::optional(schedule->second);
      };
    TW_ASSIGN(known.lowered, passes::lower_kernel(std::move(kernel), constants, lower));
  }
  known.used = programs_;
  passes::LoweredKernel lowered = known.lowered;
  lowered.kernel.name = name;
  return lowered;
}

// Of thirty kernels one or two have another schedule than in the program before: passes and their
// verifiers run for these alone.
Result<ir::Program> ModelCompiler::program(const Plan& plan, const Schedules& schedules) const {
  constexpr size_t kKept = 3;  // programs whose kernels are kept
  ++programs_;
  auto lowered = plan(lower_, [&](ir::Kernel k, const std::set<std::string>& constants) {
    return lower_kernel(std::move(k), constants, schedules);
  });
  std::erase_if(known_, [&](const auto& k) { return k.second.used + kKept <= programs_; });
  return lowered;
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

std::string ModelCompiler::object_code(const std::string& symbol) const {
  const auto it = codes_->find(symbol);
  return it == codes_->end() ? symbol : it->second;
}

Result<std::unique_ptr<Session>> ModelCompiler::compile(const Plan& plan,
                                                        const Schedules& schedules) const {
  TW_ASSIGN(ir::Program lowered, program(plan, schedules));
  return session(std::move(lowered));
}
Result<std::unique_ptr<Session>> ModelCompiler::session(ir::Program program) const {
  TW_ASSIGN(std::shared_ptr<Executable> executable, assemble(std::move(program)));
  return session(std::shared_ptr<const Executable>(std::move(executable)));
}

}  // namespace tilewright::autotune
