#include "autotune/check/check_alone.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "autotune/check/shared_jobs.h"
#include "autotune/check/supervisor.h"
#include "codegen/backend.h"
#include "passes/plan_program.h"
#include "runtime/core/temporary_folder.h"

namespace tilewright::autotune {

namespace fs = std::filesystem;

namespace {

constexpr const char* kWorker = "tilewright-check";

// Beside the backend's library, where that was found.
Result<std::string> find_worker() {
  TW_ASSIGN(const codegen::Backend* backend, codegen::open_backend());
  Dl_info about{};
  if (!dladdr(*reinterpret_cast<void* const*>(backend), &about) || !about.dli_fname)
    return io_error(std::string("cannot find ") + kWorker);
  const std::string path = fs::path(about.dli_fname).parent_path() / kWorker;
  return ::access(path.c_str(), X_OK) == 0 ? Result<std::string>(path)
                                           : io_error("cannot be run", path);
}

// The calls that are checked, alone, with the extents that they were captured with: what else the
// program has does not matter, nor what the buffers are whose contents the worker has from elsewhere.
ir::Program reduced(const ir::Program& program, const std::vector<const CapturedCall*>& calls) {
  ir::Program part;
  part.name = program.name;
  part.numerics = program.numerics;
  for (const ir::ProgramBuffer& b : program.buffers) {
    ir::ProgramBuffer unknown;
    unknown.name = b.name;
    unknown.type.dtype = b.type.dtype;
    unknown.elements = 1;
    part.buffers.push_back(std::move(unknown));
  }
  part.blocks.emplace_back();
  for (const CapturedCall* c : calls) {
    auto call = std::get<ir::CallInstruction>(program.blocks[c->block][c->instruction]);
    for (size_t p = 0; p < call.buffers.size(); ++p) {
      if (!c->operands[p].constant) continue;
      const auto b = static_cast<size_t>(call.buffers[p]);
      part.buffers[b] = program.buffers[b];
    }
    part.kernels.push_back(program.kernels[static_cast<size_t>(call.kernel)]);
    part.schedules.emplace_back();
    call.kernel = static_cast<int32_t>(part.kernels.size()) - 1;
    call.profile = -1;
    call.scalars.assign(c->scalars.begin(), c->scalars.end());
    part.blocks[0].push_back(std::move(call));
  }
  return passes::set_lifetimes(std::move(part));
}

std::string verdict(const CheckJob& job, const ir::Kernel& kernel) {
  if (job.state == CheckState::kNoMemory) return "wants more memory than it may have";
  const auto text = [](double x) { return std::to_string(x); };
  return "wrong: " + text(job.found) + " instead of " + text(job.expected) + " at element " +
         std::to_string(job.element) + " of " +
         kernel.params.at(static_cast<size_t>(job.operand))->name;
}

class Check {
 public:
  Check(const CapturedCalls& captured, const codegen::AssembleOptions& assemble,
        const CheckOptions& options, std::string worker, std::string model)
      : captured_(captured),
        assemble_(assemble),
        options_(options),
        worker_(std::move(worker)),
        model_(std::move(model)) {}

  Status run(const ir::Program& program, const std::vector<const CapturedCall*>& calls) {
    const ir::Program part = reduced(program, calls);
    const Status assembled = codegen::assemble_shared_object({part}, assemble_, model_);
    if (!assembled.ok()) return without_code(program, calls, assembled.error());
    TW_ASSIGN(const SharedJobs shared,
              SharedJobs::make(part, calls, captured_, std::max(1, assemble_.machine.threads),
                               options_.same_bits, options_.seconds));
    TW_ASSIGN(const std::vector<std::string> ended,
              supervise(shared, {worker_, model_, options_.most_bytes}));
    const std::span<const CheckJob> jobs = shared.jobs();
    for (size_t j = 0; j < jobs.size(); ++j) {
      const ir::Kernel& k = part.kernels[j];
      if (!ended[j].empty())
        refused_[k.name] = ended[j];
      else if (jobs[j].state != CheckState::kEqual)
        refused_[k.name] = verdict(jobs[j], k);
    }
    return {};
  }
  std::map<std::string, std::string> refused() { return std::move(refused_); }

 private:
  // Whichever kernel it was: each by itself.
  Status without_code(const ir::Program& program, const std::vector<const CapturedCall*>& calls,
                      const Error& why) {
    if (why.kind == ErrorKind::kIo) return why;
    if (calls.size() == 1) {
      refused_[reduced(program, calls).kernels[0].name] = "not compiled: " + why.to_string();
      return {};
    }
    for (const CapturedCall* c : calls) TW_RETURN_IF_ERROR(run(program, {c}));
    return {};
  }

  const CapturedCalls& captured_;
  const codegen::AssembleOptions& assemble_;
  const CheckOptions& options_;
  const std::string worker_, model_;
  std::map<std::string, std::string> refused_;
};

}  // namespace

// Candidates go into one shared object with a call for each, so that one link and one process serve a
// whole round; the object needs no compiler, and neither does the process.
Result<std::map<std::string, std::string>> check_alone(const ir::Program& program,
                                                       const std::set<std::string>& kernels,
                                                       std::span<const CapturedCalls> captured,
                                                       const codegen::AssembleOptions& assemble,
                                                       const CheckOptions& options) {
  std::map<std::string, std::string> refused;
  std::string worker = options.worker;
  if (worker.empty()) { TW_ASSIGN(worker, find_worker()); }
  TW_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make());
  for (const CapturedCalls& size : captured) {
    std::vector<const CapturedCall*> calls;
    for (const auto& [name, call] : size.by_kernel)
      if (kernels.count(name) && !refused.count(name)) calls.push_back(&call);
    if (calls.empty()) continue;
    Check check(size, assemble, options, worker, folder.file("kernels.so"));
    TW_RETURN_IF_ERROR(check.run(program, calls));
    refused.merge(check.refused());
  }
  return refused;
}

}  // namespace tilewright::autotune
