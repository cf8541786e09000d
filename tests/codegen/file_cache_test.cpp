// The cache of files: what is read is what was written, or nothing.
#include "codegen/cache/file_cache.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "codegen/cache/build_id.h"
#include "codegen/cache/content_hash.h"

namespace tilewright::cache {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<uint8_t>;

class FileCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "cache-XXXXXX").string();
    ASSERT_TRUE(mkdtemp(pattern.data()));
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string file(const std::string& name) const { return folder_ + "/c/" + name; }
  size_t files() const {
    size_t n = 0;
    for (const auto& f : fs::directory_iterator(folder_ + "/c")) n += f.is_regular_file();
    return n;
  }
  std::string folder_;
};

TEST_F(FileCacheTest, GivesBackWhatItWasGiven) {
  FileCache cache(folder_ + "/c", 1 << 20);
  EXPECT_FALSE(cache.read("a"));
  EXPECT_TRUE(cache.write("a", Bytes{1, 2, 3}));
  EXPECT_TRUE(cache.write("b", Bytes{}));
  EXPECT_EQ(cache.read("a"), (Bytes{1, 2, 3}));
  EXPECT_EQ(cache.read("b"), Bytes{});
  EXPECT_TRUE(cache.write("a", Bytes{4}));
  EXPECT_EQ(FileCache(folder_ + "/c", 1 << 20).read("a"), Bytes{4});
}

TEST_F(FileCacheTest, KeepsAFileThatAnotherWrites) {
  FileCache cache(folder_ + "/c", 1 << 20);
  const auto path = cache.keep("a", [](FileWriter& f) {
    std::ofstream(f.path()) << "text";
    return Status();
  });
  ASSERT_TRUE(path);
  EXPECT_EQ(cache.find("a"), path);
  std::ifstream in(*path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "text");
  EXPECT_FALSE(cache.keep("b", [](FileWriter&) -> Status { return io_error("no"); }));
  EXPECT_FALSE(cache.find("b"));
  EXPECT_EQ(files(), 1U);
  EXPECT_FALSE(cache.read("a"));  // which has no seal of the cache's
  EXPECT_EQ(files(), 0U);
}

// Each byte of the file, each length that it may be cut to, and another file's name.
TEST_F(FileCacheTest, DamagedFilesAreAsGoodAsNone) {
  FileCache cache(folder_ + "/c", 1 << 20);
  ASSERT_TRUE(cache.write("a", Bytes{1, 2, 3, 4, 5}));
  std::ifstream in(file("a"), std::ios::binary);
  const std::string whole(std::istreambuf_iterator<char>(in), {});
  const auto put = [&](const std::string& name, const std::string& text) {
    std::ofstream(file(name), std::ios::binary) << text;
  };
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    put("a", damaged);
    EXPECT_FALSE(cache.read("a")) << i;
    EXPECT_FALSE(fs::exists(file("a"))) << i;
    put("a", whole.substr(0, i));
    EXPECT_FALSE(cache.read("a")) << i;
  }
  put("a", whole + "x");
  EXPECT_FALSE(cache.read("a"));
  put("b", whole);
  EXPECT_FALSE(cache.read("b"));
  put("a", whole);
  EXPECT_TRUE(cache.read("a"));
}

TEST_F(FileCacheTest, TheLongestUnusedGoFirst) {
  constexpr int kFiles = 64;
  FileCache cache(folder_ + "/c", 16 * 1000);
  for (int i = 0; i < kFiles; ++i) {
    ASSERT_TRUE(cache.write("f" + std::to_string(i), Bytes(900, 7)));
    fs::last_write_time(file("f" + std::to_string(i)),
                        fs::file_time_type::clock::now() - std::chrono::minutes(kFiles - i));
    EXPECT_TRUE(cache.read("f0"));  // used all the time
  }
  EXPECT_TRUE(cache.read("f0"));
  EXPECT_FALSE(cache.read("f1"));
  EXPECT_TRUE(cache.read("f63"));
  int64_t bytes = 0;
  for (const auto& f : fs::directory_iterator(folder_ + "/c"))
    if (f.is_regular_file()) bytes += static_cast<int64_t>(f.file_size());
  EXPECT_LE(bytes, 18 * 1000);
}

