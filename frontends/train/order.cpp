#include "frontends/train/order.h"

#include <numeric>

#include "frontends/tensor_files/npy_file.h"

namespace tilewright::train {

namespace {

// SplitMix64 (Steele, Lea and Flood, 2014): a well mixed number for each state.
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
}  // namespace

Result<Order> Order::create(const Job& job, int64_t samples) {
  Order order;
  order.samples_ = samples;
  order.batch_ = job.part();
  order.seed_ = job.seed;
  if (job.data.order.empty()) return order;
  const std::string where = job.data.order.string();
  TW_ASSIGN(const HostTensor t, read_npy(job.data.order));
  if (t.dtype != DType::kInt64 || t.shape != Shape{job.steps, job.batch})
    return invalid("is " + std::string(name(t.dtype)) + to_string(t.shape) + ", expected i64" +
                       to_string(Shape{job.steps, job.batch}) + " (steps, batch)",
                   where);
  order.given_.assign(t.data<int64_t>(), t.data<int64_t>() + t.size());
  for (size_t i = 0; i < order.given_.size(); ++i)
    if (order.given_[i] < 0 || order.given_[i] >= samples)
      return invalid("element " + std::to_string(i) + " is " + std::to_string(order.given_[i]) +
                         ", there are " + std::to_string(samples) + " samples",
                     where);
  return order;
}

// Fisher and Yates' shuffle of each epoch; a batch may reach into the next one.
std::vector<int64_t> Order::batch(int64_t step) {
  std::vector<int64_t> ids;
  for (int64_t k = step * batch_; k < (step + 1) * batch_; ++k) {
    if (!given_.empty()) {
      ids.push_back(given_[static_cast<size_t>(k)]);
      continue;
    }
    if (const int64_t epoch = k / samples_; epoch != epoch_) {
      epoch_ = epoch;
      shuffled_.resize(static_cast<size_t>(samples_));
      std::iota(shuffled_.begin(), shuffled_.end(), int64_t{0});
      uint64_t state = mixed(seed_) ^ mixed(static_cast<uint64_t>(epoch) + 1);
      for (size_t i = shuffled_.size(); i > 1; --i) {
        state = mixed(state);
        std::swap(shuffled_[i - 1], shuffled_[state % i]);
      }
    }
    ids.push_back(shuffled_[static_cast<size_t>(k % samples_)]);
  }
  return ids;
}

}  // namespace tilewright::train
