#include "runtime/elf_file.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <set>

namespace tilewright {
namespace {

#if defined(__x86_64__)
constexpr int kMachine = EM_X86_64;
constexpr uint64_t kRelative = R_X86_64_RELATIVE;
#elif defined(__aarch64__)
constexpr int kMachine = EM_AARCH64;
constexpr uint64_t kRelative = R_AARCH64_RELATIVE;
#else
constexpr int kMachine = EM_NONE;
constexpr uint64_t kRelative = ~uint64_t{0};
#endif

// What the dynamic section of a compiled model may hold. Others load libraries, or run code.
const std::set<int64_t> kPassive{DT_HASH,      DT_GNU_HASH, DT_STRTAB,  DT_STRSZ,   DT_SYMTAB,
                                 DT_SYMENT,    DT_RELA,     DT_RELASZ,  DT_RELAENT, DT_SONAME,
                                 DT_RELACOUNT, DT_FLAGS,    DT_FLAGS_1, DT_DEBUG,   DT_PLTGOT};
constexpr uint64_t kMostSymbols = 1 << 16, kMostEntries = 1 << 20;

// Reads what the checks ask for, by offset, and never maps the file: every number in it is
// untrusted, so each is compared with the size before it is used. Structures as in the System V
// ABI, chapters 4 and 5.
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

  // After check().
  Status check_passive(const std::vector<std::string>& symbols) {
    TW_RETURN_IF_ERROR(read_dynamic());
    for (const std::string& name : symbols)
      if (!exports(name)) return no_model("it does not export " + name);
    for (const auto& [tag, value] : dynamic_)
      if (!kPassive.count(tag))
        return no_model("it loads or runs something when it is opened (tag " + std::to_string(tag) +
                        " of its dynamic section)");
    return check_relocations();
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
      segments_.push_back(segment);
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

  Error no_model(const std::string& why) const {
    return invalid("not a tilewright model: " + why, path_);
  }
  // What the loader will see at an address.
  template <typename T>
  bool read_at(uint64_t address, T& value) {
    for (const Elf64_Phdr& s : segments_)
      if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr <= s.p_filesz &&
          sizeof value <= s.p_filesz - (address - s.p_vaddr))
        return read(s.p_offset + (address - s.p_vaddr), value);
    return false;
  }

  Status read_dynamic() {
    const auto section = std::find_if(segments_.begin(), segments_.end(),
                                      [](const auto& s) { return s.p_type == PT_DYNAMIC; });
    if (section == segments_.end()) return no_model("it has no dynamic section");
    for (uint64_t i = 0; i < kMostEntries; ++i) {
      Elf64_Dyn entry{};
      if (!read_at(section->p_vaddr + i * sizeof entry, entry))
        return truncated("the dynamic section");
      if (entry.d_tag == DT_NULL) return {};
      dynamic_[entry.d_tag] = entry.d_un.d_val;
    }
    return no_model("its dynamic section has no end");
  }
  uint64_t dynamic(int64_t tag) const {
    const auto it = dynamic_.find(tag);
    return it == dynamic_.end() ? 0 : it->second;
  }
  // The table of symbols does not tell its length; what lies behind it is hardly a like name.
  bool exports(const std::string& name) {
    for (uint64_t i = 1; i < kMostSymbols; ++i) {
      Elf64_Sym symbol{};
      if (!read_at(dynamic(DT_SYMTAB) + i * sizeof symbol, symbol)) return false;
      if (symbol.st_name >= dynamic(DT_STRSZ)) return false;
      if (symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT &&
          is_named(symbol, name))
        return true;
    }
    return false;
  }
  bool is_named(const Elf64_Sym& symbol, const std::string& name) {
    char c = 0;
    for (size_t i = 0; i <= name.size(); ++i)
      if (!read_at(dynamic(DT_STRTAB) + symbol.st_name + i, c) || c != name.c_str()[i])
        return false;
    return true;
  }
  Status check_relocations() {
    const uint64_t count = dynamic(DT_RELASZ) / sizeof(Elf64_Rela);
    for (uint64_t i = 0; i < count; ++i) {
      Elf64_Rela relocation{};
      if (!read_at(dynamic(DT_RELA) + i * sizeof relocation, relocation))
        return truncated("the table of relocations");
      if (ELF64_R_TYPE(relocation.r_info) != kRelative)
        return no_model("relocation " + std::to_string(i) + " is of type " +
                        std::to_string(ELF64_R_TYPE(relocation.r_info)));
    }
    return {};
  }

  const std::string path_;
  std::ifstream file_;
  uint64_t size_ = 0;
  std::vector<Elf64_Phdr> segments_;
  std::map<int64_t, uint64_t> dynamic_;
};

}  // namespace

Status check_shared_object(const std::string& path) { return ElfFile(path).check(); }

Status check_passive_object(const std::string& path, const std::vector<std::string>& symbols) {
  ElfFile file(path);
  TW_RETURN_IF_ERROR(file.check());
  return file.check_passive(symbols);
}

}  // namespace tilewright
