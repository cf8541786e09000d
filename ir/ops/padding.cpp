// Operators that repeat, surround and reverse elements.
#include "ir/formula/gradient.h"
#include "ir/loops/simplify.h"
#include "ir/ops/families.h"
#include "ir/ops/indices.h"
#include "ir/text/printer_loops.h"

namespace tilewright::ir {
namespace {

// --- pad ---------------------------------------------------------------------------------------

struct PadAmounts {
  std::vector<Expr> begin, end;
};
// Operands: x, pads, value, axes. pads holds the begins of all axes, then the ends; negative ones
// remove elements.
Result<PadAmounts> pad_amounts(const NodeView& c) {
  const int rank = c.rank(0);
  auto pads = known_dims(c, 1);
  if (!pads) return needs_value("pads is not known at compile time");
  std::vector<int64_t> axes;
  if (c.has(3)) {
    auto given = c.known_ints(3);
    if (!given) return needs_value("axes is not known at compile time");
    axes = *given;
  } else {
    for (int d = 0; d < rank; ++d) axes.push_back(d);
  }
  if (const Expr* e = beyond_extents(*pads))
    return invalid("pads has " + to_text(*e) + ", expected at most 2^31");
  if (pads->size() != 2 * axes.size())
    return invalid("pads has " + std::to_string(pads->size()) + " elements, expected " +
                   std::to_string(2 * axes.size()));
  PadAmounts p{zeros(rank), zeros(rank)};
  TW_ASSIGN(const std::vector<int> dims, distinct_axes(axes, c.type(0)));
  for (size_t k = 0; k < axes.size(); ++k) {
    p.begin[static_cast<size_t>(dims[k])] = (*pads)[k];
    p.end[static_cast<size_t>(dims[k])] = (*pads)[k + axes.size()];
  }
  return p;
}
Status infer_pad(InferContext& c) {
  auto pads = pad_amounts(c);
  if (!pads.ok()) return c.at_node(pads.error());
  const std::string mode = c.attr_string("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    return c.error("mode is '" + mode + "'");
  if (c.has(2) && c.type(2).dtype != c.type(0).dtype)
    return c.error("value is " + to_string(c.type(2)) + ", x is " + to_string(c.type(0)));
  std::vector<Expr> dims;
  for (size_t d = 0; d < pads->begin.size(); ++d) {
    const Expr x = c.type(0).dims[d], y = simplify(x + pads->begin[d] + pads->end[d]);
    if (!c.at_most(0, y, "pads must take away at most what there is"))
      return c.error("pads leave " + to_text(y) + " elements of " + to_string(c.type(0)));
    if (mode != "constant" &&
        !c.at_most(simplify(min(y, 1)), x, "mode '" + mode + "' needs elements"))
      return c.error("mode '" + mode + "' needs elements: x is " + to_string(c.type(0)));
    dims.push_back(y);
  }
  c.set_output(0, c.type(0).dtype, std::move(dims));
  return {};
}
// Where position p (in x's coordinates, perhaps outside) is read.
Expr pad_source(const std::string& mode, const Expr& p, const Expr& begin, const Expr& end,
                const Expr& n) {
  if (can_prove(begin <= Expr(0)) && can_prove(end <= Expr(0))) return p;
  if (mode == "edge") return clamp(p, 0, n - 1);
  if (mode == "wrap") return floormod(p, n);
  const Expr last = simplify(n - 1);
  if (can_prove(begin <= last) && can_prove(end <= last)) {  // one reflection is enough
    Expr q = p;
    if (!can_prove(begin <= Expr(0))) q = select(q < Expr(0), Expr(0) - q, q);
    return can_prove(end <= Expr(0)) ? q : select(q > last, last * 2 - q, q);
  }
  Expr q = floormod(p, max(last * 2, 1));
  return select(q > last, last * 2 - q, q);
}
// What stands around x: for each dimension a box before and one behind it, over all of the others.
void compute_padding_alone(ComputeContext& c, const PadAmounts& pads) {
  const Expr value = c.has(2) ? load(c.in(2), zeros(c.rank(2))) : constant(0, c.type(0).dtype);
  const size_t rank = pads.begin.size();
  for (size_t side = 0; side < 2 * rank; ++side) {
    const size_t d = side % rank;
    const Expr& amount = side < rank ? pads.begin[d] : pads.end[d];
    if (is_zero(amount)) continue;
    std::vector<Expr> extents = c.out()->shape;
    const Expr from = side < rank ? Expr(0) : extents[d] - amount;
    extents[d] = amount;
    c.b.compute_at(
        c.out(), extents,
        [&](const Axes& i) {
          Axes at = i;
          at[d] = simplify(at[d] + from);
          return LoopsBuilder::Write{at, value};
        },
        "padding");
  }
}
void compute_pad(ComputeContext& c) {
  const PadAmounts pads = pad_amounts(c).value();
  if (c.is_in_place(0)) return compute_padding_alone(c, pads);
  const std::string mode = c.attr_string("mode", "constant");
  const Buffer& x = c.in(0);
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Axes at;
        Expr inside = bool_imm(true);
        for (size_t d = 0; d < i.size(); ++d) {
          const Expr p = is_zero(pads.begin[d]) ? i[d] : i[d] - pads.begin[d];
          at.push_back(mode == "constant"
                           ? p
                           : pad_source(mode, p, pads.begin[d], pads.end[d], x->shape[d]));
          if (!can_prove(pads.begin[d] <= Expr(0))) inside = logical_and(inside, p >= Expr(0));
          if (!can_prove(pads.end[d] <= Expr(0))) inside = logical_and(inside, p < x->shape[d]);
        }
        if (mode != "constant" || as_int(inside)) return load(x, at);
        return select(inside, load(x, at),
                      c.has(2) ? load(c.in(2), zeros(c.rank(2))) : constant(0, x->dtype));
      },
      "pad");
}

// Padding with a value is undone by a slice, or by a pad where elements were removed.
void gradient_of_pad(GradientContext& c) {
  const NodeView node = c.view();
  if (node.attr_string("mode", "constant") == "constant") {
    const PadAmounts pads = pad_amounts(node).value();
    std::vector<Expr> back;
    for (const auto* side : {&pads.begin, &pads.end})
      for (const Expr& e : *side) back.push_back(simplify(Expr(0) - e));
    c.add(0, c.dy().make("pad", {c.dy().id, c.dims(back)}));
  } else {
    c.add_transposed(0);
  }
  c.add_transposed(2);
}

// --- tile, repeat ------------------------------------------------------------------------------

Status infer_tile(InferContext& c) {
  auto repeats = known_dims(c, 1);
  if (!repeats) return c.needs_value("repeats is not known at compile time");
  if (static_cast<int>(repeats->size()) != c.rank(0))
    return c.error(std::to_string(repeats->size()) + " repeats for " + to_string(c.type(0)));
  if (const Expr* e = beyond_extents(*repeats))
    return c.error("repeats has " + to_text(*e) + ", expected at most 2^31");
  std::vector<Expr> dims;
  for (size_t d = 0; d < repeats->size(); ++d) {
    if (!c.at_most(0, (*repeats)[d], "repeats must be at least 0"))
      return c.error("repeats is negative: " + to_text((*repeats)[d]));
    dims.push_back(c.type(0).dims[d] * (*repeats)[d]);
  }
  c.set_output(0, c.type(0).dtype, std::move(dims));
  return {};
}
void compute_tile(ComputeContext& c) {
  const auto repeats = *known_dims(c, 1);
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Axes at;
        for (size_t d = 0; d < i.size(); ++d) {
          const Expr& n = c.in(0)->shape[d];
          at.push_back(is_one(repeats[d]) ? i[d] : is_one(n) ? Expr(0) : floormod(i[d], n));
        }
        return load(c.in(0), at);
      },
      "tile");
}
Status infer_repeat(InferContext& c) {
  const auto factors = c.attr_ints("factors");
  if (static_cast<int>(factors.size()) != c.rank(0))
    return c.error(std::to_string(factors.size()) + " factors for " + to_string(c.type(0)));
  std::vector<Expr> dims;
  for (size_t d = 0; d < factors.size(); ++d) {
    if (factors[d] < 1) return c.error("factor " + std::to_string(factors[d]));
    dims.push_back(c.type(0).dims[d] * Expr(factors[d]));
  }
  c.set_output(0, c.type(0).dtype, std::move(dims));
  return {};
}
void compute_repeat(ComputeContext& c) {
  const auto factors = c.attr_ints("factors");
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Axes at;
        for (size_t d = 0; d < i.size(); ++d)
          at.push_back(factors[d] == 1 ? i[d] : floordiv(i[d], factors[d]));
        return load(c.in(0), at);
      },
      "repeat");
}

