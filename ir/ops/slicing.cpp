#include "ir/ops/slicing.h"
#include "ir/formula/gradient.h"

#include <functional>

#include "ir/graph/compute.h"
#include "ir/loops/simplify.h"
#include "ir/ops/run_extents.h"

namespace tilewright::ir {
namespace {

// Element k of starts or ends; null when it is not at hand.
using SliceBound = std::function<Expr(int operand, int k)>;

Result<std::vector<int64_t>> slice_numbers(const NodeView& c, int operand, const char* name,
                                           const std::vector<int64_t>& otherwise) {
  if (!c.has(operand)) return otherwise;
  auto known = c.known_ints(operand);
  if (!known) return needs_value(std::string(name) + " are not known at compile time");
  return *known;
}
// Where a bound lies: from the end when below 0.
Expr slice_position(const Expr& value, const Expr& extent) {
  Expr v = simplify(cast(DType::kInt64, value));
  if (auto i = as_int(v))
    return *i < 0 ? (*i < -(int64_t{1} << 40) ? Expr(-1) : Expr(*i) + extent) : v;
  // A symbolic value may turn out negative only when it is a difference.
  return interval(v).low.value_or(-1) >= 0 ? v : simplify(select(v < Expr(0), v + extent, v));
}
SliceAxis slice_axis(const Expr& from, const Expr& to, int64_t step, const Expr& extent) {
  if (!from || !to) return {nullptr, step, nullptr};
  const Expr low = step > 0 ? Expr(0) : Expr(-1), high = step > 0 ? extent : extent - 1;
  const Expr start = clamp(slice_position(from, extent), step > 0 ? low : Expr(0), high);
  const Expr end = clamp(slice_position(to, extent), low, high);
  const Expr count = step > 0 ? ceildiv(end - start, step) : ceildiv(start - end, -step);
  return {simplify(start), step, simplify(max(count, 0))};
}
// Per dimension, from operands starts, ends, axes, steps; numpy's rules, ends clamped.
Result<std::vector<SliceAxis>> slice_axes(const NodeView& c, const SliceBound& bound) {
  const auto& x = c.type(0);
  std::vector<SliceAxis> result;
  for (const Expr& d : x.dims) result.push_back({0, 1, d});
  auto count = c.rank(1) == 1 ? as_int(c.dim(1, 0)) : std::nullopt;
  if (!count) return needs_value("the length of starts is not known at compile time");
  std::vector<int64_t> all, ones(static_cast<size_t>(*count), 1);
  for (int64_t d = 0; d < *count; ++d) all.push_back(d);
  TW_ASSIGN(std::vector<int64_t> axes, slice_numbers(c, 3, "axes", all));
  TW_ASSIGN(std::vector<int64_t> steps, slice_numbers(c, 4, "steps", ones));
  if (axes.size() != all.size() || as_int(c.dim(2, 0)).value_or(*count) != *count ||
      steps.size() != all.size())
    return invalid("starts, ends, axes and steps differ in length");
  TW_ASSIGN(const std::vector<int> dims, distinct_axes(axes, x));
  for (size_t k = 0; k < axes.size(); ++k) {
    if (steps[k] == 0) return invalid("step 0");
    const int n = static_cast<int>(k);
    const auto d = static_cast<size_t>(dims[k]);
    // A longer step reaches no second element of any extent either, but overflows in sums.
    constexpr int64_t kLongest = int64_t{1} << 40;
    result[d] =
        slice_axis(bound(1, n), bound(2, n), std::clamp(steps[k], -kLongest, kLongest), x.dims[d]);
  }
  return result;
}
Result<std::vector<SliceAxis>> slice_axes_known(const NodeView& c) {
  auto starts = c.known(1), ends = c.known(2);
  return slice_axes(c, [&](int operand, int k) {
    const auto& known = operand == 1 ? starts : ends;
    return known && k < static_cast<int>(known->size()) ? (*known)[static_cast<size_t>(k)] : Expr();
  });
}
std::vector<SliceAxis> slice_axes_at_run(const ComputeContext& c) {
  return slice_axes(c, [&](int operand, int k) { return c.int_element(operand, k); }).value();
}
Status infer_slice(InferContext& c) {
  auto axes = slice_axes_known(c);
  if (!axes.ok()) return c.at_node(axes.error());
  std::vector<Expr> dims;
  int symbols = 0;
  for (const SliceAxis& a : *axes) {
    if (a.extent) {
      dims.push_back(a.extent);
      continue;
    }
    dims.push_back(c.data_dependent_symbol(symbols, "extent" + std::to_string(symbols)));
    ++symbols;
    const Expr extent = dims.back(), reach = Expr(std::abs(*as_int(a.step)));
    if (!c.at_most(extent * reach, c.dim(0, static_cast<int>(dims.size()) - 1) + reach - 1,
                   "the elements taken must lie inside"))
      return c.error("more is taken than there is");
  }
  c.set_output(0, c.type(0).dtype, std::move(dims));
  return {};
}
void slice_symbols(ComputeContext& c) {
  const auto known = slice_axes_known(c).value(), axes = slice_axes_at_run(c);
  std::vector<Expr> extents;
  for (size_t d = 0; d < axes.size(); ++d)
    if (!known[d].extent) extents.push_back(axes[d].extent);
  store_symbols(c, extents);
}
void compute_slice(ComputeContext& c) {
  auto axes = slice_axes_at_run(c);
  // The extent was found from the same bounds. That all elements lie inside follows from it alone, too.
  const auto known = slice_axes_known(c).value();
  for (size_t d = 0; d < axes.size(); ++d) {
    if (known[d].extent) continue;
    const Expr have = c.in(0)->shape[d], last = (c.out()->shape[d] - 1) * axes[d].step;
    axes[d].start = *as_int(axes[d].step) > 0 ? max(min(axes[d].start, have - 1 - last), 0)
                                              : min(max(axes[d].start, -last), have - 1);
  }
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Axes at;
        for (size_t d = 0; d < axes.size(); ++d) at.push_back(axes[d].start + i[d] * axes[d].step);
        return load(c.in(0), at);
      },
      "slice");
}

}  // namespace

std::vector<SliceAxis> known_slice(const NodeView& slice) {
  return slice_axes_known(slice).value();
}

OpDef slice_op() {
  const TensorType x3{DType::kFloat32, {2, 5, 7}};
  const TensorType i1{DType::kInt64, {2}};
  return {.name = "slice",
          .summary = "x[start : end : step] along axes",
          .operands = {{"x"},
                       {"starts"},
                       {"ends"},
                       {"axes", OperandDef::kOptional},
                       {"steps", OperandDef::kOptional}},
          .fusion = FusionKind::kInjective,
          .channels = Channels::kAlong,
          .infer_type = infer_slice,
          .compute = compute_slice,
          .gradient = [](GradientContext& c) { c.add_transposed(0); },
          .compute_symbols = slice_symbols,
          .example = {.inputs = {x3, i1, i1}, .values = {{}, {0, 1}, {2, -1}}},
          .source = "https://onnx.ai/onnx/operators/"};
}

}  // namespace tilewright::ir
