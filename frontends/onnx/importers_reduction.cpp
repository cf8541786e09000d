// Reductions; the axes are an attribute in old opsets and an operand in new ones.
#include <array>
#include <set>

#include "frontends/onnx/importers.h"

namespace tilewright::onnx {
namespace {

using ir::ValueId;

struct Axes {
  std::optional<std::vector<int64_t>> axes;
  bool nothing;  // no axes given and noop_with_empty_axes set
  int64_t keepdims;
};
Axes read_axes(NodeImport& n, int64_t input_since) {
  Axes a{n.axes(1, input_since), false, n.int_attr("keepdims", 1)};
  if (a.axes && a.axes->empty()) a.axes.reset();
  if (a.axes) {  // an axis named twice counts once
    std::set<int64_t> distinct;
    for (const int64_t axis : *a.axes)
      distinct.insert(normalized_axis(n, axis, n.rank(n.required(0))));
    a.axes->assign(distinct.begin(), distinct.end());
  }
  a.nothing = !a.axes && n.int_attr("noop_with_empty_axes", 0) != 0;
  return a;
}
ValueId reduce(NodeImport& n, const char* op, ValueId x, const Axes& a) {
  if (a.nothing) return n.op("identity", {x});
  ir::Attributes attributes{{"keepdims", a.keepdims}};
  if (a.axes) attributes["axes"] = *a.axes;
  return n.op(op, {x}, attributes);
}

void reduce_sum(NodeImport& n) {
  n.out(0, reduce(n, "reduce_sum", n.required(0), read_axes(n, 13)));
}
void reduce_mean(NodeImport& n) {
  n.out(0, reduce(n, "reduce_mean", n.required(0), read_axes(n, 18)));
}
void reduce_prod(NodeImport& n) {
  n.out(0, reduce(n, "reduce_prod", n.required(0), read_axes(n, 18)));
}
template <bool largest>
void reduce_extreme(NodeImport& n) {
  ValueId x = n.required(0);
  const bool boolean = n.dtype(x) == DType::kBool;
  ValueId y = reduce(n, largest ? "reduce_max" : "reduce_min",
                     boolean ? n.cast(x, DType::kUInt8) : x, read_axes(n, 18));
  n.out(0, boolean ? n.cast(y, DType::kBool) : y);
}
void reduce_l1(NodeImport& n) {
  const Axes a = read_axes(n, 18);
  n.out(0, reduce(n, "reduce_sum", n.op("abs", {n.required(0)}), a));
}
ValueId square(NodeImport& n, ValueId x) { return n.op("mul", {x, x}); }
void reduce_l2(NodeImport& n) {
  const Axes a = read_axes(n, 18);
  ValueId x = n.required(0);
  ValueId sum = reduce(n, "reduce_sum", square(n, x), a);
  n.out(0, is_float(n.dtype(x)) ? n.op("sqrt", {sum})
                                : n.cast(n.op("sqrt", {n.cast(sum, DType::kFloat64)}), n.dtype(x)));
}
void reduce_sum_square(NodeImport& n) {
  const Axes a = read_axes(n, 18);
  n.out(0, reduce(n, "reduce_sum", square(n, n.required(0)), a));
}
ValueId floating(NodeImport& n, std::string_view op, ValueId x) {
  const DType t = n.dtype(x);
  return is_float(t) ? n.op(op, {x}) : n.cast(n.op(op, {n.cast(x, DType::kFloat64)}), t);
}
void reduce_log_sum(NodeImport& n) {
  const Axes a = read_axes(n, 18);
  n.out(0, floating(n, "log", reduce(n, "reduce_sum", n.required(0), a)));
}
// log(sum(exp(x - max))) + max: no overflow. Where the maximum is infinite it is not taken off.
void reduce_log_sum_exp(NodeImport& n) {
  Axes a = read_axes(n, 18);
  ValueId x = n.required(0);
  const DType t = n.dtype(x);
  if (!is_float(t)) x = n.cast(x, DType::kFloat64);
  if (a.nothing) {
    n.out(0, n.op("identity", {n.required(0)}));
    return;
  }
  Axes keep = a;
  keep.keepdims = 1;
  ValueId largest = reduce(n, "reduce_max", x, keep);
  largest = n.op("where", {n.op("is_inf", {largest}), n.scalar_like(0, x), largest});
  ValueId sum = reduce(n, "reduce_sum", n.op("exp", {n.op("sub", {x, largest})}), a);
  ValueId back = a.keepdims ? largest : n.reshape(largest, n.type(sum).dims);
  n.out(0, n.cast(n.op("add", {n.op("log", {sum}), back}), t));
}
template <bool largest>
void arg(NodeImport& n) {
  n.out(0, n.op(largest ? "arg_max" : "arg_min", {n.required(0)},
                {{"axis", n.int_attr("axis", 0)},
                 {"keepdims", n.int_attr("keepdims", 1)},
                 {"select_last_index", n.int_attr("select_last_index", 0)}}));
}

constexpr auto kReductionRows = std::to_array<OpMapping>({
    {"", "ReduceSum", 1, reduce_sum},
    {"", "ReduceMean", 1, reduce_mean},
    {"", "ReduceProd", 1, reduce_prod},
    {"", "ReduceMax", 1, reduce_extreme<true>},
    {"", "ReduceMin", 1, reduce_extreme<false>},
    {"", "ReduceL1", 1, reduce_l1},
    {"", "ReduceL2", 1, reduce_l2, Form::kFormula},
    {"", "ReduceSumSquare", 1, reduce_sum_square, Form::kFormula},
    {"", "ReduceLogSum", 1, reduce_log_sum, Form::kFormula},
    {"", "ReduceLogSumExp", 1, reduce_log_sum_exp, Form::kFormula},
    {"", "ArgMax", 1, arg<true>},
    {"", "ArgMin", 1, arg<false>},
});

}  // namespace

std::span<const OpMapping> reduction_mappings() { return kReductionRows; }

}  // namespace tilewright::onnx
