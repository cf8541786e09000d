// Loop. A graph's loop carries values of one type each; where a body changes the shape of what it
// carries, the first iterations stand before the loop (peeling), or all do (unrolling).
#include <algorithm>
#include <set>

#include "frontends/onnx/control_flow.h"
#include "frontends/onnx/importers.h"
#include "ir/loops/compare.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"

namespace tilewright::onnx {
namespace {

using ir::Expr;
using ir::ValueId;

constexpr int64_t kMostUnrolled = 32;  // iterations
constexpr int kMostPeeled = 2;

// Before an iteration: what is left to do, and what it is given.
struct State {
  ValueId trips = kNone;      // most iterations from here on; kNone: any number
  ValueId condition = kNone;  // of the next one; kNone: true
  Values carried;
};

class Loop {
 public:
  explicit Loop(NodeImport& n) : n_(n), body_(body_of(n, "body")) {
    const int carried = n.num_inputs() - 2;
    if (carried < 0 || static_cast<int>(body_.inputs.size()) != carried + 2)
      n.fail("the body takes " + std::to_string(body_.inputs.size()) + " inputs, expected " +
             std::to_string(std::max(carried, 0) + 2));
    if (static_cast<int>(body_.outputs.size()) < carried + 1)
      n.fail("the body has " + std::to_string(body_.outputs.size()) + " outputs");
    carried_ = static_cast<size_t>(carried);
    start_.trips = n.in(0);
    start_.condition = n.in(1);
    conditional_ = start_.condition != kNone;
    if (conditional_ && known_bool(n.graph(), start_.condition) == true) start_.condition = kNone;
    for (int k = 0; k < carried; ++k) start_.carried.push_back(n.required(k + 2));
  }
  void run() {
    try {
      give_all(iterations(start_, 0, kMostPeeled));
    } catch (ImportFailure& f) {
      if (f.error.kind != ErrorKind::kUnsupported) throw;
      const auto trips = known_trips(start_);
      if (start_.condition == kNone && trips && *trips <= kMostUnrolled) return unroll(*trips);
      // Peeling did not help: importing the loop unpeeled gives an error about the model's own loop.
      if (peels_ && f.error.by_inputs != Cure::kNone) loop(start_, body_region(start_, 0));
      throw;
    }
  }

 private:
  bool is_read(size_t result) const { return n_.is_read(static_cast<int>(result)); }
  size_t scans() const { return body_.outputs.size() - 1 - carried_; }
  std::optional<int64_t> known_trips(const State& s) const {
    const auto trips = s.trips == kNone ? std::nullopt : n_.known_ints(s.trips);
    return trips && trips->size() == 1 ? std::optional(trips->at(0)) : std::nullopt;
  }
  // Whether an iteration is run in this state; nothing: the run decides.
  std::optional<bool> goes_on(const State& s) const {
    const auto trips = known_trips(s);
    const auto condition =
        s.condition == kNone ? std::optional(true) : known_bool(n_.graph(), s.condition);
    if ((trips && *trips <= 0) || condition == false) return false;
    if ((s.trips == kNone || trips) && condition) return true;
    return std::nullopt;
  }

  // Imports the iterations from this state on; `first` is the number of the first of them. Returns
  // carried values, then stacked scan outputs. An unread result is kNone; the list is empty if
  // a result depends on something unsupported. Up to `peelable` iterations are peeled where a carried
  // value changes its shape.
  Values iterations(const State& s, int64_t first, int peelable) {
    const Region region = body_region(s, first);
    if (!all_defined(region.graph->outputs)) return {};
    if (peelable == 0 || !changes_shape(s, *region.graph)) return loop(s, region);
    peels_ = true;
    const auto goes_on = this->goes_on(s);
    if (goes_on == true) return first_and_rest(s, first, peelable - 1);
    if (goes_on == false) return no_iterations(s, *region.graph);
    return guarded(s, first, peelable - 1);
  }

