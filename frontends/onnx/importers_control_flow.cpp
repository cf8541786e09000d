// If, Loop and Scan. What is decided when the model is compiled is imported in place; the rest
// becomes nodes with regions.
#include <algorithm>
#include <array>
#include <set>

#include "frontends/onnx/graph_import.h"
#include "frontends/onnx/importers.h"
#include "ir/graph/infer.h"
#include "ir/graph/op.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"

namespace tilewright::onnx {
namespace {

using ir::Expr;
using ir::ValueId;
using Region = GraphImport::Region;
using Values = std::vector<ValueId>;

constexpr int64_t kMostUnrolled = 32;  // iterations of a loop whose values change their shape

const OnnxGraph& body_of(NodeImport& n, const char* attribute) {
  const OnnxGraph* g = n.graph_attr(attribute);
  if (!g) n.fail(std::string("attribute '") + attribute + "' is missing");
  return *g;
}
bool all_defined(const Values& values) {
  return std::find(values.begin(), values.end(), kNone) == values.end();
}
std::optional<bool> known_bool(const ir::Graph& graph, ValueId v) {
  ir::Node probe;
  probe.inputs = {v};
  auto known = ir::NodeView(graph, probe).known_ints(0);
  if (!known || known->size() != 1) return std::nullopt;
  return (*known)[0] != 0;
}
// Outputs of the node; those that hang on something unsupported (reported already) stay undefined.
void give(NodeImport& n, const Values& values) {
  if (n.num_outputs() > static_cast<int>(values.size()))
    n.fail("the body has " + std::to_string(values.size()) + " outputs for " +
           std::to_string(n.num_outputs()));
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] != kNone) n.out(static_cast<int>(i), values[i]);
}

// --- If
// -----------------------------------------------------------------------------------------------

// Both branches take all that either of them captures.
Values share_captures(std::array<Region, 2>& branches) {
  Values all = branches[0].captured;
  for (ValueId v : branches[1].captured)
    if (std::find(all.begin(), all.end(), v) == all.end()) all.push_back(v);
  return all;
}
void take_all(Region& branch, const Values& all, const ir::Graph& outer) {
  Values inputs;
  for (ValueId v : all) {
    auto at = std::find(branch.captured.begin(), branch.captured.end(), v);
    inputs.push_back(at == branch.captured.end()
                         ? branch.graph->add_value(outer.value(v).name, outer.value(v).type)
                         : branch.graph->inputs[static_cast<size_t>(at - branch.captured.begin())]);
  }
  branch.graph->inputs = inputs;
}
// Stands for a branch that breaks a rule for the operands it would get: it may never be taken, so
// only a run that takes it fails. Its results are of the types that the other branch gives.
Region failing_branch(const Error& error, const ir::Graph& other) {
  std::set<const ir::ExprNode*> inner;
  for (const ir::Node& node : other.nodes)
    for (const ir::Var& s : node.defined_symbols) inner.insert(s.get());
  auto outside = [&](const Expr& extent) {
    for (const ir::Var& s : ir::free_vars_in_order(extent))
      if (inner.count(s.get())) return Expr(0);
    return extent;
  };
  Region branch{std::make_shared<ir::Graph>(), {}};
  for (ValueId v : other.outputs) {
    const ir::Value& like = other.value(v);
    ir::Extents shape;
    for (const Expr& d : like.type.dims) shape.dims.push_back(outside(d));
    auto made = ir::add_node(*branch.graph, "fail", {},
                             {{"message", error.to_string()},
                              {"dtype", std::string(name(like.type.dtype))},
                              {"shape", shape}},
                             1, like.name, {});
    if (!made.ok()) throw ImportFailure{std::move(made.error())};
    branch.graph->outputs.push_back(made->at(0));
  }
  branch.graph->output_names.resize(branch.graph->outputs.size());
  return branch;
}
void branch_at_run_time(NodeImport& n, ValueId condition) {
  std::array<Region, 2> branches;
  std::array<std::optional<Error>, 2> failures;
  for (size_t k = 0; k < 2; ++k) {
    const OnnxGraph& g = body_of(n, k == 0 ? "then_branch" : "else_branch");
    try {
      branches[k] = n.owner().import_region(g.name, {}, [&](ImportScope& scope, const Values&) {
        return n.owner().import_body(g, scope);
      });
    } catch (ImportFailure& f) {
      if (f.error.kind != ErrorKind::kInvalid || failures[0]) throw;
      failures[k] = f.error;
      continue;
    }
    if (!all_defined(branches[k].graph->outputs)) return;
  }
  for (size_t k = 0; k < 2; ++k)
    if (failures[k]) branches[k] = failing_branch(*failures[k], *branches[1 - k].graph);
  Values inputs = share_captures(branches);
  for (Region& b : branches) take_all(b, inputs, n.graph());
  inputs.insert(inputs.begin(), condition);
  const auto outputs = static_cast<int>(branches[0].graph->outputs.size());
  give(n, n.control("if", inputs, {}, outputs, {branches[0].graph, branches[1].graph}));
}
// A branch that is not taken when the model is compiled is held to what it declares.
void check_branches(NodeImport& n) {
  const auto &a = body_of(n, "then_branch").outputs, &b = body_of(n, "else_branch").outputs;
  if (a.size() != b.size())
    n.fail("the branches have " + std::to_string(a.size()) + " and " + std::to_string(b.size()) +
           " outputs");
  auto type_name = [](int code) {
    auto t = dtype_from_onnx(code);
    return t ? std::string(name(*t)) : "element type " + std::to_string(code);
  };
  for (size_t k = 0; k < a.size(); ++k) {
    const int x = a[k].type.onnx_code, y = b[k].type.onnx_code;
    if (x && y && x != y)
      n.fail("the branches give " + type_name(x) + " and " + type_name(y) + " for output " +
             std::to_string(k));
  }
}
// A known condition takes one branch into the graph around; the other is held to what it declares.
void if_else(NodeImport& n) {
  ValueId condition = n.required(0);
  check_branches(n);
  if (auto taken = known_bool(n.graph(), condition))
    return give(n, n.inline_graph(body_of(n, *taken ? "then_branch" : "else_branch")));
  try {
    branch_at_run_time(n, condition);
  } catch (ImportFailure& f) {
    f.error.notes.push_back(
        "the condition of If is not known at compile time, so both branches are needed");
    f.error.by_inputs = f.error.by_inputs == Cure::kAll ? Cure::kAll : Cure::kSome;
    throw;
  }
}

