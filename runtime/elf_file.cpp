#include "runtime/elf_file.h"

#include <elf.h>

#include <bit>
#include <cstring>
#include <fstream>

namespace tilewright {
namespace {

#if defined(__x86_64__)
constexpr int kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr int kMachine = EM_AARCH64;
#else
constexpr int kMachine = EM_NONE;
#endif

class ElfFile {
 public:
  explicit ElfFile(const std::string& path) : path_(path), file_(path, std::ios::binary) {
    if (!file_) return;
    file_.seekg(0, std::ios::end);
    size_ = file_ ? static_cast<uint64_t>(file_.tellg()) : 0;
  }

  Status check() {
    if (!file_) return io_error("cannot read the file", path_);
    Elf64_Ehdr header{};
    unsigned char magic[SELFMAG] = {};
    if (!read(0, magic) || std::memcmp(magic, ELFMAG, SELFMAG) != 0)
      return invalid("not a shared object", path_);
    if (!read(0, header)) return truncated("the file header");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_type != ET_DYN)
      return invalid("not a shared object (64-bit, little-endian)", path_);
    if (header.e_machine != kMachine)
      return unsupported("a shared object for another kind of processor", path_);
    TW_RETURN_IF_ERROR(check_segments(header));
    return check_sections(header);
  }

 private:
  template <typename T>
  bool read(uint64_t offset, T& value) {
    if (!inside(offset, sizeof value)) return false;
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(offset));
    file_.read(reinterpret_cast<char*>(&value), sizeof value);
    return static_cast<bool>(file_);
  }
  bool inside(uint64_t offset, uint64_t bytes) const {
    return offset <= size_ && bytes <= size_ - offset;
  }
  Error truncated(const std::string& what) const {
    return invalid(
        "truncated: " + what + " exceeds the file of " + std::to_string(size_) + " bytes", path_);
  }

  Status check_segments(const Elf64_Ehdr& header) {
    if (header.e_phnum == 0 || header.e_phentsize != sizeof(Elf64_Phdr))
      return invalid("not a shared object: no segments", path_);
    for (uint64_t i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr segment{};
      if (!inside(header.e_phoff, (i + 1) * sizeof segment) ||
          !read(header.e_phoff + i * sizeof segment, segment))
        return truncated("the table of segments");
      if (!inside(segment.p_offset, segment.p_filesz))
        return truncated("segment " + std::to_string(i));
    }
    return {};
  }

  // The table of sections stands last in most files, so that even a lost last byte shows.
  Status check_sections(const Elf64_Ehdr& header) {
    if (header.e_shnum == 0) return {};
    if (header.e_shentsize != sizeof(Elf64_Shdr))
      return invalid("not a shared object: damaged file header", path_);
    for (uint64_t i = 0; i < header.e_shnum; ++i) {
      Elf64_Shdr section{};
      if (!inside(header.e_shoff, (i + 1) * sizeof section) ||
          !read(header.e_shoff + i * sizeof section, section))
        return truncated("the table of sections");
      if (section.sh_type != SHT_NOBITS && !inside(section.sh_offset, section.sh_size))
        return truncated("section " + std::to_string(i));
    }
    return {};
  }

  const std::string path_;
  std::ifstream file_;
  uint64_t size_ = 0;
};

}  // namespace

Status check_shared_object(const std::string& path) { return ElfFile(path).check(); }

}  // namespace tilewright
