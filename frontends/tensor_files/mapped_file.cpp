#include "frontends/tensor_files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tilewright {

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::filesystem::path& path) {
  // O_NONBLOCK keeps a named pipe from blocking the open; it has no effect on regular files.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return io_error(std::string("cannot open: ") + std::strerror(errno), path.string());
  struct stat status{};
  const char* problem = nullptr;
  void* data = nullptr;
  if (::fstat(fd, &status) != 0) {
    problem = std::strerror(errno);
  } else if (!S_ISREG(status.st_mode)) {
    problem = "not a regular file";
  } else if (status.st_size > 0) {
    data = ::mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) problem = std::strerror(errno);
  }
  ::close(fd);
  if (problem) return io_error(std::string("cannot read: ") + problem, path.string());
  return std::shared_ptr<const MappedFile>(
      new MappedFile(static_cast<const uint8_t*>(data), static_cast<size_t>(status.st_size)));
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<uint8_t*>(data_), size_);
}

}  // namespace tilewright