// --- Loop
// -----------------------------------------------------------------------------------------------

ir::Value like(const ir::TensorType& type, const std::string& name) {
  ir::Value v;
  v.name = name;
  v.type = type;
  return v;
}
ir::ConstantRef true_constant() { return ir::make_constant(DType::kBool, {}, {1}); }

class Loop {
 public:
  explicit Loop(NodeImport& n) : n_(n), body_(body_of(n, "body")) {
    carried_ = n.num_inputs() - 2;
    if (carried_ < 0 || static_cast<int>(body_.inputs.size()) != carried_ + 2)
      n.fail("the body takes " + std::to_string(body_.inputs.size()) + " inputs, expected " +
             std::to_string(std::max(carried_, 0) + 2));
    if (static_cast<int>(body_.outputs.size()) < carried_ + 1)
      n.fail("the body has " + std::to_string(body_.outputs.size()) + " outputs");
    trips_ = n.in(0);
    condition_ = n.in(1);
    conditional_ = condition_ != kNone;
    if (conditional_ && known_bool(n.graph(), condition_) == true) condition_ = kNone;
    for (int k = 0; k < carried_; ++k) initial_.push_back(n.required(k + 2));
  }
  void run() {
    try {
      loop();
    } catch (ImportFailure& f) {
      auto trips = trips_ == kNone ? std::nullopt : n_.known_ints(trips_);
      if (f.error.kind != ErrorKind::kUnsupported || condition_ != kNone || !trips ||
          trips->at(0) > kMostUnrolled)
        throw;
      unroll(trips->at(0));
    }
  }

 private:
  void loop() {
    std::vector<ir::Value> inputs{like({DType::kInt64, {}}, body_.inputs[0].name)};
    for (int k = 0; k < carried_; ++k)
      inputs.push_back(like(n_.type(initial_[static_cast<size_t>(k)]),
                            body_.inputs[static_cast<size_t>(k) + 2].name));
    Region region =
        n_.owner().import_region(body_.name, inputs, [&](ImportScope& scope, const Values& given) {
          scope.values[body_.inputs[0].name] = given[0];
          if (n_.owner().draws(body_)) scope.values[kLoopPlace] = loop_place(n_, scope, given[0]);
          scope.values[body_.inputs[1].name] =
              n_.graph().add_constant("", true_constant());  // an iteration runs only if it holds
          for (size_t k = 1; k < given.size(); ++k)
            scope.values[body_.inputs[k + 1].name] = given[k];
          return n_.owner().import_body(body_, scope);
        });
    ir::Graph& body = *region.graph;
    if (!all_defined(body.outputs)) return;
    if (!conditional_ || known_bool(body, body.outputs[0]) == true) {
      conditional_ = false;
      body.outputs.erase(body.outputs.begin());
    }
    body.output_names.resize(body.outputs.size());
    if (trips_ == kNone && !conditional_) n_.unsupported("a loop without end");
    Values operands{trips_, condition_};
    operands.insert(operands.end(), initial_.begin(), initial_.end());
    operands.insert(operands.end(), region.captured.begin(), region.captured.end());
    ir::Attributes attributes{{"carried", int64_t{carried_}},
                              {"has_condition", int64_t{conditional_}}};
    give(n_, n_.control("loop", operands, attributes,
                        static_cast<int>(body.outputs.size()) - (conditional_ ? 1 : 0),
                        {region.graph}));
  }

