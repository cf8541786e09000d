// tilewright-check: calls kernels one by one on real operands, each between pages that may not be
// touched, and says in shared memory what came of it. A kernel that writes where it must not ends this
// process and nothing else; whoever started it sees in which job. Needs the runtime alone.
// usage: tilewright-check DESCRIPTOR MODEL.so MOST_BYTES
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "autotune/check/compare_elements.h"
#include "autotune/check/job.h"
#include "runtime/arena.h"
#include "runtime/executable.h"
#include "runtime/size_expr.h"

namespace tilewright::autotune {

namespace {

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
  Checker(uint8_t* shared, const Executable& executable)
      : shared_(shared),
        header_(*reinterpret_cast<CheckHeader*>(shared)),
        executable_(executable),
        variant_(executable.variants[0]) {}

  void run() {
    auto* jobs = reinterpret_cast<CheckJob*>(shared_ + header_.jobs_at);
    for (int32_t j = 0; j < header_.jobs; ++j) {
      if (jobs[j].state != CheckState::kWaiting) continue;
      set(jobs[j], CheckState::kRunning);
      CheckState state = check(jobs[j], Guard::kBehind);
      if (state == CheckState::kEqual) state = check(jobs[j], Guard::kBefore);
      set(jobs[j], state);
    }
  }

 private:
  // Before the process goes on, and may end.
  static void set(CheckJob& job, CheckState state) {
    __atomic_store_n(reinterpret_cast<int32_t*>(&job.state), static_cast<int32_t>(state),
                     __ATOMIC_SEQ_CST);
  }

  // A call with its operands, and its workspaces, each on pages of its own: first with their ends at a
  // page that may not be touched and loops forwards, then with their beginnings and loops backwards.
  CheckState check(CheckJob& job, Guard guard) {
    const Instruction& call = variant_.blocks[0][static_cast<size_t>(job.call)];
    const KernelDesc& kernel = variant_.kernels[static_cast<size_t>(call.target)];
    const auto* operands =
        reinterpret_cast<const CheckOperand*>(shared_ + header_.operands_at) + job.first_operand;
    const auto* scalars =
        reinterpret_cast<const int64_t*>(shared_ + header_.scalars_at) + job.first_scalar;
    const std::span values(scalars, static_cast<size_t>(job.scalars));
    const int64_t of_call = align_up(evaluate(kernel.call_workspace, values).value_or(0)),
                  of_worker = align_up(evaluate(kernel.worker_workspace, values).value_or(0));
    std::vector<LiveInterval> intervals;
    for (int32_t p = 0; p < job.operands; ++p) intervals.push_back({operands[p].bytes, 0, 0});
    intervals.push_back({of_call, 0, 0});
    intervals.push_back({of_worker * header_.workers, 0, 0});
    const auto plan = plan_guarded_arena(intervals, guard);
    if (!plan.ok()) return CheckState::kNoMemory;
    const auto memory = allocate_guarded_storage(plan->bytes, plan->guards);
    if (!memory.ok()) return CheckState::kNoMemory;
    const auto at = [&](size_t i) { return memory->data + plan->offsets[i]; };
    std::vector<void*> pointers;
    const auto n = static_cast<size_t>(job.operands);
    for (size_t p = 0; p < n; ++p) {
      fill(at(p), operands[p]);
      if (operands[p].after < 0) protect(*memory, *plan, p);
      pointers.push_back(at(p));
    }
    // Numbers that no kernel has put there are NaN.
    std::fill_n(at(n), of_call, uint8_t{0xff});
    std::fill_n(at(n + 1), of_worker * header_.workers, uint8_t{0xff});
    SerialContext context(header_.workers, guard == Guard::kBefore);
    context.abi.call_workspace = at(n);
    context.abi.worker_workspace = at(n + 1);
    context.abi.worker_workspace_stride = of_worker;
    spoil_stack();
    kernel.function(&context.abi, pointers.data(), scalars);
    for (size_t p = 0; p < n; ++p)
      if (!is_equal(job, operands[p], static_cast<int32_t>(p), at(p))) return CheckState::kDiffers;
    return CheckState::kEqual;
  }

  void fill(uint8_t* to, const CheckOperand& o) const {
    const uint8_t* from =
        o.constant >= 0 ? executable_.constants +
                              variant_.buffers[static_cast<size_t>(o.constant)].constant_offset
                        : shared_ + o.before;
    std::memcpy(to, from, static_cast<size_t>(o.bytes));
    std::fill(to + o.bytes, to + align_up(o.bytes), uint8_t{0xff});
  }
  // The pages between two guards.
  static void protect(const Storage& memory, const ArenaPlan& plan, size_t i) {
    const int64_t page = sysconf(_SC_PAGESIZE), first = plan.guards[i] + page;
    mprotect(memory.data + first, static_cast<size_t>(plan.guards[i + 1] - first), PROT_READ);
  }
  // Storage ends at whole cache lines: what lies behind the last element has to stay as it was.
  bool is_equal(CheckJob& job, const CheckOperand& o, int32_t p, const uint8_t* found) const {
    if (o.after < 0) return true;
    const auto type = static_cast<DType>(o.dtype);
    for (int64_t i = o.bytes; i < align_up(o.bytes); ++i)
      if (found[i] != 0xff) return differs(job, p, {i / byte_size(type), 0, 0});
    const auto difference = first_difference(type, found, shared_ + o.after,
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
  const CheckHeader& header_;
  const Executable& executable_;
  const Variant& variant_;
};

// Sanitizers reserve terabytes of addresses.
void limit_memory(const char* bytes) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const rlim_t most = std::strtoull(bytes, nullptr, 10);
  const rlimit limit{most, most};
  setrlimit(RLIMIT_AS, &limit);
#endif
  (void)bytes;
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

int run(int descriptor, const char* model, const char* most_bytes) {
  CheckHeader header;
  if (pread(descriptor, &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header)) return 2;
  void* shared = mmap(nullptr, static_cast<size_t>(header.bytes), PROT_READ | PROT_WRITE,
                      MAP_SHARED, descriptor, 0);
  if (shared == MAP_FAILED) return 2;
  const auto executable = load_executable(model);
  if (!executable.ok()) {
    std::fprintf(stderr, "tilewright-check: %s\n", executable.error().to_string().c_str());
    return 2;
  }
  limit_memory(most_bytes);
  Checker(static_cast<uint8_t*>(shared), **executable).run();
  return 0;
}

}  // namespace

}  // namespace tilewright::autotune

int main(int argc, char** argv) {
  // An interrupt is for whoever started this, and who is gone waits for nothing.
  signal(SIGINT, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return argc == 4 ? tilewright::autotune::run(std::atoi(argv[1]), argv[2], argv[3]) : 2;
}
