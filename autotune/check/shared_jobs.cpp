#include "autotune/check/shared_jobs.h"

#include <cstring>

#include "ir/loops/layout.h"
#include "runtime/arena.h"

namespace tilewright::autotune {

namespace {

// A candidate may take so many times as long as the usual form on all threads: what takes longer is no
// gain. It is called on one thread, and twice.
constexpr double kTimesAsLong = 20;

CheckOperand operand(const CapturedOperand& o, const ir::ProgramBuffer& buffer, int32_t number) {
  if (!o.constant)
    return {.bytes = o.bytes,
            .before = o.before,
            .after = o.after,
            .dtype = static_cast<int32_t>(o.dtype),
            .unknown = o.written && o.after < 0};
  const ir::BufferNode stored{"", buffer.constant->dtype, {}, buffer.layout, ir::Scope::kParam};
  return {.bytes = ir::storage_elements(stored, buffer.constant->shape) *
                   byte_size(buffer.constant->dtype),
          .dtype = static_cast<int32_t>(o.dtype),
          .constant = number};
}

template <typename T>
int64_t add(int64_t& bytes, const std::vector<T>& v) {
  const int64_t at = bytes;
  bytes += align_up(static_cast<int64_t>(v.size() * sizeof(T)));
  return at;
}
template <typename T>
void put(uint8_t* to, const std::vector<T>& v) {
  if (!v.empty()) std::memcpy(to, v.data(), v.size() * sizeof(T));
}

}  // namespace

Result<SharedJobs> SharedJobs::make(const ir::Program& part,
                                    const std::vector<const CapturedCall*>& calls,
                                    const CapturedCalls& captured, int workers, bool same_bits,
                                    double seconds) {
  std::vector<CheckJob> jobs;
  std::vector<CheckOperand> operands;
  std::vector<int64_t> scalars;
  for (size_t j = 0; j < calls.size(); ++j) {
    const CapturedCall& c = *calls[j];
    const auto& call = std::get<ir::CallInstruction>(part.blocks[0][j]);
    jobs.push_back({.call = static_cast<int32_t>(j),
                    .first_operand = static_cast<int32_t>(operands.size()),
                    .operands = static_cast<int32_t>(c.operands.size()),
                    .first_scalar = static_cast<int32_t>(scalars.size()),
                    .scalars = static_cast<int32_t>(c.scalars.size()),
                    .seconds = seconds + kTimesAsLong * workers * c.seconds});
    scalars.insert(scalars.end(), c.scalars.begin(), c.scalars.end());
    for (size_t p = 0; p < c.operands.size(); ++p)
      operands.push_back(operand(c.operands[p], part.buffers[static_cast<size_t>(call.buffers[p])],
                                 call.buffers[p]));
  }
  CheckHeader header{.jobs = static_cast<int32_t>(jobs.size()),
                     .operands = static_cast<int32_t>(operands.size()),
                     .scalars = static_cast<int32_t>(scalars.size()),
                     .workers = workers,
                     .same_bits = same_bits,
                     .bytes = align_up(sizeof(CheckHeader)),
                     .contents_bytes = captured.contents.bytes()};
  header.jobs_at = add(header.bytes, jobs);
  header.operands_at = add(header.bytes, operands);
  header.scalars_at = add(header.bytes, scalars);
  TW_ASSIGN(SharedMemory memory, SharedMemory::make(header.bytes));
  std::memcpy(memory.data(), &header, sizeof header);
  put(memory.data() + header.jobs_at, jobs);
  put(memory.data() + header.operands_at, operands);
  put(memory.data() + header.scalars_at, scalars);
  return SharedJobs(std::move(memory), captured.contents.descriptor());
}

std::span<CheckJob> SharedJobs::jobs() const {
  const auto& header = *reinterpret_cast<const CheckHeader*>(memory_.data());
  return {reinterpret_cast<CheckJob*>(memory_.data() + header.jobs_at),
          static_cast<size_t>(header.jobs)};
}

}  // namespace tilewright::autotune
