#include "frontends/train/part_sums.h"

#include <algorithm>

namespace tilewright::train {

using distributed::Elements;
using distributed::PartRange;
using distributed::ReduceOp;

void PartSums::begin_step(PartRange run, int parts) {
  run_ = run;
  parts_ = parts;
  next_ = run.begin;
  complete_.clear();
  // What a rank without parts adds to the sums of the others. Exact ones do not look at it.
  if (run.count() == 0 && !exact_)
    for (size_t b = 0; b < levels_[0].size(); ++b) std::ranges::fill(values(0, b), 0.0f);
}

Result<std::vector<Tensor>> PartSums::begin_part() {
  const size_t level = complete_.size();
  if (level == levels_.size()) {
    std::vector<Tensor> buffers;
    for (const Tensor& sum : levels_[0]) {
      TW_ASSIGN(Tensor t, Tensor::allocate(sum.dtype(), sum.shape()));
      buffers.push_back(std::move(t));
    }
    levels_.push_back(std::move(buffers));
  }
  return levels_[level];
}

void PartSums::end_part() {
  const PartRange part{next_, next_ + 1};
  ++next_;
  if (!exact_) return;
  complete_.push_back(part);
  // A node is complete with its right child.
  while (complete_.size() > 1) {
    const PartRange left = complete_[complete_.size() - 2], right = complete_.back(),
                    both{left.begin, right.end};
    const auto whole = distributed::subtrees_of(both, parts_);
    if (whole.size() != 1) return;
    complete_.pop_back();
    complete_.back() = both;
    add(complete_.size() - 1, complete_.size());
  }
}

void PartSums::add(size_t into, size_t from) {
  for (size_t b = 0; b < levels_[into].size(); ++b) {
    const std::span<float> to = values(into, b);
    distributed::combine(ReduceOp::kSum,
                         {DType::kFloat32, to.data(), static_cast<int64_t>(to.size())},
                         values(from, b).data());
  }
}

void PartSums::start(distributed::Comm* comm) {
  if (!comm) return;
  for (size_t b = 0; b < levels_[0].size(); ++b) start_sum(*comm, b);
}

void PartSums::start_sum(distributed::Comm& comm, size_t buffer) {
  const std::span<float> sum = values(0, buffer);
  const std::string what = "buffer " + std::to_string(buffer + 1) + " of " +
                           std::to_string(levels_[0].size()) + " of gradients";
  const auto bytes = static_cast<int64_t>(sum.size_bytes());
  if (!exact_) {
    const Elements elements{DType::kFloat32, sum.data(), static_cast<int64_t>(sum.size())};
    return comm.start("all_reduce of " + what, bytes, [=](const distributed::Round& round) {
      return distributed::all_reduce(round, ReduceOp::kSum, elements);
    });
  }
  std::vector<const float*> subtrees;
  for (size_t level = 0; level < complete_.size(); ++level)
    subtrees.push_back(values(level, buffer).data());
  comm.start("exact_sum of " + what, bytes, [=, parts = parts_](const distributed::Round& round) {
    return distributed::exact_sum(round, subtrees, sum, parts);
  });
}

std::span<float> PartSums::values(size_t level, size_t buffer) const {
  const Tensor& t = levels_[level][buffer];
  return {t.data_as<float>(), static_cast<size_t>(t.bytes()) / sizeof(float)};
}

int64_t PartSums::extra_bytes() const {
  int64_t bytes = 0;
  for (size_t level = 1; level < levels_.size(); ++level)
    for (const Tensor& t : levels_[level]) bytes += t.bytes();
  return bytes;
}

}  // namespace tilewright::train
