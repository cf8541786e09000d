// The checksum is a hash over the hashes of the file's chunks, so that threads share the reading: copying
// a file out of the page cache takes longer than hashing it.
#include "runtime/seal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "runtime/hash_bytes.h"
#include "runtime/thread_pool.h"

namespace tilewright {
namespace {

constexpr char kSealMark[] = "twseal\r\n";
constexpr uint64_t kChunk = 256 << 10;    // stays in a core's cache until it is hashed
constexpr uint64_t kChunksPerThread = 4;  // fewer are hashed before a thread has started
constexpr uint64_t kMostSealThreads = 4;  // more do not read memory faster

struct ChunkHashes {
  int descriptor;
  uint64_t bytes;
  std::vector<Hash128> hashes;
  std::vector<std::unique_ptr<uint8_t[]>> buffers;  // one per worker
  std::atomic<bool> readable{true};
};

void hash_chunks(TwKernelContext*, void* closure, int64_t begin, int64_t end, int64_t worker) {
  auto& c = *static_cast<ChunkHashes*>(closure);
  uint8_t* const buffer = c.buffers[static_cast<size_t>(worker)].get();
  for (auto i = static_cast<uint64_t>(begin); i < static_cast<uint64_t>(end); ++i) {
    const size_t bytes = std::min(kChunk, c.bytes - i * kChunk);
    if (read_exactly(c.descriptor, i * kChunk, buffer, bytes))
      c.hashes[i] = hash_bytes(buffer, bytes);
    else
      c.readable = false;
  }
}

std::string hexadecimal(const uint64_t (&checksum)[2]) {
  std::string text;
  for (const uint64_t word : checksum)
    for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[word >> shift & 15];
  return text;
}

}  // namespace

bool read_exactly(int descriptor, uint64_t offset, void* data, size_t bytes) {
  auto* to = static_cast<uint8_t*>(data);
  while (bytes > 0) {
    const ssize_t n = pread(descriptor, to, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n;
    offset += static_cast<uint64_t>(n);
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

Result<std::optional<Seal>> read_seal(int descriptor, uint64_t size) {
  Seal seal{};
  if (size < sizeof seal) return std::optional<Seal>();
  if (!read_exactly(descriptor, size - sizeof seal, &seal, sizeof seal))
    return io_error("cannot read the file");
  if (std::memcmp(seal.mark, kSealMark, sizeof seal.mark) != 0) return std::optional<Seal>();
  return std::optional<Seal>(seal);
}

Result<Seal> make_seal(int descriptor, uint64_t bytes, std::string_view label) {
  const uint64_t chunks = (bytes + kChunk - 1) / kChunk;
  const uint64_t threads = chunks <= kChunksPerThread
                               ? 1
                               : std::min({chunks / kChunksPerThread, kMostSealThreads,
                                           static_cast<uint64_t>(available_cpus())});
  ThreadPool pool(static_cast<int>(threads));
  ChunkHashes c{descriptor, bytes, std::vector<Hash128>(chunks), {}};
  for (int w = 0; w < pool.worker_count(); ++w)
    c.buffers.push_back(std::make_unique_for_overwrite<uint8_t[]>(std::min(kChunk, bytes)));
  pool.parallel(nullptr, static_cast<int64_t>(chunks), hash_chunks, &c);
  if (!c.readable) return io_error("cannot read the file");

  std::vector<uint8_t> all(sizeof bytes + chunks * sizeof(Hash128));
  std::memcpy(all.data(), &bytes, sizeof bytes);
  if (chunks) std::memcpy(all.data() + sizeof bytes, c.hashes.data(), chunks * sizeof(Hash128));
  all.insert(all.end(), label.begin(), label.end());
  const Hash128 hash = hash_bytes(all.data(), all.size());
  Seal seal{{}, bytes, {hash.high, hash.low}};
  std::memcpy(seal.mark, kSealMark, sizeof seal.mark);
  return seal;
}

Status check_seal(int descriptor, uint64_t size, const Seal& seal, std::string_view label) {
  const uint64_t bytes = size - sizeof seal;
  if (seal.bytes != bytes)
    return invalid("damaged: " + std::to_string(bytes) + " bytes stand before its seal, expected " +
                   std::to_string(seal.bytes));
  TW_ASSIGN(const Seal found, make_seal(descriptor, bytes, label));
  if (found != seal)
    return invalid("damaged: the checksum of its " + std::to_string(bytes) + " bytes is " +
                   hexadecimal(found.checksum) + ", its seal says " + hexadecimal(seal.checksum));
  return {};
}

Status append_seal(const std::string& path, std::string_view label) {
  const int descriptor = open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC);
  struct stat about{};
  if (descriptor < 0 || fstat(descriptor, &about) != 0) {
    if (descriptor >= 0) close(descriptor);
    return io_error("cannot open the file", path);
  }
  const Result<Seal> seal = make_seal(descriptor, static_cast<uint64_t>(about.st_size), label);
  const bool written =
      seal.ok() && write(descriptor, &*seal, sizeof *seal) == static_cast<ssize_t>(sizeof *seal);
  if (close(descriptor) != 0 || !written) return io_error("cannot write the file", path);
  return {};
}

}  // namespace tilewright
