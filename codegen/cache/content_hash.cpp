#include "codegen/cache/content_hash.h"

#include <cstdio>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tilewright::cache {

struct ContentHash::State {
  XXH3_state_t* xxh = XXH3_createState();
  State() { XXH3_128bits_reset(xxh); }
  ~State() { XXH3_freeState(xxh); }
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) {}
ContentHash::~ContentHash() = default;

ContentHash& ContentHash::add(std::span<const uint8_t> bytes) {
  const uint64_t size = bytes.size();
  XXH3_128bits_update(state_->xxh, &size, sizeof size);
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
  return *this;
}
ContentHash& ContentHash::add(std::string_view text) {
  return add(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}
ContentHash& ContentHash::add(int64_t number) {
  XXH3_128bits_update(state_->xxh, &number, sizeof number);
  return *this;
}

std::string ContentHash::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh);
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

}  // namespace tilewright::cache
