// Copies of a compiled model's file, changed and sealed again.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "runtime/executable.h"
#include "runtime/seal.h"
#include "runtime/session.h"
#include "tests/runtime/session_models.h"

namespace tilewright::testing {

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// A file of its own per object, removed at the end.
class TemporaryFile {
 public:
  TemporaryFile() {
    const int fd = mkstemps(path_.data(), 3);
    EXPECT_GE(fd, 0);
    if (fd >= 0) close(fd);
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  // Not truncated first: some file systems flush such files to the disk when they are closed.
  void write(const std::string& bytes) const {
    const int fd = open(path_.c_str(), O_WRONLY);
    const auto size = static_cast<ssize_t>(bytes.size());
    EXPECT_TRUE(::write(fd, bytes.data(), bytes.size()) == size && ftruncate(fd, size) == 0);
    close(fd);
  }
  // The bytes of an ELF file, with a seal that is right for them.
  void write_sealed(const std::string& elf, std::string_view label = {}) const {
    write(elf);
    EXPECT_TRUE(append_seal(path_, label).ok());
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = ::testing::TempDir() + "tilewright_XXXXXX.so";
};

inline std::string without_seal(const std::string& file) {
  return file.substr(0, file.size() - sizeof(Seal));
}

// The test model with another factor than 2.5.
inline std::string scaled_by(const std::string& file, float factor) {
  std::string elf = without_seal(file);
  const float before = 2.5f;
  const std::string from(reinterpret_cast<const char*>(&before), sizeof before);
  const size_t at = elf.find(from);
  EXPECT_NE(at, std::string::npos);
  EXPECT_EQ(elf.find(from, at + 1), std::string::npos);
  std::memcpy(elf.data() + at, &factor, sizeof factor);
  return elf;
}

inline std::string load_error(const std::string& path, std::string_view label = {}) {
  auto e = load_executable(path, label);
  return e.ok() ? "no error" : e.error().message;
}

// Runs the test model on the vector [1] and returns the one element of its result.
inline float scale_one(Session& session) {
  std::vector<Tensor> in{floats({1}, {1})}, out;
  EXPECT_TRUE(session.run(in, out).ok());
  return *out[0].data_as<float>();
}
inline std::unique_ptr<Session> open_session(const std::string& path, int threads = 1) {
  auto e = load_executable(path);
  EXPECT_TRUE(e.ok()) << e.error().to_string();
  return e.ok() ? std::move(*Session::create(*e, {.threads = threads})) : nullptr;
}

}  // namespace tilewright::testing
