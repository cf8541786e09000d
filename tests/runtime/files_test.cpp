// Files as the outside has them: what is opened, what is written over, and what is left where a writer dies.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <set>

#include "runtime/core/open_file.h"
#include "runtime/core/write_file.h"

namespace tilewright {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "files-XXXXXX").string();
    ASSERT_TRUE(mkdtemp(pattern.data()));
    folder_ = pattern;
    put("old", "old contents");
    ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
    fs::create_directory(path("folder"));
    const int listening = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path("socket").copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ::close(listening);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void put(const std::string& name, const std::string& text) { std::ofstream(path(name)) << text; }
  std::string contents(const std::string& name) const {
    std::ifstream in(path(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // What is there, temporary files included.
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder_))
      all.insert(entry.path().filename().string());
    return all;
  }
  // The exit status of f in another process; SIGKILL: 128 + 9.
  static int in_process(const std::function<int()>& f) {
    const pid_t child = fork();
    if (child == 0) _exit(f());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  std::string folder_;
};

TEST_F(Files, OnlyRegularOnesAreOpened) {
  const std::map<std::string, std::string> refused = {
      {path("pipe"), "is a named pipe, not a file"},
      {path("folder"), "is a folder, not a file"},
      {path("socket"), "is a socket, not a file"},
      {"/dev/null", "is a device, not a file"},
      {path("none"), "no such file"},
  };
  for (const auto& [name, message] : refused) {
    const auto opened = open_to_read(name);
    ASSERT_FALSE(opened.ok()) << name;
    EXPECT_EQ(opened.error().to_string(), name + ": " + message);
    EXPECT_EQ(opened.error().kind, ErrorKind::kIo);
  }
  EXPECT_EQ(*read_whole(path("old"), 12), "old contents");
  EXPECT_EQ(read_whole(path("old"), 11).error().kind, ErrorKind::kLimit);
  EXPECT_TRUE(read_whole("/proc/self/status", 1 << 20).ok());  // whose size is said to be 0
}

TEST_F(Files, ReplaceWhatIsRegularAlone) {
  const auto before = names();
  fs::permissions(path("old"), fs::perms(0640));
  fs::create_symlink("old", path("link"));
  fs::create_symlink("new", path("dangling"));
  ASSERT_TRUE(write_file(path("link"), "first").ok());
  ASSERT_TRUE(write_file(path("dangling"), "second").ok());
  EXPECT_TRUE(fs::is_symlink(path("link")) && fs::is_symlink(path("dangling")));
  EXPECT_EQ(contents("old"), "first");
  EXPECT_EQ(fs::status(path("old")).permissions(), fs::perms(0640));
  EXPECT_EQ(contents("new"), "second");
  for (const char* name : {"folder", "socket", "none/file", "pipe", "none/"}) {
    const auto type = fs::status(path(name)).type();
    EXPECT_FALSE(write_file(path(name), "third").ok()) << name;
    EXPECT_EQ(fs::status(path(name)).type(), type) << name;
  }
  EXPECT_TRUE(write_file("/dev/null", "third").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  auto after = before;
  after.insert({"link", "dangling", "new"});
  EXPECT_EQ(names(), after);
}

TEST_F(Files, PipesAndDevicesAreWrittenInto) {
  auto read = std::async(std::launch::async, [&] { return contents("pipe"); });
  Status written = io_error("not yet");
  for (int i = 0; i < 1000 && !written.ok(); ++i) {  // until the other end is open
    written = write_file(path("pipe"), std::string(200000, 'x'));
    usleep(1000);
  }
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(read.get(), std::string(200000, 'x'));
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
  const Status full = write_file("/dev/full", "x");
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().to_string(), "/dev/full: cannot be written: No space left on device");
}

// Writing ends early at each of these sizes, in each of these ways.
TEST_F(Files, ALittleRoomCostsNothingOfWhatWasThere) {
  const auto before = names();
  const std::string text(100000, 'n');
  for (const rlim_t room : {0, 1, 4096, 99999}) {
    const auto limited = [&](const std::function<Status()>& f) {
      return in_process([&] {
        signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{room, room};
        setrlimit(RLIMIT_FSIZE, &limit);
        const Status status = f();
        return status.ok()                                                     ? 0
               : status.error().message == "cannot be written: File too large" ? 1
                                                                               : 2;
      });
    };
    EXPECT_EQ(limited([&] { return write_file(path("old"), text); }), 1) << room;
    EXPECT_EQ(limited([&] { return write_file(path("new"), text); }), 1) << room;
    EXPECT_EQ(limited([&]() -> Status {
                TW_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make(folder_));
                return write_mapped(folder.file("m"), text.size(),
                                    [](uint8_t* at) { std::fill_n(at, 100000, 'm'); });
              }),
              1);
    EXPECT_EQ(limited([&]() -> Status {
                TW_ASSIGN(const Descriptor file, open_to_append(path("old"), true));
                return append(file.get(), text, path("old"));
              }),
              1);
    EXPECT_EQ(contents("old"), "old contents");
    EXPECT_EQ(names(), before);
  }
}

TEST_F(Files, WhatKilledWritersLeftGoesAndLivingOnesStay) {
  const auto before = names();
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(in_process([&] {
                auto file = FileWriter::create(path("old"));
                (void)file->write("half").ok();
                auto inner = TemporaryFolder::make(fs::path(file->path()).parent_path());
                return raise(SIGKILL);
              }),
              128 + SIGKILL);
  EXPECT_EQ(names().size(), before.size() + 1);  // each removed what the one before left
  auto living = FileWriter::create(path("living"));
  ASSERT_TRUE(living.ok() && living->write("all").ok());
  EXPECT_EQ(names().size(), before.size() + 1);
  EXPECT_EQ(in_process([&] { return write_file(path("other"), "x").ok() ? 0 : 1; }), 0);
  ASSERT_TRUE(living->commit().ok());
  EXPECT_EQ(contents("living"), "all");
  EXPECT_EQ(contents("old"), "old contents");
}

TEST_F(Files, OfOthersAreNotReplacedInPlacesOfTrust) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_EQ(chown(path("old").c_str(), 12345, 12346), 0);
  EXPECT_FALSE(write_file(path("old"), "new", FileAccess::kPrivate).ok());
  EXPECT_FALSE(open_trusted(path("old")).ok());
  EXPECT_EQ(contents("old"), "old contents");
  ASSERT_TRUE(write_file(path("old"), "new").ok());  // still of its owner
  struct stat about{};
  ASSERT_EQ(::stat(path("old").c_str(), &about), 0);
  EXPECT_EQ(about.st_uid, 12345U);
  EXPECT_EQ(about.st_gid, 12346U);
  fs::permissions(folder_, fs::perms(0777));
  put("read_only", "kept");
  fs::permissions(path("read_only"), fs::perms(0444));
  EXPECT_EQ(in_process([&] {
              if (setuid(12345) != 0) return 3;
              return write_file(path("read_only"), "lost").ok() ? 1 : 0;
            }),
            0);
  EXPECT_EQ(contents("read_only"), "kept");
}

}  // namespace
}  // namespace tilewright
