// The gradient of a loop: another one that runs the iterations in reverse.
//
// The first loop also gives what it carried into each of its iterations, stacked. The second takes it
// from there, computes the body once more and then backwards: it carries the derivatives by what the
// first one carried, and sums of those by what the body captures. How many iterations there were is the
// extent of a stack: a condition that ended the first loop needs no other treatment.
//
// Of what the body only looks elements up in, as a scan does, each iteration gives the derivatives by
// these elements and where they are; behind the loop all are put in place together. Sums of whole
// tensors would take a number of steps that grows with the square of the sequence.
#include <algorithm>

#include "ir/graph/infer.h"
#include "ir/graph/op.h"
#include "ir/ops/known_ops.h"
#include "passes/graph/differentiation.h"
#include "passes/graph/loop_derivatives.h"

namespace tilewright::passes {

using ir::Graph;
using ir::kNone;
using ir::ValueId;

namespace {

Result<ValueId> one(Graph& g, const ir::OpDef* op, std::vector<ValueId> operands,
                    ir::Attributes attributes, const std::string& name) {
  TW_ASSIGN(const auto r,
            ir::add_node(g, op, std::move(operands), std::move(attributes), 1, name, {}));
  return r[0];
}

// Adds the nodes of `from`, with values of `to` for its inputs; by value of `from`, what it is now.
std::vector<ValueId> add_copy(Graph& to, const Graph& from, const std::vector<ValueId>& inputs) {
  std::vector<ValueId> now(from.values.size(), kNone);
  const auto renamed = [&](std::vector<ValueId> values) {
    for (ValueId& v : values)
      if (v != kNone) v = now[static_cast<size_t>(v)];
    return values;
  };
  for (size_t k = 0; k < inputs.size(); ++k) now[static_cast<size_t>(from.inputs[k])] = inputs[k];
  for (size_t v = 0; v < from.values.size(); ++v) {
    if (now[v] != kNone) continue;
    to.values.push_back(from.values[v]);
    if (to.values.back().producer >= 0)
      to.values.back().producer += static_cast<int32_t>(to.nodes.size());
    now[v] = static_cast<ValueId>(to.values.size()) - 1;
  }
  for (ir::Node n : from.nodes) {
    n.inputs = renamed(std::move(n.inputs));
    n.outputs = renamed(std::move(n.outputs));
    to.nodes.push_back(std::move(n));
  }
  return now;
}

class LoopGradient {
 public:
  LoopGradient(Graph& graph, size_t node, std::vector<ValueId> of_outputs)
      : graph_(graph),
        index_(node),
        node_(graph.nodes[node]),
        body_(node_),
        shape_(body_.shape),
        dy_(std::move(of_outputs)),
        stacks_(at(shape_.carried), kNone) {
    dy_.resize(at(shape_.carried + shape_.scans), kNone);
  }

  Result<std::vector<ValueId>> run(const std::vector<bool>& wanted) {
    TW_ASSIGN(by_, find_loop_derivatives(body_, dy_, wanted));
    TW_RETURN_IF_ERROR(keep_carried());
    TW_RETURN_IF_ERROR(add_operands());
    Graph back;
    TW_RETURN_IF_ERROR(build_body(back));
    const size_t carried = by_.carried.size() + by_.captured.size();
    TW_ASSIGN(const auto found, ir::add_node(graph_, ir::ops::loop(), operands_,
                                             {{"carried", static_cast<int64_t>(carried)}},
                                             static_cast<int>(carried + 2 * by_.lookups.size()),
                                             ir::describe(node_) + ".gradient", node_.sources,
                                             {std::make_shared<const Graph>(std::move(back))}));
    std::vector<ValueId> by_operand(node_.inputs.size(), kNone);
    size_t n = 0;
    for (int k : by_.carried) by_operand[at(body_.initial_operand(k))] = found[n++];
    for (int m : by_.captured) by_operand[at(body_.captured_operand(m))] = found[n++];
    for (const Lookup& l : by_.lookups) {
      TW_ASSIGN(ValueId g, put_in_place(l, found[n], found[n + 1]));
      ValueId& sum = by_operand[at(body_.captured_operand(l.captured))];
      if (sum != kNone) { TW_ASSIGN(g, one(graph_, ir::ops::add(), {sum, g}, {}, "sum")); }
      sum = g;
      n += 2;
    }
    return by_operand;
  }

