// The seam between the cost model and what fits trees for it: gradient boosting in a library of its
// own, opened when tuning begins. Who compiles and runs models never loads XGBoost.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/core/result.h"

namespace tilewright::autotune {

// Rows of `columns` values each, one after the other.
struct Rows {
  std::span<const float> values;
  size_t columns = 0;
  size_t count() const { return columns == 0 ? 0 : values.size() / columns; }
};

// Of the squared error (Friedman, 2001), with XGBoost's regularisation (Chen and Guestrin, 2016).
struct BoostingOptions {
  // Each tree corrects those before by so much of what is left.
  int trees = 40, depth = 4;
  float rate = 0.1F;
  // Of leaves: added to the weight of their rows, and the least that there must be.
  float shrinkage = 1, least_weight = 2;
  float columns = 0.5F;  // part of them that each tree sees
  uint32_t seed = 1;     // of that choice
};

// A sum of trees.
class Trees {
 public:
  virtual ~Trees() = default;
  // One value a row; `start` (empty: zeros) is what they were fitted on top of.
  virtual Result<std::vector<float>> predict(const Rows& rows,
                                             std::span<const float> start = {}) const = 0;
  // Bytes that load() reads.
  virtual Result<std::vector<uint8_t>> save() const = 0;
};

class Boosting {
 public:
  virtual ~Boosting() = default;
  // On one thread, and the same for the same arguments. `start`: a value for each row that trees are
  // added to; empty: zeros. Errors: what the library says.
  virtual Result<std::unique_ptr<Trees>> fit(const Rows& rows, std::span<const float> targets,
                                             std::span<const float> weights,
                                             std::span<const float> start,
                                             const BoostingOptions& options) const = 0;
  // Errors: kInvalid where the bytes are no trees of so many columns.
  virtual Result<std::unique_ptr<Trees>> load(std::span<const uint8_t> bytes,
                                              size_t columns) const = 0;
  // The base model that is shipped with the library (load_base_model).
  virtual std::span<const uint8_t> base_model() const = 0;
};

// Opens the library on first use; it stays open. Errors: kIo where it is not there.
Result<const Boosting*> open_boosting();

// What the library exports, under this name.
inline constexpr const char* kBoostingSymbol = "tilewright_boosting";
using BoostingFunction = const Boosting*();

}  // namespace tilewright::autotune
