// A session runs an executable: it picks the variant, plans memory, calls the kernels and hands out
// the results.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/binding.h"
#include "runtime/profiler.h"
#include "runtime/run_program.h"
#include "runtime/tensor.h"
#include "runtime/thread_pool.h"

namespace tilewright {

struct SessionOptions {
  // Workers, the calling thread included, at most ThreadPool::most_workers(); 0: one per available
  // CPU.
  int threads = 0;
  std::shared_ptr<ThreadPool> pool;          // to share one among sessions; null: a pool of its own
  int64_t dynamic_limit = int64_t{8} << 30;  // bytes of buffers whose sizes the run decides
  bool profile = false;                      // record from the first run on; see set_profiling
  // Of the model's random numbers, but for nodes with a seed of their own: run k of a session is
  // equal to run k of any other with this seed. 0: drawn from the system.
  uint64_t seed = 0;
  // For tests of kernels: temporaries lie at pages that may not be touched, each on its own pages, and what
  // is read before it is written or after its last use is no number (poison).
  Guard guard = Guard::kNone;
  CallObserver observer;  // of every run, whose kernels are not profiled then; null: none
  Collectives* collectives = nullptr;  // see set_collectives
};

// Sessions of one executable run concurrently; one session runs one call at a time, others wait.
class Session {
 public:
  // Errors: an executable that breaks a rule, a kernel that is not resolved.
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const Executable> executable,
                                                 SessionOptions options = {});

  // The signature, by the most general variant; fixed for the session's life.
  const std::vector<ValueInfo>& inputs() const { return input_infos_; }
  const std::vector<ValueInfo>& outputs() const { return output_infos_; }
  const Executable& executable() const { return *executable_; }

  // Inputs in the model's order; those with a default may be left out (not defined, or behind the last
  // one given). `outputs` is empty or has one tensor per output: one of the right
  // element type and shape is written into, any other is replaced by a new tensor. A run that is
  // given its outputs (aligned to 64 bytes, not overlapping inputs) and meets only sizes it has
  // planned for allocates nothing. Inputs that the model updates (ValueInfo) are aligned to 64 bytes,
  // overlap nothing else and hold new contents afterwards. After an error these and the contents of
  // given outputs are undefined.
  // Errors: invalid inputs (named), kLimit for memory.
  Status run(std::span<const Tensor> inputs, std::vector<Tensor>& outputs);

  // Returns whether the last run met an infinity or a NaN among the values that its kernels watch. It may
  // be true where an intermediate value overflowed that no result depends on; false is certain.
  bool met_not_finite() const { return runner_.met_not_finite(); }
  // The next run is the one of this number (0: the first), in what random numbers it has.
  void set_next_run(uint64_t run);
  // Told of ranges of results that have their values, by runs from now on; null: nobody is. It must outlive them.
  void set_collectives(Collectives* collectives);
  void set_threads(int threads);  // as SessionOptions::threads
  // Workers that runs use now, the calling thread included; fewer than asked for where the system
  // grants no more.
  int threads() const;
  void set_profiling(bool enabled);  // true: forgets what was recorded before
  Profiler profile() const;          // a copy of what was recorded

 private:
  // Where an output's elements go during a run.
  struct OutputSlot {
    bool isolated = false;  // the caller's tensor shares memory with no input and no other output
    Storage storage;        // for kernels to write to, unless they write to the caller's tensor
    Shape shape;
  };
  Session(std::shared_ptr<const Executable> executable, SessionOptions options);
  std::span<const Tensor> with_defaults(std::span<const Tensor> inputs);
  Result<const VariantLayout*> choose_variant(std::span<const Tensor> inputs);
  Result<Plan*> find_plan(const VariantLayout& layout);
  Status prepare_arena();
  Status prepare_outputs(std::span<const Tensor> inputs, const std::vector<Tensor>& outputs);
  Status run_planned(std::span<const Tensor> inputs, std::vector<Tensor>& outputs);
  Status set_shape(size_t output);
  Status deliver(size_t output, Tensor& tensor);

  struct CachedPlan {
    const VariantLayout* layout;
    std::unique_ptr<Plan> plan;
  };
  static constexpr size_t kPlanLimit = 8;

  const std::shared_ptr<const Executable> executable_;
  const std::vector<ValueInfo> input_infos_, output_infos_;
  const std::vector<Tensor> defaults_;  // default_inputs
  mutable std::mutex mutex_;
  std::vector<Tensor> given_;  // inputs of the run under way, where some are left out
  std::shared_ptr<ThreadPool> pool_;
  bool profiling_ = false;
  const Guard guard_;
  const CallObserver observer_;
  Collectives* collectives_ = nullptr;
  const uint64_t seed_;
  uint64_t runs_ = 0;                      // that were begun
  std::array<uint32_t, 2> run_key_{0, 0};  // of the run under way
  Profiler profiler_;
  std::vector<VariantLayout> layouts_;
  std::vector<CachedPlan> plans_;          // the latest used last
  const VariantLayout* layout_ = nullptr;  // of the run under way
  Plan* plan_ = nullptr;
  Storage arena_;
  ProgramRunner runner_;
  std::vector<int64_t> symbols_;
  std::vector<OutputSlot> slots_;
};

}  // namespace tilewright
