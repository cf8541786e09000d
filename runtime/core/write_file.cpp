#include "runtime/core/write_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "runtime/core/open_file.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;
using Target = FileWriter::Target;

constexpr int kMostLinks = 40;
constexpr mode_t kUsualMode = 0666;

Error cannot_write(int code, const std::string& path) {
  return io_error(std::string("cannot be written: ") + std::strerror(code), path);
}

Status write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return cannot_write(n < 0 ? errno : ENOSPC, {});
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Status at(Status status, const std::string& path) {
  if (!status.ok()) status.error().location = path;
  return status;
}

int standard_descriptor(const struct stat& about) {
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat standard{};
    const int flags = ::fcntl(descriptor, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && ::fstat(descriptor, &standard) == 0 &&
        standard.st_ino == about.st_ino && standard.st_dev == about.st_dev)
      return descriptor;
  }
  return -1;
}

// The name at the end of links that lead to nothing.
Result<std::string> follow_links(const std::string& given) {
  fs::path path = given;
  for (int links = 0; links < kMostLinks; ++links) {
    std::error_code error;
    const fs::path next = fs::read_symlink(path, error);
    if (error) return path.string();
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  return cannot_write(ELOOP, given);
}

Result<Target> find_target(const std::string& given, FileAccess access) {
  Target target{.given = given, .path = given};
  if (::stat(given.c_str(), &target.about) != 0) {
    if (errno != ENOENT) return cannot_write(errno, given);
    TW_ASSIGN(target.path, follow_links(given));
    if (fs::path(target.path).filename().empty()) return io_error("is no name of a file", given);
    return target;
  }
  target.exists = true;
  if (access == FileAccess::kPrivate && target.about.st_uid != ::geteuid())
    return io_error("cannot be written: it belongs to another user", given);
  const mode_t mode = target.about.st_mode;
  target.standard = standard_descriptor(target.about);
  target.direct = target.standard >= 0 || S_ISCHR(mode) || S_ISFIFO(mode);
  if (target.direct) return target;
  if (!S_ISREG(mode))
    return io_error(std::string("is ") + kind_of_file(mode) + ", not a file", given);
  if (::faccessat(AT_FDCWD, given.c_str(), W_OK, AT_EACCESS) != 0)
    return cannot_write(errno, given);
  std::error_code error;
  target.path = fs::canonical(given, error).string();
  return error ? Result<Target>(cannot_write(error.value(), given)) : target;
}

std::string folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

// Waits for the disk: a file's contents, or a folder's names.
bool flush_to_disk(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file && ::fsync(file.get()) == 0;
}

}  // namespace

Result<FileWriter> FileWriter::create(const std::string& target, FileAccess access) {
  TW_ASSIGN(Target found, find_target(target, access));
  const std::string folder = folder_of(found.path);
  std::error_code error;
  if (!found.direct && !fs::is_directory(folder, error))
    return io_error("cannot be written: there is no folder '" + folder + "'", target);
  auto temporary = found.direct ? TemporaryFolder::make() : TemporaryFolder::make(folder);
  if (!temporary.ok()) return io_error("cannot be written: " + temporary.error().message, target);
  FileWriter writer(std::move(found), access, temporary->file("contents"));
  writer.folder_.emplace(std::move(*temporary));
  return writer;
}

Result<FileWriter> FileWriter::create_in(const TemporaryFolder& folder, const std::string& target,
                                         FileAccess access) {
  static std::atomic<uint64_t> number = 0;
  TW_ASSIGN(Target found, find_target(target, access));
  return FileWriter(std::move(found), access, folder.file("contents" + std::to_string(++number)));
}

// A folder of its own goes with what is in it.
FileWriter::~FileWriter() {
  if (!folder_ && !path_.empty()) ::unlink(path_.c_str());
}

Status FileWriter::write(std::string_view bytes) {
  if (!file_)
    file_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kUsualMode));
  if (!file_) return cannot_write(errno, target_.given);
  return at(write_all(file_.get(), bytes), target_.given);
}

Status FileWriter::close() {
  if (file_ && ::close(file_.release()) != 0) return cannot_write(errno, target_.given);
  return {};
}

Status FileWriter::set_access(int descriptor) const {
  if (access_ == FileAccess::kPrivate) {
    if (::fchmod(descriptor, 0600) != 0) return cannot_write(errno, target_.given);
  } else if (target_.exists) {
    // Who may not give a file away owns what he writes.
    (void)!::fchown(descriptor, target_.about.st_uid, target_.about.st_gid);
    if (::fchmod(descriptor, target_.about.st_mode & 0777) != 0)
      return cannot_write(errno, target_.given);
  }
  return {};
}

