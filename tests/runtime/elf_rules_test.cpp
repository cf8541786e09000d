// Rules of a model's ELF file, whose seal is right: what would make the system's loader run code,
// write outside the library or stop the process is refused.
#include <elf.h>

#include <functional>
#include <random>

#include "tests/runtime/model_copy.h"

namespace tilewright::testing {
namespace {

// The test model's file as the structures that it has.
class Elf {
 public:
  std::string bytes = without_seal(read_file(TEST_MODEL));

  template <typename T>
  T* at(uint64_t offset) {
    return reinterpret_cast<T*>(bytes.data() + offset);
  }
  Elf64_Ehdr& header() { return *at<Elf64_Ehdr>(0); }
  Elf64_Phdr& segment(size_t i) { return at<Elf64_Phdr>(header().e_phoff)[i]; }
  // The n-th segment of a type.
  Elf64_Phdr& of_type(uint32_t type, int n = 0) {
    for (size_t i = 0; i < header().e_phnum; ++i)
      if (segment(i).p_type == type && n-- == 0) return segment(i);
    ADD_FAILURE() << "no segment of type " << type;
    return segment(0);
  }
  Elf64_Phdr& last_load() {
    Elf64_Phdr* last = nullptr;
    for (size_t i = 0; i < header().e_phnum; ++i)
      if (segment(i).p_type == PT_LOAD) last = &segment(i);
    return *last;
  }
  Elf64_Phdr& load_of(uint64_t address) {
    int n = 0;
    while (address - of_type(PT_LOAD, n).p_vaddr >= of_type(PT_LOAD, n).p_memsz) ++n;
    return of_type(PT_LOAD, n);
  }
  Elf64_Phdr& writable_load() { return load_of(of_type(PT_DYNAMIC).p_vaddr); }
  uint64_t offset_of(uint64_t address) {
    for (size_t i = 0; i < header().e_phnum; ++i) {
      const Elf64_Phdr& s = segment(i);
      if (s.p_type == PT_LOAD && address >= s.p_vaddr && address < s.p_vaddr + s.p_filesz)
        return s.p_offset + (address - s.p_vaddr);
    }
    ADD_FAILURE() << "nothing at address " << address;
    return 0;
  }
  Elf64_Dyn* dynamic() { return at<Elf64_Dyn>(of_type(PT_DYNAMIC).p_offset); }
  Elf64_Dyn& entry(int64_t tag) {
    Elf64_Dyn* d = dynamic();
    while (d->d_tag != tag && d->d_tag != DT_NULL) ++d;
    EXPECT_EQ(d->d_tag, tag);
    return *d;
  }
  Elf64_Rela& relocation() { return *at<Elf64_Rela>(offset_of(entry(DT_RELA).d_un.d_ptr)); }
};

struct Violation {
  const char* refusal;
  std::function<void(Elf&)> make;
};

// The hash table becomes another entry, since nothing here looks up names by it.
std::function<void(Elf&)> with_entry(int64_t tag, uint64_t value) {
  return [=](Elf& e) { e.entry(DT_GNU_HASH) = {tag, {value}}; };
}
std::function<void(Elf&)> with_kind(uint32_t from, uint32_t to) {
  return [=](Elf& e) { e.of_type(from).p_type = to; };
}

const Violation kViolations[] = {
    {"it has 2 dynamic segments", [](Elf& e) { e.of_type(PT_NOTE) = e.of_type(PT_DYNAMIC); }},
    {"it has no dynamic section", with_kind(PT_DYNAMIC, PT_NULL)},
    {"not in a loaded segment that can be written",
     [](Elf& e) {
       e.writable_load().p_flags = PF_R;
       e.writable_load().p_memsz = e.writable_load().p_filesz;
     }},
    {"begins on a page of the one before", [](Elf& e) { e.of_type(PT_LOAD, 1).p_vaddr -= 0x1000; }},
    {"begins on a page of the one before",
     [](Elf& e) { std::swap(e.of_type(PT_LOAD, 0), e.of_type(PT_LOAD, 1)); }},
    {"begins on a page of the one before", [](Elf& e) { e.writable_load().p_memsz = 0x10000; }},
    {"has no possible size", [](Elf& e) { e.last_load().p_memsz = ~uint64_t{0}; }},
    {"has no possible size", [](Elf& e) { e.of_type(PT_LOAD, 1).p_memsz = 1; }},
    {"is not whole in the file", [](Elf& e) { e.of_type(PT_LOAD, 1).p_filesz = 16; }},
    {"is not aligned", [](Elf& e) { e.of_type(PT_LOAD, 0).p_align = 0x3000; }},
    {"is not aligned", [](Elf& e) { e.last_load().p_align = uint64_t{1} << 40; }},
    {"is not aligned", [](Elf& e) { e.of_type(PT_LOAD, 1).p_offset += 16; }},
    {"has no possible size", [](Elf& e) { e.last_load().p_vaddr = ~uint64_t{0} - 4095; }},
    {"is neither data nor code (flags 7)", [](Elf& e) { e.of_type(PT_LOAD, 1).p_flags |= PF_W; }},
    {"is neither data nor code (flags 0)", [](Elf& e) { e.of_type(PT_LOAD, 0).p_flags = 0; }},
    {"it wants an executable stack", [](Elf& e) { e.of_type(PT_GNU_STACK).p_flags |= PF_X; }},
    {"its stack is not executable", with_kind(PT_GNU_STACK, PT_NULL)},
    {"segment of type 7", with_kind(PT_NOTE, PT_TLS)},
    {"segment of type 3", with_kind(PT_NOTE, PT_INTERP)},
    {"its table of segments is not where it says", [](Elf& e) { e.of_type(PT_PHDR).p_vaddr += 8; }},
    {"its table of segments is not where it says",
     [](Elf& e) { e.of_type(PT_PHDR).p_memsz = 1 << 30; }},
    {"not in a loaded segment", [](Elf& e) { e.of_type(PT_NOTE).p_memsz = 1 << 30; }},
    {"not in a loaded segment", [](Elf& e) { e.of_type(PT_GNU_EH_FRAME).p_vaddr = 1 << 30; }},
    {"not in a loaded segment that can be written",
     [](Elf& e) { e.of_type(PT_GNU_RELRO).p_vaddr = 0; }},
    {"not in a loaded segment that can be written",
     [](Elf& e) { e.of_type(PT_GNU_RELRO).p_memsz = 1 << 30; }},
    {"truncated: segment", [](Elf& e) { e.last_load().p_filesz = 1 << 20; }},
    {"truncated: the table of segments", [](Elf& e) { e.header().e_phoff = ~uint64_t{0} - 8; }},
    {"for another kind of processor", [](Elf& e) { e.header().e_machine = EM_RISCV; }},
    {"its dynamic section has no end",
     [](Elf& e) { e.of_type(PT_DYNAMIC).p_memsz = sizeof(Elf64_Dyn); }},
    {"has the tag 6 twice", [](Elf& e) { e.entry(DT_GNU_HASH) = e.entry(DT_SYMTAB); }},
    {"loads or runs something when it is opened (tag 1 ", with_entry(DT_NEEDED, 1)},
    {"(tag 12 ", with_entry(DT_INIT, 0x1710)},
    {"(tag 13 ", with_entry(DT_FINI, 0x1710)},
    {"(tag 25 ", with_entry(DT_INIT_ARRAY, 0x2748)},
    {"(tag 23 ", with_entry(DT_JMPREL, 0)},
    {"(tag 22 ", with_entry(DT_TEXTREL, 0)},
    {"(tag 14 ", with_entry(DT_SONAME, 1)},
    {"flags ask for more", with_entry(DT_FLAGS, DF_TEXTREL)},
    {"flags ask for more", with_entry(DT_FLAGS, DF_STATIC_TLS)},
    {"flags ask for more", with_entry(DT_FLAGS_1, DF_1_NODELETE)},
    {"not in a loaded segment", [](Elf& e) { e.entry(DT_GNU_HASH).d_un.d_ptr = 1 << 30; }},
    {"its hash table has an impossible header",
     [](Elf& e) { e.at<uint32_t>(e.offset_of(e.entry(DT_GNU_HASH).d_un.d_ptr))[2] = 3; }},
    {"its hash table has an impossible header",
     [](Elf& e) { e.at<uint32_t>(e.offset_of(e.entry(DT_GNU_HASH).d_un.d_ptr))[0] = 1 << 30; }},
    {"its names are not in a loaded segment",
     [](Elf& e) { e.entry(DT_STRSZ).d_un.d_val = 1 << 30; }},
    {"it does not export tilewright_abi", [](Elf& e) { e.entry(DT_SYMTAB).d_un.d_ptr = 1 << 30; }},
    {"its symbols have another size", [](Elf& e) { e.entry(DT_SYMENT).d_un.d_val = 16; }},
    {"relocations has no possible size", [](Elf& e) { e.entry(DT_RELAENT).d_un.d_val = 16; }},
    {"relocations has no possible size", [](Elf& e) { e.entry(DT_RELASZ).d_un.d_val = 25; }},
    {"relocations has no possible size",
     [](Elf& e) { e.entry(DT_RELASZ).d_un.d_val = 24ull << 40; }},
    {"relocations is not in a loaded segment",
     [](Elf& e) { e.entry(DT_RELA).d_un.d_ptr = 1 << 30; }},
    {"relocation 0 is of type 37",
     [](Elf& e) { e.relocation().r_info = ELF64_R_INFO(0, R_X86_64_IRELATIVE); }},
    {"relocation 0 is of type 1",
     [](Elf& e) { e.relocation().r_info = ELF64_R_INFO(1, R_X86_64_64); }},
    {"relocation 0 writes outside the data", [](Elf& e) { e.relocation().r_offset = 0; }},
    {"relocation 0 writes outside the data",
     [](Elf& e) { e.relocation().r_offset = ~uint64_t{0} - 4; }},
    {"relocation 0 writes outside the data",
     [](Elf& e) { e.relocation().r_offset = e.of_type(PT_DYNAMIC).p_vaddr + 8; }},
    {"relocation 0 points outside the file", [](Elf& e) { e.relocation().r_addend = -8; }},
    // Of a pointer to a kernel.
    {"kernel 'scale' is missing",
     [](Elf& e) { e.relocation().r_addend = static_cast<int64_t>(e.last_load().p_vaddr); }},
};

#if defined(__x86_64__)
TEST(ElfRules, EachViolationIsRefusedByName) {
  const TemporaryFile file;
  file.write_sealed(Elf().bytes);
  ASSERT_EQ(load_error(file.path()), "no error");
  for (size_t i = 0; i < std::size(kViolations); ++i) {
    Elf elf;
    kViolations[i].make(elf);
    file.write_sealed(elf.bytes);
    const std::string error = load_error(file.path());
    EXPECT_NE(error.find(kViolations[i].refusal), std::string::npos)
        << i << ", expected " << kViolations[i].refusal << ": " << error;
  }
}
#endif

// Numbers of the headers, the dynamic section, relocations and symbols, changed at random: a file
// is refused, or the system's loader takes it.
TEST(ElfRules, NoFileStopsTheProcess) {
  std::mt19937_64 random(5);
  const TemporaryFile file;
  constexpr int kRounds = 3000;
  int refused = 0;
  for (int i = 0; i < kRounds; ++i) {
    Elf elf;
    const Elf64_Phdr dynamic = elf.of_type(PT_DYNAMIC);
    const std::pair<uint64_t, uint64_t> parts[] = {
        {0, sizeof(Elf64_Ehdr)},
        {elf.header().e_phoff, elf.header().e_phnum * sizeof(Elf64_Phdr)},
        {dynamic.p_offset, dynamic.p_filesz},
        {elf.offset_of(elf.entry(DT_RELA).d_un.d_ptr), sizeof(Elf64_Rela)},
        {elf.offset_of(elf.entry(DT_SYMTAB).d_un.d_ptr), 8 * sizeof(Elf64_Sym)},
        {elf.offset_of(elf.entry(DT_GNU_HASH).d_un.d_ptr), 28}};
    for (uint64_t k = 0; k <= random() % 3; ++k) {
      const auto& [begin, length] = parts[random() % std::size(parts)];
      char* at = elf.at<char>(begin + random() % (length / 4) * 4);
      const uint32_t values[] = {0, static_cast<uint32_t>(random()),
                                 static_cast<uint32_t>(random() % 0x5000),
                                 *elf.at<uint32_t>(at - elf.bytes.data()) ^ 1u << random() % 32};
      std::memcpy(at, &values[random() % 4], 4);
    }
    file.write_sealed(elf.bytes);
    refused += load_error(file.path()) != "no error";
  }
  EXPECT_GT(refused, kRounds / 4);
  EXPECT_LT(refused, kRounds);
}

}  // namespace
}  // namespace tilewright::testing