 private:
  // The derivative by a captured value from those by its elements, stacked, and their places.
  Result<ValueId> put_in_place(const Lookup& l, ValueId rows, ValueId places) {
    const ir::Node& gather = body_.graph->nodes[l.node];
    const ValueId operand = node_.inputs[at(body_.captured_operand(l.captured))];
    const ir::TensorType type = graph_.value(operand).type;
    const int axis = ir::NodeView(*body_.graph, gather).axis(type.rank());
    if (axis > 0) {  // iterations are counted where the gather counts its indices
      std::vector<int64_t> perm;
      for (int d = 0; d < graph_.value(rows).type.rank(); ++d)
        perm.push_back(d < axis ? d + 1 : d == axis ? 0 : d);
      TW_ASSIGN(rows, one(graph_, ir::ops::transpose(), {rows}, {{"perm", perm}}, "rows"));
    }
    ir::Attributes attributes = gather.attributes;
    attributes[ir::kTransposedOp] = std::string(gather.op->name);
    attributes[ir::kTransposedOperand] = int64_t{0};
    attributes[ir::kTransposedExtents] = ir::Extents{type.dims};
    return one(graph_, ir::ops::transposed(), {rows, places}, std::move(attributes), "in_place");
  }

  // More scans of the first loop: what its iterations start with, as far as they read it and change it.
  // Where it has no scan then, one that nobody reads tells the number of iterations.
  Status keep_carried() {
    auto body = std::make_shared<Graph>(*body_.graph);
    ir::Node& node = graph_.nodes[index_];
    node.outputs.resize(at(shape_.carried + shape_.scans), kNone);
    const std::vector<int> uses = body_.graph->use_counts();
    bool counted = std::any_of(node.outputs.begin() + shape_.carried, node.outputs.end(),
                               [](ValueId v) { return v != kNone; });
    for (int k = 0; k < shape_.carried; ++k) {
      const ValueId v = body_.carried_in(k);
      const bool is_last = k + 1 == shape_.carried;
      const bool needed = uses[static_cast<size_t>(v)] != 0 && !body_.passes_on(k);
      if (!needed && (counted || !is_last)) continue;
      counted = true;
      const std::string name = body_.graph->value(v).name + ".kept";
      body->outputs.push_back(v);
      body->output_names.push_back(name);
      stacks_[at(k)] = graph_.add_value(name, {});
      graph_.value(stacks_[at(k)]).producer = static_cast<int32_t>(index_);
      node.outputs.push_back(stacks_[at(k)]);
    }
    node.regions[0] = body;
    TW_RETURN_IF_ERROR(ir::infer_node(graph_, node));
    for (size_t k = at(shape_.carried); k < node.outputs.size(); ++k)
      if (node.outputs[k] != kNone) iterations_ = graph_.value(node.outputs[k]).type.dims[0];
    TW_CHECK(iterations_);  // a loop without carried values has a scan that the loss depends on
    return {};
  }

  // Of the second loop: those that come before what the body captures. Each enters the body as a
  // value of the type given.
  Status add_operands() {
    const std::string name = ir::describe(node_) + ".iterations";
    TW_ASSIGN(const ValueId trips,
              one(graph_, ir::ops::extents(), {}, {{"extents", ir::Extents{{iterations_}}}}, name));
    const ValueId single =
        graph_.add_constant("", ir::make_constant_of<int64_t>(DType::kInt64, {1}, {1}));
    TW_ASSIGN(last_, one(graph_, ir::ops::sub(), {trips, single}, {}, name + ".last"));
    operands_ = {trips, kNone};
    for (int k : by_.carried) {
      const ir::TensorType type = graph_.value(node_.inputs[at(body_.initial_operand(k))]).type;
      ValueId dy = dy_[at(k)];
      if (dy == kNone) {
        TW_ASSIGN(dy, filled(graph_, type, 0));
      } else {
        TW_ASSIGN(dy, with_extents(graph_, dy, type));
      }
      operands_.push_back(dy);
    }
    for (int m : by_.captured) {
      const ir::TensorType type = graph_.value(node_.inputs[at(body_.captured_operand(m))]).type;
      TW_ASSIGN(const ValueId none, filled(graph_, type, 0));
      operands_.push_back(none);
    }
    return {};
  }

  // An operand of the second loop, as its body knows it.
  ValueId enter(Graph& back, ValueId operand, const ir::TensorType& type) {
    operands_.push_back(operand);
    back.inputs.push_back(back.add_value(graph_.value(operand).name, type));
    return back.inputs.back();
  }
  ValueId enter(Graph& back, ValueId operand) {
    return enter(back, operand, graph_.value(operand).type);
  }
  // Element `iteration` of a stack.
  static Result<ValueId> element(Graph& back, ValueId stack, ValueId iteration) {
    return one(back, ir::ops::gather(), {stack, iteration}, {{"clamps", int64_t{1}}},
               back.value(stack).name + ".element");
  }