  Region body_region(const State& s, int64_t first) {
    std::vector<ir::Value> inputs(1 + carried_);
    inputs[0].name = body_.inputs[0].name;
    inputs[0].type = {DType::kInt64, {}};
    for (size_t k = 0; k < carried_; ++k) {
      inputs[k + 1].name = body_.inputs[k + 2].name;
      inputs[k + 1].type = n_.type(s.carried[k]);
    }
    return n_.owner().import_region(
        body_.name, inputs, [&](ImportScope& scope, const Values& given) {
          ValueId number = given[0];
          if (first > 0)
            number = n_.op("add", {number, n_.scalar(static_cast<double>(first), DType::kInt64)});
          scope.values = names(number, {given.begin() + 1, given.end()}, scope);
          return n_.owner().import_body(body_, scope);
        });
  }
  // Maps the names of the body's inputs to their values in one iteration.
  std::map<std::string, ValueId> names(ValueId number, const Values& carried, ImportScope& around) {
    std::map<std::string, ValueId> values;
    if (n_.owner().draws(body_)) values[kLoopPlace] = loop_place(n_, around, number);
    values[body_.inputs[0].name] = as_declared(n_, number, body_.inputs[0]);
    const ValueId runs = n_.constant(ir::make_constant(DType::kBool, {}, {1}));
    values[body_.inputs[1].name] = as_declared(n_, runs, body_.inputs[1]);
    for (size_t k = 0; k < carried_; ++k) values[body_.inputs[k + 2].name] = carried[k];
    return values;
  }
  // Whether an iteration gives a carried value a shape that those behind it may keep.
  bool changes_shape(const State& s, const ir::Graph& body) const {
    std::set<const ir::ExprNode*> inner;
    for (const ir::Node& node : body.nodes)
      for (const ir::Var& v : node.defined_symbols) inner.insert(v.get());
    bool changes = false;
    for (size_t k = 0; k < carried_; ++k) {
      const ir::TensorType &before = n_.type(s.carried[k]),
                           &after = body.value(body.outputs[k + 1]).type;
      if (before.dtype != after.dtype) return false;
      for (const Expr& d : after.dims)
        for (const ir::Var& v : ir::free_vars_in_order(d))
          if (inner.count(v.get())) return false;
      changes |= !std::equal(before.dims.begin(), before.dims.end(), after.dims.begin(),
                             after.dims.end(), ir::same_expr);
    }
    return changes;
  }
  Values loop(const State& s, const Region& region) {
    ir::Graph& body = *region.graph;
    const bool conditional = conditional_ && known_bool(body, body.outputs[0]) != true;
    if (!conditional) body.outputs.erase(body.outputs.begin());
    body.output_names.resize(body.outputs.size());
    if (s.trips == kNone && !conditional) n_.unsupported("a loop without end");
    Values operands{s.trips, s.condition};
    operands.insert(operands.end(), s.carried.begin(), s.carried.end());
    operands.insert(operands.end(), region.captured.begin(), region.captured.end());
    ir::Attributes attributes{{"carried", static_cast<int64_t>(carried_)},
                              {"has_condition", int64_t{conditional}}};
    return n_.control("loop", operands, attributes, static_cast<int>(body_.outputs.size()) - 1,
                      {region.graph});
  }

  // The body in place; what it gives.
  Values iteration(int64_t number, const Values& carried) {
    const ValueId i = n_.scalar(static_cast<double>(number), DType::kInt64);
    return n_.inline_graph(body_, names(i, carried, *n_.owner().scope()));
  }
  // An iteration that is surely run, and those behind it.
  Values first_and_rest(const State& s, int64_t first, int peelable) {
    const Values outputs = iteration(first, s.carried);
    if (!all_defined(outputs)) return {};
    State next;
    next.carried.assign(outputs.begin() + 1, outputs.begin() + 1 + static_cast<int>(carried_));
    if (s.trips != kNone) next.trips = n_.op("sub", {s.trips, n_.scalar(1, DType::kInt64)});
    if (conditional_ && known_bool(n_.graph(), outputs[0]) != true) next.condition = outputs[0];
    const bool is_last = goes_on(next) == false;
    Values results = is_last ? next.carried : iterations(next, first + 1, peelable);
    if (results.empty() && carried_ + scans() > 0) return {};
    for (size_t k = 0; k < scans(); ++k) {
      const ValueId row = as_row(outputs[1 + carried_ + k]);
      if (is_last)
        results.push_back(row);
      else if (results[carried_ + k] != kNone)
        results[carried_ + k] = in_front(k, row, results[carried_ + k]);
    }
    return results;
  }
  ValueId as_row(ValueId element) {
    std::vector<Expr> dims = n_.type(element).dims;
    dims.insert(dims.begin(), Expr(1));
    return n_.reshape(element, dims);
  }
  ValueId in_front(size_t scan, ValueId row, ValueId rows) {
    if (n_.rank(row) != n_.rank(rows))
      n_.fail("scan output " + std::to_string(scan) + " has rank " +
              std::to_string(n_.rank(row) - 1) + " in one iteration and rank " +
              std::to_string(n_.rank(rows) - 1) + " in others");
    return n_.op("concat", {row, as_rows(row, rows)}, {{"axis", int64_t{0}}});
  }
  // Reshapes the rows of later iterations to the extents of the first row, which alone determines the shape where no
  // later iteration runs. The run refuses rows whose element counts differ.
  ValueId as_rows(ValueId row, ValueId rows) {
    const auto& dims = n_.type(row).dims;
    const auto& others = n_.type(rows).dims;
    if (std::equal(dims.begin() + 1, dims.end(), others.begin() + 1, ir::same_expr)) return rows;
    std::vector<Expr> all{others[0]};
    all.insert(all.end(), dims.begin() + 1, dims.end());
    return n_.reshape(rows, all);
  }
  // `like`: the body, whose scan outputs have the type of the rows.
  Values no_iterations(const State& s, const ir::Graph& like) {
    Values results = s.carried;
    for (size_t k = 0; k < scans(); ++k)
      results.push_back(no_rows(like, like.value(like.outputs[1 + carried_ + k]).type));
    return results;
  }
  // Extents of a row that only an iteration knows are 0 where there is none.
  ValueId no_rows(const ir::Graph& inner, const ir::TensorType& row) {
    std::set<const ir::ExprNode*> unknown;
    for (const ir::Node& node : inner.nodes)
      for (const ir::Var& v : node.defined_symbols) unknown.insert(v.get());
    std::vector<Expr> dims{Expr(0)};
    for (const Expr& d : row.dims) {
      const auto vars = ir::free_vars_in_order(d);
      const bool known = std::none_of(
          vars.begin(), vars.end(), [&](const ir::Var& v) { return unknown.count(v.get()) != 0; });
      dims.push_back(known ? d : Expr(0));
    }
    return n_.reshape(n_.constant(ir::make_constant(row.dtype, {0}, {})), dims);
  }

