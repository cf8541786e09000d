// Memory whose neighbours may not be touched: a byte read or written beyond its page ends the test
// with the name of what lay there, and bytes between the memory and that page are watched.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "runtime/session.h"
#include "tests/ops/graph_oracle.h"

namespace tilewright {

// Where the bytes lie between the two guards.
enum class Place {
  kAtStart,       // the byte before the first is guarded
  kAtEnd,         // the byte behind the last is guarded
  kAlignedAtEnd,  // as near to the guard behind as 64-byte lines allow: sessions write in place
};

// An electric fence (after Perens' malloc debugger): pages without access on both sides, and bytes
// of a known pattern in the rest of the page, which is_intact() looks at.
class GuardedMemory {
 public:
  // Mapped at once, filled with the canary.
  GuardedMemory(size_t bytes, Place place) : bytes_(bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    inner_ = (bytes / page + 1) * page;
    mapped_ = inner_ + 2 * page;
    void* all = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TW_CHECK(all != MAP_FAILED);
    map_ = static_cast<uint8_t*>(all);
    open_ = map_ + page;
    TW_CHECK(mprotect(open_, inner_, PROT_READ | PROT_WRITE) == 0);
    std::memset(open_, kCanary, inner_);
    const size_t end = inner_ - bytes;
    data_ = open_ + (place == Place::kAtStart ? 0 : place == Place::kAtEnd ? end : end / 64 * 64);
  }
  GuardedMemory(GuardedMemory&& other) noexcept { *this = std::move(other); }
  GuardedMemory& operator=(GuardedMemory&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(inner_, other.inner_);
    std::swap(mapped_, other.mapped_);
    std::swap(map_, other.map_);
    std::swap(open_, other.open_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~GuardedMemory() {
    if (map_) munmap(map_, mapped_);
  }

  // What the test may touch.
  uint8_t* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // Is every byte around the memory, up to the guards, as it was at first?
  bool is_intact() const {
    for (const uint8_t* p = open_; p < open_ + inner_; ++p)
      if ((p < data_ || p >= data_ + bytes_) && *p != kCanary) return false;
    return true;
  }

 private:
  static constexpr uint8_t kCanary = 0xa5;  // no small number, no common float
  size_t bytes_ = 0, inner_ = 0, mapped_ = 0;
  uint8_t *map_ = nullptr, *open_ = nullptr, *data_ = nullptr;
};

// Names what runs for as long as it lives: a fault says so before the process ends.
class NameFaults {
 public:
  // One at a time: the text is static, since a handler of signals may not allocate.
  explicit NameFaults(const std::string& what) {
    std::snprintf(text(), kLength, "memory beyond a tensor was touched by %s\n", what.c_str());
    struct sigaction action = {};
    action.sa_handler = [](int) {
      if (write(STDERR_FILENO, text(), std::strlen(text())) < 0) _exit(2);
      _exit(1);
    };
    sigaction(SIGSEGV, &action, &before_);
  }
  ~NameFaults() { sigaction(SIGSEGV, &before_, nullptr); }

 private:
  static constexpr size_t kLength = 512;
  static char* text() {
    static char line[kLength];
    return line;
  }
  struct sigaction before_ = {};
};

// Runs a compiled graph on inputs that lie at `place`, with outputs, temporaries and workspaces as
// near to a guard. The results must be `expected`, bit for bit where `bound` is 0.
inline void expect_guarded(const std::shared_ptr<Executable>& executable, const Tensors& inputs,
                           const Tensors& expected, Place place, const std::string& what,
                           double bound = 0) {
  SCOPED_TRACE(what);
  const NameFaults named(what);
  std::vector<GuardedMemory> in, out;
  std::vector<Tensor> given, results;
  for (const HostTensor& t : inputs) {
    in.emplace_back(t.bytes.size(), place);
    if (!t.bytes.empty()) std::memcpy(in.back().data(), t.bytes.data(), t.bytes.size());
    given.push_back(Tensor::borrow(t.dtype, t.shape, in.back().data()));
  }
  for (const HostTensor& t : expected) {
    out.emplace_back(t.bytes.size(),
                     place == Place::kAtStart ? Place::kAtStart : Place::kAlignedAtEnd);
    results.push_back(Tensor::borrow(t.dtype, t.shape, out.back().data()));
  }
  SessionOptions options;
  options.threads = 1;
  options.guard = place == Place::kAtStart ? Guard::kBefore : Guard::kBehind;
  auto session = Session::create(executable, options);
  ASSERT_TRUE(session.ok()) << session.error().to_string();
  const Status status = (*session)->run(given, results);
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  for (size_t k = 0; k < expected.size(); ++k) {
    ASSERT_EQ(results[k].data(), out[k].data()) << "output " << k << " was replaced";
    EXPECT_TRUE(out[k].is_intact()) << "bytes around output " << k << " were written";
    HostTensor found(expected[k].dtype, expected[k].shape);
    std::memcpy(found.bytes.data(), out[k].data(), found.bytes.size());
    const auto d = difference(found, expected[k]);
    ASSERT_TRUE(d.has_value()) << "output " << k;
    EXPECT_LE(*d, bound) << "output " << k;
  }
  for (size_t k = 0; k < inputs.size(); ++k) {
    EXPECT_TRUE(in[k].is_intact()) << "bytes around input " << k << " were written";
    EXPECT_EQ(std::memcmp(in[k].data(), inputs[k].bytes.data(), in[k].bytes()), 0) << k;
  }
}

}  // namespace tilewright
