// Matching the inputs of a run with a variant: element types, ranks, extents, and the symbols they
// define.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/executable.h"
#include "runtime/tensor.h"

namespace tilewright {

// What the caller of a model sees of an input or output.
struct ValueInfo {
  // As the model declares it.
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> extents;        // -1: symbolic
  std::vector<std::string> dim_names;  // the symbol or expression of a symbolic extent, else ""
  bool updated = false;                // an input that a run leaves new contents in
  bool has_default = false;            // an input that a caller may leave out
};

// As the most general (last) variant states them. Requires a checked executable.
std::vector<ValueInfo> describe_inputs(const Executable& executable);
std::vector<ValueInfo> describe_outputs(const Executable& executable);

// What inputs are where a caller leaves them out, in the model's order: not defined for those that must
// be given. Empty: all must. The tensors are read-only.
std::vector<Tensor> default_inputs(const std::shared_ptr<const Executable>& executable);

// Number, definedness and element types of the inputs; independent of the variant.
Status check_inputs(const Variant& variant, std::span<const Tensor> inputs);

// Writes the values of the input symbols to `symbols` (the others kUnknownSize) and returns true
// when all extents fit. Allocates nothing once `symbols` has grown.
bool bind_symbols(const Variant& variant, std::span<const Tensor> inputs,
                  std::vector<int64_t>& symbols);

// Why bind_symbols returned false, e.g. "input 'x': extent 1 is 3, expected 224".
Error explain_mismatch(const Variant& variant, std::span<const Tensor> inputs);

}  // namespace tilewright
