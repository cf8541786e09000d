// If and Scan, and what they share with Loop (importers_loop.cpp). What is decided when the model is
// compiled is imported in place; the rest becomes nodes with regions.
#include <algorithm>
#include <set>

#include "frontends/onnx/control_flow.h"
#include "frontends/onnx/importers.h"
#include "frontends/tensor_files/element_type.h"
#include "ir/graph/infer.h"
#include "ir/graph/op.h"
#include "ir/loops/rewrite.h"

namespace tilewright::onnx {

using ir::Expr;
using ir::ValueId;

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
void give(NodeImport& n, const Values& values) {
  if (n.num_outputs() > static_cast<int>(values.size()))
    n.fail("the body has " + std::to_string(values.size()) + " outputs for " +
           std::to_string(n.num_outputs()));
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] != kNone) n.out(static_cast<int>(i), values[i]);
}
ValueId as_declared(NodeImport& n, ValueId scalar, const OnnxValueInfo& declared) {
  const OnnxType& type = declared.type;
  if (type.kind != OnnxTypeKind::kTensor) return scalar;
  const DType is = n.dtype(scalar);
  const DType wanted = dtype_from_onnx(type.onnx_code).value_or(is);
  bool fits = is_float(wanted) == is_float(is) && (wanted == DType::kBool) == (is == DType::kBool);
  if (type.shape)
    for (const OnnxDimension& d : *type.shape) {
      const auto* extent = std::get_if<int64_t>(&d);
      fits &= !extent || *extent == 1;
    }
  if (!fits)
    n.fail("the body's input " + quote(declared.name) + " is declared as " +
           (type.shape ? "a tensor of rank " + std::to_string(type.shape->size()) + " of "
                       : std::string()) +
           onnx_element_name(type.onnx_code) + ", expected one " + std::string(name(is)));
  const ValueId v = n.cast(scalar, wanted);
  return type.shape && !type.shape->empty()
             ? n.reshape(v, std::vector<int64_t>(type.shape->size(), 1))
             : v;
}

// --- If
// -----------------------------------------------------------------------------------------------

bool fit_one_type(const ir::TensorType& a, const ir::TensorType& b) {
  auto is_one = [](const ir::TensorType& t) { return as_int(element_count(t)) == 1; };
  return a.dtype == b.dtype && (a.rank() == b.rank() || (is_one(a) && is_one(b)));
}

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
    if (v == kNone) {
      branch.graph->outputs.push_back(kNone);
      continue;
    }
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

namespace {

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

// Gives a result that has one element in both branches the same rank in both.
void unify_rank(NodeImport& n, std::array<Region, 2>& branches, size_t output, bool leads) {
  auto type = [&](size_t k) -> const ir::TensorType& {
    return branches[k].graph->value(branches[k].graph->outputs[output]).type;
  };
  if (type(0).rank() == type(1).rank() || !fit_one_type(type(0), type(1))) return;
  size_t other = 1;
  if (!leads) {
    const bool larger = n.owner().rank_of_either() == RankOfEither::kLarger;
    other = (type(0).rank() < type(1).rank()) == larger ? 0 : 1;
  }
  const std::vector<int64_t> ones(static_cast<size_t>(type(1 - other).rank()), 1);
  ir::Graph& graph = *branches[other].graph;
  n.owner().in_graph(graph,
                     [&] { graph.outputs[output] = n.reshape(graph.outputs[output], ones); });
}

}  // namespace

Values either(NodeImport& n, ValueId condition, std::array<Region, 2> branches,
              const std::function<bool(int)>& is_read, bool leads) {
  const size_t count = branches[0].graph->outputs.size();
  Values results(count, kNone);
  std::vector<size_t> kept;
  for (size_t k = 0; k < count; ++k)
    if (is_read(static_cast<int>(k))) kept.push_back(k);
  if (branches[1].graph->outputs.size() != count)
    n.fail("the branches have " + std::to_string(count) + " and " +
           std::to_string(branches[1].graph->outputs.size()) + " outputs");
  if (kept.empty()) return results;
  for (Region& b : branches) {
    Values outputs;
    for (size_t k : kept) outputs.push_back(b.graph->outputs[k]);
    b.graph->outputs = outputs;
    b.graph->output_names.resize(outputs.size());
  }
  for (size_t k = 0; k < kept.size(); ++k) unify_rank(n, branches, k, leads);
  Values inputs = share_captures(branches);
  for (Region& b : branches) take_all(b, inputs, n.graph());
  inputs.insert(inputs.begin(), condition);
  const Values made = n.control("if", inputs, {}, static_cast<int>(kept.size()),
                                {branches[0].graph, branches[1].graph});
  for (size_t k = 0; k < kept.size(); ++k) results[kept[k]] = made[k];
  return results;
}

