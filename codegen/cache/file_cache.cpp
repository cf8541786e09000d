#include "codegen/cache/file_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "codegen/cache/content_hash.h"

namespace tilewright::cache {

namespace fs = std::filesystem;

namespace {

// What a file ends with: "twcache1", the size of its contents, and the hash of its name and these.
struct Seal {
  char mark[8];
  int64_t size;
  char hash[32];
};
constexpr char kMark[] = "twcache1";
constexpr std::string_view kBegun = ".begun-";  // of names while files are written
constexpr auto kAbandoned = std::chrono::hours(1);

Seal seal_of(const std::string& name, std::span<const uint8_t> contents) {
  Seal s{{}, static_cast<int64_t>(contents.size()), {}};
  std::memcpy(s.mark, kMark, sizeof s.mark);
  std::memcpy(s.hash, ContentHash().add(name).add(contents).hex().data(), sizeof s.hash);
  return s;
}

// An open file, mapped whole: pages come at once, as all of them are hashed. The time of its last change
// stands for that of its last use, since many file systems do not keep the latter.
class Mapped {
 public:
  explicit Mapped(const std::string& path) : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat about{};
    if (descriptor_ < 0 || fstat(descriptor_, &about) != 0 || about.st_size <= 0) return;
    const auto size = static_cast<size_t>(about.st_size);
    void* at = mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_POPULATE, descriptor_, 0);
    if (at != MAP_FAILED) bytes_ = {static_cast<const uint8_t*>(at), size};
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() {
    if (!bytes_.empty()) munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
    if (descriptor_ >= 0) close(descriptor_);
  }
  std::span<const uint8_t> bytes() const { return bytes_; }
  // Before the seal, where that is as it must be.
  std::optional<std::span<const uint8_t>> contents(const std::string& name) const {
    if (bytes_.size() < sizeof(Seal)) return std::nullopt;
    const auto contents = bytes_.first(bytes_.size() - sizeof(Seal));
    const Seal expected = seal_of(name, contents);
    if (std::memcmp(&expected, contents.data() + contents.size(), sizeof expected) != 0)
      return std::nullopt;
    return contents;
  }
  void touch() const { futimens(descriptor_, nullptr); }

 private:
  const int descriptor_;
  std::span<const uint8_t> bytes_;
};

bool append(const std::string& path, std::span<const uint8_t> bytes) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor < 0) return false;
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor, bytes.data(), bytes.size());
    if (n <= 0) break;
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return close(descriptor) == 0 && bytes.empty();
}

void remove_file(const std::string& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
}

}  // namespace

std::string FileCache::path(const std::string& name) const { return folder_ + "/" + name; }

std::optional<std::vector<uint8_t>> FileCache::read(const std::string& name) {
  const Mapped file(path(name));
  if (file.bytes().empty()) return std::nullopt;
  const auto contents = file.contents(name);
  if (!contents) {
    remove_file(path(name));
    return std::nullopt;
  }
  file.touch();
  return std::vector<uint8_t>(contents->begin(), contents->end());
}

std::optional<std::string> FileCache::find(const std::string& name) {
  if (utimensat(AT_FDCWD, path(name).c_str(), nullptr, 0) != 0) return std::nullopt;
  return path(name);
}

bool FileCache::write(const std::string& name, std::span<const uint8_t> contents) {
  const Seal s = seal_of(name, contents);
  return keep(name,
              [&](const std::string& path) {
                return append(path, contents) &&
                       append(path, {reinterpret_cast<const uint8_t*>(&s), sizeof s});
              })
      .has_value();
}

// A name's file is replaced at once (rename), so that readers have the old contents or the new ones,
// and whoever has the old file open keeps it.
std::optional<std::string> FileCache::keep(
    const std::string& name, const std::function<bool(const std::string&)>& write_file) {
  std::error_code error;
  fs::create_directories(folder_, error);
  std::string beside = path(std::string(kBegun) + name + "-XXXXXX");
  const int descriptor = mkstemp(beside.data());
  if (descriptor < 0) return std::nullopt;
  close(descriptor);
  if (!write_file(beside) || std::rename(beside.c_str(), path(name).c_str()) != 0) {
    remove_file(beside);
    return std::nullopt;
  }
  const auto bytes = fs::file_size(path(name), error);
  make_room(error ? 0 : static_cast<int64_t>(bytes));
  return path(name);
}

// The folder is looked through at the first write, and again when what was written since then may
// have filled it; down to nine tenths, so that this is seldom.
void FileCache::make_room(int64_t written) {
  const std::lock_guard hold(lock_);
  if (unchecked_ >= 0 && (unchecked_ += written) < most_bytes_ / 16) return;
  unchecked_ = 0;
  struct File {
    fs::file_time_type used;
    int64_t bytes;
    fs::path path;
  };
  std::vector<File> files;
  int64_t all = 0;
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    const auto used = it->last_write_time(gone);
    const auto bytes = it->file_size(gone);
    if (gone) continue;
    if (it->path().filename().string().starts_with(kBegun)) {
      if (fs::file_time_type::clock::now() - used > kAbandoned) fs::remove(it->path(), gone);
      continue;
    }
    files.push_back({used, static_cast<int64_t>(bytes), it->path()});
    all += files.back().bytes;
  }
  if (all <= most_bytes_) return;
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.used < b.used; });
  for (const File& f : files) {
    if (all <= most_bytes_ / 10 * 9) break;
    remove_file(f.path);
    all -= f.bytes;
  }
}

std::string user_folder() {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  fs::path folder;
  if (cache && *cache == '/')  // a relative one is to be ignored (XDG Base Directory, "Basics")
    folder = cache;
  else if (home && *home == '/')
    folder = fs::path(home) / ".cache";
  else
    return {};
  return folder / "tilewright";
}

FileCache* user_cache() {
  static const auto cache = []() -> std::unique_ptr<FileCache> {
    int64_t bytes = int64_t{4} << 30;
    if (const char* given = std::getenv("TILEWRIGHT_CACHE_BYTES")) {
      char* end = nullptr;
      bytes = std::strtoll(given, &end, 10);
      if (end == given || *end || bytes < 0) bytes = 0;
    }
    const std::string folder = user_folder();
    if (folder.empty() || bytes == 0) return nullptr;
    return std::make_unique<FileCache>(folder + "/compiled", bytes);
  }();
  return cache.get();
}

}  // namespace tilewright::cache
