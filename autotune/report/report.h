// What tuning found, as one HTML page: charts in SVG.
#pragma once

#include <string>
#include <vector>

#include "autotune/tune_model.h"

namespace tilewright::autotune::report {

// A bound of the machine, by what was measured of it.
struct Roof {
  std::string name;  // "f32 multiply-adds", "read from L2"
  double rate = 0;   // of arithmetic 1e9 operations a second; of memory GB/s
};
// What the page says beside the result. Names may be of any origin and length.
struct Facts {
  // A file's name, its inputs with their shapes, the processor and LLVM's name of it, and numerics.
  std::string model, inputs, device, numerics;
  int threads = 1;
  std::vector<Roof> arithmetic, memory;
};

// The whole page (page.h).
std::string page(const TuneResult& result, const Facts& facts);

// To a file, which readers see whole or not at all. Errors: kIo.
Status write_page(const std::string& path, const TuneResult& result, const Facts& facts);

}  // namespace tilewright::autotune::report
