#include "runtime/distributed/comm.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "runtime/core/write_file.h"
#include "runtime/profiler.h"
#include "runtime/thread_pool.h"

namespace tilewright::distributed {

namespace {

constexpr size_t kRecorded = 64;
constexpr int64_t kLongestText = 64 << 20;
// For the others to tell where they are: their deadlines end at other moments.
constexpr std::chrono::milliseconds kRollCall{1000};

std::string seconds(std::chrono::milliseconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", static_cast<double>(time.count()) * 1e-3);
  return text;
}

// "rank 2" or "ranks 1 and 3"
std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() > 1 ? "ranks " : "rank ";
  for (size_t k = 0; k < ranks.size(); ++k)
    text += (k == 0 ? "" : k + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[k]);
  return text;
}

std::string state_text(const CallRecord& call) {
  return "call " + std::to_string(call.number) + ", " + call.what;
}

}  // namespace

Comm::Comm(std::unique_ptr<Transport> transport, CommOptions options)
    : transport_(std::move(transport)), options_(std::move(options)) {
  thread_ = std::thread([this] { serve(); });
}

Comm::~Comm() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  called_.notify_all();
  thread_.join();
}

void Comm::start(std::string what, int64_t bytes, Work work) {
  std::lock_guard lock(mutex_);
  Queued call{{.number = calls_++, .what = std::move(what), .bytes = bytes}, std::move(work)};
  call.record.queued = now_nanoseconds();
  if (failure_) return;
  queue_.push_back(std::move(call));
  called_.notify_all();
}

Status Comm::finish() {
  std::unique_lock lock(mutex_);
  const int64_t since = now_nanoseconds();
  done_.wait(lock, [&] { return queue_.empty(); });
  times_.waiting += now_nanoseconds() - since;
  return failure_ ? Status(*failure_) : Status();
}

Status Comm::run(std::string what, int64_t bytes, Work work) {
  start(std::move(what), bytes, std::move(work));
  return finish();
}

void Comm::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    called_.wait(lock, [&] { return !queue_.empty() || stop_; });
    if (queue_.empty()) return;
    Queued& call = queue_.front();
    lock.unlock();
    make(call);
    lock.lock();
    queue_.pop_front();
    if (failure_) queue_.clear();
    if (queue_.empty()) done_.notify_all();
  }
}

void Comm::make(Queued& call) {
  CallRecord& record = call.record;
  record.begun = now_nanoseconds();
  {
    std::lock_guard lock(mutex_);
    record_.push_back(record);
    if (record_.size() > kRecorded) record_.pop_front();
  }
  Status status;
  {
    std::optional<AwakeThread> awake;
    if (transport_->polls()) awake.emplace();
    status = catch_failures(
        [&] { return call.work({*transport_, record.number, Clock::now() + options_.deadline}); });
  }
  record.ended = now_nanoseconds();
  record.failed = !status.ok();
  {
    std::lock_guard lock(mutex_);
    record_.back() = record;
    times_.communicating += record.ended - record.begun;
    if (tracing_ && trace_.size() < kMostTraced) trace_.push_back(record);
  }
  if (status.ok()) return;
  Error error = explain(record, status.error());
  write_record();
  transport_->abort();
  std::lock_guard lock(mutex_);
  failure_ = std::move(error);
}

// Asks who is still there: the engine's own message says at most an address.
Error Comm::explain(const CallRecord& call, const Error& cause) {
  Error error{cause.kind, "", state_text(call), cause.notes};
  if (cause.kind != ErrorKind::kIo) {
    error.message = cause.message;
    return error;
  }
  const auto states = transport_->roll_call(state_text(call), Clock::now() + kRollCall);
  std::vector<int> silent;
  for (int r = 0; r < size(); ++r)
    if (!states[static_cast<size_t>(r)]) silent.push_back(r);
  const auto waited = std::chrono::milliseconds((call.ended - call.begun) / 1000000);
  if (!silent.empty())
    error.message = "rank " + std::to_string(rank()) + " of " + std::to_string(size()) +
                    " waited " + seconds(waited) + ", and " + ranks_text(silent) +
                    (silent.size() > 1 ? " do" : " does") + " not answer";
  else
    error.message = "rank " + std::to_string(rank()) + " of " + std::to_string(size()) +
                    " waited " + seconds(waited) + " though all ranks answer";
  error.notes.push_back("the engine says: " + cause.message);
  for (int r = 0; r < size(); ++r)
    if (const auto& s = states[static_cast<size_t>(r)]; s && *s != state_text(call))
      error.notes.push_back("rank " + std::to_string(r) + " is at " + *s);
  if (!options_.record_file.empty())
    error.notes.push_back("the last calls of this rank: " + options_.record_file);
  std::lock_guard lock(mutex_);
  missing_ = std::move(silent);
  return error;
}

