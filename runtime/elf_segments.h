// The segments of an ELF file, before the system's loader sees it: every number in it is untrusted,
// so each is compared with the file's size before it is used. Structures as in the System V ABI,
// chapters 4 and 5.
#pragma once

#include <elf.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/result.h"

namespace tilewright {

// What the system's loader maps of a file. Addresses are the file's own; the loader adds one number
// to all.
struct ElfSegments {
  std::span<const uint8_t> file;
  uint64_t table_offset = 0, table_entries = 0;  // of segments, in the file
  std::vector<Elf64_Phdr> loads;                 // PT_LOAD, as they stand in the file
  std::vector<Elf64_Phdr> dynamic;               // PT_DYNAMIC
  std::vector<Elf64_Phdr> others;

  // The loaded segment that holds [address, address + bytes); null: none does.
  const Elf64_Phdr* find(uint64_t address, uint64_t bytes) const;
  // Whether that is in a segment with all of these flags (PF_W, PF_X).
  bool is_loaded(uint64_t address, uint64_t bytes, uint32_t flags = 0) const;
  // Where the file has what is at an address of a loaded segment.
  uint64_t offset_of(uint64_t address) const;
  // What the file has at an address; false where it has not all of it.
  bool read_at(uint64_t address, void* data, uint64_t bytes) const;
};

// The segments of a 64-bit shared object for this machine; each lies inside the file. Errors:
// invalid "not a shared object", "truncated: ..."; unsupported: for another kind of processor.
Result<ElfSegments> read_segments(std::span<const uint8_t> file);

// Segments are loaded in order and to pages of their own, all others lie in these, exactly one is
// dynamic, and none needs more of the loader than to be mapped. Errors: invalid "not a tilewright
// model: ...".
Status check_segments(const ElfSegments& segments);

// "not a tilewright model: `why`".
Error not_a_model(const std::string& why);

}  // namespace tilewright
