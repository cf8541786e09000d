#include "runtime/distributed/link.h"

#include <algorithm>
#include <ctime>

#include "runtime/profiler.h"

namespace tilewright::distributed {

namespace {

constexpr int kPings = 5, kFewBytes = 31, kManyBytes = 5;
constexpr double kLongEnough = 0.1;  // seconds
constexpr int64_t kLeastBytes = 1 << 20, kMostBytes = 64 << 20;

Status send_now(const Round& round, int to, int64_t value) {
  TW_ASSIGN(const auto transfer, round.transport.send(to, round.number * kTagsOfCall,
                                                      std::as_bytes(std::span(&value, 1))));
  TW_ASSIGN(const int rank, transfer->wait(round.deadline));
  (void)rank;
  return {};
}
Result<int64_t> receive_from(const Round& round, int from) {
  int64_t value = 0;
  TW_ASSIGN(const auto transfer,
            round.transport.receive(from, round.number * kTagsOfCall,
                                    std::as_writable_bytes(std::span(&value, 1))));
  TW_ASSIGN(const int rank, transfer->wait(round.deadline));
  (void)rank;
  return value;
}

// Rank 0 answers each of the others in turn; the quickest answer is the one to go by (Cristian, 1989).
Status compare_clocks(const Round& round, int64_t& offset) {
  const int rank = round.transport.rank();
  if (rank == 0) {
    for (int r = 1; r < round.transport.size(); ++r)
      for (int k = 0; k < kPings; ++k) {
        TW_ASSIGN(const int64_t ping, receive_from(round, r));
        (void)ping;
        TW_RETURN_IF_ERROR(send_now(round, r, now_nanoseconds()));
      }
    return {};
  }
  int64_t quickest = INT64_MAX;
  for (int k = 0; k < kPings; ++k) {
    const int64_t sent = now_nanoseconds();
    TW_RETURN_IF_ERROR(send_now(round, 0, sent));
    TW_ASSIGN(const int64_t there, receive_from(round, 0));
    const int64_t back = now_nanoseconds();
    if (back - sent >= quickest) continue;
    quickest = back - sent;
    offset = there - (sent + back) / 2;
  }
  return {};
}

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// The slowest rank's seconds for a sum.
Result<double> time_sum(Comm& comm, std::vector<float>& values) {
  TW_RETURN_IF_ERROR(comm.barrier("the measurement of the link"));
  const int64_t since = now_nanoseconds();
  TW_RETURN_IF_ERROR(comm.all_reduce(
      ReduceOp::kMax, {DType::kFloat32, values.data(), static_cast<int64_t>(values.size())},
      "the measurement of the link"));
  double seconds = static_cast<double>(now_nanoseconds() - since) * 1e-9;
  TW_RETURN_IF_ERROR(comm.all_reduce(ReduceOp::kMax, {DType::kFloat64, &seconds, 1},
                                     "the measurement of the link"));
  return seconds;
}

Result<double> median_sum(Comm& comm, std::vector<float>& values, int times) {
  std::vector<double> all;
  for (int k = 0; k < times; ++k) {
    TW_ASSIGN(const double seconds, time_sum(comm, values));
    all.push_back(seconds);
  }
  std::ranges::sort(all);
  return all[all.size() / 2];
}

}  // namespace

Result<int64_t> clock_offset(Comm& comm) {
  int64_t offset = 0;
  TW_RETURN_IF_ERROR(comm.run("the comparison of clocks", 0,
                              [&](const Round& round) { return compare_clocks(round, offset); }));
  return offset;
}

double all_reduce_seconds(const RingCost& cost, int64_t bytes, int ranks) {
  if (ranks < 2) return 0;
  const double steps = 2.0 * (ranks - 1);
  return steps * (cost.latency + cost.per_byte * static_cast<double>(bytes) / ranks);
}

Result<RingCost> measure_ring(Comm& comm) {
  const double steps = 2.0 * (comm.size() - 1);
  std::vector<float> values(static_cast<size_t>(comm.size()) * 16);
  TW_ASSIGN(const double few, median_sum(comm, values, kFewBytes));
  int64_t bytes = kLeastBytes;
  for (double seconds = 0; seconds < kLongEnough && bytes < kMostBytes;) {
    bytes *= 2;
    values.assign(static_cast<size_t>(bytes) / sizeof(float), 1.0f);
    TW_ASSIGN(seconds, time_sum(comm, values));
  }
  const double cpu_before = cpu_seconds();
  TW_ASSIGN(const double many, median_sum(comm, values, kManyBytes));
  double cpu = (cpu_seconds() - cpu_before) / kManyBytes;
  TW_RETURN_IF_ERROR(
      comm.all_reduce(ReduceOp::kMax, {DType::kFloat64, &cpu, 1}, "the measurement of the link"));
  const double bytes_sent = steps * static_cast<double>(bytes) / comm.size();
  return RingCost{few / steps, std::max(0.0, many - few) / bytes_sent, cpu / bytes_sent};
}

}  // namespace tilewright::distributed