  // Iteration by iteration, where a body changes the shape of what it carries: no one type fits it.
  void unroll(int64_t trips) {
    Values state = initial_;
    std::vector<Values> scans(body_.outputs.size() - 1 - static_cast<size_t>(carried_));
    for (int64_t i = 0; i < trips; ++i) {
      std::map<std::string, ValueId> inputs{
          {body_.inputs[0].name, n_.scalar(static_cast<double>(i), DType::kInt64)},
          {body_.inputs[1].name, n_.constant(true_constant())}};
      for (size_t k = 0; k < state.size(); ++k) inputs[body_.inputs[k + 2].name] = state[k];
      if (n_.owner().draws(body_))
        inputs[kLoopPlace] = loop_place(n_, *n_.owner().scope(), inputs[body_.inputs[0].name]);
      Values outputs = n_.inline_graph(body_, inputs);
      if (!all_defined(outputs)) return;
      state.assign(outputs.begin() + 1, outputs.begin() + 1 + carried_);
      for (size_t k = 0; k < scans.size(); ++k)
        scans[k].push_back(outputs[k + 1 + static_cast<size_t>(carried_)]);
      if (!conditional_) continue;
      auto more = known_bool(n_.graph(), outputs[0]);
      if (!more)
        n_.needs_value(
            "values of the loop change their shape, and its end is not known at compile time");
      if (!*more) break;
    }
    for (const Values& elements : scans) state.push_back(stacked(elements));
    give(n_, state);
  }
  ValueId stacked(const Values& elements) {
    if (elements.empty()) n_.unsupported("scan outputs of a loop that does not run");
    Values rows;
    for (ValueId v : elements) {
      std::vector<Expr> dims = n_.type(v).dims;
      dims.insert(dims.begin(), Expr(1));
      rows.push_back(n_.reshape(v, dims));
    }
    return rows.size() == 1 ? rows[0] : n_.op("concat", rows, {{"axis", int64_t{0}}});
  }

  NodeImport& n_;
  const OnnxGraph& body_;
  int carried_ = 0;
  ValueId trips_ = kNone, condition_ = kNone;
  bool conditional_ = false;
  Values initial_;
};
void loop(NodeImport& n) {
  if (carries_sequence(n)) return import_loop_of_sequences(n);
  Loop(n).run();
}

// --- Scan
// -----------------------------------------------------------------------------------------------

// A loop over the extent of the sequences: the body gathers element i of each.
class Scan {
 public:
  explicit Scan(NodeImport& n) : n_(n), body_(body_of(n, "body")) {
    batched_ = n.opset() < 9;
    count_ = static_cast<int>(n.int_attr("num_scan_inputs", 0));
    first_ = batched_ ? 1 : 0;  // after sequence_lens
    states_ = n.num_inputs() - first_ - count_;
    if (count_ < 1 || states_ < 0)
      n.fail("num_scan_inputs " + std::to_string(count_) + " of " + std::to_string(n.num_inputs()) +
             " inputs");
    if (static_cast<int>(body_.inputs.size()) != states_ + count_ ||
        static_cast<int>(body_.outputs.size()) < states_)
      n.fail("the body takes " + std::to_string(body_.inputs.size()) + " inputs and has " +
             std::to_string(body_.outputs.size()) + " outputs");
    results_ = static_cast<int>(body_.outputs.size()) - states_;
  }
  void run() {
    Values states, sequences;
    for (int k = 0; k < states_; ++k) states.push_back(n_.required(first_ + k));
    for (int k = 0; k < count_; ++k) sequences.push_back(n_.required(first_ + states_ + k));
    give(n_, batched_ ? each_of_batch(states, sequences) : scan(states, sequences));
  }

