#include "runtime/core/temporary_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace tilewright {

namespace {

constexpr std::string_view kPrefix = ".tilewright-partial-";
constexpr std::string_view kPattern = "XXXXXX";

Descriptor open_below(int parent, const char* name) {
  return Descriptor(
      ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
}

std::vector<std::string> names_in(const Descriptor& folder) {
  std::vector<std::string> names;
  const int copy = ::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> list(copy < 0 ? nullptr : ::fdopendir(copy),
                                                 ::closedir);
  while (const dirent* entry = list ? ::readdir(list.get()) : nullptr)
    names.emplace_back(entry->d_name);
  return names;
}

void remove_folder(int parent, const char* name, const Descriptor& folder) {
  for (const std::string& file : names_in(folder)) {
    if (file == "." || file == "..") continue;
    if (file.starts_with(kPrefix)) {  // one in the other
      const Descriptor inner = open_below(folder.get(), file.c_str());
      if (inner) remove_folder(folder.get(), file.c_str(), inner);
    } else {
      ::unlinkat(folder.get(), file.c_str(), 0);
    }
  }
  ::unlinkat(parent, name, AT_REMOVEDIR);
}

// Where the file system has no locks, nobody can tell whether a maker lives, and nothing is removed.
void remove_abandoned(const std::string& parent) {
  const Descriptor folder = open_below(AT_FDCWD, (parent + "/.").c_str());
  if (!folder) return;
  for (const std::string& name : names_in(folder)) {
    if (!name.starts_with(kPrefix) || name.size() != kPrefix.size() + kPattern.size()) continue;
    const Descriptor abandoned = open_below(folder.get(), name.c_str());
    struct stat about{};
    if (!abandoned || ::fstat(abandoned.get(), &about) != 0 || about.st_uid != ::geteuid() ||
        ::flock(abandoned.get(), LOCK_EX | LOCK_NB) != 0)
      continue;
    remove_folder(folder.get(), name.c_str(), abandoned);
  }
}

void remove_abandoned_once(const std::string& parent) {
  static std::mutex mutex;
  static std::set<std::string> seen;
  const std::lock_guard lock(mutex);
  if (seen.insert(parent).second) remove_abandoned(parent);
}

bool is_at(const std::string& path, const Descriptor& folder) {
  struct stat mine{}, there{};
  return ::fstat(folder.get(), &mine) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
}

}  // namespace

Result<TemporaryFolder> TemporaryFolder::make(const std::string& parent) {
  remove_abandoned_once(parent);
  for (;;) {
    std::string path = parent + "/" + std::string(kPrefix) + std::string(kPattern);
    if (!::mkdtemp(path.data())) return io_error(std::strerror(errno));
    Descriptor lock = open_below(AT_FDCWD, path.c_str());
    if (!lock && errno != ENOENT) {
      const Error error = io_error(std::strerror(errno));
      ::rmdir(path.c_str());
      return error;
    }
    // Another process may have taken it for an abandoned one before it was locked.
    if (!lock || (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)) continue;
    if (is_at(path, lock)) return TemporaryFolder(std::move(path), std::move(lock));
  }
}

Result<TemporaryFolder> TemporaryFolder::make() {
  std::error_code error;
  const std::string parent = std::filesystem::temp_directory_path(error).string();
  if (error) return io_error("there is no folder for temporary files: " + error.message());
  auto folder = make(parent);
  if (!folder.ok()) folder.error().location = parent;
  return folder;
}

bool TemporaryFolder::exists() const { return is_at(path_, lock_); }

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

TemporaryFolder::~TemporaryFolder() {
  if (!path_.empty()) remove_folder(AT_FDCWD, path_.c_str(), lock_);
}

}  // namespace tilewright
