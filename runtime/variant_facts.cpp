#include "runtime/variant_facts.h"

#include <algorithm>

#include "runtime/arena.h"
#include "runtime/size_expr.h"

namespace tilewright {

int32_t storage_root(const Variant& variant, int32_t buffer) {
  while (variant.buffers[buffer].alias_of >= 0) buffer = variant.buffers[buffer].alias_of;
  return buffer;
}

int64_t storage_offset(const Variant& variant, int32_t buffer) {
  int64_t offset = 0;
  for (; variant.buffers[buffer].alias_of >= 0; buffer = variant.buffers[buffer].alias_of)
    offset = std::min(offset + variant.buffers[buffer].alias_offset, kLargestAllocation);
  return offset;
}

std::vector<bool> input_symbols(const Variant& variant) {
  std::vector<bool> defined(variant.symbols.size(), false);
  for (int32_t b : variant.inputs)
    for (const SizeExpr& d : variant.buffers[b].dims)
      if (is_plain_symbol(d)) defined[d[0].value] = true;
  return defined;
}

bool depends_on_run(const SizeExpr& expr, const std::vector<bool>& from_input) {
  return std::any_of(expr.begin(), expr.end(), [&](const SizeStep& s) {
    return s.op == SizeOp::kSymbol && !from_input[s.value];
  });
}

std::optional<int64_t> logical_bytes(const BufferDesc& buffer, std::span<const int64_t> symbols) {
  int64_t bytes = byte_size(buffer.dtype);
  bool zero = false;
  for (const SizeExpr& d : buffer.dims) {
    const std::optional<int64_t> extent = evaluate(d, symbols);
    if (!extent || *extent < 0) return std::nullopt;
    if (*extent == 0)
      zero = true;
    else if (__builtin_mul_overflow(bytes, *extent, &bytes))
      return std::nullopt;
  }
  return zero ? 0 : bytes;
}

bool needs_staging(const Variant& variant, const LoopDesc& loop) {
  for (size_t i = 0; i < loop.carried.size(); ++i)
    for (size_t j = i + 1; j < loop.carried.size(); ++j)
      if (storage_root(variant, loop.carried[i].first) ==
          storage_root(variant, loop.carried[j].second))
        return true;
  return false;
}

std::pair<int32_t, int32_t> blocks_of(const Variant& variant, const Instruction& instruction) {
  if (instruction.op == Op::kIf) return {instruction.block_a, instruction.block_b};
  if (instruction.op == Op::kLoop) return {variant.loops[instruction.target].body, -1};
  return {-1, -1};
}

}  // namespace tilewright
