// A libFuzzer target of the reader that TILEWRIGHT_READER names.
#include <cstdlib>

#include "tests/fuzz/readers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tilewright::Reader* const reader = [] {
    for (const tilewright::Reader& r : tilewright::readers())
      if (r.name == TILEWRIGHT_READER) return &r;
    std::abort();
  }();
  reader->read({data, size});
  return 0;
}