  Status build_body(Graph& back) {
    back.name = body_.graph->name + ".gradient";
    back.inputs.push_back(back.add_value("step", {DType::kInt64, {}}));
    std::vector<ValueId> later, sums;
    for (size_t n = 2; n < operands_.size(); ++n) {
      const ValueId v =
          back.add_value(graph_.value(operands_[n]).name, graph_.value(operands_[n]).type);
      back.inputs.push_back(v);
      (n < 2 + by_.carried.size() ? later : sums).push_back(v);
    }
    const ir::TensorType iteration_type = body_.type_of(body_.graph->inputs[0]);
    TW_ASSIGN(const ValueId last, with_extents(back, enter(back, last_), {DType::kInt64, {}}));
    TW_ASSIGN(const ValueId iteration,
              one(back, ir::ops::sub(), {last, back.inputs[0]}, {}, "iteration"));
    TW_ASSIGN(const ValueId own, with_extents(back, iteration, iteration_type));
    std::vector<ValueId> given{own};
    for (int k = 0; k < shape_.carried; ++k) {
      if (body_.passes_on(k)) {  // always what it was at first
        given.push_back(enter(back, node_.inputs[at(body_.initial_operand(k))],
                              body_.type_of(body_.carried_in(k))));
        continue;
      }
      if (stacks_[at(k)] == kNone) {  // nothing reads it
        given.push_back(back.add_value(body_.graph->value(body_.carried_in(k)).name,
                                       body_.type_of(body_.carried_in(k))));
        continue;
      }
      TW_ASSIGN(const ValueId v, element(back, enter(back, stacks_[at(k)]), iteration));
      TW_ASSIGN(const ValueId before, with_extents(back, v, body_.type_of(body_.carried_in(k))));
      given.push_back(before);
    }
    for (int m = 0; m < body_.captured; ++m)
      given.push_back(enter(back, node_.inputs[at(body_.captured_operand(m))],
                            body_.type_of(body_.captured_in(m))));
    return go_backwards(back, add_copy(back, *body_.graph, given), iteration, later, sums);
  }
  // now: what values of the body are. later: derivatives by what it carries on; sums: of those by what
  // it captures.
  Status go_backwards(Graph& back, const std::vector<ValueId>& now, ValueId iteration,
                      const std::vector<ValueId>& later, const std::vector<ValueId>& sums) {
    const auto in_back = [&](ValueId of_body) { return now[static_cast<size_t>(of_body)]; };
    std::vector<ValueId> of;
    for (ValueId v : by_.active) of.push_back(in_back(v));
    Differentiation d(back, of);
    for (size_t n = 0; n < by_.carried.size(); ++n)
      TW_RETURN_IF_ERROR(d.seed(in_back(body_.carried_out(by_.carried[n])), later[n]));
    for (int s = 0; s < shape_.scans; ++s) {
      const ValueId dy = dy_[at(shape_.carried + s)];
      if (dy == kNone) continue;
      TW_ASSIGN(const ValueId g, element(back, enter(back, dy), iteration));
      TW_ASSIGN(const ValueId own, with_extents(back, g, body_.type_of(body_.scan_out(s))));
      TW_RETURN_IF_ERROR(d.seed(in_back(body_.scan_out(s)), own));
    }
    TW_RETURN_IF_ERROR(d.run());
    const auto put = [&](ValueId v, const ir::Value& like) -> Status {
      TW_ASSIGN(const ValueId r, with_extents(back, v, like.type));
      back.outputs.push_back(r);
      back.output_names.push_back(like.name);
      return {};
    };
    for (size_t n = 0; n < by_.carried.size(); ++n) {
      TW_ASSIGN(const ValueId g, d.gradient(in_back(body_.carried_in(by_.carried[n]))));
      TW_RETURN_IF_ERROR(put(g, ir::Value(back.value(later[n]))));
    }
    for (size_t n = 0; n < by_.captured.size(); ++n) {
      TW_ASSIGN(const ValueId g, d.gradient(in_back(body_.captured_in(by_.captured[n]))));
      TW_ASSIGN(const ValueId sum, one(back, ir::ops::add(), {sums[n], g}, {}, "sum"));
      TW_RETURN_IF_ERROR(put(sum, ir::Value(back.value(sums[n]))));
    }
    for (const Lookup& l : by_.lookups) {
      const ValueId v = body_.graph->nodes[l.node].outputs[0];
      TW_ASSIGN(const ValueId g, d.gradient(in_back(v)));
      TW_RETURN_IF_ERROR(put(g, body_.graph->value(v)));
      const ValueId place = body_.graph->nodes[l.node].inputs[1];
      TW_RETURN_IF_ERROR(put(in_back(place), body_.graph->value(place)));
    }
    return {};
  }

  Graph& graph_;
  const size_t index_;
  const ir::Node node_;
  const LoopBody body_;
  const ir::LoopShape shape_;
  std::vector<ValueId> dy_;  // by result
  LoopDerivatives by_;
  std::vector<ValueId> stacks_;    // by carried value; kNone: not kept
  ir::Expr iterations_;            // how many there were
  ValueId last_ = kNone;           // number of the last one
  std::vector<ValueId> operands_;  // of the second loop
};

}  // namespace

Result<std::vector<ValueId>> gradient_of_loop(Graph& graph, size_t node,
                                              const std::vector<ValueId>& of_outputs,
                                              const std::vector<bool>& wanted) {
  return LoopGradient(graph, node, of_outputs).run(wanted);
}

}  // namespace tilewright::passes
