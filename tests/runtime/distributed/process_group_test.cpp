// Processes that are started together: how each ended, what each wrote, and that none is left.
#include "runtime/distributed/process_group.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "tests/runtime/distributed/random_bytes.h"

namespace tilewright::distributed {
namespace {

using std::chrono::milliseconds;

ProcessSpec shell(const std::string& script) {
  ProcessSpec spec;
  spec.command = {"sh", "-c", script};
  return spec;
}

std::unique_ptr<ProcessGroup> make(milliseconds grace = std::chrono::seconds(10)) {
  auto group = ProcessGroup::make(grace);
  EXPECT_TRUE(group);
  return std::move(*group);
}

// Waits until none is left; the ends by rank.
std::map<int, ProcessEnd> wait_for_all(ProcessGroup& group) {
  std::map<int, ProcessEnd> ends;
  for (;;) {
    const auto end = group.wait();
    EXPECT_TRUE(end);
    if (!end || !*end) return ends;
    EXPECT_TRUE(ends.emplace((*end)->rank, **end).second);
  }
}

size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

bool has_child() { return ::waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD; }

bool ends_within(pid_t id, milliseconds limit) {
  const auto end = Clock::now() + limit;
  while (Clock::now() < end) {
    // One that nobody reaps has ended, too.
    std::ifstream stat("/proc/" + std::to_string(id) + "/stat");
    std::string text;
    if (!std::getline(stat, text) || text.find(") Z ") != std::string::npos) return true;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return false;
}

TEST(ProcessGroup, HowEachEnds) {
  Random random(11);
  const size_t descriptors = open_descriptors();
  for (int round = 0; round < 8; ++round) {
    const auto group = make();
    const int signals[] = {SIGKILL, SIGTERM, SIGSEGV, SIGABRT};
    std::map<int, std::pair<bool, int>> expected;
    for (int rank = 0; rank < 6; ++rank) {
      const bool by_signal = below(random, 2) != 0;
      const int code = by_signal ? signals[below(random, 4)] : static_cast<int>(below(random, 256));
      expected[rank] = {by_signal, code};
      const std::string script = by_signal ? "ulimit -c 0; kill -" + std::to_string(code) + " $$"
                                           : "exit " + std::to_string(code);
      ASSERT_TRUE(group->start(rank, shell(script)));
    }
    const auto ends = wait_for_all(*group);
    ASSERT_EQ(ends.size(), expected.size());
    for (const auto& [rank, end] : ends)
      EXPECT_EQ(std::pair(end.by_signal, end.code), expected[rank]) << rank;
  }
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_FALSE(has_child());
}

// Checks that the launcher prefixes lines of up to 300 KiB, and a last line that lacks its newline.
TEST(ProcessGroup, LinesHavePrefixes) {
  Random random(12);
  const std::string folder = testing::TempDir();
  const auto path = [&](int rank, int stream) {
    return folder + "lines-" + std::to_string(::getpid()) + "-" + std::to_string(rank) +
           std::to_string(stream);
  };
  std::map<std::pair<int, int>, std::vector<std::string>> written;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  {
    const auto group = make();
    for (int rank = 0; rank < 3; ++rank) {
      for (int stream = 0; stream < 2; ++stream) {
        auto& lines = written[{rank, stream}];
        for (int i = 0; i < 60; ++i) {
          const size_t most = i % 20 == 0 ? 300000 : 80;
          lines.push_back(std::string(below(random, most), static_cast<char>('a' + i % 26)));
        }
        lines.back() = "no end";
        std::ofstream file(path(rank, stream));
        for (size_t i = 0; i < lines.size(); ++i) file << (i ? "\n" : "") << lines[i];
      }
      ASSERT_TRUE(group->start(
          rank, shell("cat " + path(rank, 0) + " & cat " + path(rank, 1) + " >&2; wait")));
    }
    for (const auto& [rank, end] : wait_for_all(*group)) EXPECT_FALSE(end.failed()) << rank;
  }
  std::istringstream outputs[] = {std::istringstream(testing::internal::GetCapturedStdout()),
                                  std::istringstream(testing::internal::GetCapturedStderr())};
  std::map<std::pair<int, int>, std::vector<std::string>> found;
  for (int stream = 0; stream < 2; ++stream)
    for (std::string line; std::getline(outputs[stream], line);) {
      ASSERT_EQ(line.substr(0, 6), "[rank ");
      ASSERT_EQ(line.substr(7, 2), "] ");
      found[{line[6] - '0', stream}].push_back(line.substr(9));
    }
  EXPECT_TRUE(found == written);
  for (const auto& [which, lines] : written)
    std::filesystem::remove(path(which.first, which.second));
}

TEST(ProcessGroup, EnvironmentAndInput) {
  testing::internal::CaptureStdout();
  {
    const auto group = make();
    ProcessSpec spec = shell("cat; echo \"$HOME $ONE\"");
    spec.environment = {{"HOME", "here"}, {"ONE", "a b"}};
    ASSERT_TRUE(group->start(0, spec));
    wait_for_all(*group);
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "[rank 0] here a b\n");
}

// Who obeys ends by itself, who does not is killed, and so is who is stopped.
TEST(ProcessGroup, Stop) {
  testing::internal::CaptureStdout();
  const auto before = Clock::now();
  const auto group = make(milliseconds(400));
  const std::string sleep = "; sleep 100 & echo ready; while :; do wait; done";
  ASSERT_TRUE(group->start(0, shell("trap 'exit 7' TERM" + sleep)));
  ASSERT_TRUE(group->start(1, shell("trap '' TERM; echo ready; while :; do sleep 0.1; done")));
  ASSERT_TRUE(group->start(2, shell("trap 'exit 8' TERM; kill -STOP $$" + sleep)));
  ASSERT_TRUE(group->start(3, shell("sleep 0.5; exit 3")));
  const auto first = group->wait();
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((*first)->rank, 3);
  group->stop();
  auto ends = wait_for_all(*group);
  testing::internal::GetCapturedStdout();
  EXPECT_EQ(ends[0].code, 7);
  EXPECT_TRUE(ends[1].by_signal);
  EXPECT_EQ(ends[1].code, SIGKILL);
  EXPECT_EQ(ends[2].code, 8);
  EXPECT_LE(Clock::now() - before, std::chrono::seconds(5));
}

TEST(ProcessGroup, SignalsArePassedOnOnce) {
  for (const int signal : {SIGINT, SIGTERM}) {
    testing::internal::CaptureStdout();
    const auto group = make();
    const std::string name = signal == SIGINT ? "INT" : "TERM";
    for (int rank = 0; rank < 2; ++rank)
      ASSERT_TRUE(group->start(
          rank, shell("n=0; trap 'n=$((n+1))' " + name +
                      "; while [ $n = 0 ]; do sleep 0.05; done; sleep 0.3; exit $((40+n))")));
    ASSERT_TRUE(group->start(2, shell("sleep 0.5; kill -" + name + " $PPID")));
    auto ends = wait_for_all(*group);
    testing::internal::GetCapturedStdout();
    EXPECT_EQ(group->interrupts(), 1);
    EXPECT_EQ(ends[0].code, 41);
    EXPECT_EQ(ends[1].code, 41);
  }
}

TEST(ProcessGroup, NothingIsLeftBehind) {
  testing::internal::CaptureStdout();
  {
    const auto group = make();
    ASSERT_TRUE(group->start(0, shell("sleep 100 & echo $!")));
    wait_for_all(*group);
  }
  const std::string line = testing::internal::GetCapturedStdout();
  ASSERT_EQ(line.substr(0, 9), "[rank 0] ");
  EXPECT_TRUE(ends_within(std::stoi(line.substr(9)), std::chrono::seconds(2)));
  {
    const auto group = make();
    ASSERT_TRUE(group->start(0, shell("sleep 100")));
  }
  EXPECT_FALSE(has_child());
}

// The process that started them is killed and can do nothing for them.
TEST(ProcessGroup, EndsWithItsLauncher) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t launcher = ::fork();
  if (launcher == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    const auto group = make();
    if (!group->start(0, shell("echo $$; exec sleep 100"))) ::_exit(1);
    (void)group->wait();
    ::_exit(2);
  }
  ::close(ends[1]);
  char line[64] = {};
  ASSERT_GT(::read(ends[0], line, sizeof line - 1), 9);
  ::close(ends[0]);
  const int id = std::atoi(line + 9);
  EXPECT_EQ(::kill(id, 0), 0);
  ::kill(launcher, SIGKILL);
  ::waitpid(launcher, nullptr, 0);
  EXPECT_TRUE(ends_within(id, std::chrono::seconds(2)));
}

TEST(ProcessGroup, ProgramsThatCannotBeExecuted) {
  const size_t descriptors = open_descriptors();
  {
    const auto group = make();
    for (const char* program : {"no-such-program", "/no/such/program", "/dev/null"}) {
      ProcessSpec spec;
      spec.command = {program};
      const Status started = group->start(0, spec);
      ASSERT_FALSE(started);
      EXPECT_EQ(started.error().kind, ErrorKind::kIo);
      EXPECT_NE(started.error().message.find(program), std::string::npos);
    }
    EXPECT_TRUE(wait_for_all(*group).empty());
  }
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_FALSE(has_child());
}

}  // namespace
}  // namespace tilewright::distributed