Status FileWriter::copy_to_target() const {
  Descriptor opened;
  if (target_.standard < 0) {
    // A pipe that nobody reads is an error instead of a wait.
    opened = Descriptor(::open(target_.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (!opened && errno == ENXIO)
      return io_error("cannot be written: nothing reads from it", target_.given);
    if (!opened || ::fcntl(opened.get(), F_SETFL, 0) != 0)
      return cannot_write(errno, target_.given);
  }
  std::fflush(stdout);  // what was printed before comes before
  const int to = opened ? opened.get() : target_.standard;
  TW_ASSIGN(const InputFile from, open_to_read(path_));
  std::array<char, 1 << 16> piece;
  for (;;) {
    const ssize_t n = ::read(from.descriptor.get(), piece.data(), piece.size());
    if (n == 0) return {};
    if (n < 0) return cannot_write(errno, target_.given);
    TW_RETURN_IF_ERROR(at(write_all(to, {piece.data(), static_cast<size_t>(n)}), target_.given));
  }
}

Status FileWriter::commit(Durability durability) {
  if (!file_ && !is_taken(path_)) TW_RETURN_IF_ERROR(write({}));  // an empty file is one, too
  TW_RETURN_IF_ERROR(close());
  if (target_.direct) return copy_to_target();
  {
    const Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file) return cannot_write(errno, target_.given);
    TW_RETURN_IF_ERROR(set_access(file.get()));
    if (durability == Durability::kOnDisk && ::fsync(file.get()) != 0)
      return cannot_write(errno, target_.given);
  }
  // The name may have been taken since the target was looked at.
  struct stat now{};
  if (::lstat(target_.path.c_str(), &now) == 0 && !S_ISREG(now.st_mode))
    return io_error(std::string("cannot be written: it became ") + kind_of_file(now.st_mode),
                    target_.given);
  if (std::rename(path_.c_str(), target_.path.c_str()) != 0)
    return cannot_write(errno, target_.given);
  if (durability == Durability::kOnDisk && !flush_to_disk(folder_of(target_.path)))
    return cannot_write(errno, target_.given);
  return {};
}

Status write_file(const std::string& path, std::string_view bytes, FileAccess access) {
  TW_ASSIGN(FileWriter writer, FileWriter::create(path, access));
  TW_RETURN_IF_ERROR(writer.write(bytes));
  return writer.commit();
}

Status check_writable(const std::string& path) {
  const auto writer = FileWriter::create(path);
  return writer.ok() ? Status() : Status(writer.error());
}

Result<std::string> write_new_file(const std::string& folder, const std::string& prefix,
                                   const std::string& suffix, std::string_view bytes) {
  std::string path = folder + "/" + prefix + "XXXXXX" + suffix;
  const int made = ::mkostemps(path.data(), static_cast<int>(suffix.size()), O_CLOEXEC);
  if (made < 0) return cannot_write(errno, folder);
  Descriptor file(made);
  Status status = write_all(file.get(), bytes);
  if (::close(file.release()) != 0 && status.ok()) status = cannot_write(errno, {});
  if (status.ok()) return path;
  ::unlink(path.c_str());
  return at(std::move(status), path).error();
}

Status write_mapped(const std::string& path, uint64_t bytes,
                    const std::function<void(uint8_t*)>& fill) {
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kUsualMode));
  if (!file) return cannot_write(errno, path);
  if (const int code = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)); code != 0)
    return cannot_write(code, path);
  void* map = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (map == MAP_FAILED) return cannot_write(errno, path);
  fill(static_cast<uint8_t*>(map));
  ::munmap(map, bytes);
  return {};
}

Result<NamedPipe> make_pipe(const std::string& path) {
  if (::mkfifo(path.c_str(), 0600) != 0) return cannot_write(errno, path);
  NamedPipe pipe;
  pipe.read = Descriptor(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  pipe.write = Descriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!pipe.read || !pipe.write || ::fcntl(pipe.read.get(), F_SETFL, 0) != 0)
    return cannot_write(errno, path);
  return pipe;
}

Result<Descriptor> open_to_append(const std::string& path, bool only_regular) {
  struct stat about{};
  const bool exists = ::stat(path.c_str(), &about) == 0;
  const bool direct = exists && (S_ISCHR(about.st_mode) || S_ISFIFO(about.st_mode));
  const auto refuse = [&] {
    return io_error(std::string("is ") + kind_of_file(about.st_mode) + ", not a file", path);
  };
  if (exists && !S_ISREG(about.st_mode) && (only_regular || !direct)) return refuse();
  const int access = direct ? O_WRONLY : O_RDWR | O_CREAT;
  Descriptor file(
      ::open(path.c_str(), access | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, kUsualMode));
  if (!file && direct && errno == ENXIO)
    return io_error("cannot be written: nothing reads from it", path);
  if (!file || ::fstat(file.get(), &about) != 0 || ::fcntl(file.get(), F_SETFL, O_APPEND) != 0)
    return cannot_write(errno, path);
  if (!S_ISREG(about.st_mode) && !direct) return refuse();
  return file;
}

Status append(int descriptor, std::string_view bytes, const std::string& path) {
  struct stat before{};
  const bool is_regular = ::fstat(descriptor, &before) == 0 && S_ISREG(before.st_mode);
  Status status = at(write_all(descriptor, bytes), path);
  if (!status.ok() && is_regular) (void)!::ftruncate(descriptor, before.st_size);
  return status;
}

}  // namespace tilewright