// --- reverse_sequence --------------------------------------------------------------------------

Status infer_reverse_sequence(InferContext& c) {
  const int64_t time = c.attr_int("time_axis", 0), batch = c.attr_int("batch_axis", 1);
  if (time < 0 || batch < 0 || time >= c.rank(0) || batch >= c.rank(0) || time == batch)
    return c.error("time_axis " + std::to_string(time) + " and batch_axis " +
                   std::to_string(batch) + " of " + to_string(c.type(0)));
  if (c.rank(1) != 1 || !c.agree(c.dim(1, 0), c.dim(0, static_cast<int>(batch))))
    return c.error("lengths is " + to_string(c.type(1)) + ", expected one per batch");
  c.set_output(0, c.type(0));
  return {};
}
void compute_reverse_sequence(ComputeContext& c) {
  const auto time = static_cast<size_t>(c.attr_int("time_axis", 0)),
             batch = static_cast<size_t>(c.attr_int("batch_axis", 1));
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        Expr length =
            min(cast(DType::kInt64,
                     load(c.in(1), {within(i[batch], c.in(0)->shape[batch], c.dim(1, 0))})),
                c.in(0)->shape[time]);
        Axes at = i;
        at[time] = select(i[time] < length, length - 1 - i[time], i[time]);
        return load(c.in(0), at);
      },
      "reverse_sequence");
}

}  // namespace

