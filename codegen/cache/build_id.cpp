#include "codegen/cache/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace tilewright::cache {

namespace {

struct Search {
  uintptr_t address;
  std::string id;
};

// Notes are (sizes of name and description, type), the name, the description, each padded to 4 bytes.
std::string id_in_notes(const uint8_t* at, size_t bytes) {
  const auto padded = [](size_t n) { return (n + 3) / 4 * 4; };
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof note);
    const size_t name = padded(note.n_namesz), description = padded(note.n_descsz);
    if (name + description > bytes - sizeof note) break;
    const uint8_t* text = at + sizeof note;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !std::memcmp(text, "GNU", 4)) {
      std::string id;
      for (size_t i = 0; i < note.n_descsz; ++i) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", text[name + i]);
        id += digits;
      }
      return id;
    }
    at += sizeof note + name + description;
    bytes -= sizeof note + name + description;
  }
  return {};
}

int look(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  bool here = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) & p = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + p.p_vaddr;
    here |= p.p_type == PT_LOAD && search->address >= begin && search->address - begin < p.p_memsz;
  }
  if (!here) return 0;
  for (int i = 0; i < info->dlpi_phnum && search->id.empty(); ++i) {
    const ElfW(Phdr) & p = info->dlpi_phdr[i];
    if (p.p_type == PT_NOTE)
      search->id =
          id_in_notes(reinterpret_cast<const uint8_t*>(info->dlpi_addr + p.p_vaddr), p.p_memsz);
  }
  return 1;
}

}  // namespace

std::string build_id(const void* address) {
  Search search{reinterpret_cast<uintptr_t>(address), {}};
  dl_iterate_phdr(look, &search);
  return search.id;
}

}  // namespace tilewright::cache
