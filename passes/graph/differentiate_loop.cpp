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
#include "ir/ops/control_flow.h"
#include "ir/ops/known_ops.h"
#include "passes/graph/differentiation.h"

namespace tilewright::passes {

using ir::Graph;
using ir::kNone;
using ir::ValueId;

namespace {

size_t at(int i) { return static_cast<size_t>(i); }

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
  LoopGradient(Graph& graph, size_t node, std::vector<ValueId> of_outputs,
               const std::vector<bool>& wanted)
      : graph_(graph),
        index_(node),
        node_(graph.nodes[node]),
        body_(node_.regions[0]),
        shape_(ir::loop_shape(node_)),
        dy_(std::move(of_outputs)),
        stacks_(at(shape_.carried), kNone) {
    dy_.resize(at(shape_.carried + shape_.scans), kNone);
    find_active(wanted);
  }

  Result<std::vector<ValueId>> run() {
    TW_RETURN_IF_ERROR(find_what_matters());
    TW_RETURN_IF_ERROR(keep_carried());
    TW_RETURN_IF_ERROR(add_operands());
    Graph back;
    TW_RETURN_IF_ERROR(build_body(back));
    const size_t carried = carried_.size() + captured_.size();
    TW_ASSIGN(const auto found, ir::add_node(graph_, ir::ops::loop(), operands_,
                                             {{"carried", static_cast<int64_t>(carried)}},
                                             static_cast<int>(carried + 2 * lookups_.size()),
                                             ir::describe(node_) + ".gradient", node_.sources,
                                             {std::make_shared<const Graph>(std::move(back))}));
    std::vector<ValueId> by_operand(node_.inputs.size(), kNone);
    size_t n = 0;
    for (int k : carried_) by_operand[at(shape_.first_initial() + k)] = found[n++];
    for (int m : captured_) by_operand[at(first_captured() + m)] = found[n++];
    for (const Lookup& l : lookups_) {
      TW_ASSIGN(ValueId g, put_in_place(l, found[n], found[n + 1]));
      ValueId& sum = by_operand[at(first_captured() + l.captured)];
      if (sum != kNone) { TW_ASSIGN(g, one(graph_, ir::ops::add(), {sum, g}, {}, "sum")); }
      sum = g;
      n += 2;
    }
    return by_operand;
  }

 private:
  int first_captured() const { return shape_.first_initial() + shape_.carried; }
  int num_captured() const { return static_cast<int>(node_.inputs.size()) - first_captured(); }
  // Values of the body.
  ValueId carried_in(int k) const { return body_->inputs[at(1 + k)]; }
  ValueId captured_in(int m) const { return body_->inputs[at(1 + shape_.carried + m)]; }
  ValueId carried_out(int k) const { return body_->outputs[at(shape_.first_carried_result() + k)]; }
  ValueId scan_out(int s) const { return body_->outputs[at(shape_.first_scan_result() + s)]; }
  ir::TensorType type_of(ValueId of_body) const { return body_->value(of_body).type; }