// A line for each call, the oldest first.
void Comm::write_record() const {
  if (options_.record_file.empty()) return;
  std::string lines;
  std::unique_lock lock(mutex_);
  for (const CallRecord& c : record_) {
    char times[160];
    std::snprintf(times, sizeof times, ", %lld bytes, queued %.3f ms before it began, %s %.3f ms\n",
                  static_cast<long long>(c.bytes), static_cast<double>(c.begun - c.queued) * 1e-6,
                  c.failed ? "failed after" : "took",
                  static_cast<double>((c.ended ? c.ended : now_nanoseconds()) - c.begun) * 1e-6);
    lines += "call " + std::to_string(c.number) + ": " + c.what + times;
  }
  lock.unlock();
  (void)write_file(options_.record_file, lines).ok();  // the message is what matters
}

CommTimes Comm::take_times() {
  std::lock_guard lock(mutex_);
  return std::exchange(times_, {});
}

void Comm::set_tracing(bool enabled) {
  std::lock_guard lock(mutex_);
  tracing_ = enabled;
  trace_.clear();
}

std::vector<CallRecord> Comm::trace() const {
  std::lock_guard lock(mutex_);
  return trace_;
}

bool Comm::has_failed() const {
  std::lock_guard lock(mutex_);
  return failure_.has_value();
}
std::vector<int> Comm::missing() const {
  std::lock_guard lock(mutex_);
  return missing_;
}

Status Comm::all_reduce(ReduceOp op, Elements e, const std::string& of) {
  return run("all_reduce of " + of, static_cast<int64_t>(e.bytes().size()),
             [=](const Round& round) { return distributed::all_reduce(round, op, e); });
}
Status Comm::all_gather(Elements e, const std::string& of) {
  return run("all_gather of " + of, static_cast<int64_t>(e.bytes().size()),
             [=](const Round& round) { return distributed::all_gather(round, e); });
}
Status Comm::broadcast(std::span<std::byte> data, int root, const std::string& of) {
  return run("broadcast of " + of, static_cast<int64_t>(data.size()),
             [=](const Round& round) { return distributed::broadcast(round, data, root); });
}
Status Comm::barrier(const std::string& of) {
  return run("barrier of " + of, 0, [](const Round& round) { return distributed::barrier(round); });
}

Result<std::vector<std::string>> Comm::gather_texts(const std::string& text,
                                                    const std::string& of) {
  const auto ranks = static_cast<size_t>(size());
  std::vector<std::string> texts(ranks);
  texts[static_cast<size_t>(rank())] = text;
  for (size_t r = 0; r < ranks; ++r) {
    TW_ASSIGN(texts[r], broadcast_text(texts[r], static_cast<int>(r), of));
  }
  return texts;
}

Result<std::string> Comm::broadcast_text(const std::string& text, int root, const std::string& of) {
  auto length = static_cast<int64_t>(text.size());
  TW_RETURN_IF_ERROR(broadcast(std::as_writable_bytes(std::span(&length, 1)), root, of));
  if (length < 0 || length > kLongestText)
    return limit_error("rank " + std::to_string(root) + " announces " + std::to_string(length) +
                           " bytes, at most " + std::to_string(kLongestText) + " are accepted",
                       of);
  std::string all = rank() == root ? text : std::string(static_cast<size_t>(length), '\0');
  TW_RETURN_IF_ERROR(broadcast(std::as_writable_bytes(std::span(all)), root, of));
  return all;
}

}  // namespace tilewright::distributed
