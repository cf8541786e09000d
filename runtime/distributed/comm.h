// Collectives of one rank, with a thread of their own, deadlines, and a record of what was called last.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/distributed/collectives.h"

namespace tilewright::distributed {

// One call, for messages, records and traces. Times are those of now_nanoseconds(); end 0: not over.
struct CallRecord {
  uint64_t number = 0;  // equal on all ranks
  std::string what;     // "all_reduce of gradients 3 of 8"
  int64_t bytes = 0, queued = 0, begun = 0, ended = 0;
  bool failed = false;
};

struct CommOptions {
  std::chrono::milliseconds deadline{60000};  // of each call, from when it begins
  // Where the last calls are written when one fails; empty: nowhere.
  std::string record_file;
};

// Nanoseconds. A call communicates from its begin to its end, waiting for other ranks included; the caller waits while
// it is in finish().
struct CommTimes {
  int64_t communicating = 0, waiting = 0;
};

// Owns the transport: a communication thread makes all calls, one after the other, in the order in which they come,
// and sleeps when there are none. Every rank makes the same calls in the same order. After a failure every later
// call fails, too: a new Comm over a new transport takes its place. One thread at a time calls it.
class Comm {
 public:
  using Work = std::function<Status(const Round&)>;

  Comm(std::unique_ptr<Transport> transport, CommOptions options);
  ~Comm();  // a call under way ends first
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  int rank() const { return transport_->rank(); }
  int size() const { return transport_->size(); }
  std::string describe() const { return transport_->describe(); }
  std::chrono::milliseconds deadline() const { return options_.deadline; }

  // Queues a call and returns. `what` it does and for what, `bytes` that it is about.
  void start(std::string what, int64_t bytes, Work work);
  // Waits until all calls are over. The error of the first one that failed: what it was, which ranks are missing.
  Status finish();
  Status run(std::string what, int64_t bytes, Work work);

  // The collectives of collectives.h; `of`: what for.
  Status all_reduce(ReduceOp op, Elements elements, const std::string& of);
  Status all_gather(Elements all, const std::string& of);
  Status broadcast(std::span<std::byte> data, int root, const std::string& of);
  Status barrier(const std::string& of);
  // Texts of any length: what each rank gives, by rank.
  Result<std::vector<std::string>> gather_texts(const std::string& text, const std::string& of);
  // The root's text, for all; `text` of the others counts for nothing.
  Result<std::string> broadcast_text(const std::string& text, int root, const std::string& of);

  // Since they were taken last. Not while calls are under way.
  CommTimes take_times();
  // Keeps records of all calls from now on, at most kMostTraced, for trace(); false: forgets them.
  void set_tracing(bool enabled);
  std::vector<CallRecord> trace() const;
  static constexpr size_t kMostTraced = 1 << 18;

  bool has_failed() const;
  // Ranks that were silent when a call failed; empty before.
  std::vector<int> missing() const;

 private:
  struct Queued {
    CallRecord record;
    Work work;
  };
  void serve();
  void make(Queued& call);
  Error explain(const CallRecord& call, const Error& cause);
  void write_record() const;

  const std::unique_ptr<Transport> transport_;
  const CommOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable called_, done_;
  std::deque<Queued> queue_;       // the first one is under way
  std::deque<CallRecord> record_;  // the last kRecorded
  std::vector<CallRecord> trace_;
  bool tracing_ = false;
  CommTimes times_;
  uint64_t calls_ = 0;
  std::optional<Error> failure_;
  std::vector<int> missing_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace tilewright::distributed
