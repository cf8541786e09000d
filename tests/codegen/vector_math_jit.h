// Compiles one elementary function for the host and hands it back as a loop over an array.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "codegen/cpu/vector_math.h"

namespace tilewright::cpu {

// A loop in machine code that applies the function to arrays.
struct MathKernel {
  // Owns the code: `run` may be called as long as it lives. Movable only.
  MathKernel();
  MathKernel(MathKernel&&) noexcept;
  ~MathKernel();
  // y[i] = op(x[i]) or pow(x[i], z[i]) for i < n; n is a multiple of the width.
  void (*run)(const void* x, const void* z, void* y, int64_t n) = nullptr;
  struct Code;
  std::unique_ptr<Code> code;
};

// op nullopt: pow; cpu empty: the host's. The emitted module may call nothing: a symbol left
// undefined fails the lookup.
MathKernel compile_math(std::optional<MathOp> op, bool is_double, int width,
                        const MathOptions& options = {}, std::string_view cpu = {});

}  // namespace tilewright::cpu
