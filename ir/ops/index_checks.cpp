// Are indices within what they point into? A node that reads or writes at positions that are data
// states so in its record (OpDef::indexed_dims). Known indices are judged with its types
// (ir/graph/index_range); for others the pass check_indices puts two nodes before it:
// `farthest_index` reduces the indices to one number, which `checked_indices` compares at the run,
// before the node reads anything.
//
// An index i of n elements counts from the end when it is negative: it is right when i + n, taken
// as unsigned, is less than 2 n. So the largest of these numbers tells whether one is wrong, and
// which. Other integers (`within`) are right when they, taken as unsigned, are less than n.
#include "ir/graph/compute.h"
#include "ir/ops/families.h"
#include "ir/ops/indices.h"

namespace tilewright::ir {

namespace {

std::vector<Expr> extents_of(const NodeView& c) {
  return c.attr_extents("extents").value_or(std::vector<Expr>{});
}

Status infer_farthest_index(InferContext& c) {
  const size_t n = extents_of(c).size();
  if (!is_integer(c.type(0).dtype) || n == 0)
    return c.error("indices is " + to_string(c.type(0)) + ", with " + std::to_string(n) +
                   " extents");
  if (n > 1 && (c.rank(0) == 0 || as_int(c.type(0).dims.back()) != static_cast<int64_t>(n)))
    return c.error("indices is " + to_string(c.type(0)) + ", expected its last dimension to be " +
                   std::to_string(n));
  c.set_output(0, DType::kUInt64, {Expr(static_cast<int64_t>(n))});
  return {};
}
void compute_farthest_index(ComputeContext& c) {
  const std::vector<Expr> extents = extents_of(c);
  std::vector<Expr> reduced = c.in(0)->shape;
  const bool tuples = extents.size() > 1, from_zero = c.attr_int("from_zero") != 0;
  if (tuples) reduced.pop_back();
  c.b.reduce(
      c.out(), reduced, Combiner::kMax,
      [&](const Axes& i, const Axes& r) {
        Axes at = r;
        Expr extent = extents.back();
        if (tuples) at.push_back(i[0]);
        for (size_t k = extents.size() - 1; k-- > 0;)
          extent = select(eq(i[0], Expr(static_cast<int64_t>(k))), extents[k], extent);
        const Expr index = cast(DType::kInt64, load(c.in(0), at));
        return cast(DType::kUInt64, from_zero ? index : index + extent);
      },
      "farthest");
}

Status infer_checked_indices(InferContext& c) {
  const size_t n = extents_of(c).size();
  if (c.type(1).dtype != DType::kUInt64 || c.rank(1) != 1 ||
      as_int(c.dim(1, 0)) != static_cast<int64_t>(n))
    return c.error("farthest is " + to_string(c.type(1)) + ", expected u64[" + std::to_string(n) +
                   "]");
  c.set_output(0, c.type(0));
  return {};
}

Status infer_within(InferContext& c) {
  if (!is_integer(c.type(0).dtype) || extents_of(c).size() != 1)
    return c.error("x is " + to_string(c.type(0)) + " with " +
                   std::to_string(extents_of(c).size()) + " extents, expected integers with one");
  c.set_output(0, c.type(0));
  return {};
}
void compute_within(ComputeContext& c) {
  c.b.compute(c.out(), [&](const Axes& i) { return load(c.in(0), i); }, "within");
}

}  // namespace

const std::vector<OpDef>& index_check_ops() {
  static const AttributeDef extents{"extents", AttributeKind::kExtents,
                                    "of what all indices point into, or of what each place along "
                                    "their last dimension does"};
  static const std::vector<OpDef> ops{
      {.name = "farthest_index",
       .summary = "the largest of index + extent as unsigned numbers: from twice the extent on, an "
                  "index is out of range",
       .operands = {{"indices"}},
       .attributes = {extents,
                      {"from_zero", AttributeKind::kInt,
                       "1: the largest of the numbers themselves as unsigned ones"}},
       .fusion = FusionKind::kReduction,
       .infer_type = infer_farthest_index,
       .compute = compute_farthest_index,
       .example = {.inputs = {{DType::kInt64, {5, 2}}},
                   .attributes = {{"extents", Extents{{Expr(7), Expr(9)}}}},
                   .values = {{0, 4, -1, 2, 11}}},
       .source = "tilewright"},
      {.name = "within",
       .summary =
           "a copy of x, whose elements are at least 0 and less than the extent: others are errors",
       .operands = {{"x"}},
       .attributes = {extents, {"what", AttributeKind::kString, "an element, as errors name it"}},
       .fusion = FusionKind::kPointwise,
       .infer_type = infer_within,
       .compute = compute_within,
       .index_operand = 0,
       .indexed_dims =
           [](const NodeView& c) {
             return std::vector<IndexedDim>{{kNoIndices, extents_of(c)[0]}};
           },
       .example = {.inputs = {{DType::kInt64, {5}}},
                   .attributes = {{"extents", Extents{{Expr(7)}}},
                                  {"what", std::string("an element")}},
                   .values = {{0, 4, 6, 2, 3}}},
       .source = "tilewright"},
      {.name = "checked_indices",
       .summary = "the indices; the run ends with an error when one is out of range",
       .operands = {{"indices"}, {"farthest"}},
       .attributes = {extents,
                      {"dim", AttributeKind::kInt, "the dimension that the first extent is of"},
                      {"node", AttributeKind::kString, "whose indices they are"}},
       .infer_type = infer_checked_indices,
       .source = "tilewright"},
  };
  return ops;
}

}  // namespace tilewright::ir
