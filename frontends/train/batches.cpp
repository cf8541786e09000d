#include "frontends/train/batches.h"

#include "runtime/profiler.h"

namespace tilewright::train {

namespace {

// To wake a thread and to wait for it take a few microseconds each; a copy of 16 KB takes two.
constexpr int64_t kHandOver = 20000;  // nanoseconds

}  // namespace

Result<std::unique_ptr<Batches>> Batches::create(const Dataset& data, Order order, int64_t batch) {
  std::unique_ptr<Batches> batches(new Batches(data, std::move(order)));
  for (Batch& set : batches->sets_)
    for (const SampleInfo& c : data.columns()) {
      Shape shape = c.shape;
      shape.insert(shape.begin(), batch);
      TW_ASSIGN(Tensor t, Tensor::allocate(c.dtype, shape));
      set.columns.push_back(std::move(t));
    }
  batches->thread_ = std::thread([b = batches.get()] { b->read_ahead(); });
  return batches;
}

Batches::~Batches() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    wanted_ = kEnd;
  }
  changed_.notify_all();
  thread_.join();
}

void Batches::read(int64_t step) noexcept {
  const int64_t since = now_nanoseconds();
  failure_ = nullptr;
  try {
    Batch& set = sets_[1 - given_];
    set.ids = order_.batch(step);
    data_.read(set.ids, set.columns);
  } catch (...) { failure_ = std::current_exception(); }
  read_ = step;
  nanoseconds_ = now_nanoseconds() - since;
}

void Batches::read_ahead() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return wanted_ != kNothing; });
    if (wanted_ == kEnd) return;
    const int64_t step = wanted_;
    lock.unlock();
    read(step);
    lock.lock();
    if (wanted_ == step) wanted_ = kNothing;
    changed_.notify_all();
  }
}

const Batch& Batches::at(int64_t step, int64_t next) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return wanted_ == kNothing; });
  }
  // The first one, where steps do not follow one another, and what is read quickly.
  if (read_ != step) read(step);
  read_ = kNothing;  // given once
  if (failure_) std::rethrow_exception(failure_);
  given_ = 1 - given_;
  if (nanoseconds_ > kHandOver && order_.has(next)) {
    {
      std::lock_guard lock(mutex_);
      wanted_ = next;
    }
    changed_.notify_all();
  }
  return sets_[given_];
}

}  // namespace tilewright::train
