// tilewright launch: the processes of one machine, from their start to the exit status that stands for all of them.
#include <charconv>
#include <iostream>
#include <random>

#include "frontends/cli/cli.h"
#include "runtime/distributed/process_group.h"
#include "runtime/distributed/store.h"
#include "runtime/distributed/store_server.h"

namespace tilewright::cli {

using distributed::ProcessEnd;

namespace {

// For a step to end and a checkpoint to be written.
constexpr std::chrono::seconds kGrace{30};

struct Range {
  int least = 1, most = 1;
};

// "N" or "LEAST:MOST".
Result<Range> parse_range(const std::string& option, const std::string& text) {
  constexpr int kMost = 1024;
  const size_t colon = text.find(':');
  const std::string least = text.substr(0, colon);
  const std::string most = colon == std::string::npos ? least : text.substr(colon + 1);
  Range range;
  const auto read = [](const std::string& digits, int& number) {
    const char* end = digits.data() + digits.size();
    const auto [stopped, error] = std::from_chars(digits.data(), end, number);
    return error == std::errc() && stopped == end && number >= 1 && number <= kMost;
  };
  if (!read(least, range.least) || !read(most, range.most) || range.least > range.most)
    return invalid(option + " is '" + text + "', expected N or LEAST:MOST, from 1 to " +
                   std::to_string(kMost));
  return range;
}

std::string random_job() {
  constexpr char kDigits[] = "0123456789abcdef";
  std::random_device random;
  std::string name = "job-";
  for (int i = 0; i < 16; ++i) name += kDigits[random() % 16];
  return name;
}

class Launch {
 public:
  Launch(const LaunchArguments& arguments, Range processes, Range nodes)
      : arguments_(arguments),
        processes_(processes),
        nodes_(nodes),
        job_(arguments.job.empty() ? random_job() : arguments.job),
        restarts_(static_cast<size_t>(processes.most)) {}

  // The exit status. Errors: kIo, when a process cannot be started.
  Result<int> run();

 private:
  Status start(int rank);
  Status handle_failure(const ProcessEnd& end);
  int least() const { return nodes_.least * processes_.least; }
  // Processes on all machines that have not failed, as far as is known here: those of others might all be there.
  int most_left() const { return nodes_.most * processes_.most - failed_; }

  const LaunchArguments& arguments_;
  const Range processes_, nodes_;
  const std::string job_;
  std::string store_;
  std::unique_ptr<distributed::StoreServer> server_;
  std::unique_ptr<distributed::ProcessGroup> group_;
  std::vector<int> restarts_;  // by rank
  int failed_ = 0;             // for good
  bool stopped_ = false;       // all were asked to end
  int status_ = kOk;
};

Result<int> Launch::run() {
  TW_ASSIGN(group_, distributed::ProcessGroup::make(kGrace));
  store_ = arguments_.store;
  if (store_.empty()) {
    TW_ASSIGN(server_, distributed::StoreServer::start("127.0.0.1", 0));
    store_ = server_->url();
  }
  for (int rank = 0; rank < processes_.most; ++rank) TW_RETURN_IF_ERROR(start(rank));
  for (;;) {
    TW_ASSIGN(const auto end, group_->wait());
    if (!end) return status_;
    if (end->failed() && !stopped_) TW_RETURN_IF_ERROR(handle_failure(*end));
  }
}

Status Launch::start(int rank) {
  distributed::ProcessSpec spec;
  spec.command = arguments_.command;
  if (arguments_.is_own) {  // this very file, whatever stands at its path or in PATH
    spec.command.insert(spec.command.begin(), "/proc/self/exe");
    spec.name = "tilewright";
  }
  spec.environment = {{"TILEWRIGHT_ENGINE", "gloo"},
                      {"TILEWRIGHT_STORE", store_},
                      {"TILEWRIGHT_JOB", job_},
                      {"TILEWRIGHT_LEAST", std::to_string(least())},
                      {"TILEWRIGHT_MOST", std::to_string(nodes_.most * processes_.most)},
                      {"TILEWRIGHT_LOCAL_RANK", std::to_string(rank)},
                      {"TILEWRIGHT_LOCAL_RANKS", std::to_string(processes_.most)}};
  return group_->start(rank, spec);
}

Status Launch::handle_failure(const ProcessEnd& end) {
  const bool interrupted = group_->interrupts() > 0;
  int& restarts = restarts_[static_cast<size_t>(end.rank)];
  const std::string& program = arguments_.command[0];
  std::string line = "launch: process " + std::to_string(end.rank) + " (" +
                     program.substr(program.rfind('/') + 1) +
                     (end.by_signal ? ") was killed by signal " : ") ended with exit status ") +
                     std::to_string(end.code);
  if (!interrupted && restarts < arguments_.restarts) {
    ++restarts;
    std::cerr << line << "; it is started again, " << restarts << " of " << arguments_.restarts
              << " times" << std::endl;
    return start(end.rank);
  }
  if (failed_++ == 0) status_ = end.by_signal ? 128 + end.code : end.code;
  // Who was interrupted ends by itself.
  stopped_ = !interrupted && most_left() < least();
  if (stopped_) {
    group_->stop();
    line += "; the others are stopped, as fewer than " + std::to_string(least()) + " are left";
  }
  std::cerr << line << std::endl;
  return {};
}

}  // namespace

int launch_command(const LaunchArguments& a) {
  if (a.command.empty())
    return report_usage(
        "give a command to start, as in `tilewright launch --nproc 2 train job.toml`");
  const auto processes = parse_range("--nproc", a.processes);
  if (!processes) return report_usage(processes.error().message);
  const auto nodes = parse_range("--nnodes", a.nodes.empty() ? "1" : a.nodes);
  if (!nodes) return report_usage(nodes.error().message);
  if (nodes->most > 1 && (a.store.empty() || a.job.empty()))
    return report_usage("--nnodes needs --store and --job, the same on all machines");
  if (!a.store.empty())
    if (const auto store = distributed::connect_store(a.store); !store)
      return report_usage("--store: " + store.error().message);
  const auto status = Launch(a, *processes, *nodes).run();
  return status ? *status : report(status.error());
}

}  // namespace tilewright::cli
