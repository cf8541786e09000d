#include "codegen/cache/file_cache.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
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
  explicit Mapped(Result<InputFile> file) {
    if (!file.ok() || file->bytes == 0) return;
    descriptor_ = std::move(file->descriptor);
    const auto size = static_cast<size_t>(file->bytes);
    void* at = mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_POPULATE, descriptor_.get(), 0);
    if (at != MAP_FAILED) bytes_ = {static_cast<const uint8_t*>(at), size};
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() {
    if (!bytes_.empty()) munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
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
  void touch() const { futimens(descriptor_.get(), nullptr); }

 private:
  Descriptor descriptor_;
  std::span<const uint8_t> bytes_;
};

std::string_view as_text(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void remove_file(const std::string& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
}

}  // namespace

std::string FileCache::path(const std::string& name) const { return folder_ + "/" + name; }

void FileCache::set_note(std::function<void(const std::string&)> note) {
  const std::lock_guard hold(lock_);
  note_ = std::move(note);
}

void FileCache::say_once(bool& said, const std::string& text) {
  const std::lock_guard hold(lock_);
  if (note_ && !said) note_(text), said = true;
}

Result<InputFile> FileCache::open_entry(const std::string& name) {
  auto file = open_trusted(path(name));
  if (!file.ok() && is_taken(path(name)))
    say_once(said_unread_, file.error().to_string() + "; what it would hold is compiled anew");
  return file;
}

std::optional<std::vector<uint8_t>> FileCache::read(const std::string& name) {
  const Mapped file(open_entry(name));
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
  const auto file = open_entry(name);
  if (!file.ok()) return std::nullopt;
  futimens(file->descriptor.get(), nullptr);
  return path(name);
}

bool FileCache::write(const std::string& name, std::span<const uint8_t> contents) {
  const Seal s = seal_of(name, contents);
  return keep(name,
              [&](FileWriter& file) -> Status {
                TW_RETURN_IF_ERROR(file.write(as_text(contents)));
                return file.write({reinterpret_cast<const char*>(&s), sizeof s});
              })
      .has_value();
}

Result<std::shared_ptr<const TemporaryFolder>> FileCache::begun() {
  const std::lock_guard hold(lock_);
  if (!begun_ || !begun_->exists()) {
    auto made = TemporaryFolder::make(folder_);
    if (!made.ok()) return io_error("cannot be written to: " + made.error().message, folder_);
    begun_ = std::make_shared<const TemporaryFolder>(std::move(*made));
  }
  return begun_;
}

// A name's file is replaced at once (rename), so that readers have the old contents or the new ones,
// and whoever has the old file open keeps it.
std::optional<std::string> FileCache::keep(const std::string& name,
                                           const std::function<Status(FileWriter&)>& fill) {
  std::error_code error;
  fs::create_directories(folder_, error);
  const auto write = [&]() -> Status {
    if (error) return io_error("cannot be made: " + error.message(), folder_);
    TW_ASSIGN(const auto folder, begun());
    TW_ASSIGN(FileWriter file, FileWriter::create_in(*folder, path(name), FileAccess::kPrivate));
    TW_RETURN_IF_ERROR(fill(file));
    TW_RETURN_IF_ERROR(file.close());
    return file.commit();
  };
  if (const Status written = write(); !written.ok()) {
    if (written.error().kind == ErrorKind::kIo)
      say_once(said_unwritten_, written.error().to_string() + "; nothing is kept");
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
