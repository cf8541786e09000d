// A model's file is what was compiled or is refused; the file that was checked is the file that
// runs. TILEWRIGHT_FLIPS: how many bits of it are flipped (20,000; 0: each), TILEWRIGHT_FLIP_MODEL:
// of which file.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <random>
#include <span>
#include <thread>

#include "runtime/hash_bytes.h"
#include "tests/runtime/model_copy.h"

namespace tilewright::testing {
namespace {

bool starts_with_any(const std::string& text, std::initializer_list<const char*> beginnings) {
  for (const char* b : beginnings)
    if (text.starts_with(b)) return true;
  return false;
}

TEST(ModelFile, EachFlippedBitIsRefused) {
  const char* model = std::getenv("TILEWRIGHT_FLIP_MODEL");
  const char* asked = std::getenv("TILEWRIGHT_FLIPS");
  const std::string bytes = read_file(model ? model : TEST_MODEL);
  const uint64_t bits = bytes.size() * 8, flips = asked ? std::strtoull(asked, nullptr, 10) : 20000;
  const TemporaryFile file;
  file.write(bytes);
  ASSERT_EQ(load_error(file.path()), "no error");
  const int descriptor = open(file.path().c_str(), O_WRONLY);
  std::mt19937_64 random(1);
  uint64_t refused = 0;
  const uint64_t rounds = flips ? flips : bits;
  for (uint64_t i = 0; i < rounds; ++i) {
    // Every bit of the seal is among them.
    const uint64_t bit = !flips ? i : i < sizeof(Seal) * 8 ? bits - 1 - i : random() % bits;
    const auto at = static_cast<off_t>(bit / 8);
    const char flipped = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    ASSERT_EQ(pwrite(descriptor, &flipped, 1, at), 1);
    const std::string error = load_error(file.path());
    EXPECT_TRUE(starts_with_any(error, {"damaged: ", "has no seal at its end"}))
        << "bit " << bit << ": " << error;
    refused += error != "no error";
    ASSERT_EQ(pwrite(descriptor, &bytes[bit / 8], 1, at), 1);
  }
  close(descriptor);
  EXPECT_EQ(refused, rounds);
  EXPECT_EQ(load_error(file.path()), "no error");
}

// The first and the last 200 lengths, and some in each part between.
TEST(ModelFile, EveryTruncationIsAnError) {
  const std::string bytes = read_file(TEST_MODEL);
  const size_t step = std::max<size_t>(bytes.size() / 150, 1);
  const TemporaryFile file;
  for (size_t n = 0; n < bytes.size(); n += n < 200 || n + 200 > bytes.size() ? 1 : step) {
    file.write(bytes.substr(0, n));
    const std::string error = load_error(file.path());
    EXPECT_TRUE(starts_with_any(
        error, {"not a shared object", "truncated: ", "not a tilewright model: ", "has no seal"}))
        << n << ": " << error;
  }
}

TEST(ModelFile, WhatIsAppendedIsRefused) {
  const std::string bytes = read_file(TEST_MODEL), seal = bytes.substr(without_seal(bytes).size());
  const TemporaryFile file;
  for (const std::string& more : {std::string(1, 0), std::string(32, 'x'), std::string(4096, 0),
                                  seal, seal.substr(8), bytes}) {
    file.write(bytes + more);
    EXPECT_TRUE(starts_with_any(load_error(file.path()), {"damaged: ", "has no seal"}))
        << more.size();
  }
  file.write(without_seal(bytes) + "x" + seal);
  EXPECT_TRUE(load_error(file.path()).starts_with("damaged: ")) << load_error(file.path());
}

TEST(ModelFile, ASealIsForItsLabel) {
  const TemporaryFile file;
  file.write_sealed(without_seal(read_file(TEST_MODEL)), "a");
  EXPECT_EQ(load_error(file.path(), "a"), "no error");
  EXPECT_TRUE(load_error(file.path(), "b").starts_with("damaged: the checksum"));
  EXPECT_TRUE(load_error(file.path()).starts_with("damaged: the checksum"));
}

// What one machine seals another checks, by other instructions and other numbers of threads.
TEST(ModelFile, AHashIsTheSameOnEachCpu) {
  std::mt19937_64 random(2);
  std::vector<uint64_t> data(1 << 14);
  for (uint64_t& word : data) word = random();
  for (int i = 0; i < 300; ++i) {
    const size_t bytes = i < 260 ? static_cast<size_t>(i) : random() % (data.size() * 8);
    const Hash128 one = hash_bytes_baseline(data.data(), bytes),
                  best = hash_bytes(data.data(), bytes);
    EXPECT_EQ(one.low, best.low) << bytes;
    EXPECT_EQ(one.high, best.high) << bytes;
  }
}

// Files that several threads read, at and around the ends of chunks.
TEST(ModelFile, LargeFilesAreSealedWhole) {
  constexpr int64_t kMiB = 1 << 20;
  std::mt19937_64 random(3);
  const TemporaryFile file;
  for (const int64_t bytes : {4 * kMiB, 4 * kMiB + 1, 5 * kMiB - 1}) {
    std::string contents(static_cast<size_t>(bytes), 0);
    for (size_t i = 0; i < contents.size(); i += 509) contents[i] = static_cast<char>(random());
    file.write_sealed(contents);
    std::string whole = read_file(file.path());
    const std::span bytes_of_it(reinterpret_cast<const uint8_t*>(whole.data()), whole.size());
    const auto check = [&] {
      const auto seal = read_seal(bytes_of_it);
      return seal && check_seal(bytes_of_it, *seal, {}).ok();
    };
    EXPECT_TRUE(check());
    for (int i = 0; i < 40; ++i) {
      const size_t at = i ? random() % contents.size() : contents.size() - 1;
      whole[at] = static_cast<char>(whole[at] ^ 16);
      EXPECT_FALSE(check()) << at;
      whole[at] = contents[at];
    }
  }
}

TEST(ModelFile, AFileThatTakesThePlaceOfAnotherIsTheOneThatRuns) {
  const std::string bytes = read_file(TEST_MODEL);
  const TemporaryFile file;
  file.write(bytes);
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < 20; ++i) {
    const float factor = 2.5f + static_cast<float>(i);
    const TemporaryFile other;
    other.write_sealed(scaled_by(bytes, factor));
    ASSERT_EQ(std::rename(other.path().c_str(), file.path().c_str()), 0);
    sessions.push_back(open_session(file.path()));
    ASSERT_TRUE(sessions.back());
    if (i % 3 == 2) sessions.erase(sessions.begin() + i / 3);  // numbers of descriptors come again
  }
  std::vector<float> factors;
  for (auto& s : sessions) factors.push_back(scale_one(*s));
  EXPECT_EQ(factors.back(), 21.5f);
  for (size_t i = 1; i < factors.size(); ++i) EXPECT_GT(factors[i], factors[i - 1]);
}

TEST(ModelFile, AFileThatIsRewrittenWhileItIsInUseIsRefused) {
  const std::string bytes = read_file(TEST_MODEL);
  const TemporaryFile file;
  file.write(bytes);
  auto session = open_session(file.path());
  ASSERT_TRUE(session);
  EXPECT_EQ(load_error(file.path()), "no error");  // the same once more
  const std::string other = scaled_by(bytes, 7);
  const int descriptor =
      open(file.path().c_str(), O_WRONLY);  // and not truncated, which would unmap it
  const TemporaryFile sealed;
  sealed.write_sealed(other);
  const std::string whole = read_file(sealed.path());
  ASSERT_EQ(pwrite(descriptor, whole.data(), whole.size(), 0), static_cast<ssize_t>(whole.size()));
  close(descriptor);
  EXPECT_TRUE(load_error(file.path()).starts_with("was rewritten while"))
      << load_error(file.path());
  session.reset();
  session = open_session(file.path());
  ASSERT_TRUE(session);
  EXPECT_EQ(scale_one(*session), 7);
}

// The descriptors through which this process has files named so open.
std::vector<int> descriptors_of(const std::string& path) {
  std::vector<int> found;
  for (int d = 3; d < 256; ++d) {
    struct stat a{}, b{};
    if (fstat(d, &a) == 0 && stat(path.c_str(), &b) == 0 && a.st_dev == b.st_dev &&
        a.st_ino == b.st_ino)
      found.push_back(d);
  }
  return found;
}

// As programs do that become daemons. The number is then another file's, which is not closed, and
// the name by it another library's, which is not taken for this one.
TEST(ModelFile, AProgramMayCloseAllDescriptors) {
  const std::string bytes = read_file(TEST_MODEL);
  const TemporaryFile first, second;
  first.write(bytes);
  second.write_sealed(scaled_by(bytes, 9));
  auto one = open_session(first.path());
  ASSERT_TRUE(one);
  const std::vector<int> open_ones = descriptors_of(first.path());
  ASSERT_EQ(open_ones.size(), 1U);
  close(open_ones[0]);
  auto two = open_session(second.path());
  ASSERT_TRUE(two);
  EXPECT_EQ(scale_one(*two), 9);
  EXPECT_EQ(scale_one(*one), 2.5f);
  const int mine = open("/dev/null", O_RDONLY);
  ASSERT_EQ(mine, open_ones[0]);
  one.reset();
  EXPECT_EQ(fcntl(mine, F_GETFD) >= 0, true);
  close(mine);
  two.reset();
  EXPECT_TRUE(descriptors_of(second.path()).empty());
}

TEST(ModelFile, IsSharedByThreadsAndGivenBack) {
  const TemporaryFile file;
  file.write(read_file(TEST_MODEL));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        auto session = open_session(file.path());
        ASSERT_TRUE(session);
        EXPECT_EQ(scale_one(*session), 2.5f);
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_TRUE(descriptors_of(file.path()).empty());
}

// Neither waits for a writer nor reads without end.
TEST(ModelFile, IsARegularFile) {
  const TemporaryFile file;
  std::remove(file.path().c_str());
  ASSERT_EQ(mkfifo(file.path().c_str(), 0600), 0);
  EXPECT_EQ(load_error(file.path()), "is a named pipe, not a file");
  EXPECT_EQ(load_error("/dev/zero"), "is a device, not a file");
  EXPECT_EQ(load_error(::testing::TempDir()), "is a folder, not a file");
}

TEST(ModelFile, IsLoadedAndGivenBackInTheChildOfAFork) {
  const std::string bytes = read_file(TEST_MODEL);
  const TemporaryFile file, other;
  file.write(bytes);
  other.write_sealed(scaled_by(bytes, 4));
  auto session = open_session(file.path(), 3);
  ASSERT_TRUE(session);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const float before = scale_one(*session);
    session.reset();
    auto again = open_session(file.path()), second = open_session(other.path());
    _exit(before == 2.5f && again && second && scale_one(*again) == 2.5f && scale_one(*second) == 4
              ? 0
              : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(scale_one(*session), 2.5f);
}

}  // namespace
}  // namespace tilewright::testing
