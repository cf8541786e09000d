#include "runtime/core/open_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tilewright {

namespace {

Error cannot_open(const std::string& path) {
  if (errno == ENOENT) return io_error("no such file", path);
  return io_error(std::string("cannot be read: ") + std::strerror(errno), path);
}

Error not_regular(uint32_t mode, const std::string& path) {
  return io_error(std::string("is ") + kind_of_file(mode) + ", not a file", path);
}

Result<InputFile> open_regular(const std::string& path, struct stat& about) {
  // Opening a device may already do something, so that its name is looked at first.
  if (::stat(path.c_str(), &about) != 0) return cannot_open(path);
  if (!S_ISREG(about.st_mode)) return not_regular(about.st_mode, path);
  // O_NONBLOCK and O_NOCTTY matter where something else took the name in between.
  InputFile file{Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY))};
  if (!file.descriptor || ::fstat(file.descriptor.get(), &about) != 0) return cannot_open(path);
  if (!S_ISREG(about.st_mode)) return not_regular(about.st_mode, path);
  file.bytes = static_cast<uint64_t>(about.st_size);
  return file;
}

}  // namespace

const char* kind_of_file(uint32_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return S_ISREG(mode) ? "a file" : "a device";
}

bool is_taken(const std::string& path) {
  struct stat about{};
  return ::lstat(path.c_str(), &about) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

Result<Descriptor> open_folder(const std::string& path) {
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return cannot_open(path);
  return folder;
}

Result<InputFile> open_to_read(const std::string& path) {
  struct stat about{};
  return open_regular(path, about);
}

Result<InputFile> open_trusted(const std::string& path) {
  struct stat about{};
  TW_ASSIGN(InputFile file, open_regular(path, about));
  if (about.st_uid != ::geteuid() && about.st_uid != 0)
    return invalid("belongs to another user, and is not trusted", path);
  if (about.st_mode & (S_IWGRP | S_IWOTH))
    return invalid("may be written by other users, and is not trusted", path);
  return file;
}

Result<std::string> read_whole(const InputFile& file, const std::string& path,
                               uint64_t most_bytes) {
  const auto too_large = [&] {
    return limit_error("is larger than " + std::to_string(most_bytes) + " bytes", path);
  };
  if (file.bytes > most_bytes) return too_large();
  std::string text(file.bytes, '\0');
  for (size_t done = 0;;) {
    if (done == text.size()) {  // the file may have grown since it was opened
      if (done > most_bytes) return too_large();
      text.resize(done + 4096);
    }
    const ssize_t n = ::read(file.descriptor.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return cannot_open(path);
    done += static_cast<size_t>(n);
    if (n > 0) continue;
    if (done > most_bytes) return too_large();
    text.resize(done);
    return text;
  }
}

Result<std::string> read_whole(const std::string& path, uint64_t most_bytes) {
  TW_ASSIGN(const InputFile file, open_to_read(path));
  return read_whole(file, path, most_bytes);
}

}  // namespace tilewright
