#include "codegen/elf_data.h"

#include <elf.h>

#include <array>
#include <cstring>

#include "runtime/core/write_file.h"

namespace tilewright::codegen {

namespace {

uint64_t align64(uint64_t n) { return (n + 63) & ~uint64_t{63}; }

struct Names {  // a string table
  std::string text = std::string(1, '\0');
  uint32_t add(const std::string& s) {
    const auto at = static_cast<uint32_t>(text.size());
    text += s + '\0';
    return at;
  }
};

Elf64_Shdr section(uint32_t name, uint32_t type, uint64_t flags, uint64_t offset, uint64_t size,
                   uint64_t alignment) {
  Elf64_Shdr s{};
  s.sh_name = name;
  s.sh_type = type;
  s.sh_flags = flags;
  s.sh_offset = offset;
  s.sh_size = size;
  s.sh_addralign = alignment;
  return s;
}
// A global data object in section 1, the only one with contents.
Elf64_Sym symbol(uint32_t name, uint64_t value, uint64_t size) {
  Elf64_Sym s{};
  s.st_name = name;
  s.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
  s.st_shndx = 1;
  s.st_value = value;
  s.st_size = size;
  return s;
}

}  // namespace

Status write_elf_data(const std::string& path, const std::string& name, int64_t bytes,
                      const std::function<void(uint8_t*)>& fill) {
  // [ELF header][data, then its size][symbols][symbol names][section names][section headers]
  const auto n = static_cast<uint64_t>(bytes);
  const uint64_t data_at = align64(sizeof(Elf64_Ehdr)), size_at = align64(n),
                 data_size = size_at + 8;
  Names symbol_names, section_names;
  const std::array<Elf64_Sym, 3> symbols{Elf64_Sym{}, symbol(symbol_names.add(name), 0, n),
                                         symbol(symbol_names.add(name + "_size"), size_at, 8)};
  const uint64_t symbols_at = align64(data_at + data_size), names_at = symbols_at + sizeof(symbols);
  const uint64_t section_names_at = names_at + symbol_names.text.size();
  const uint32_t rodata = section_names.add(".rodata.tilewright"),
                 symtab = section_names.add(".symtab"), strtab = section_names.add(".strtab"),
                 shstrtab = section_names.add(".shstrtab");
  const uint64_t headers_at = align64(section_names_at + section_names.text.size());
  std::array<Elf64_Shdr, 5> headers{
      Elf64_Shdr{}, section(rodata, SHT_PROGBITS, SHF_ALLOC, data_at, data_size, 64),
      section(symtab, SHT_SYMTAB, 0, symbols_at, sizeof(symbols), 8),
      section(strtab, SHT_STRTAB, 0, names_at, symbol_names.text.size(), 1),
      section(shstrtab, SHT_STRTAB, 0, section_names_at, section_names.text.size(), 1)};
  headers[2].sh_link = 3;
  headers[2].sh_info = 1;
  headers[2].sh_entsize = sizeof(Elf64_Sym);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_shoff = headers_at;
  header.e_ehsize = sizeof(Elf64_Ehdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = headers.size();
  header.e_shstrndx = 4;

  const uint64_t total = headers_at + sizeof(headers);
  return write_mapped(path, total, [&](uint8_t* at) {
    std::memcpy(at, &header, sizeof(header));
    fill(at + data_at);
    std::memcpy(at + data_at + size_at, &n, 8);
    std::memcpy(at + symbols_at, symbols.data(), sizeof(symbols));
    std::memcpy(at + names_at, symbol_names.text.data(), symbol_names.text.size());
    std::memcpy(at + section_names_at, section_names.text.data(), section_names.text.size());
    std::memcpy(at + headers_at, headers.data(), sizeof(headers));
  });
}

}  // namespace tilewright::codegen
