// Control flow: nodes with regions. They have no compute; the plan turns them into blocks of the
// program.
#include "ir/ops/control_flow.h"

#include <algorithm>
#include <set>

#include "ir/graph/op.h"
#include "ir/loops/compare.h"
#include "ir/loops/linear.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "ir/ops/families.h"

namespace tilewright::ir {

namespace {

const TensorType& output_type(const Graph& region, int k) {
  return region.value(region.outputs[static_cast<size_t>(k)]).type;
}
bool is_one_element(const TensorType& t) {
  return std::all_of(t.dims.begin(), t.dims.end(),
                     [](const Expr& d) { return as_int(d).value_or(1) == 1; });
}
// Symbols that the nodes of a region define.
std::set<const ExprNode*> inner_symbols(const Graph& region) {
  std::set<const ExprNode*> symbols;
  for (const Node& n : region.nodes)
    for (const Var& v : n.defined_symbols) symbols.insert(v.get());
  return symbols;
}
bool names_any(const Expr& e, const std::set<const ExprNode*>& symbols) {
  for (const Var& v : free_vars_in_order(e))
    if (symbols.count(v.get())) return true;
  return false;
}

// Operand k + first of the node enters every region as its input k.
Status check_regions(const InferContext& c, size_t count, int first, int given_by_node) {
  if (c.node().regions.size() != count)
    return c.error("expected " + std::to_string(count) + " regions");
  for (const auto& region : c.node().regions) {
    if (static_cast<int>(region->inputs.size()) != c.num_inputs() - first + given_by_node)
      return c.error("a region takes " + std::to_string(region->inputs.size()) +
                     " values, the node has " + std::to_string(c.num_inputs()) + " operands");
    for (int k = first; k < c.num_inputs(); ++k) {
      const TensorType& inner =
          region->value(region->inputs[static_cast<size_t>(k - first + given_by_node)]).type;
      if (inner.dtype != c.type(k).dtype || inner.rank() != c.rank(k))
        return c.error("operand " + std::to_string(k) + " is " + to_string(c.type(k)) +
                       ", the region takes " + to_string(inner));
    }
  }
  return {};
}

Status infer_if(InferContext& c) {
  TW_RETURN_IF_ERROR(check_regions(c, 2, 1, 0));
  if (c.type(0).dtype != DType::kBool || !is_one_element(c.type(0)))
    return c.error("the condition is " + to_string(c.type(0)) + ", expected one bool");
  const Graph &then = *c.node().regions[0], &otherwise = *c.node().regions[1];
  if (then.outputs.size() != otherwise.outputs.size())
    return c.error("the branches have different numbers of outputs");
  std::vector<TensorType> types;
  for (int k = 0; k < static_cast<int>(then.outputs.size()); ++k) {
    const TensorType &a = output_type(then, k), &b = output_type(otherwise, k);
    if (a.dtype != b.dtype)
      return c.error("the branches give " + to_string(a) + " and " + to_string(b) + " for output " +
                     std::to_string(k));
    if (a.rank() != b.rank())
      return c.needs_value("the branches give " + to_string(a) + " and " + to_string(b) +
                           ", and the condition is not known at compile time");
    types.push_back(a);
  }
  int symbol = 0;
  for (const auto& [output, dim] : disagreeing_dims(c.node()))
    types[static_cast<size_t>(output)].dims[static_cast<size_t>(dim)] =
        c.data_dependent_symbol(symbol, "extent" + std::to_string(symbol)),
    ++symbol;
  for (size_t k = 0; k < types.size(); ++k) c.set_output(static_cast<int>(k), types[k]);
  return {};
}

// Number of iterations when it does not depend on what the body computes.
Expr fixed_trip_count(const InferContext& c, const LoopShape& shape) {
  if (shape.has_condition || !c.has(0)) return nullptr;
  if (c.has(1)) {
    auto first = c.known_ints(1);
    if (!first) return nullptr;
    if (!first->at(0)) return 0;
  }
  auto trips = c.known(0);
  return trips ? simplify(max(cast(DType::kInt64, trips->at(0)), 0)) : Expr();
}
Status check_loop(const InferContext& c, const LoopShape& shape) {
  TW_RETURN_IF_ERROR(check_regions(c, 1, 2, 1));
  if (c.has(0) && (c.type(0).dtype != DType::kInt64 || !is_one_element(c.type(0))))
    return c.error("the trip count is " + to_string(c.type(0)) + ", expected one i64");
  if (c.has(1) && (c.type(1).dtype != DType::kBool || !is_one_element(c.type(1))))
    return c.error("the condition is " + to_string(c.type(1)) + ", expected one bool");
  if (!c.has(0) && !shape.has_condition) return c.error("the loop has no end");
  if (shape.scans < 0) return c.error("the body has too few outputs");
  const Graph& body = *c.node().regions[0];
  if (shape.has_condition &&
      (output_type(body, 0).dtype != DType::kBool || !is_one_element(output_type(body, 0))))
    return c.error("the body's condition is " + to_string(output_type(body, 0)) +
                   ", expected one bool");
  return {};
}
// Is the extent known before the body runs?
bool is_of_outside(const Graph& body, const Expr& extent) {
  const std::vector<Var> vars = free_vars_in_order(extent);
  const auto is_defined = [&](const Var& v) {
    return std::any_of(body.nodes.begin(), body.nodes.end(), [&](const Node& n) {
      return std::any_of(n.defined_symbols.begin(), n.defined_symbols.end(),
                         [&](const Var& s) { return s.same_as(v); });
    });
  };
  return std::none_of(vars.begin(), vars.end(), is_defined);
}
Status infer_loop(InferContext& c) {
  const LoopShape shape = loop_shape(c.node());
  TW_RETURN_IF_ERROR(check_loop(c, shape));
  const Graph& body = *c.node().regions[0];
  for (int k = 0; k < shape.carried; ++k) {
    const TensorType &before = c.type(shape.first_initial() + k),
                     &after = output_type(body, shape.first_carried_result() + k);
    bool same = before.rank() == after.rank();
    for (size_t d = 0; same && d < before.dims.size(); ++d)
      same &= same_expr(before.dims[d], after.dims[d]) ||
              (is_of_outside(body, after.dims[d]) && c.agree(before.dims[d], after.dims[d]));
    if (before.dtype != after.dtype)
      return c.error("carried value " + std::to_string(k) + " is " + to_string(before) +
                     " before the body and " + to_string(after) + " after it");
    if (!same)
      return c.needs_value("carried value " + std::to_string(k) + " is " + to_string(before) +
                           " before the body and " + to_string(after) +
                           " after it: its shape is not known at compile time");
    c.set_output(k, before);
  }
  const auto inside = inner_symbols(body);
  for (int k = 0; k < shape.scans; ++k) {
    const TensorType& element = output_type(body, shape.first_scan_result() + k);
    for (const Expr& d : element.dims)
      if (names_any(d, inside))
        return c.needs_value("the shape of scan output " + std::to_string(k) + ", " +
                             to_string(element) + ", is not known at compile time");
    Expr count = fixed_trip_count(c, shape);
    std::vector<Expr> dims{count ? count : c.data_dependent_symbol(0, "iterations")};
    dims.insert(dims.end(), element.dims.begin(), element.dims.end());
    c.set_output(shape.carried + k, element.dtype, std::move(dims));
  }
  return {};
}

Status infer_fail(InferContext& c) {
  auto dtype = dtype_from_name(c.attr_string("dtype"));
  if (!dtype) return c.error("unknown element type '" + c.attr_string("dtype") + "'");
  c.set_output(0, *dtype, c.attr_extents("shape").value_or(std::vector<Expr>{}));
  return {};
}

}  // namespace

std::vector<std::pair<int, int>> disagreeing_dims(const Node& node) {
  const Graph &then = *node.regions[0], &otherwise = *node.regions[1];
  std::vector<std::pair<int, int>> result;
  for (int k = 0; k < static_cast<int>(then.outputs.size()); ++k) {
    const TensorType &a = output_type(then, k), &b = output_type(otherwise, k);
    for (int d = 0; d < a.rank(); ++d)
      if (!same_expr(a.dims[static_cast<size_t>(d)], b.dims[static_cast<size_t>(d)]))
        result.emplace_back(k, d);
  }
  return result;
}

LoopShape loop_shape(const Node& node) {
  auto number = [&](const char* name) {
    auto it = node.attributes.find(name);
    return it == node.attributes.end() ? 0 : static_cast<int>(std::get<int64_t>(it->second));
  };
  LoopShape s;
  s.carried = number("carried");
  s.has_condition = number("has_condition") != 0;
  s.scans = static_cast<int>(node.regions[0]->outputs.size()) - s.first_scan_result();
  return s;
}

const std::vector<OpDef>& control_flow_ops() {
  static const std::vector<OpDef> ops{
      {.name = "if",
       .summary =
           "the results of the first region when the condition holds, else those of the second",
       .operands = {{"condition"}, {"captured", OperandDef::kVariadic}},
       .outputs = "y*",
       .infer_type = infer_if,
       .source = "https://onnx.ai/onnx/operators/onnx__If.html"},
      {.name = "loop",
       .summary = "runs its region trip_count times or until the condition fails; values are "
                  "carried from one iteration to the next, scans are stacked",
       .operands = {{"trip_count", OperandDef::kOptional},
                    {"condition", OperandDef::kOptional},
                    {"values", OperandDef::kVariadic}},
       .attributes = {{"carried", AttributeKind::kInt, "number of carried values"},
                      {"has_condition", AttributeKind::kInt,
                       "the region's first output is the condition to go on"}},
       .outputs = "y*",
       .infer_type = infer_loop,
       .source = "https://onnx.ai/onnx/operators/onnx__Loop.html"},
      {.name = "fail",
       .summary =
           "ends the run with an error: a branch that is wrong for the operands it would get",
       .attributes = {{"message", AttributeKind::kString, "the error"},
                      {"dtype", AttributeKind::kString, "element type of y"},
                      {"shape", AttributeKind::kExtents, "shape of y"}},
       .infer_type = infer_fail,
       .source = "tilewright"},
  };
  return ops;
}

}  // namespace tilewright::ir
