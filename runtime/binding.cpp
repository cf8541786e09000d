#include "runtime/binding.h"

#include "runtime/size_expr.h"

namespace tilewright {
namespace {

// The first rule of a signature that the inputs break; what explain_mismatch puts into words.
enum class Mismatch { kNone, kRank, kConstant, kConflict, kExpression };

// Where binding stopped. Kept as numbers: a session tries variants in vain without making text.
struct Binding {
  Mismatch mismatch = Mismatch::kNone;
  size_t input = 0, dim = 0;
};

// Plain symbols and constants first; expressions over the symbols when these are known.
Binding bind(const Variant& v, std::span<const Tensor> inputs, std::vector<int64_t>& symbols) {
  symbols.assign(v.symbols.size(), kUnknownSize);
  for (size_t i = 0; i < v.inputs.size(); ++i) {
    const std::vector<SizeExpr>& dims = v.buffers[v.inputs[i]].dims;
    const Shape& shape = inputs[i].shape();
    if (dims.size() != shape.size()) return {Mismatch::kRank, i, 0};
    for (size_t d = 0; d < dims.size(); ++d) {
      if (is_plain_constant(dims[d]) && dims[d][0].value != shape[d])
        return {Mismatch::kConstant, i, d};
      if (!is_plain_symbol(dims[d])) continue;
      int64_t& symbol = symbols[dims[d][0].value];
      if (symbol != kUnknownSize && symbol != shape[d]) return {Mismatch::kConflict, i, d};
      symbol = shape[d];
    }
  }
  for (size_t i = 0; i < v.inputs.size(); ++i) {
    const std::vector<SizeExpr>& dims = v.buffers[v.inputs[i]].dims;
    for (size_t d = 0; d < dims.size(); ++d) {
      const bool plain = is_plain_constant(dims[d]) || is_plain_symbol(dims[d]);
      if (!plain && evaluate(dims[d], symbols) != inputs[i].shape()[d])
        return {Mismatch::kExpression, i, d};
    }
  }
  return {};
}

const std::string& input_name(const Variant& v, size_t i) { return v.buffers[v.inputs[i]].name; }

// The input before (i, d) that defined the symbol.
std::string first_definer(const Variant& v, int64_t symbol) {
  for (int32_t b : v.inputs)
    for (const SizeExpr& d : v.buffers[b].dims)
      if (is_plain_symbol(d) && d[0].value == symbol) return v.buffers[b].name;
  return "";
}

std::vector<ValueInfo> describe(const Variant& v, const std::vector<int32_t>& buffers) {
  std::vector<ValueInfo> infos;
  for (int32_t b : buffers) {
    ValueInfo info{v.buffers[b].name,
                   v.buffers[b].dtype,
                   {},
                   {},
                   v.buffers[b].updated,
                   v.buffers[b].default_buffer >= 0};
    for (const SizeExpr& d : v.buffers[b].dims) {
      const std::optional<int64_t> fixed = is_constant(d) ? evaluate(d, {}) : std::nullopt;
      info.extents.push_back(fixed.value_or(-1));
      info.dim_names.push_back(fixed ? "" : to_string(d, v.symbols));
    }
    infos.push_back(std::move(info));
  }
  return infos;
}

std::string shape_option(const Variant& v, size_t input, const Shape& shape) {
  std::string text = "--shape " + input_name(v, input) + "=";
  for (size_t d = 0; d < shape.size(); ++d) text += (d ? "x" : "") + std::to_string(shape[d]);
  return text;
}
// Two extents share a symbol because the model names them alike or because an operator needs them equal;
// the file does not record which. A symbol called 'input.N' has no name in the model.
std::string cure_of_conflict(const Variant& v, std::span<const Tensor> inputs, const Binding& b,
                             int64_t value_before) {
  const int64_t symbol = v.buffers[v.inputs[b.input]].dims[b.dim][0].value;
  const std::string &name = v.symbols[symbol], definer = first_definer(v, symbol);
  if (inputs[b.input].shape()[b.dim] == 1 || value_before == 1) {
    size_t one = b.input;
    for (size_t i = 0; value_before == 1 && i < v.inputs.size(); ++i)
      if (input_name(v, i) == definer) one = i;
    return "where an extent of 1 is to stretch over the other, compile it for that: " +
           shape_option(v, one, inputs[one].shape());
  }
  if (name.find('.') != std::string::npos && name.substr(0, name.rfind('.')) == definer)
    return "an operator of the model needs them equal";
  return "where only a name that the model gives both makes them one, compile it with --shape "
         "apart";
}

}  // namespace

std::vector<ValueInfo> describe_inputs(const Executable& e) {
  return describe(e.variants.back(), e.variants.back().inputs);
}
std::vector<ValueInfo> describe_outputs(const Executable& e) {
  return describe(e.variants.back(), e.variants.back().outputs);
}

std::vector<Tensor> default_inputs(const std::shared_ptr<const Executable>& executable) {
  const Variant& v = executable->variants.back();
  std::vector<Tensor> defaults;
  for (size_t i = 0; i < v.inputs.size(); ++i) {
    const int32_t from = v.buffers[v.inputs[i]].default_buffer;
    if (from < 0) continue;
    const BufferDesc& constant = v.buffers[from];
    Shape shape;
    for (const SizeExpr& d : constant.dims) shape.push_back(evaluate(d, {}).value_or(0));
    defaults.resize(v.inputs.size());
    auto* data = const_cast<uint8_t*>(executable->constants) + constant.constant_offset;
    defaults[i] = Tensor::share(constant.dtype, std::move(shape), data,
                                std::const_pointer_cast<Executable>(executable));
  }
  return defaults;
}

Status check_inputs(const Variant& v, std::span<const Tensor> inputs) {
  if (inputs.size() > v.inputs.size())
    return invalid("got " + std::to_string(inputs.size()) + " inputs, expected " +
                   std::to_string(v.inputs.size()));
  for (size_t i = 0; i < v.inputs.size(); ++i) {
    if (i >= inputs.size() || !inputs[i].defined())
      return invalid("missing input '" + input_name(v, i) + "' (input " + std::to_string(i + 1) +
                     " of " + std::to_string(v.inputs.size()) + ")");
    const DType expected = v.buffers[v.inputs[i]].dtype;
    if (inputs[i].dtype() != expected)
      return invalid("input '" + input_name(v, i) + "': element type is " +
                     std::string(name(inputs[i].dtype())) + ", expected " +
                     std::string(name(expected)));
    if (reinterpret_cast<uintptr_t>(inputs[i].data()) % byte_size(expected) != 0)
      return invalid("input '" + input_name(v, i) + "': data is not aligned to its elements");
  }
  return {};
}

bool bind_symbols(const Variant& v, std::span<const Tensor> inputs, std::vector<int64_t>& symbols) {
  return bind(v, inputs, symbols).mismatch == Mismatch::kNone;
}

Error explain_mismatch(const Variant& v, std::span<const Tensor> inputs) {
  std::vector<int64_t> symbols;
  const Binding b = bind(v, inputs, symbols);
  const Shape& shape = inputs[b.input].shape();
  const std::vector<SizeExpr>& dims = v.buffers[v.inputs[b.input]].dims;
  const std::string who = "input '" + input_name(v, b.input) + "': ";
  if (b.mismatch == Mismatch::kRank)
    return invalid(who + "rank is " + std::to_string(shape.size()) + ", expected " +
                   std::to_string(dims.size()));
  const std::string found = std::to_string(shape[b.dim]),
                    extent = "extent " + std::to_string(b.dim) + " is " + found;
  if (b.mismatch == Mismatch::kConstant)
    return invalid(who + extent + ", expected " + std::to_string(dims[b.dim][0].value));
  if (b.mismatch == Mismatch::kConflict) {
    const int64_t symbol = dims[b.dim][0].value;
    Error error =
        invalid(who + "symbol '" + v.symbols[symbol] + "' is " + found + " here but " +
                std::to_string(symbols[symbol]) + " at input '" + first_definer(v, symbol) + "'");
    error.notes.push_back(cure_of_conflict(v, inputs, b, symbols[symbol]));
    return error;
  }
  TW_CHECK(b.mismatch == Mismatch::kExpression);
  const std::optional<int64_t> value = evaluate(dims[b.dim], symbols);
  return invalid(who + extent + ", expected " + (value ? std::to_string(*value) + " = " : "") +
                 to_string(dims[b.dim], v.symbols));
}

}  // namespace tilewright
