#include "runtime/model_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "runtime/core/open_file.h"

namespace tilewright {

Result<ModelFile> ModelFile::open(const std::string& path) {
  ModelFile file;
  // The system's loader takes a name without a slash for one to be looked for in its folders.
  file.given_path_ = path.find('/') == std::string::npos ? "./" + path : path;
  TW_ASSIGN(InputFile opened, open_to_read(path));
  file.descriptor_ = opened.descriptor.release();
  struct stat about{};
  if (fstat(file.descriptor_, &about) != 0) return io_error("cannot be looked at", path);
  file.device_ = about.st_dev;
  file.inode_ = about.st_ino;
  if (about.st_size == 0) return file;
  const auto size = static_cast<size_t>(about.st_size);
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor_, 0);
  if (data == MAP_FAILED)
    return limit_error("no room for its " + std::to_string(about.st_size) + " bytes");
  file.data_ = static_cast<const uint8_t*>(data);
  file.size_ = size;
  return file;
}

ModelFile::ModelFile(ModelFile&& other) noexcept
    : given_path_(std::move(other.given_path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      device_(other.device_),
      inode_(other.inode_) {}

ModelFile::~ModelFile() {
  if (data_) munmap(const_cast<uint8_t*>(data_), size_);
  struct stat about{};
  if (descriptor_ >= 0 && fstat(descriptor_, &about) == 0 && about.st_dev == device_ &&
      about.st_ino == inode_)
    close(descriptor_);
}

bool ModelFile::leads_here(const std::string& path) const {
  struct stat about{};
  return stat(path.c_str(), &about) == 0 && about.st_dev == device_ && about.st_ino == inode_;
}

// By the number of the process, so that a debugger that looks from another one finds the file; the
// second form is for a /proc of another PID namespace.
std::string ModelFile::path() const {
  const std::string number = "/fd/" + std::to_string(descriptor_);
  for (const std::string& path :
       {"/proc/" + std::to_string(getpid()) + number, "/proc/self" + number, given_path_})
    if (leads_here(path)) return path;
  return {};
}

bool ModelFile::renumber() {
  const int higher = fcntl(descriptor_, F_DUPFD_CLOEXEC, descriptor_ + 1);
  if (higher < 0) return false;
  close(descriptor_);
  descriptor_ = higher;
  return true;
}

}  // namespace tilewright
