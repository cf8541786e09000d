// tilewright-check: calls kernels one by one on real operands, each between pages that may not be
// touched, and says in shared memory what came of it. A kernel that writes where it must not ends this
// process and nothing else; whoever started it sees in which job. Needs the runtime alone.
// usage: tilewright-check JOBS CONTENTS MODEL.so MOST_BYTES    (the first two are descriptors)
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "autotune/check/compare_elements.h"
#include "autotune/check/job.h"
#include "autotune/check/worker_limits.h"
#include "runtime/arena.h"
#include "runtime/core/printable.h"
#include "runtime/executable.h"
#include "runtime/size_expr.h"

namespace tilewright::autotune {

namespace {

// Operands lie between their pages, and kernels may pack or pad them.
constexpr int64_t kTimesOperands = 3;

// What a kernel keeps in its frame holds NaN until it puts something there.
__attribute__((noinline)) void spoil_stack() {
  uint8_t below[256 << 10];
  std::memset(below, 0xff, sizeof below);
  asm volatile("" : : "r"(below) : "memory");
}

// Iterations of parallel loops in pieces, one after the other, first to last or last to first: what
// depends on their order shows, and each time in the same way. First in the struct: kernels see `abi`.
struct SerialContext {
  TwKernelContext abi{};
  int64_t worker = 0;
  bool nested = false, backwards = false;

  SerialContext(int64_t workers, bool in_reverse) : backwards(in_reverse) {
    abi.worker_count = workers;
    abi.parallel = [](TwKernelContext* c, int64_t count, TwParallelBody body, void* closure) {
      reinterpret_cast<SerialContext*>(c)->parallel(count, body, closure);
    };
    abi.team = [](TwKernelContext* c, TwTeamBody body, void* closure) { body(c, closure); };
  }
  void parallel(int64_t count, TwParallelBody body, void* closure) {
    if (nested) return body(&abi, closure, 0, count, worker);
    const int64_t pieces = std::min(count, 2 * abi.worker_count + 1);
    nested = true;
    for (int64_t n = 0; n < pieces; ++n) {
      const int64_t piece = backwards ? pieces - 1 - n : n;
      worker = piece % abi.worker_count;
      spoil_stack();
      body(&abi, closure, count * piece / pieces, count * (piece + 1) / pieces, worker);
    }
    nested = false;
  }
};

class Checker {
 public:
  Checker(uint8_t* shared, const uint8_t* contents, const Executable& executable)
      : shared_(shared),
        contents_(contents),
        header_(*reinterpret_cast<CheckHeader*>(shared)),
        executable_(executable),
        variant_(executable.variants[0]) {}

  // Of the largest job.
  int64_t operand_bytes() const {
    int64_t most = 0;
    for (const CheckJob& job : jobs()) {
      int64_t bytes = 0;
      for (const CheckOperand& o : operands(job)) bytes += o.bytes;
      most = std::max(most, bytes);
    }
    return most;
  }
  void run() {
    for (CheckJob& job : jobs()) {
      if (job.state != CheckState::kWaiting) continue;
      limit_time(job.seconds);
      set(job, CheckState::kRunning);
      set(job, check(job));
    }
  }

 private:
  // Pages of a job, for both of its calls.
  struct Pages {
    int64_t of_call = 0, of_worker = 0;  // bytes of workspaces
    ArenaPlan plan;                      // operands, and the two workspaces
    Storage memory;
  };

  std::span<CheckJob> jobs() const {
    return {reinterpret_cast<CheckJob*>(shared_ + header_.jobs_at),
            static_cast<size_t>(header_.jobs)};
  }
  std::span<const CheckOperand> operands(const CheckJob& job) const {
    const auto* all = reinterpret_cast<const CheckOperand*>(shared_ + header_.operands_at);
    return {all + job.first_operand, static_cast<size_t>(job.operands)};
  }
  std::span<const int64_t> scalars(const CheckJob& job) const {
    const auto* all = reinterpret_cast<const int64_t*>(shared_ + header_.scalars_at);
    return {all + job.first_scalar, static_cast<size_t>(job.scalars)};
  }
  const KernelDesc& kernel(const CheckJob& job) const {
    const Instruction& call = variant_.blocks[0][static_cast<size_t>(job.call)];
    return variant_.kernels[static_cast<size_t>(call.target)];
  }
  // Before the process goes on, and may end.
  static void set(CheckJob& job, CheckState state) {
    __atomic_store_n(reinterpret_cast<int32_t*>(&job.state), static_cast<int32_t>(state),
                     __ATOMIC_SEQ_CST);
  }

  // A call with its operands, and its workspaces, each on pages of its own: first with their ends at a
  // page that may not be touched and loops forwards, then with their beginnings and loops backwards.
  CheckState check(CheckJob& job) {
    Pages pages;
    const auto bytes = [&](const SizeExpr& e) {
      return align_up(evaluate(e, scalars(job)).value_or(0));
    };
    pages.of_call = bytes(kernel(job).call_workspace);
    pages.of_worker = bytes(kernel(job).worker_workspace);
    if (pages.of_worker > kLargestAllocation / header_.workers) return CheckState::kNoMemory;
    std::vector<LiveInterval> intervals;
    for (const CheckOperand& o : operands(job)) intervals.push_back({o.bytes, 0, 0});
    intervals.push_back({pages.of_call, 0, 0});
    intervals.push_back({pages.of_worker * header_.workers, 0, 0});
    for (const Guard guard : {Guard::kBehind, Guard::kBefore}) {
      auto plan = plan_guarded_arena(intervals, guard);  // guards are the same for both
      if (!plan.ok()) return CheckState::kNoMemory;
      pages.plan = std::move(*plan);
      if (!pages.memory.data) {
        auto memory = allocate_guarded_storage(pages.plan.bytes, pages.plan.guards);
        if (!memory.ok()) return CheckState::kNoMemory;
        pages.memory = std::move(*memory);
      }
      if (!is_equal_after_call(job, pages, guard)) return CheckState::kDiffers;
    }
    return CheckState::kEqual;
  }