namespace {

// What is unsupported in any branch is named.
void branch_at_run_time(NodeImport& n, ValueId condition) {
  std::array<Region, 2> branches;
  std::array<std::optional<Error>, 2> failures;
  std::optional<ImportFailure> unsupported;
  for (size_t k = 0; k < 2; ++k) {
    const OnnxGraph& g = body_of(n, k == 0 ? "then_branch" : "else_branch");
    try {
      branches[k] = n.owner().import_region(g.name, {}, [&](ImportScope& scope, const Values&) {
        return n.owner().import_body(g, scope);
      });
    } catch (ImportFailure& f) {
      if (f.error.kind == ErrorKind::kInvalid) {
        failures[k] = std::move(f.error);
      } else if (!unsupported) {
        unsupported = std::move(f);
      } else {
        unsupported->others.push_back(std::move(f.error));
        for (Error& e : f.others) unsupported->others.push_back(std::move(e));
      }
    }
  }
  if (unsupported) throw std::move(*unsupported);
  if (failures[0] && failures[1]) throw ImportFailure{std::move(*failures[1])};
  for (size_t k = 0; k < 2; ++k)
    if (!failures[k] && !all_defined(branches[k].graph->outputs)) return;
  for (size_t k = 0; k < 2; ++k)
    if (failures[k]) branches[k] = failing_branch(*failures[k], *branches[1 - k].graph);
  give(n, either(n, condition, std::move(branches), [&](int k) { return n.is_read(k); }));
}
// A branch that is not taken when the model is compiled is held to what it declares.
void check_branches(NodeImport& n) {
  const auto &a = body_of(n, "then_branch").outputs, &b = body_of(n, "else_branch").outputs;
  if (a.size() != b.size())
    n.fail("the branches have " + std::to_string(a.size()) + " and " + std::to_string(b.size()) +
           " outputs");
  for (size_t k = 0; k < a.size(); ++k) {
    const int x = a[k].type.onnx_code, y = b[k].type.onnx_code;
    if (x && y && x != y)
      n.fail("the branches give " + onnx_element_name(x) + " and " + onnx_element_name(y) +
             " for output " + std::to_string(k));
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
    const auto weaken = [](Error& e) {
      if (e.by_inputs != Cure::kAll) e.by_inputs = Cure::kSome;
    };
    weaken(f.error);
    for (Error& e : f.others) weaken(e);
    throw;
  }
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
  // Returns element k of a list attribute with one element per sequence, or 0 if the node omits the attribute.
  int64_t of_sequence(const char* attribute, int k, int count) const {
    const auto list = n_.ints_attr(attribute);
    if (list.empty()) return 0;
    if (list.size() != static_cast<size_t>(count))
      n_.fail(std::string(attribute) + " has " + std::to_string(list.size()) + " elements for " +
              std::to_string(count) + " sequences");
    return list[static_cast<size_t>(k)];
  }
  // The dimension that sequence k is cut along, and the one that rows of result k are joined along.
  int input_axis(int k, int rank) const {
    return normalized_axis(n_, of_sequence("scan_input_axes", k, count_), rank, "scan_input_axes");
  }
  int output_axis(int k, int rank) const {
    return normalized_axis(n_, of_sequence("scan_output_axes", k, results_), rank,
                           "scan_output_axes");
  }
  Values scan(const Values& states, const Values& sequences) {
    std::vector<int> axes;
    for (int k = 0; k < count_; ++k)
      axes.push_back(input_axis(k, n_.rank(sequences[static_cast<size_t>(k)])));
    ValueId steps = extent(sequences[0], axes[0]),
            last = n_.op("sub", {steps, n_.scalar(1, DType::kInt64)});
    std::vector<ir::Value> inputs(1 + states.size());
    inputs[0].name = "step";
    inputs[0].type = {DType::kInt64, {}};
    for (size_t k = 0; k < states.size(); ++k) inputs[k + 1].type = n_.type(states[k]);
    Region region =
        n_.owner().import_region(body_.name, inputs, [&](ImportScope& scope, const Values& given) {
          for (size_t k = 1; k < given.size(); ++k)
            scope.values[body_.inputs[k - 1].name] = given[k];
          if (n_.owner().draws(body_)) scope.values[kLoopPlace] = loop_place(n_, scope, given[0]);
          for (int k = 0; k < count_; ++k) {
            ValueId at = of_sequence(batched_ ? "directions" : "scan_input_directions", k, count_)
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
    if (!batched_ && of_sequence("scan_output_directions", k, results_))
      v = n_.slice(v, 0, -1, kEnd, -1);
    const int rank = n_.rank(v), to = batched_ ? 0 : output_axis(k, rank);
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

constexpr auto kControlFlowRows = std::to_array<OpMapping>(
    {{"", "If", 1, if_else}, {"", "Loop", 1, import_loop}, {"", "Scan", 8, scan}});

}  // namespace

std::span<const OpMapping> control_flow_mappings() { return kControlFlowRows; }

}  // namespace tilewright::onnx