  // An element of a captured value that the body reads, by a gather.
  struct Lookup {
    int captured;
    size_t node;  // of the body
  };
  const ir::Node& gather_of(const Lookup& l) const { return body_->nodes[l.node]; }
  // All that is read of captured value m, where nothing else is.
  std::vector<Lookup> lookups_of(int m) const {
    const ValueId v = captured_in(m);
    std::vector<Lookup> found;
    int uses = 0;
    for (size_t k = 0; k < body_->nodes.size(); ++k) {
      const ir::Node& n = body_->nodes[k];
      if (n.op == ir::ops::gather() && n.inputs[0] == v) found.push_back({m, k});
      uses += static_cast<int>(std::count(n.inputs.begin(), n.inputs.end(), v));
    }
    uses += static_cast<int>(std::count(body_->outputs.begin(), body_->outputs.end(), v));
    if (uses != static_cast<int>(found.size())) found.clear();
    return found;
  }
  // The derivative by a captured value from those by its elements, stacked, and their places.
  Result<ValueId> put_in_place(const Lookup& l, ValueId rows, ValueId places) {
    const ir::Node& gather = gather_of(l);
    const ValueId operand = node_.inputs[at(first_captured() + l.captured)];
    const ir::TensorType type = graph_.value(operand).type;
    const int axis = ir::NodeView(*body_, gather).axis(type.rank());
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

  // What depends on what is asked for: captured floats, and carried ones by their initial values or
  // by what an iteration makes of others.
  void find_active(const std::vector<bool>& wanted) {
    for (int m = 0; m < num_captured(); ++m) {
      if (!wanted[at(first_captured() + m)]) continue;
      const std::vector<Lookup> elements = lookups_of(m);
      for (const Lookup& l : elements) active_.push_back(gather_of(l).outputs[0]);
      if (elements.empty()) active_.push_back(captured_in(m));
      all_lookups_.insert(all_lookups_.end(), elements.begin(), elements.end());
    }
    std::vector<bool> is_active(at(shape_.carried));
    for (int k = 0; k < shape_.carried; ++k)
      is_active[at(k)] = wanted[at(shape_.first_initial() + k)];
    const std::vector<ValueId> of_captured = active_;
    for (bool more = true; more;) {
      more = false;
      active_ = of_captured;
      for (int k = 0; k < shape_.carried; ++k)
        if (is_active[at(k)]) active_.push_back(carried_in(k));
      const std::vector<bool> depends = depends_on(*body_, active_);
      for (int k = 0; k < shape_.carried; ++k) {
        if (is_active[at(k)] || !depends[static_cast<size_t>(carried_out(k))]) continue;
        is_active[at(k)] = more = true;
      }
    }
  }
  // Of that, what the loss depends on: by a result, or by what later iterations make of it.
  Status find_what_matters() {
    std::vector<bool> matters(at(shape_.carried));
    for (int k = 0; k < shape_.carried; ++k) matters[at(k)] = dy_[at(k)] != kNone;
    for (bool more = true; more;) {
      more = false;
      Graph trial = *body_;
      Differentiation d(trial, active_);
      const auto seed = [&](ValueId v) -> Status {
        TW_ASSIGN(const ValueId g, filled(trial, type_of(v), 1));
        return d.seed(v, g);
      };
      for (int k = 0; k < shape_.carried; ++k)
        if (matters[at(k)]) TW_RETURN_IF_ERROR(seed(carried_out(k)));
      for (int s = 0; s < shape_.scans; ++s)
        if (dy_[at(shape_.carried + s)] != kNone) TW_RETURN_IF_ERROR(seed(scan_out(s)));
      TW_RETURN_IF_ERROR(d.run());
      lookups_.clear();
      for (const Lookup& l : all_lookups_)
        if (d.found(gather_of(l).outputs[0]) != kNone) lookups_.push_back(l);
      captured_.clear();
      for (int m = 0; m < num_captured(); ++m)
        if (is_active(captured_in(m)) && d.found(captured_in(m)) != kNone) captured_.push_back(m);
      for (int k = 0; k < shape_.carried; ++k) {
        if (matters[at(k)] || !is_active(carried_in(k)) || d.found(carried_in(k)) == kNone)
          continue;
        matters[at(k)] = more = true;
      }
    }
    for (int k = 0; k < shape_.carried; ++k)
      if (matters[at(k)] && is_active(carried_in(k))) carried_.push_back(k);
    return {};
  }
  bool is_active(ValueId of_body) const {
    return std::find(active_.begin(), active_.end(), of_body) != active_.end();
  }

  // More scans of the first loop. A loop that carries nothing has a scan already, which tells the
  // number of iterations.
  Status keep_carried() {
    auto body = std::make_shared<Graph>(*body_);
    ir::Node& node = graph_.nodes[index_];
    node.outputs.resize(at(shape_.carried + shape_.scans), kNone);
    const std::vector<int> uses = body_->use_counts();
    for (int k = 0; k < shape_.carried; ++k) {
      const ValueId v = carried_in(k);
      const bool counts = k + 1 == shape_.carried && node.outputs.size() == at(shape_.carried);
      if (uses[static_cast<size_t>(v)] == 0 && !counts) continue;
      const std::string name = body_->value(v).name + ".kept";
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
    TW_CHECK(iterations_);
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
    for (int k : carried_) {
      const ir::TensorType type = graph_.value(node_.inputs[at(shape_.first_initial() + k)]).type;
      ValueId dy = dy_[at(k)];
      if (dy == kNone) {
        TW_ASSIGN(dy, filled(graph_, type, 0));
      } else {
        TW_ASSIGN(dy, with_extents(graph_, dy, type));
      }
      operands_.push_back(dy);
    }
    for (int m : captured_) {
      const ir::TensorType type = graph_.value(node_.inputs[at(first_captured() + m)]).type;
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
    back.name = body_->name + ".gradient";
    back.inputs.push_back(back.add_value("step", {DType::kInt64, {}}));
    std::vector<ValueId> later, sums;
    for (size_t n = 2; n < operands_.size(); ++n) {
      const ValueId v =
          back.add_value(graph_.value(operands_[n]).name, graph_.value(operands_[n]).type);
      back.inputs.push_back(v);
      (n < 2 + carried_.size() ? later : sums).push_back(v);
    }
    const ir::TensorType iteration_type = type_of(body_->inputs[0]);
    TW_ASSIGN(const ValueId last, with_extents(back, enter(back, last_), {DType::kInt64, {}}));
    TW_ASSIGN(const ValueId iteration,
              one(back, ir::ops::sub(), {last, back.inputs[0]}, {}, "iteration"));
    TW_ASSIGN(const ValueId own, with_extents(back, iteration, iteration_type));
    std::vector<ValueId> given{own};
    for (int k = 0; k < shape_.carried; ++k) {
      if (stacks_[at(k)] == kNone) {  // nothing reads it
        given.push_back(back.add_value(body_->value(carried_in(k)).name, type_of(carried_in(k))));
        continue;
      }
      TW_ASSIGN(const ValueId v, element(back, enter(back, stacks_[at(k)]), iteration));
      TW_ASSIGN(const ValueId before, with_extents(back, v, type_of(carried_in(k))));
      given.push_back(before);
    }
    for (int m = 0; m < num_captured(); ++m)
      given.push_back(enter(back, node_.inputs[at(first_captured() + m)], type_of(captured_in(m))));
    return go_backwards(back, add_copy(back, *body_, given), iteration, later, sums);
  }
  // now: what values of the body are. later: derivatives by what it carries on; sums: of those by what
  // it captures.
  Status go_backwards(Graph& back, const std::vector<ValueId>& now, ValueId iteration,
                      const std::vector<ValueId>& later, const std::vector<ValueId>& sums) {
    const auto in_back = [&](ValueId of_body) { return now[static_cast<size_t>(of_body)]; };
    std::vector<ValueId> of;
    for (ValueId v : active_) of.push_back(in_back(v));
    Differentiation d(back, of);
    for (size_t n = 0; n < carried_.size(); ++n)
      TW_RETURN_IF_ERROR(d.seed(in_back(carried_out(carried_[n])), later[n]));
    for (int s = 0; s < shape_.scans; ++s) {
      const ValueId dy = dy_[at(shape_.carried + s)];
      if (dy == kNone) continue;
      TW_ASSIGN(const ValueId g, element(back, enter(back, dy), iteration));
      TW_ASSIGN(const ValueId own, with_extents(back, g, type_of(scan_out(s))));
      TW_RETURN_IF_ERROR(d.seed(in_back(scan_out(s)), own));
    }
    TW_RETURN_IF_ERROR(d.run());
    const auto put = [&](ValueId v, const ir::Value& like) -> Status {
      TW_ASSIGN(const ValueId r, with_extents(back, v, like.type));
      back.outputs.push_back(r);
      back.output_names.push_back(like.name);
      return {};
    };
    for (size_t n = 0; n < carried_.size(); ++n) {
      TW_ASSIGN(const ValueId g, d.gradient(in_back(carried_in(carried_[n]))));
      TW_RETURN_IF_ERROR(put(g, ir::Value(back.value(later[n]))));
    }
    for (size_t n = 0; n < captured_.size(); ++n) {
      TW_ASSIGN(const ValueId g, d.gradient(in_back(captured_in(captured_[n]))));
      TW_ASSIGN(const ValueId sum, one(back, ir::ops::add(), {sums[n], g}, {}, "sum"));
      TW_RETURN_IF_ERROR(put(sum, ir::Value(back.value(sums[n]))));
    }
    for (const Lookup& l : lookups_) {
      const ValueId v = gather_of(l).outputs[0];
      TW_ASSIGN(const ValueId g, d.gradient(in_back(v)));
      TW_RETURN_IF_ERROR(put(g, body_->value(v)));
      const ValueId place = gather_of(l).inputs[1];
      TW_RETURN_IF_ERROR(put(in_back(place), body_->value(place)));
    }
    return {};
  }

  Graph& graph_;
  const size_t index_;
  const ir::Node node_;
  const std::shared_ptr<const Graph> body_;
  const ir::LoopShape shape_;
  std::vector<ValueId> dy_;              // by result
  std::vector<ValueId> active_;          // inputs of the body, or elements looked up in them
  std::vector<Lookup> all_lookups_;      // of the latter
  std::vector<int> carried_, captured_;  // what derivatives are taken by
  std::vector<Lookup> lookups_;          // the same
  std::vector<ValueId> stacks_;          // by carried value; kNone: not kept
  ir::Expr iterations_;                  // how many there were
  ValueId last_ = kNone;                 // number of the last one
  std::vector<ValueId> operands_;        // of the second loop
};

}  // namespace

Result<std::vector<ValueId>> gradient_of_loop(Graph& graph, size_t node,
                                              const std::vector<ValueId>& of_outputs,
                                              const std::vector<bool>& wanted) {
  return LoopGradient(graph, node, of_outputs, wanted).run();
}

}  // namespace tilewright::passes
