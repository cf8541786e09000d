// Executes the program of a variant: calls, symbols, copies, branches, loops and memory that the
// run sizes itself.
#pragma once

#include <functional>

#include "runtime/collectives.h"
#include "runtime/profiler.h"
#include "runtime/session_plan.h"
#include "runtime/thread_pool.h"

namespace tilewright {

// A call of a kernel, as an observer sees it: storage of the kernel's parameters with its bytes, and the
// values of its scalars.
struct CallView {
  const Instruction& call;
  std::span<void* const> buffers;
  std::span<const int64_t> bytes;
  std::span<const int64_t> scalars;
};
// Told of every call before it and after it (`done`); may look at buffers, and put contents into them.
using CallObserver = std::function<void(const CallView& view, bool done)>;

// One interpreter of instructions per session: it is begun, run and ended once for each run and
// keeps its tables' memory in between, so that a run of known sizes allocates nothing. No thread
// safety of its own.
class ProgramRunner {
 public:
  // `dynamic_limit`: bytes that all buffers sized by the run may hold together (SessionOptions).
  explicit ProgramRunner(int64_t dynamic_limit) : dynamic_limit_(dynamic_limit) {}

  // Prepares for a run: pointers of constants and of arena buffers are set; inputs and outputs
  // follow by set_root.
  void begin(const Executable& executable, const VariantLayout& layout, Plan& plan, uint8_t* arena);
  void set_root(int32_t root, void* data) { root_data_[root] = data; }

  // Executes the main block. Errors are those of the program (kFail, kRequire, indices out of
  // range) and of memory; the runner must be ended after them as well. `profiler`, `observer` and
  // `collectives` may be null.
  Status run(ThreadPool& pool, Profiler* profiler, const CallObserver& observer,
             Collectives* collectives);
  void end();  // lets go of dynamic memory

  // After a run.
  bool met_not_finite() const { return context_.abi.not_finite != 0; }
  void* data(int32_t buffer) const { return pointers_[buffer]; }
  std::span<const int64_t> symbols() const { return symbols_; }
  Storage take_dynamic(int32_t root) { return std::move(dynamic_[root]); }

 private:
  struct ScanState {
    Storage storage;
    int64_t used = 0, element = -1;  // bytes; of one element, -1 before the first
  };
  Status run_block(int32_t block);
  Status step(const Instruction& instruction, CallPlan& call);
  Status start(const Instruction& instruction);
  Status run_call(const Instruction& instruction, CallPlan& call);
  Status observe(const Instruction& instruction, const CallPlan& call, bool done);
  Status set_workspace(const CallPlan& call);
  Status define_symbol(const Instruction& instruction);
  std::string known_symbols(int32_t end) const;
  Status check_indices(const Instruction& instruction);
  Status allocate(int32_t buffer);
  Status copy(int32_t to, int32_t from);
  Status run_branch(const Instruction& instruction);
  Status run_loop(const Instruction& instruction);
  Status append_scan(const LoopDesc::Scan& scan, int64_t passes, ScanState& state);
  Status trim(ScanState& state);
  Status finish_scan(const LoopDesc::Scan& scan, ScanState& state);
  Status carry(int32_t loop);
  Status copy_to(int32_t state, int32_t computed, void* target);
  Status grow(Storage& storage, int64_t bytes, int64_t keep, const std::string& name);
  Result<int64_t> bytes_of(int32_t buffer) const;
  Result<int64_t> read_i64(int32_t buffer, int64_t index) const;
  Result<bool> read_bool(int32_t buffer) const;
  void share_pointer(int32_t root);
  const std::string& name(int32_t buffer) const { return variant_->buffers[buffer].name; }

  const int64_t dynamic_limit_;  // bytes
  const Variant* variant_ = nullptr;
  const VariantLayout* layout_ = nullptr;
  Plan* plan_ = nullptr;
  Profiler* profiler_ = nullptr;
  const CallObserver* observer_ = nullptr;
  Collectives* collectives_ = nullptr;
  uint8_t* arena_ = nullptr;
  struct KernelContext {
    TwKernelContext abi{};  // first: kernels see only this
    ThreadPool* pool = nullptr;
  } context_;
  std::vector<void*> root_data_, pointers_, arguments_;
  std::vector<int64_t> symbols_;
  std::vector<Storage> dynamic_;               // per root
  std::vector<std::vector<ScanState>> scans_;  // per loop
  Storage run_workspace_;                      // for calls whose scalars the run defines
  int64_t dynamic_bytes_ = 0;
};

}  // namespace tilewright