  bool is_equal_after_call(CheckJob& job, const Pages& pages, Guard guard) {
    const std::span<const CheckOperand> given = operands(job);
    const size_t n = given.size();
    const auto at = [&](size_t i) { return pages.memory.data + pages.plan.offsets[i]; };
    std::vector<void*> pointers;
    for (size_t p = 0; p < n; ++p) {
      protect(pages, p, false);
      fill(at(p), given[p]);
      if (given[p].after < 0 && !given[p].unknown) protect(pages, p, true);
      pointers.push_back(at(p));
    }
    // Numbers that no kernel has put there are NaN.
    std::fill_n(at(n), pages.of_call, uint8_t{0xff});
    std::fill_n(at(n + 1), pages.of_worker * header_.workers, uint8_t{0xff});
    SerialContext context(header_.workers, guard == Guard::kBefore);
    context.abi.call_workspace = at(n);
    context.abi.worker_workspace = at(n + 1);
    context.abi.worker_workspace_stride = pages.of_worker;
    spoil_stack();
    // A kernel that may write anywhere does not write its own verdict.
    mprotect(shared_, static_cast<size_t>(header_.bytes), PROT_READ);
    kernel(job).function(&context.abi, pointers.data(), scalars(job).data());
    mprotect(shared_, static_cast<size_t>(header_.bytes), PROT_READ | PROT_WRITE);
    for (size_t p = 0; p < n; ++p)
      if (!is_equal(job, given[p], static_cast<int32_t>(p), at(p))) return false;
    return true;
  }

  void fill(uint8_t* to, const CheckOperand& o) const {
    const uint8_t* from =
        o.constant >= 0 ? executable_.constants +
                              variant_.buffers[static_cast<size_t>(o.constant)].constant_offset
                        : contents_ + o.before;
    std::memcpy(to, from, static_cast<size_t>(o.bytes));
    std::fill(to + o.bytes, to + align_up(o.bytes), uint8_t{0xff});
  }
  // The pages between two guards.
  static void protect(const Pages& pages, size_t i, bool protect) {
    const std::vector<int64_t>& guards = pages.plan.guards;
    const int64_t first = guards[i] + sysconf(_SC_PAGESIZE);
    mprotect(pages.memory.data + first, static_cast<size_t>(guards[i + 1] - first),
             protect ? PROT_READ : PROT_READ | PROT_WRITE);
  }
  // Storage ends at whole cache lines: what lies behind the last element has to stay as it was.
  bool is_equal(CheckJob& job, const CheckOperand& o, int32_t p, const uint8_t* found) const {
    if (o.after < 0) return true;
    const auto type = static_cast<DType>(o.dtype);
    for (int64_t i = o.bytes; i < align_up(o.bytes); ++i)
      if (found[i] != 0xff) return differs(job, p, {i / byte_size(type), 0, 0});
    const auto difference = first_difference(type, found, contents_ + o.after,
                                             o.bytes / byte_size(type), header_.same_bits != 0);
    return !difference || differs(job, p, *difference);
  }
  static bool differs(CheckJob& job, int32_t operand, const Difference& d) {
    job.operand = operand;
    job.element = d.element;
    job.found = d.found;
    job.expected = d.expected;
    return false;
  }

  uint8_t* const shared_;
  const uint8_t* const contents_;
  const CheckHeader& header_;
  const Executable& executable_;
  const Variant& variant_;
};

// Null: it cannot be mapped.
uint8_t* map(int descriptor, int64_t bytes, int access) {
  void* at = mmap(nullptr, static_cast<size_t>(bytes), access, MAP_SHARED, descriptor, 0);
  return at == MAP_FAILED ? nullptr : static_cast<uint8_t*>(at);
}

int run(int jobs, int contents, const char* model, int64_t most_bytes) {
  CheckHeader header;
  if (pread(jobs, &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header)) return 2;
  uint8_t* shared = map(jobs, header.bytes, PROT_READ | PROT_WRITE);
  const uint8_t* held = map(contents, header.contents_bytes, PROT_READ);
  if (!shared || !held) return 2;
  const auto executable = load_executable(model);
  if (!executable.ok()) {
    std::fprintf(stderr, "tilewright-check: %s\n", printable(executable.error().to_string()).c_str());
    return 2;
  }
  Checker checker(shared, held, **executable);
  end_plainly();
  limit_memory(most_bytes + kTimesOperands * checker.operand_bytes());
  checker.run();
  // What a kernel has done to this process is not to show in how it ends.
  _exit(0);
}

}  // namespace

}  // namespace tilewright::autotune

int main(int argc, char** argv) {
  // An interrupt is for whoever started this, and who is gone waits for nothing.
  signal(SIGINT, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc != 5) return 2;
  return tilewright::autotune::run(std::atoi(argv[1]), std::atoi(argv[2]), argv[3],
                                   std::atoll(argv[4]));
}
