// Batches that are read ahead: while a step runs, a thread of its own reads the next one's samples, where
// that takes longer than to hand them over.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "frontends/train/data.h"
#include "frontends/train/order.h"

namespace tilewright::train {

// ids: which samples of the data; a tensor for each column of the data.
struct Batch {
  std::vector<int64_t> ids;
  std::vector<Tensor> columns;
};

class Batches {
 public:
  // Reads none yet. `data` outlives the object. Errors: kLimit for memory.
  static Result<std::unique_ptr<Batches>> create(const Dataset& data, Order order, int64_t batch);
  ~Batches();
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  // The samples of a step; they hold until the next call. May begin to read those of `next`, which is asked for
  // next, so that it waits for no file.
  const Batch& at(int64_t step, int64_t next);

 private:
  static constexpr int64_t kNothing = -1, kEnd = -2;
  Batches(const Dataset& data, Order order) : data_(data), order_(std::move(order)) {}
  void read_ahead();
  void read(int64_t step) noexcept;

  const Dataset& data_;
  Order order_;
  // One set is the caller's, the other one the thread's, in turn.
  Batch sets_[2];
  int given_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  // A step that the thread is to read, or kEnd. While there is one, the members below, order_ and the set
  // that is not given are the thread's, else the caller's.
  int64_t wanted_ = kNothing;
  // What was read and not given yet, how long that took, and why it failed.
  int64_t read_ = kNothing, nanoseconds_ = 0;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace tilewright::train
