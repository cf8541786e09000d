// Little-endian bytes: one list of fields per structure serves writing and reading
// (executable.cpp).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tilewright {

static_assert(std::endian::native == std::endian::little,
              "the serialised form is written as it lies in memory");

// Both archives call `fields(archive, value)` for structures, found by argument-dependent lookup.

// Appends values. Numbers as they lie in memory; a string or vector is its count (u32) and then its
// elements.
class ByteWriter {
 public:
  // A number or an enumeration as it lies in memory, a structure by its `fields`; strings and
  // vectors with their count (u32) before them. `enumeration` is apart since a reader must refuse
  // codes beyond the last.
  template <typename T>
  void operator()(T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
      append(&value, sizeof value);
    else
      fields(*this, value);
  }
  template <typename E>
  void enumeration(E& value, E) {
    (*this)(value);
  }
  void operator()(std::string& text) {
    write_count(text.size());
    append(text.data(), text.size());
  }
  template <typename A, typename B>
  void operator()(std::pair<A, B>& pair) {
    (*this)(pair.first);
    (*this)(pair.second);
  }
  template <typename T>
  void operator()(std::vector<T>& values) {
    write_count(values.size());
    for (T& v : values) (*this)(v);
  }
  // What was written; the writer is empty afterwards.
  std::vector<uint8_t> take() { return std::move(bytes_); }

 private:
  void write_count(size_t n) {
    auto count = static_cast<uint32_t>(n);
    append(&count, sizeof count);
  }
  void append(const void* data, size_t size) {
    const auto* p = static_cast<const uint8_t*>(data);
    bytes_.insert(bytes_.end(), p, p + size);
  }
  std::vector<uint8_t> bytes_;
};

// After the first failure every read yields zero and ok() is false.
class ByteReader {
 public:
  // Borrows `data`, which is not trusted: a count that exceeds what is left, an unknown code and a
  // bool that is neither 0 nor 1 are failures. `problem`: of the first failure, for "what stands at
  // byte N ..." (null: none yet).
  ByteReader(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool ok() const { return problem_ == nullptr; }
  const char* problem() const { return problem_; }
  size_t position() const { return position_; }
  bool at_end() const { return position_ == size_; }

  // As the writer's. Each leaves a value that is safe to use (0, empty) after a failure.
  template <typename T>
  void operator()(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      uint8_t byte = 0;
      read(&byte, 1);
      if (byte > 1) fail("is no truth value");
      value = byte == 1;
    } else if constexpr (std::is_arithmetic_v<T>) {
      value = 0;
      read(&value, sizeof value);
    } else {
      fields(*this, value);
    }
  }
  template <typename E>
  void enumeration(E& value, E last) {
    std::underlying_type_t<E> raw = 0;
    read(&raw, sizeof raw);
    if (raw > static_cast<std::underlying_type_t<E>>(last)) fail("is an unknown code"), raw = 0;
    value = static_cast<E>(raw);
  }
  void operator()(std::string& text) {
    const size_t n = read_count();
    text.assign(reinterpret_cast<const char*>(data_ + position_), n);
    position_ += n;
  }
  template <typename A, typename B>
  void operator()(std::pair<A, B>& pair) {
    (*this)(pair.first);
    (*this)(pair.second);
  }
  template <typename T>
  void operator()(std::vector<T>& values) {
    const size_t n = read_count();  // each element takes a byte at least
    values.clear();
    for (size_t i = 0; i < n && ok(); ++i) (*this)(values.emplace_back());
  }

 private:
  size_t read_count() {
    uint32_t n = 0;
    read(&n, sizeof n);
    if (n > size_ - position_) fail("is a count beyond the end"), n = 0;
    return n;
  }
  void read(void* value, size_t size) {
    if (!ok()) return;
    if (size > size_ - position_) return fail("is beyond the end");
    std::memcpy(value, data_ + position_, size);
    position_ += size;
  }
  void fail(const char* problem) {
    if (ok()) problem_ = problem;
  }

  const uint8_t* data_;
  size_t size_, position_ = 0;
  const char* problem_ = nullptr;
};

}  // namespace tilewright
