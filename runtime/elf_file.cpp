#include "runtime/elf_file.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace tilewright {
namespace {

#if defined(__x86_64__)
constexpr uint64_t kRelative = R_X86_64_RELATIVE;
#elif defined(__aarch64__)
constexpr uint64_t kRelative = R_AARCH64_RELATIVE;
#else
constexpr uint64_t kRelative = ~uint64_t{0};
#endif
constexpr uint64_t kMostSymbols = 1 << 16, kMostEntries = 256, kMostRelocations = 1 << 20;

// What the dynamic section of a compiled model may hold: tables, with the bytes that the loader
// reads of them unasked, and numbers. Other entries load libraries, run code, or give the file a
// name that stands for another library.
struct Entry {
  int64_t tag;
  uint64_t table_bytes;  // 0: the entry is a number
};
constexpr Entry kPassive[] = {
    {DT_GNU_HASH, 16}, {DT_STRTAB, 1}, {DT_STRSZ, 0},   {DT_SYMTAB, sizeof(Elf64_Sym)},
    {DT_SYMENT, 0},    {DT_RELA, 0},   {DT_RELASZ, 0},  {DT_RELAENT, 0},
    {DT_RELACOUNT, 0}, {DT_FLAGS, 0},  {DT_FLAGS_1, 0}, {DT_PLTGOT, 0}};

class DynamicSection {
 public:
  explicit DynamicSection(const ElfSegments& segments) : segments_(segments) {}

  Status read() {
    if (segments_.dynamic.empty()) return not_a_model("it has no dynamic section");
    const Elf64_Phdr& section = segments_.dynamic[0];
    for (uint64_t i = 0; i < std::min(section.p_memsz / sizeof(Elf64_Dyn), kMostEntries); ++i) {
      Elf64_Dyn entry{};
      if (!segments_.read_at(section.p_vaddr + i * sizeof entry, &entry, sizeof entry)) break;
      if (entry.d_tag == DT_NULL) return {};
      if (!entries_.emplace(entry.d_tag, entry.d_un.d_val).second) repeated_ = entry.d_tag;
    }
    return not_a_model("its dynamic section has no end");
  }

  // The table of symbols does not tell its length; what lies behind it is hardly a like name.
  Status find(const std::vector<std::string>& names, std::map<std::string, uint64_t>& found) const {
    for (uint64_t i = 1; i < kMostSymbols && found.size() < names.size(); ++i) {
      Elf64_Sym symbol{};
      if (!segments_.read_at(value(DT_SYMTAB) + i * sizeof symbol, &symbol, sizeof symbol) ||
          symbol.st_name >= value(DT_STRSZ))
        break;
      if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT) continue;
      for (const std::string& name : names)
        if (is_named(symbol, name)) found.emplace(name, symbol.st_value);
    }
    for (const std::string& name : names)
      if (!found.count(name)) return not_a_model("it does not export " + name);
    return {};
  }

  Status check_entries() const {
    if (repeated_)
      return not_a_model("its dynamic section has the tag " + std::to_string(*repeated_) +
                         " twice");
    for (const auto& [tag, value] : entries_) {
      const auto* allowed = std::find_if(std::begin(kPassive), std::end(kPassive),
                                         [tag = tag](const Entry& e) { return e.tag == tag; });
      const std::string name = "tag " + std::to_string(tag) + " of its dynamic section";
      if (allowed == std::end(kPassive))
        return not_a_model("it loads or runs something when it is opened (" + name + ")");
      if (allowed->table_bytes && !segments_.is_loaded(value, allowed->table_bytes))
        return not_a_model(name + " is not in a loaded segment");
    }
    if (!segments_.is_loaded(value(DT_STRTAB), value(DT_STRSZ)))
      return not_a_model("its names are not in a loaded segment");
    TW_RETURN_IF_ERROR(check_hash_table());
    if (value(DT_SYMENT) != sizeof(Elf64_Sym)) return not_a_model("its symbols have another size");
    if ((value(DT_FLAGS) & ~uint64_t{DF_BIND_NOW}) || (value(DT_FLAGS_1) & ~uint64_t{DF_1_NOW}))
      return not_a_model("its flags ask for more than to be mapped");
    return {};
  }