const std::vector<OpDef>& padding_ops() {
  static const TensorType x2{DType::kFloat32, {3, 5}};
  static const TensorType i2{DType::kInt64, {2}}, i4{DType::kInt64, {4}};
  static const std::vector<OpDef> ops{
      {.name = "pad",
       .summary = "x surrounded by a value or by its own elements; negative pads remove",
       .operands =
           {{"x"}, {"pads"}, {"value", OperandDef::kOptional}, {"axes", OperandDef::kOptional}},
       .attributes = {{"mode", AttributeKind::kString, "constant, reflect, edge or wrap"}},
       .fusion = FusionKind::kInjective,
       .channels = Channels::kAlong,
       .infer_type = infer_pad,
       .compute = compute_pad,
       .gradient = gradient_of_pad,
       .example = {.inputs = {x2, i4},
                   .attributes = {{"mode", std::string("reflect")}},
                   .values = {{}, {1, -1, 2, 3}}},
       .source = kOnnx},
      {.name = "tile",
       .summary = "x repeated as a whole along each dimension",
       .operands = {{"x"}, {"repeats"}},
       .fusion = FusionKind::kInjective,
       .infer_type = infer_tile,
       .compute = compute_tile,
       .gradient = [](GradientContext& c) { c.add_transposed(0); },
       .example = {.inputs = {x2, i2}, .values = {{}, {2, 3}}},
       .source = kOnnx},
      {.name = "repeat",
       .summary = "each element repeated factors[d] times along dimension d",
       .operands = {{"x"}},
       .attributes = {{"factors", AttributeKind::kInts, "one per dimension"}},
       .fusion = FusionKind::kInjective,
       .infer_type = infer_repeat,
       .compute = compute_repeat,
       .gradient = [](GradientContext& c) { c.add_transposed(0); },
       .example = {.inputs = {x2}, .attributes = {{"factors", std::vector<int64_t>{1, 2}}}},
       .source = kOnnx},
      {.name = "reverse_sequence",
       .summary = "the first lengths[b] steps of each batch in reverse order",
       .operands = {{"x"}, {"lengths"}},
       .attributes = {{"time_axis", AttributeKind::kInt, "default 0"},
                      {"batch_axis", AttributeKind::kInt, "default 1"}},
       .fusion = FusionKind::kInjective,
       .infer_type = infer_reverse_sequence,
       .compute = compute_reverse_sequence,
       .gradient = [](GradientContext& c) { c.add_transposed(0); },
       .example = {.inputs = {{DType::kFloat32, {4, 3}}, {DType::kInt64, {3}}},
                   .values = {{}, {4, 1, 2}}},
       .source = "https://onnx.ai/onnx/operators/onnx__ReverseSequence.html"},
  };
  return ops;
}

}  // namespace tilewright::ir