  // The first iteration and those behind it, or none, as the run finds.
  Values guarded(const State& s, int64_t first, int peelable) {
    auto inside = [&](ImportScope& scope) {
      State copy;
      if (s.trips != kNone) copy.trips = scope.capture(s.trips);
      for (ValueId v : s.carried) copy.carried.push_back(scope.capture(v));
      return copy;
    };
    std::array<Region, 2> branches;
    branches[0] = n_.owner().import_region(body_.name, {}, [&](ImportScope& scope, const Values&) {
      return first_and_rest(inside(scope), first, peelable);
    });
    const ir::Graph& some = *branches[0].graph;
    if (some.outputs.empty()) return {};
    branches[1] = without(s, first, some, inside);
    ValueId condition = s.condition;
    if (s.trips != kNone) {
      const ValueId any = n_.op("greater", {s.trips, n_.scalar(0, DType::kInt64)});
      condition = condition == kNone ? any : n_.op("and", {any, condition});
    }
    return either(n_, condition, std::move(branches), [&](int k) { return n_.is_read(k); }, true);
  }
  // The branch without an iteration; `some`: the one with some. Where no type fits a result of both,
  // a run that takes this branch ends with an error.
  Region without(const State& s, int64_t first, const ir::Graph& some,
                 const std::function<State(ImportScope&)>& inside) {
    auto type = [&](size_t k) -> const ir::TensorType& { return some.value(some.outputs[k]).type; };
    for (size_t k = 0; k < carried_; ++k) {
      const ir::TensorType& initial = n_.type(s.carried[k]);
      if (!is_read(k) || fit_one_type(initial, type(k))) continue;
      return failing_branch(
          invalid("the loop ends after " + std::to_string(first) + " iterations, and its result " +
                      std::to_string(k) + " is " + to_string(initial) + " then, but " +
                      to_string(type(k)) + " after more: no one type fits it",
                  n_.where()),
          some);
    }
    return n_.owner().import_region(body_.name, {}, [&](ImportScope& scope, const Values&) {
      Values results = inside(scope).carried;
      for (size_t k = carried_; k < some.outputs.size(); ++k) {
        if (!is_read(k)) {
          results.push_back(kNone);
          continue;
        }
        ir::TensorType row = type(k);
        row.dims.erase(row.dims.begin());
        results.push_back(no_rows(some, row));
      }
      return results;
    });
  }

  // Iteration by iteration, where no one type fits what is carried from some iteration on.
  void unroll(int64_t trips) {
    Values state = start_.carried;
    std::vector<Values> rows(scans());
    for (int64_t i = 0; i < trips; ++i) {
      const Values outputs = iteration(i, state);
      if (!all_defined(outputs)) return;
      state.assign(outputs.begin() + 1, outputs.begin() + 1 + static_cast<int>(carried_));
      for (size_t k = 0; k < rows.size(); ++k) rows[k].push_back(as_row(outputs[k + 1 + carried_]));
      if (!conditional_) continue;
      auto more = known_bool(n_.graph(), outputs[0]);
      if (!more)
        n_.needs_value(
            "values of the loop change their shape, and its end is not known at compile time");
      if (!*more) break;
    }
    for (const Values& r : rows) {
      if (r.empty()) n_.unsupported("scan outputs of a loop that does not run");
      state.push_back(r.size() == 1 ? r[0] : n_.op("concat", r, {{"axis", int64_t{0}}}));
    }
    give_all(state);
  }
  void give_all(const Values& results) {
    if (!results.empty()) give(n_, results);
  }

  NodeImport& n_;
  const OnnxGraph& body_;
  size_t carried_ = 0;
  bool conditional_ = false;  // the body says whether to go on
  bool peels_ = false;        // iterations were put before the loop
  State start_;
};

}  // namespace

void import_loop(NodeImport& n) {
  if (carries_sequence(n)) return import_loop_of_sequences(n);
  Loop(n).run();
}

}  // namespace tilewright::onnx
