// The checksum hashes the hashes of chunks, so that several threads can read the file: bringing a
// file's pages into the process takes longer than hashing them.
#include "runtime/seal.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/core/write_file.h"
#include "runtime/hash_bytes.h"
#include "runtime/model_file.h"
#include "runtime/thread_pool.h"

namespace tilewright {
namespace {

constexpr char kSealMark[] = "twseal\r\n";
constexpr uint64_t kChunk = 256 << 10;
constexpr uint64_t kChunksPerThread = 4;  // fewer are hashed before a thread has started
constexpr uint64_t kMostSealThreads = 4;  // more do not read memory faster

struct ChunkHashes {
  std::span<const uint8_t> contents;
  std::vector<Hash128> hashes;
};

void hash_chunks(TwKernelContext*, void* closure, int64_t begin, int64_t end, int64_t) {
  auto& c = *static_cast<ChunkHashes*>(closure);
  for (auto i = static_cast<uint64_t>(begin); i < static_cast<uint64_t>(end); ++i)
    c.hashes[i] = hash_bytes(c.contents.data() + i * kChunk,
                             std::min<uint64_t>(kChunk, c.contents.size() - i * kChunk));
}

std::string hexadecimal(const uint64_t (&checksum)[2]) {
  std::string text;
  for (const uint64_t word : checksum)
    for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[word >> shift & 15];
  return text;
}

}  // namespace

std::optional<Seal> read_seal(std::span<const uint8_t> file) {
  Seal seal{};
  if (file.size() < sizeof seal) return std::nullopt;
  std::memcpy(&seal, file.data() + file.size() - sizeof seal, sizeof seal);
  if (std::memcmp(seal.mark, kSealMark, sizeof seal.mark) != 0) return std::nullopt;
  return seal;
}

Seal make_seal(std::span<const uint8_t> contents, std::string_view label) {
  const uint64_t bytes = contents.size(), chunks = (bytes + kChunk - 1) / kChunk;
  const uint64_t threads = chunks <= kChunksPerThread
                               ? 1
                               : std::min({chunks / kChunksPerThread, kMostSealThreads,
                                           static_cast<uint64_t>(available_cpus())});
  ChunkHashes c{contents, std::vector<Hash128>(chunks)};
  ThreadPool(static_cast<int>(threads))
      .parallel(nullptr, static_cast<int64_t>(chunks), hash_chunks, &c);

  std::vector<uint8_t> all(sizeof bytes + chunks * sizeof(Hash128));
  std::memcpy(all.data(), &bytes, sizeof bytes);
  if (chunks) std::memcpy(all.data() + sizeof bytes, c.hashes.data(), chunks * sizeof(Hash128));
  all.insert(all.end(), label.begin(), label.end());
  const Hash128 hash = hash_bytes(all.data(), all.size());
  Seal seal{{}, bytes, {hash.high, hash.low}};
  std::memcpy(seal.mark, kSealMark, sizeof seal.mark);
  return seal;
}

Status check_seal(std::span<const uint8_t> file, const Seal& seal, std::string_view label) {
  const std::span<const uint8_t> contents = file.first(file.size() - sizeof seal);
  const std::string bytes = std::to_string(contents.size());
  if (seal.bytes != contents.size())
    return invalid("damaged: " + bytes + " bytes stand before its seal, expected " +
                   std::to_string(seal.bytes));
  const Seal found = make_seal(contents, label);
  if (found != seal)
    return invalid("damaged: the checksum of its " + bytes + " bytes is " +
                   hexadecimal(found.checksum) + ", its seal says " + hexadecimal(seal.checksum));
  return {};
}

Status append_seal(const std::string& path, std::string_view label) {
  TW_ASSIGN(const ModelFile file, ModelFile::open(path));
  const Seal seal = make_seal(file.bytes(), label);
  TW_ASSIGN(const Descriptor descriptor, open_to_append(path, true));
  return append(descriptor.get(), {reinterpret_cast<const char*>(&seal), sizeof seal}, path);
}

}  // namespace tilewright
