// Whether two forms of a kernel or a model computed the same.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/core/dtype.h"

namespace tilewright::autotune {

struct Difference {
  int64_t element = 0;
  double found = 0, expected = 0;
};

// The first element that differs by more than the order of sums may move it: four thousand roundings of
// the largest finite one for floats, nothing for other types. same_bits: nothing for any type, but
// for the payload of NaN.
std::optional<Difference> first_difference(DType dtype, const uint8_t* found,
                                           const uint8_t* expected, int64_t count, bool same_bits);

}  // namespace tilewright::autotune
