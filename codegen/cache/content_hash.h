// Names for contents: 128 bits (XXH3) of whatever decides what a cached file holds. Equal names mean
// equal contents but by an accident that no disk is as unlikely to have; they are no protection
// against somebody who may write to the cache.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tilewright::cache {

class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  // The length counts, too: "ab", "c" is not "a", "bc".
  ContentHash& add(std::span<const uint8_t> bytes);
  ContentHash& add(std::string_view text);
  ContentHash& add(int64_t number);
  // 32 hexadecimal digits, of all that was added so far.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilewright::cache
