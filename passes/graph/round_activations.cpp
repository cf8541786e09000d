// Weight-only quantisation: x * dequantize(w) with w in 8 bits. Each row of x becomes integers of
// 16 bits times a scale, the product a sum in i32 of products of 16 by 8 bits: instructions take
// two of them where one of floats fits, and the weights are read as they are stored.
//
// The error of a result is at most scale / 2 * sum |w|, scale = max |row| / levels. `levels` is
// chosen from the weights so that no sum can leave i32: levels * max over columns of sum |w| <
// 2^31, which is 2^15 up to some thousands of terms. (A sum of floats is wrong by up to k * 2^-24 *
// sum |x w|.)
#include <algorithm>
#include <map>

#include "ir/graph/op.h"
#include "passes/graph/rewrite_graph.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kFewestLevels = 1 << 12, kMostLevels = 32767;
constexpr int64_t kFewRows = 4;  // at which the bytes of the weights count, not the arithmetic

class RoundActivations : public GraphRewriter {
 public:
  RoundActivations(Graph graph, const MachineDescription& machine)
      : GraphRewriter(std::move(graph)),
        dot_products_(machine.has_byte_dots()),
        pairs_(machine.has("avx2")) {}

  Graph run() {
    for (Node& n : old_) {
      follow(n);
      if (n.op == ops::matmul() && to_integers(n)) continue;
      push(std::move(n));
    }
    return eliminate_dead_nodes(std::move(graph_));
  }

 private:
  bool to_integers(const Node& n) {
    if (n.inputs.size() != 2 || type(n.inputs[0]).dtype != DType::kFloat32 ||
        type(n.outputs[0]).dtype != DType::kFloat32)
      return false;
    const ValueId x = n.inputs[0];
    const NodeRef from = producer(n.inputs[1], ops::dequantize());
    if (!from || constant(x) || !pays(type(x))) return false;
    const Node w = *from;
    NodeView view(graph_, n);
    const bool transposed = view.attr_int("trans_b") != 0;
    const ConstantRef stored = constant(w.inputs[0]);
    if (!stored || byte_size(stored->dtype) != 1 || stored->shape.size() != 2 ||
        view.attr_int("trans_a"))
      return false;
    const int64_t terms = stored->shape[transposed ? 1 : 0];
    const ValueId scale = of_columns(w.inputs[1], transposed), zero = input(w, 2);
    if (scale == kNone || terms % dot_terms(DType::kInt16) != 0 ||
        (zero != kNone && !constant(zero)))
      return false;
    const int64_t levels = levels_for(*stored, zero, transposed);
    if (levels < kFewestLevels) return false;

    const auto [rows, scale_of_rows] = rounded(x, levels);
    const ValueId sum = op(ops::matmul(), {rows, weights(w.inputs[0], zero)},
                           {{"out_dtype", std::string("i32")}, {"trans_b", int64_t{transposed}}});
    const ValueId by_row = op(ops::mul(), {cast(sum, DType::kFloat32), scale_of_rows});
    replace(n.outputs[0], op(ops::mul(), {by_row, scale}));
    return true;
  }
  bool pays(const TensorType& x) const {
    if (x.rank() < 2) return false;
    if (dot_products_) return true;
    int64_t rows = 1;
    for (size_t d = 0; d + 1 < x.dims.size(); ++d)
      rows = std::min(rows * as_int(x.dims[d]).value_or(kFewRows + 1), kFewRows + 1);
    return pairs_ && rows <= kFewRows;
  }
  // The scale in a shape that broadcasts against results; kNone where it changes along the sum.
  ValueId of_columns(ValueId scale, bool transposed) {
    if (type(scale).dtype != DType::kFloat32) return kNone;
    if (is_scalar(scale)) return reshape(scale, {});
    const auto& dims = type(scale).dims;
    if (dims.size() != 2 && (transposed || dims.size() != 1)) return kNone;
    const size_t along = dims.size() == 1 ? 0 : transposed ? 0 : 1;
    if (dims.size() == 2 && !is_one(dims[1 - along])) return kNone;
    const auto columns = as_int(dims[along]);
    return columns ? reshape(scale, {*columns}) : kNone;
  }
  // As many as keep the largest sum of any column in i32.
  int64_t levels_for(const Constant& w, ValueId zero, bool transposed) const {
    int64_t shift = 0;
    for (int64_t i = 0; zero != kNone && i < *tilewright::element_count(constant(zero)->shape); ++i)
      shift = std::max(shift, std::abs(integer_at(*constant(zero), i)));
    const int64_t rows = w.shape[0], columns = w.shape[1];
    std::vector<int64_t> sums(static_cast<size_t>(transposed ? rows : columns));
    const bool is_signed = w.dtype == DType::kInt8;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) {
        const uint8_t byte = w.data[r * columns + c];
        const int64_t value = is_signed ? std::abs(int64_t{static_cast<int8_t>(byte)}) : byte;
        sums[static_cast<size_t>(transposed ? r : c)] += value + shift;
      }
    const int64_t largest = sums.empty() ? 1 : *std::max_element(sums.begin(), sums.end());
    return std::min(kMostLevels, INT32_MAX / std::max<int64_t>(largest, 1));
  }
  // Bytes as they are; with a zero point, or unsigned, their i16 values without it.
  ValueId weights(ValueId stored, ValueId zero) {
    if (type(stored).dtype == DType::kInt8 && zero == kNone) return stored;
    const ValueId wide = cast(stored, DType::kInt16);
    return zero == kNone ? wide : op(ops::sub(), {wide, cast(zero, DType::kInt16)});
  }
  // One rounding for all products of x that allow as many levels.
  std::pair<ValueId, ValueId> rounded(ValueId x, int64_t levels) {
    auto [at, added] = rounded_.try_emplace({x, levels});
    if (added) {
      op(ops::round_rows(), {x}, {{"levels", levels}}, 2);
      const Node& made = graph_.nodes.back();
      at->second = {made.outputs[0], made.outputs[1]};
    }
    return at->second;
  }

  bool dot_products_, pairs_;
  std::map<std::pair<ValueId, int64_t>, std::pair<ValueId, ValueId>> rounded_;
};

}  // namespace

Graph round_activations(Graph graph, const MachineDescription& machine) {
  return RoundActivations(std::move(graph), machine).run();
}

}  // namespace tilewright::passes
