#include "tests/differential/programs/control_flow_drawing.h"

#include <algorithm>
#include <numeric>

namespace tilewright {

namespace {
bool is_float64(const Drawn& v) { return v.dtype == DType::kFloat64; }
}  // namespace

// Draws the inputs, of which some have a dimension of the extent `steps` for Scan; draws statements until the graph has
// at least four computed values; then chooses the outputs, which may include inputs.
ControlFlowModel ControlFlowDrawing::run() {
  Scope main{model_.mutable_graph(), {}};
  const int64_t rows = 1 + below(3), columns = 1 + below(4), steps = below(kMostPasses + 1);
  for (int k = 0; k < 2; ++k) main.live.push_back(add_input(DType::kInt64, {}));
  for (int k = 0; k < 2; ++k) main.live.push_back(add_input(DType::kBool, {}));
  const std::vector<Shape> shapes{{},
                                  {columns},
                                  {columns},
                                  {rows, columns},
                                  {rows, columns},
                                  {rows, steps, columns},
                                  {steps, columns},
                                  {columns, rows, steps}};
  for (const Shape& shape : shapes)
    if (shape.size() == 2 || chance(0.7)) main.live.push_back(add_input(DType::kFloat64, shape));
  std::shuffle(main.live.begin(), main.live.end(), random_);
  const size_t given = main.live.size();
  if (steady_) loop(main, 0);
  while (main.live.size() < given + 4) statements(main, 0, 3);
  for (const Drawn& v : main.live)
    if (main.graph->output_size() < 8 && chance(v.name[0] == 'x' ? 0.03 : steady_ ? 1 : 0.5))
      give(main, v);
  if (main.graph->output_size() == 0 || chance(0.5)) {
    const Drawn last = main.live.back();
    const auto& outputs = main.graph->output();
    if (std::none_of(outputs.begin(), outputs.end(),
                     [&](const auto& o) { return o.name() == last.name; }))
      give(main, last);
  }
  return {model_, inputs_};
}

// Draws operators and control flow; at the greatest depth operators alone.
void ControlFlowDrawing::statements(Scope& s, int depth, int64_t count) {
  for (int64_t k = 0; k < count; ++k) {
    if (depth == kDeepest || nodes_ > kMostNodes || chance(0.55)) {
      operation(s);
      continue;
    }
    switch (below(5)) {
      case 0: branch(s, depth); break;
      case 1:
      case 2: scan(s, depth); break;
      default: loop(s, depth); break;
    }
  }
}

// In steady models, one that does not change from pass to pass.
Drawn ControlFlowDrawing::condition(Scope& s) {
  return steady_ ? inputs_[static_cast<size_t>(2 + below(2))] : scalar_of(s, DType::kBool);
}
// `known`: written where the model itself says how many.
Drawn ControlFlowDrawing::passes(Scope& s, int depth, std::optional<int64_t>& known) {
  if (steady_) return inputs_[depth == 0 ? 0 : 1];
  if (chance(0.4)) return inputs_[static_cast<size_t>(below(2))];
  if (chance(0.5)) {
    known = below(kMostPasses + 1);
    return scalar(s, DType::kInt64, static_cast<double>(*known));
  }
  return emit(s, "BitwiseAnd", {scalar_of(s, DType::kInt64), scalar(s, DType::kInt64, 3)});
}

// A result that nobody reads may have no name.
void ControlFlowDrawing::result_or_none(Scope& s, onnx_format::NodeProto* node, const Drawn& like) {
  if (chance(0.08))
    node->add_output("");
  else
    result(s, node, like.dtype, like.shape);
}

// Draws an If whose branches give values of one type, or of types that differ in their first extent.
void ControlFlowDrawing::branch(Scope& s, int depth) {
  ++nodes_;
  auto* n = node(s, "If", {condition(s)});
  Scope taken = subgraph(s, n, "then_branch");
  statements(taken, depth + 1, below(4));
  Scope other = subgraph(s, n, "else_branch");
  statements(other, depth + 1, below(4));
  std::vector<Drawn> results;
  for (int64_t k = 0, count = 1 + below(3); k < count; ++k) {
    const auto like =
        find(s, [&](const Drawn& v) { return v.is_closed() || (depth == 0 && chance(0.5)); });
    results.push_back(*like);
    const Drawn x = *find_like(taken, *like);
    Drawn y = *find_like(other, *like);
    if (is_float64(y) && y.is_closed() && !y.shape.empty() && y.shape[0] > 0 &&
        chance(0.25)) {  // of another extent
      auto* both = node(other, "Concat", {y, y});
      set(both, "axis", 0);
      Shape shape = y.shape;
      shape[0] *= 2;
      y = result(other, both, y.dtype, shape);
      results.back().shape[0] = --open_;
    }
    give(taken, x);
    give(other, y);
  }
  for (const Drawn& v : results) result(s, n, v.dtype, v.shape);
}

// Values to begin with; several of one type, so that the body can exchange them.
std::vector<Drawn> ControlFlowDrawing::states(Scope& s) {
  std::vector<Drawn> all;
  for (int64_t k = 0, count = below(4); k < count; ++k) {
    const auto v = k > 0 && chance(0.6) ? find_like(s, all.back())
                                        : find(s, [](const Drawn& x) { return x.is_closed(); });
    if (v) all.push_back(*v);
  }
  return all;
}
// What a pass leaves for the next one: often what it was given itself, at another place.
void ControlFlowDrawing::give_states(Scope& body, const std::vector<Drawn>& taken) {
  for (const Drawn& state : taken) {
    std::vector<Drawn> others;
    for (const Drawn& v : taken)
      if (v.same_type(state)) others.push_back(v);
    give(body, chance(0.35) ? pick(others) : *find_like(body, state));
  }
}
// Draws up to `most` values of a body whose rows the node stacks.
std::vector<Drawn> ControlFlowDrawing::give_rows(Scope& body, int64_t most) {
  std::vector<Drawn> rows;
  for (int64_t k = 0, count = below(most + 1); k < count; ++k) {
    const auto v = find(body, [](const Drawn& x) { return x.is_closed() && x.shape.size() <= 2; });
    if (v) rows.push_back(*v);
  }
  for (const Drawn& v : rows) give(body, v);
  return rows;
}

// The state and the sum of what a loop inside stacks.
Drawn ControlFlowDrawing::with_sum_of_rows(Scope& body, const Drawn& state) {
  const size_t first = body.live.size();
  loop(body, 1);
  for (size_t k = first; k < body.live.size(); ++k) {
    const Drawn x = body.live[k];
    if (!is_float64(x) || x.is_closed()) continue;
    std::vector<int64_t> axes(x.shape.size());
    std::iota(axes.begin(), axes.end(), 0);
    auto* n = node(body, "ReduceSum", {x, integers(body, axes)});
    set(n, "keepdims", 0);
    bounded(body, "Add", {state, result(body, n, x.dtype, {})}, {});
    return body.live.back();
  }
  return state;
}

// Draws a Loop with a number of iterations, a condition, both, or neither at first but one in the body.
void ControlFlowDrawing::loop(Scope& s, int depth) {
  ++nodes_;
  std::vector<Drawn> initial = states(s);
  const bool sums = steady_ && depth == 0;  // passes have memory that the run defines, and use it
  if (sums) initial.insert(initial.begin(), scalar_of(s, DType::kFloat64));
  std::optional<int64_t> known;
  const bool counted = steady_ || chance(0.85), conditional = !steady_ && (!counted || chance(0.4));
  std::vector<Drawn> operands{counted ? passes(s, depth, known) : Drawn{},
                              !counted || (conditional && chance(0.75)) ? condition(s) : Drawn{}};
  if (!operands[1].name.empty()) known.reset();
  operands.insert(operands.end(), initial.begin(), initial.end());
  auto* n = node(s, "Loop", operands);
  Scope body = subgraph(s, n, "body");
  const Drawn number = take(body, DType::kInt64, {}), going = take(body, DType::kBool, {});
  std::vector<Drawn> taken;
  for (const Drawn& v : initial) taken.push_back(take(body, v.dtype, v.shape));
  statements(body, depth + 1, 1 + below(4));
  Drawn more = going;
  if (conditional && (!counted || chance(0.8))) {
    known.reset();
    more = condition(body);
    if (!counted) {  // so that it ends
      const Drawn first =
          emit(body, "Less", {number, scalar(body, DType::kInt64, static_cast<double>(below(4)))},
               DType::kBool, {});
      more = emit(body, "And", {first, more});
    }
  }
  give(body, more);
  if (sums) {
    give(body, with_sum_of_rows(body, taken[0]));
    give_states(body, {taken.begin() + 1, taken.end()});
  } else {
    give_states(body, taken);
  }
  // The results of a steady model do not grow.
  const std::vector<Drawn> rows = give_rows(body, sums ? 0 : 2);
  if (initial.empty() && rows.empty()) give(body, number);
  for (const Drawn& v : taken) result_or_none(s, n, v);
  const int64_t extent = known ? *known : --open_;
  std::vector<Drawn> stacked = rows;
  if (initial.empty() && rows.empty()) stacked.push_back(number);
  for (Drawn& v : stacked) {
    v.shape.insert(v.shape.begin(), extent);
    result_or_none(s, n, v);
  }
}

// Draws a Scan over one to three sequences of equal lengths, along any axes and in any directions.
void ControlFlowDrawing::scan(Scope& s, int depth) {
  // Sequences: values of open extents are read along these, others along any axis.
  std::vector<std::pair<Drawn, size_t>> sequences;
  for (const Drawn& v : s.live)
    for (size_t d = 0; d < v.shape.size() && v.shape.size() <= 3; ++d)
      if (std::all_of(v.shape.begin(), v.shape.end(),
                      [&](const int64_t& e) { return e >= 0 || &e == &v.shape[d]; }))
        sequences.emplace_back(v, d);
  if (sequences.empty()) return operation(s);
  ++nodes_;
  const auto first = pick(sequences);
  const int64_t steps = first.first.shape[first.second];
  std::erase_if(sequences, [&](const auto& x) { return x.first.shape[x.second] != steps; });
  std::vector<std::pair<Drawn, size_t>> read{first};
  for (int64_t k = below(3); k > 0; --k) read.push_back(pick(sequences));

  std::vector<Drawn> operands = states(s);
  const size_t count = operands.size();
  std::vector<int64_t> axes, ways;
  for (const auto& [v, axis] : read) {
    operands.push_back(v);
    const auto rank = static_cast<int64_t>(v.shape.size());
    axes.push_back(static_cast<int64_t>(axis) - (chance(0.2) ? rank : 0));
    ways.push_back(below(2));
  }
  auto* n = node(s, "Scan", operands);
  set(n, "num_scan_inputs", static_cast<int64_t>(read.size()));
  const auto is_zero = [](int64_t a) { return a == 0; };
  const auto say = [&](const char* attribute, const std::vector<int64_t>& values) {
    if (!std::all_of(values.begin(), values.end(), is_zero) || chance(0.3))
      set(n, attribute, values);
  };
  say("scan_input_axes", axes);
  say("scan_input_directions", ways);

  Scope body = subgraph(s, n, "body");
  std::vector<Drawn> taken;
  for (size_t k = 0; k < count; ++k)
    taken.push_back(take(body, operands[k].dtype, operands[k].shape));
  for (const auto& [v, axis] : read) {
    Shape shape = v.shape;
    shape.erase(shape.begin() + static_cast<int64_t>(axis));
    take(body, v.dtype, shape);
  }
  statements(body, depth + 1, 1 + below(4));
  give_states(body, taken);
  std::vector<Drawn> rows = give_rows(body, 3);
  if (taken.empty() && rows.empty()) {
    rows.push_back(body.live[s.live.size()]);
    give(body, rows.back());
  }
  for (const Drawn& v : taken) result_or_none(s, n, v);
  axes.clear();
  ways.clear();
  for (Drawn& v : rows) {
    const auto rank = static_cast<int64_t>(v.shape.size());
    const int64_t axis = below(rank + 1);
    v.shape.insert(v.shape.begin() + axis, steps);
    result_or_none(s, n, v);
    axes.push_back(axis - (chance(0.2) ? rank + 1 : 0));
    ways.push_back(below(2));
  }
  if (!rows.empty()) {
    say("scan_output_axes", axes);
    say("scan_output_directions", ways);
  }
}

ControlFlowModel draw_control_flow(uint64_t seed, Steadiness steadiness) {
  return ControlFlowDrawing(seed, steadiness).run();
}

// Integer inputs serve as trip counts of loops, so they are drawn between 0 and kMostPasses.
Tensors draw_inputs(const ControlFlowModel& model, uint64_t number) {
  std::mt19937_64 random(number);
  Tensors all;
  for (const Drawn& v : model.inputs) {
    HostTensor t = random_tensor(v.dtype, v.shape, random);
    if (v.dtype == DType::kInt64)
      t.data<int64_t>()[0] = static_cast<int64_t>(random() % (kMostPasses + 1));
    if (v.dtype == DType::kBool) t.bytes[0] = random() % 2;
    all.push_back(std::move(t));
  }
  return all;
}

}  // namespace tilewright
