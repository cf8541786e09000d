// An arena with guard pages ("electric fence"): each buffer ends (or begins) at a page without
// access, so that a kernel that reads or writes one element past it ends the process where it
// happens.
//
//    | guard | ....buffer | guard | ....buffer | guard |     Guard::kBehind
//
// For tests; it takes a page or two for each buffer instead of packing them.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "runtime/arena.h"

namespace tilewright {
namespace {

int64_t page_bytes() {
  static const int64_t bytes = sysconf(_SC_PAGESIZE);
  return bytes;
}

}  // namespace

Result<ArenaPlan> plan_guarded_arena(std::span<const LiveInterval> intervals, Guard guard) {
  const int64_t page = page_bytes();
  if (auto compact = plan_arena(intervals); !compact.ok()) return compact.error();  // its limits
  ArenaPlan plan{{}, page, {0}};
  for (const LiveInterval& i : intervals) {
    const int64_t lines = align_up(i.bytes), room = (lines + page - 1) / page * page;
    plan.offsets.push_back(plan.bytes + (guard == Guard::kBehind ? room - lines : 0));
    plan.guards.push_back(plan.bytes + room);
    plan.bytes += room + page;
    if (plan.bytes > kLargestAllocation)
      return limit_error("the buffers need " + std::to_string(plan.bytes) + " bytes together");
  }
  return plan;
}

Result<Storage> allocate_guarded_storage(int64_t bytes, std::span<const int64_t> guards) {
  const auto size = static_cast<size_t>(bytes);
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    return limit_error("out of memory: cannot allocate " + std::to_string(bytes) + " bytes");
  Storage storage{std::shared_ptr<void>(data, [size](void* p) { munmap(p, size); }),
                  static_cast<uint8_t*>(data), bytes};
  poison(storage.data, bytes);
  for (const int64_t at : guards)
    if (mprotect(storage.data + at, static_cast<size_t>(page_bytes()), PROT_NONE) != 0)
      return limit_error("cannot protect " + std::to_string(guards.size()) + " pages");
  return storage;
}

void poison(void* data, int64_t bytes) {
  constexpr int kOnes = 0xff;
  if (bytes > 0) std::memset(data, kOnes, static_cast<size_t>(bytes));
}

}  // namespace tilewright