  Status check_relocations() const {
    const uint64_t bytes = value(DT_RELASZ);
    if (bytes == 0) return {};
    if (value(DT_RELAENT) != sizeof(Elf64_Rela) || bytes % sizeof(Elf64_Rela) != 0 ||
        bytes / sizeof(Elf64_Rela) > kMostRelocations)
      return not_a_model("its table of relocations has no possible size");
    std::vector<Elf64_Rela> table(bytes / sizeof(Elf64_Rela));
    if (!segments_.read_at(value(DT_RELA), table.data(), bytes))
      return not_a_model("its table of relocations is not in a loaded segment");
    for (size_t i = 0; i < table.size(); ++i) {
      const Elf64_Rela& r = table[i];
      const std::string name = "relocation " + std::to_string(i);
      if (ELF64_R_TYPE(r.r_info) != kRelative)
        return not_a_model(name + " is of type " + std::to_string(ELF64_R_TYPE(r.r_info)));
      if (!segments_.is_loaded(r.r_offset, sizeof(uint64_t), PF_W) || is_in_section(r.r_offset))
        return not_a_model(name + " writes outside the data");
      if (!segments_.is_loaded(static_cast<uint64_t>(r.r_addend), 1))
        return not_a_model(name + " points outside the file");
    }
    return {};
  }

 private:
  uint64_t value(int64_t tag) const {
    const auto it = entries_.find(tag);
    return it == entries_.end() ? 0 : it->second;
  }
  bool is_named(const Elf64_Sym& symbol, const std::string& name) const {
    std::string text(name.size() + 1, ' ');
    return segments_.read_at(value(DT_STRTAB) + symbol.st_name, text.data(), text.size()) &&
           std::memcmp(text.data(), name.c_str(), text.size()) == 0;
  }
  // The loader stops the process over a header that is not possible, and computes with it
  // otherwise.
  Status check_hash_table() const {
    struct {
      uint32_t buckets, first_symbol, words, shift;
    } header{};
    if (!entries_.count(DT_GNU_HASH)) return {};
    const uint64_t at = value(DT_GNU_HASH);
    if (!segments_.read_at(at, &header, sizeof header) || header.words == 0 ||
        (header.words & (header.words - 1)) != 0 || header.shift > 31 ||
        !segments_.is_loaded(
            at, sizeof header + uint64_t{8} * header.words + uint64_t{4} * header.buckets))
      return not_a_model("its hash table has an impossible header");
    return {};
  }
  // Whether eight bytes at an address meet the dynamic section, which the loader is reading.
  bool is_in_section(uint64_t address) const {
    const Elf64_Phdr& s = segments_.dynamic[0];
    return address + sizeof(uint64_t) > s.p_vaddr && address < s.p_vaddr + s.p_memsz;
  }

  const ElfSegments& segments_;
  std::map<int64_t, uint64_t> entries_;
  std::optional<int64_t> repeated_;
};

}  // namespace

Result<PassiveObject> check_passive_object(std::span<const uint8_t> file,
                                           const std::vector<std::string>& symbols) {
  PassiveObject object;
  TW_ASSIGN(object.segments, read_segments(file));
  DynamicSection dynamic(object.segments);
  TW_RETURN_IF_ERROR(dynamic.read());
  TW_RETURN_IF_ERROR(dynamic.find(symbols, object.symbols));
  TW_RETURN_IF_ERROR(check_segments(object.segments));
  TW_RETURN_IF_ERROR(dynamic.check_entries());
  TW_RETURN_IF_ERROR(dynamic.check_relocations());
  return object;
}

}  // namespace tilewright
