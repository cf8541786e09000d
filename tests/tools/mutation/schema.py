"""Writes a source with all of its mutants, each behind a switch that a run turns on.

TILEWRIGHT_MUTANT is the number of the mutant that a process has, or several with commas between.
TILEWRIGHT_REACHED names a file of SIZE bytes: that of a mutant becomes 1 where its place is reached,
whichever way the process ends."""

HEADER = "mutants.h"  # in the root of the copy
SIZE = 4096           # more mutants than this need a second tree
HEADER_TEXT = """// The mutants that TILEWRIGHT_MUTANT chooses, and those that this process reaches.
#pragma once
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace mutants {
inline constexpr int kSize = %d;

struct State {
  bool chosen[kSize] = {};
  volatile unsigned char* reached = nullptr;

  State() {
    const char* list = std::getenv("TILEWRIGHT_MUTANT");
    for (char* end = nullptr; list && *list; list = *end ? end + 1 : end) {
      const long n = std::strtol(list, &end, 10);
      if (end == list || n < 0 || n >= kSize) std::abort();
      chosen[n] = true;
    }
    const char* path = std::getenv("TILEWRIGHT_REACHED");
    const int file = path ? ::open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void* bytes = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (bytes != MAP_FAILED) reached = static_cast<unsigned char*>(bytes);
    ::close(file);
  }
};

inline bool is_chosen(int n) {
  static const State state;
  if (state.reached && !state.reached[n]) state.reached[n] = 1;
  return state.chosen[n];
}
}  // namespace mutants
""" % SIZE


def fits(edits, taken):
    """Whether parts lie apart from those taken, inside them or around them."""
    return all(end <= a or b <= start or (a <= start and end <= b) or (start <= a and b <= end)
               for start, end, *_ in edits for a, b, *_ in taken)


def render(content, mutants):
    """The source with mutants, [(number, place)], none of whose parts cross each other."""
    parts = sorted((start, -end, number, before, after) for number, place in mutants
                   for start, end, before, after in place.edits)
    starts, ends = {}, {}
    for start, end, number, before, after in parts:  # what is around another comes first
        chosen = f"::mutants::is_chosen({number})"
        starts.setdefault(start, []).append(before.replace("MUTANT", chosen))
        ends.setdefault(-end, []).insert(0, after.replace("MUTANT", chosen))
    pieces, last = [f'#include "{HEADER}"\n#line 1\n'.encode()] if parts else [], 0
    for at in sorted(set(starts) | set(ends)):
        pieces += [content[last:at], "".join(ends.get(at, []) + starts.get(at, [])).encode()]
        last = at
    return b"".join([*pieces, content[last:]])
