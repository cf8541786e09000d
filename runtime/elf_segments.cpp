#include "runtime/elf_segments.h"

#include <cstring>
#include <limits>

namespace tilewright {
namespace {

#if defined(__x86_64__)
constexpr int kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr int kMachine = EM_AARCH64;
#else
constexpr int kMachine = EM_NONE;
#endif
constexpr size_t kMostSegments = 64;  // the system's loader has them on its stack
constexpr uint64_t kPage = 4096, kMostAddress = uint64_t{1} << 46, kMostAlignment = 1 << 21;

Error truncated(const std::string& what, uint64_t bytes) {
  return invalid("truncated: " + what + " exceeds the file of " + std::to_string(bytes) + " bytes");
}
bool is_inside(uint64_t offset, uint64_t length, uint64_t bytes) {
  return offset <= bytes && length <= bytes - offset;
}

Result<Elf64_Ehdr> read_header(std::span<const uint8_t> file) {
  Elf64_Ehdr header{};
  if (file.size() < SELFMAG || std::memcmp(file.data(), ELFMAG, SELFMAG) != 0)
    return invalid("not a shared object");
  if (file.size() < sizeof header) return truncated("the file header", file.size());
  std::memcpy(&header, file.data(), sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_type != ET_DYN)
    return invalid("not a shared object (64-bit, little-endian)");
  if (header.e_machine != kMachine)
    return unsupported("a shared object for another kind of processor");
  if (header.e_phnum == 0 || header.e_phentsize != sizeof(Elf64_Phdr))
    return invalid("not a shared object: no segments");
  return header;
}

Status check_loads(const std::vector<Elf64_Phdr>& loads) {
  uint64_t end = 0;  // of the one before
  for (size_t i = 0; i < loads.size(); ++i) {
    const Elf64_Phdr& s = loads[i];
    const std::string name = "loaded segment " + std::to_string(i);
    if (s.p_filesz > s.p_memsz || s.p_memsz > kMostAddress || s.p_vaddr > kMostAddress)
      return not_a_model(name + " has no possible size");
    if (!(s.p_flags & PF_W) && s.p_filesz != s.p_memsz)
      return not_a_model(name + " is not whole in the file and cannot be written");
    if (s.p_align < kPage || s.p_align > kMostAlignment || (s.p_align & (s.p_align - 1)) != 0 ||
        (s.p_vaddr - s.p_offset) % s.p_align != 0)
      return not_a_model(name + " is not aligned");
    if (s.p_vaddr / kPage < (end + kPage - 1) / kPage)
      return not_a_model(name + " begins on a page of the one before");
    if (s.p_flags != PF_R && s.p_flags != (PF_R | PF_W) && s.p_flags != (PF_R | PF_X))
      return not_a_model(name + " is neither data nor code (flags " + std::to_string(s.p_flags) +
                         ")");
    end = s.p_vaddr + s.p_memsz;
  }
  return {};
}

// Only these kinds, as others are more than bytes to map (PT_INTERP, PT_TLS), and an executable
// stack would be one for the whole process.
Status check_other(const Elf64_Phdr& s, const ElfSegments& segments) {
  const std::string name = "a segment of type " + std::to_string(s.p_type);
  switch (s.p_type) {
    case PT_NULL: return {};
    case PT_GNU_STACK:
      if (s.p_flags & PF_X) return not_a_model("it wants an executable stack");
      return {};
    case PT_DYNAMIC:
    case PT_GNU_RELRO:
      if (!segments.is_loaded(s.p_vaddr, s.p_memsz, PF_W))
        return not_a_model(name + " is not in a loaded segment that can be written");
      return {};
    case PT_PHDR:  // the loader believes this address, and the number in the file's header
      if (s.p_memsz != segments.table_entries * sizeof s ||
          !segments.is_loaded(s.p_vaddr, s.p_memsz) ||
          segments.offset_of(s.p_vaddr) != segments.table_offset)
        return not_a_model("its table of segments is not where it says");
      return {};
    case PT_NOTE:
    case PT_GNU_EH_FRAME:
    case PT_GNU_PROPERTY:
      if (!segments.is_loaded(s.p_vaddr, s.p_memsz))
        return not_a_model(name + " is not in a loaded segment");
      return {};
    default: return not_a_model("it has " + name);
  }
}

}  // namespace

const Elf64_Phdr* ElfSegments::find(uint64_t address, uint64_t length) const {
  for (const Elf64_Phdr& s : loads)
    if (address >= s.p_vaddr && is_inside(address - s.p_vaddr, length, s.p_memsz)) return &s;
  return nullptr;
}

bool ElfSegments::is_loaded(uint64_t address, uint64_t length, uint32_t flags) const {
  const Elf64_Phdr* s = find(address, length);
  return s && (s->p_flags & flags) == flags;
}

uint64_t ElfSegments::offset_of(uint64_t address) const {
  const Elf64_Phdr* s = find(address, 1);
  return s ? s->p_offset + (address - s->p_vaddr) : 0;
}

bool ElfSegments::read_at(uint64_t address, void* data, uint64_t length) const {
  const Elf64_Phdr* s = find(address, length);
  if (!s || !is_inside(address - s->p_vaddr, length, s->p_filesz)) return false;
  if (length) std::memcpy(data, file.data() + s->p_offset + (address - s->p_vaddr), length);
  return true;
}

Error not_a_model(const std::string& why) { return invalid("not a tilewright model: " + why); }

Result<ElfSegments> read_segments(std::span<const uint8_t> file) {
  TW_ASSIGN(const Elf64_Ehdr header, read_header(file));
  std::vector<Elf64_Phdr> all(header.e_phnum);
  if (!is_inside(header.e_phoff, all.size() * sizeof all[0], file.size()))
    return truncated("the table of segments", file.size());
  std::memcpy(all.data(), file.data() + header.e_phoff, all.size() * sizeof all[0]);
  ElfSegments segments{file, header.e_phoff, all.size(), {}, {}, {}};
  for (size_t i = 0; i < all.size(); ++i) {
    if (!is_inside(all[i].p_offset, all[i].p_filesz, file.size()))
      return truncated("segment " + std::to_string(i), file.size());
    (all[i].p_type == PT_LOAD      ? segments.loads
     : all[i].p_type == PT_DYNAMIC ? segments.dynamic
                                   : segments.others)
        .push_back(all[i]);
  }
  return segments;
}

Status check_segments(const ElfSegments& s) {
  if (s.loads.size() + s.dynamic.size() + s.others.size() > kMostSegments)
    return not_a_model("it has more than " + std::to_string(kMostSegments) + " segments");
  TW_RETURN_IF_ERROR(check_loads(s.loads));
  if (s.dynamic.size() != 1)
    return not_a_model("it has " + std::to_string(s.dynamic.size()) +
                       " dynamic segments, expected one");
  TW_RETURN_IF_ERROR(check_other(s.dynamic[0], s));
  bool has_stack = false;
  for (const Elf64_Phdr& o : s.others) {
    has_stack |= o.p_type == PT_GNU_STACK;
    TW_RETURN_IF_ERROR(check_other(o, s));
  }
  if (!has_stack) return not_a_model("it does not say that its stack is not executable");
  return {};
}

}  // namespace tilewright