// What others could have written, or is no file, is as if it were not there, and stays.
TEST_F(FileCacheTest, TrustsOnlyThisUser) {
  FileCache cache(folder_ + "/c", 1 << 20);
  std::vector<std::string> notes;
  cache.set_note([&](const std::string& note) { notes.push_back(note); });
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(cache.write(name, Bytes{1}));
  EXPECT_EQ(fs::status(file("a")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  fs::permissions(file("a"), fs::perms::group_write, fs::perm_options::add);
  fs::remove(file("b"));
  ASSERT_EQ(mkfifo(file("b").c_str(), 0600), 0);
  EXPECT_FALSE(cache.read("a"));
  EXPECT_FALSE(cache.find("a"));
  EXPECT_FALSE(cache.find("b"));
  EXPECT_TRUE(fs::is_fifo(file("b")));
  if (geteuid() == 0) {
    ASSERT_EQ(chown(file("c").c_str(), 12345, 12345), 0);
    EXPECT_FALSE(cache.read("c"));
    EXPECT_FALSE(cache.write("c", Bytes{2}));
    ASSERT_EQ(chown(file("c").c_str(), 0, 0), 0);
    EXPECT_EQ(cache.read("c"), Bytes{1});
  }
  EXPECT_EQ(notes.size(), geteuid() == 0 ? 2U : 1U);  // one of each kind
  EXPECT_EQ(notes[0], file("a") +
                          ": may be written by other users, and is not trusted; "
                          "what it would hold is compiled anew");
}

TEST_F(FileCacheTest, AFolderThatCannotBeCostsNothingElse) {
  std::ofstream(folder_ + "/c") << "a file";
  FileCache cache(folder_ + "/c", 1 << 20);
  EXPECT_FALSE(cache.write("a", Bytes{1}));
  EXPECT_FALSE(cache.read("a"));
}

// Writers of the same names at once, killed at any moment: a reader sees one of the contents whole.
TEST_F(FileCacheTest, WritersMayDieAtAnyMoment) {
  const auto contents = [](int name, int writer) {
    return Bytes(20000 + static_cast<size_t>(name), static_cast<uint8_t>(writer));
  };
  FileCache cache(folder_ + "/c", 1 << 20);
  for (int round = 0; round < 20; ++round) {
    std::vector<pid_t> writers;
    for (int w = 1; w <= 3; ++w)
      if (const pid_t child = fork(); child == 0) {
        FileCache own(folder_ + "/c", 1 << 20);
        for (int i = 0;; ++i) own.write("n" + std::to_string(i % 4), contents(i % 4, w));
      } else {
        writers.push_back(child);
      }
    for (int i = 0; i < 40; ++i) {
      const auto found = cache.read("n" + std::to_string(i % 4));
      if (!found) continue;
      ASSERT_EQ(found->size(), 20000U + static_cast<size_t>(i % 4));
      EXPECT_EQ(*found, contents(i % 4, (*found)[0]));
    }
    for (const pid_t w : writers) kill(w, SIGKILL), waitpid(w, nullptr, 0);
  }
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(cache.read("n" + std::to_string(i)));
}

TEST(ContentHash, TellsApartWhatIsAdded) {
  const auto of = [](std::initializer_list<std::string_view> parts) {
    ContentHash hash;
    for (const std::string_view p : parts) hash.add(p);
    return hash.hex();
  };
  EXPECT_EQ(of({"ab", "c"}), of({"ab", "c"}));
  EXPECT_NE(of({"ab", "c"}), of({"a", "bc"}));
  EXPECT_NE(of({"ab"}), of({"ab", ""}));
  EXPECT_EQ(of({}).size(), 32U);
}

TEST(BuildId, IsThereAndTellsLibrariesApart) {
  const std::string ours = build_id(reinterpret_cast<const void*>(&build_id)),
                    theirs = build_id(reinterpret_cast<const void*>(&getpid));
  EXPECT_EQ(ours.size(), 40U);
  EXPECT_NE(ours, theirs);
  EXPECT_EQ(build_id(nullptr), "");
}

}  // namespace
}  // namespace tilewright::cache
