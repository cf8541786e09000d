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

Result<std::unique_ptr<Session>> ModelCompiler::compile(const ir::Graph& fused,
                                                        const Schedules& schedules) const {
  passes::LowerOptions lower = lower_;
  lower.find_schedule =
      [&](const ir::Kernel& k,
          const std::set<std::string>& constants) -> std::optional<passes::Trace> {
    const auto it = schedules.find(task_key(k, constants));
    return it == schedules.end() ? std::nullopt : std::optional(it->second);
  };
  TW_ASSIGN(ir::Program program, passes::lower_fused(fused, lower));
  std::vector<ir::Program> programs;
  programs.push_back(std::move(program));
  TW_ASSIGN(std::shared_ptr<Executable> executable,
            codegen::assemble_in_memory(std::move(programs), assemble_));
  return Session::create(executable, {.threads = threads_, .pool = pool_, .seed = 1});
}

}  // namespace tilewright::autotune
