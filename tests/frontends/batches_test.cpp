// Batches are those of their steps, whoever reads them, and whatever goes wrong meanwhile.
#include "frontends/train/batches.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>

namespace tilewright::train {
namespace {

// Sample k is the number k; reading takes a while, so that the thread is worth it.
class Slow final : public Dataset {
 public:
  explicit Slow(int64_t microseconds) : microseconds_(microseconds) {}
  int64_t size() const override { return 50; }
  const std::vector<SampleInfo>& columns() const override { return columns_; }
  void read(std::span<const int64_t> ids, std::span<const Tensor> rows) const override {
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds_));
    if (std::this_thread::get_id() != home_) ++ahead_;
    if (fails_) throw std::runtime_error("the disk is gone");
    std::copy(ids.begin(), ids.end(), rows[0].data_as<int64_t>());
  }

  mutable std::atomic<int> ahead_ = 0;  // reads by another thread
  std::atomic<bool> fails_ = false;

 private:
  const std::thread::id home_ = std::this_thread::get_id();
  const int64_t microseconds_;
  const std::vector<SampleInfo> columns_{{"x", DType::kInt64, {}}};
};

constexpr int64_t kBatch = 6;
Order some_order() {
  Job job;
  job.batch = kBatch;
  job.seed = 7;
  return *Order::create(job, 50);
}
void expect_step(Batches& batches, int64_t step) {
  const auto* found = batches.at(step, step + 1).columns[0].data_as<int64_t>();
  EXPECT_EQ(std::vector<int64_t>(found, found + kBatch), some_order().batch(step)) << step;
}

TEST(Batches, AreThoseOfTheirSteps) {
  for (const int64_t microseconds : {0, 300}) {
    const Slow data(microseconds);
    const auto batches = Batches::create(data, some_order(), kBatch);
    ASSERT_TRUE(batches.ok());
    for (int64_t step = 0; step < 30; ++step) expect_step(**batches, step);
    // To and fro, and the same again, as runs that go on elsewhere do.
    for (const int64_t step : {100, 101, 4, 4, 5, 3}) expect_step(**batches, step);
    EXPECT_EQ(data.ahead_ >= 29, microseconds > 0);
  }
}

TEST(Batches, OfAGivenStepHoldUntilTheNextCall) {
  const Slow data(300);
  const auto batches = Batches::create(data, some_order(), kBatch);
  ASSERT_TRUE(batches.ok());
  (*batches)->at(0, 1);
  const auto* given = (*batches)->at(1, 2).columns[0].data_as<int64_t>();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(std::vector<int64_t>(given, given + kBatch), some_order().batch(1));
}

TEST(Batches, EndWhileOneIsRead) {
  for (int k = 0; k < 20; ++k) {
    const Slow data(500);
    const auto batches = Batches::create(data, some_order(), kBatch);
    ASSERT_TRUE(batches.ok());
    (*batches)->at(k, k + 1);
  }
}

TEST(Batches, FailWhereTheyAreAskedFor) {
  Slow data(300);
  const auto batches = Batches::create(data, some_order(), kBatch);
  ASSERT_TRUE(batches.ok());
  expect_step(**batches, 0);
  expect_step(**batches, 1);
  while (data.ahead_ < 2) std::this_thread::yield();
  data.fails_ = true;
  EXPECT_NO_THROW((*batches)->at(2, 3));  // was read before
  EXPECT_THROW((*batches)->at(3, 4), std::runtime_error);
  EXPECT_THROW((*batches)->at(4, 5), std::runtime_error);
  data.fails_ = false;
  expect_step(**batches, 5);
}

}  // namespace
}  // namespace tilewright::train
