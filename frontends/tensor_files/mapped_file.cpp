#include "frontends/tensor_files/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "runtime/core/open_file.h"

namespace tilewright {

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::filesystem::path& path) {
  TW_ASSIGN(const InputFile file, open_to_read(path.string()));
  if (file.bytes == 0) return std::shared_ptr<const MappedFile>(new MappedFile(nullptr, 0));
  const auto size = static_cast<size_t>(file.bytes);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor.get(), 0);
  if (data == MAP_FAILED)
    return io_error(std::string("cannot be read: ") + std::strerror(errno), path.string());
  return std::shared_ptr<const MappedFile>(new MappedFile(static_cast<const uint8_t*>(data), size));
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<uint8_t*>(data_), size_);
}

}  // namespace tilewright
