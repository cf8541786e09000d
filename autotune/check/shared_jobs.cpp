#include "autotune/check/shared_jobs.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "ir/loops/layout.h"

namespace tilewright::autotune {

namespace {

// Jobs, operands and their bytes as they lie in shared memory (job.h).
struct Layout {
  CheckHeader header;
  std::vector<CheckJob> jobs;
  std::vector<CheckOperand> operands;
  std::vector<int64_t> scalars;
  std::vector<std::pair<int64_t, const std::vector<uint8_t>*>> contents;

  Layout(const ir::Program& part, const std::vector<const CapturedCall*>& calls) {
    for (size_t j = 0; j < calls.size(); ++j) {
      const auto& call = std::get<ir::CallInstruction>(part.blocks[0][j]);
      jobs.push_back({.call = static_cast<int32_t>(j),
                      .first_operand = static_cast<int32_t>(operands.size()),
                      .operands = static_cast<int32_t>(calls[j]->operands.size()),
                      .first_scalar = static_cast<int32_t>(scalars.size()),
                      .scalars = static_cast<int32_t>(calls[j]->scalars.size())});
      scalars.insert(scalars.end(), calls[j]->scalars.begin(), calls[j]->scalars.end());
      for (size_t p = 0; p < calls[j]->operands.size(); ++p)
        add(calls[j]->operands[p], part, call.buffers[p]);
    }
    header.jobs = static_cast<int32_t>(jobs.size());
    header.operands = static_cast<int32_t>(operands.size());
    header.scalars = static_cast<int32_t>(scalars.size());
    header.jobs_at = align_up(sizeof header);
    header.operands_at = header.jobs_at + align_up(vector_bytes(jobs));
    header.scalars_at = header.operands_at + align_up(vector_bytes(operands));
    const int64_t data_at = header.scalars_at + align_up(vector_bytes(scalars));
    for (CheckOperand& o : operands) {
      if (o.before >= 0) o.before += data_at;
      if (o.after >= 0) o.after += data_at;
    }
    for (auto& [at, bytes] : contents) at += data_at;
    header.bytes = data_at + data_bytes_;
  }
  void write(uint8_t* to) const {
    std::memcpy(to, &header, sizeof header);
    put(to + header.jobs_at, jobs);
    put(to + header.operands_at, operands);
    put(to + header.scalars_at, scalars);
    for (const auto& [at, bytes] : contents) put(to + at, *bytes);
  }

 private:
  template <typename T>
  static int64_t vector_bytes(const std::vector<T>& v) {
    return static_cast<int64_t>(v.size() * sizeof(T));
  }
  template <typename T>
  static void put(uint8_t* to, const std::vector<T>& v) {
    if (!v.empty()) std::memcpy(to, v.data(), v.size() * sizeof(T));
  }
  int64_t place(const std::vector<uint8_t>& bytes) {
    const int64_t at = data_bytes_;
    contents.emplace_back(at, &bytes);
    data_bytes_ += align_up(vector_bytes(bytes));
    return at;
  }
  // Constants stay in the shared object, where the schedule's layout has packed them; all others are
  // copied as they lay in the run, padding included.
  void add(const CapturedOperand& o, const ir::Program& part, int32_t buffer) {
    CheckOperand operand{.dtype = static_cast<int32_t>(o.dtype)};
    if (o.constant) {
      const ir::ProgramBuffer& b = part.buffers[static_cast<size_t>(buffer)];
      const ir::BufferNode shape{"", b.constant->dtype, {}, b.layout, ir::Scope::kParam};
      operand.constant = buffer;
      operand.bytes = ir::storage_elements(shape, b.constant->shape) * byte_size(b.constant->dtype);
    } else {
      operand.bytes = static_cast<int64_t>(o.before.size());
      operand.before = place(o.before);
      if (o.written) operand.after = place(o.after);
    }
    operands.push_back(operand);
  }
  int64_t data_bytes_ = 0;
};

}  // namespace

SharedJobs::SharedJobs(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
  descriptor_ = ::memfd_create("tilewright", MFD_CLOEXEC);
  if (descriptor_ < 0 || ::ftruncate(descriptor_, bytes) != 0) return;
  void* at = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (at != MAP_FAILED) data_ = static_cast<uint8_t*>(at);
}
SharedJobs::~SharedJobs() {
  if (data_) ::munmap(data_, bytes_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<std::unique_ptr<SharedJobs>> SharedJobs::make(const ir::Program& part,
                                                     const std::vector<const CapturedCall*>& calls,
                                                     int workers, bool same_bits) {
  Layout layout(part, calls);
  layout.header.workers = workers;
  layout.header.same_bits = same_bits;
  std::unique_ptr<SharedJobs> shared(new SharedJobs(layout.header.bytes));
  if (!shared->data_) return limit_error("no memory for the operands of kernels that are checked");
  layout.write(shared->data_);
  return shared;
}

std::span<CheckJob> SharedJobs::jobs() const {
  const auto& header = *reinterpret_cast<const CheckHeader*>(data_);
  return {reinterpret_cast<CheckJob*>(data_ + header.jobs_at), static_cast<size_t>(header.jobs)};
}

}  // namespace tilewright::autotune