 private:
  // Opset 8: the first dimension of all operands is a batch, whose members are independent.
  Values each_of_batch(const Values& states, const Values& sequences) {
    if (n_.has(0)) n_.unsupported("sequence_lens of Scan");
    auto batch = ir::as_int(n_.dim(sequences[0], 0));
    if (!batch) n_.needs_value("the batch of Scan is not known at compile time");
    std::vector<Values> rows(body_.outputs.size());
    for (int64_t b = 0; b < *batch; ++b) {
      auto member = [&](ValueId v) {
        return n_.op("gather", {v, n_.scalar(static_cast<double>(b), DType::kInt64)},
                     {{"axis", int64_t{0}}});
      };
      Values s, x;
      for (ValueId v : states) s.push_back(member(v));
      for (ValueId v : sequences) x.push_back(member(v));
      Values y = scan(s, x);
      for (size_t k = 0; k < y.size(); ++k) {
        std::vector<Expr> dims = n_.type(y[k]).dims;
        dims.insert(dims.begin(), Expr(1));
        rows[k].push_back(n_.reshape(y[k], dims));
      }
    }
    Values joined;
    for (const Values& r : rows) {
      if (r.empty()) n_.unsupported("Scan over an empty batch");
      joined.push_back(r.size() == 1 ? r[0] : n_.op("concat", r, {{"axis", int64_t{0}}}));
    }
    return joined;
  }
  int axis(const char* attribute, int k, int rank) const {
    auto axes = n_.ints_attr(attribute);
    const int64_t a = k < static_cast<int>(axes.size()) ? axes[static_cast<size_t>(k)] : 0;
    return normalized_axis(n_, a, rank, attribute);
  }
  bool backwards(const char* attribute, int k) const {
    auto directions = n_.ints_attr(attribute);
    return k < static_cast<int>(directions.size()) && directions[static_cast<size_t>(k)] == 1;
  }
  Values scan(const Values& states, const Values& sequences) {
    std::vector<int> axes;
    for (int k = 0; k < count_; ++k)
      axes.push_back(axis("scan_input_axes", k, n_.rank(sequences[static_cast<size_t>(k)])));
    ValueId steps = extent(sequences[0], axes[0]),
            last = n_.op("sub", {steps, n_.scalar(1, DType::kInt64)});
    std::vector<ir::Value> inputs{like({DType::kInt64, {}}, "step")};
    for (ValueId v : states) inputs.push_back(like(n_.type(v), ""));
    Region region =
        n_.owner().import_region(body_.name, inputs, [&](ImportScope& scope, const Values& given) {
          for (size_t k = 1; k < given.size(); ++k)
            scope.values[body_.inputs[k - 1].name] = given[k];
          if (n_.owner().draws(body_)) scope.values[kLoopPlace] = loop_place(n_, scope, given[0]);
          for (int k = 0; k < count_; ++k) {
            ValueId at = backwards(batched_ ? "directions" : "scan_input_directions", k)
                             ? n_.op("sub", {scope.capture(last), given[0]})
                             : given[0];
            scope.values[body_.inputs[static_cast<size_t>(states_ + k)].name] =
                n_.op("gather", {scope.capture(sequences[static_cast<size_t>(k)]), at},
                      {{"axis", int64_t{axes[static_cast<size_t>(k)]}}, {"clamps", int64_t{1}}});
          }
          return n_.owner().import_body(body_, scope);
        });
    if (!all_defined(region.graph->outputs)) return Values(body_.outputs.size(), kNone);
    Values operands{steps, kNone};
    operands.insert(operands.end(), states.begin(), states.end());
    operands.insert(operands.end(), region.captured.begin(), region.captured.end());
    Values y = n_.control("loop", operands, {{"carried", int64_t{states_}}}, states_ + results_,
                          {region.graph});
    for (int k = 0; k < results_; ++k)
      y[static_cast<size_t>(states_ + k)] = arranged(y[static_cast<size_t>(states_ + k)], k);
    return y;
  }
  ValueId extent(ValueId v, int axis) {
    if (auto e = ir::as_int(n_.dim(v, axis)))
      return n_.scalar(static_cast<double>(*e), DType::kInt64);
    return n_.op("gather", {n_.op("shape", {v}), n_.scalar(axis, DType::kInt64)},
                 {{"axis", int64_t{0}}});
  }
  // The stacked elements of scan output k, in the order and along the axis that the node wants.
  ValueId arranged(ValueId v, int k) {
    constexpr int64_t kEnd = INT64_MIN + 1;
    if (!batched_ && backwards("scan_output_directions", k)) v = n_.slice(v, 0, -1, kEnd, -1);
    const int rank = n_.rank(v), to = batched_ ? 0 : axis("scan_output_axes", k, rank);
    if (to == 0) return v;
    std::vector<int64_t> perm;
    for (int64_t d = 1; d < rank; ++d) perm.push_back(d);
    perm.insert(perm.begin() + to, 0);
    return n_.transpose(v, perm);
  }

  NodeImport& n_;
  const OnnxGraph& body_;
  bool batched_ = false;
  int count_ = 0, first_ = 0, states_ = 0, results_ = 0;
};
void scan(NodeImport& n) { Scan(n).run(); }

constexpr auto kRows = std::to_array<OpMapping>(
    {{"", "If", 1, if_else}, {"", "Loop", 1, loop}, {"", "Scan", 8, scan}});

}  // namespace

std::span<const OpMapping> control_flow_mappings() { return kRows; }

}  // namespace tilewright::onnx
