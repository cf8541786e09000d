#include "tests/differential/programs/state_draw.h"

#include <algorithm>
#include <numeric>

namespace tilewright {

namespace {

constexpr int64_t kLine =
    8;  // elements of f64 in 64 bytes, from where on parts are placed in others

// Matrices of whole lines, and vectors of which these are parts. Values stay within [-1, 1].
class StateDrawing : public ModelDraw {
 public:
  using ModelDraw::ModelDraw;

  StateModel run() {
    Scope main{model_.mutable_graph(), {}};
    for (int k = 0; k < 2; ++k) conditions_.push_back(add_input(DType::kBool, {}));
    for (int64_t k = 2 + below(3); k > 0; --k)
      main.live.push_back(
          add_input(DType::kFloat64,
                    chance(0.6) && !main.live.empty()
                        ? main.live.back().shape
                        : Shape{chance(0.25) ? kLine : 1 + below(5), kLine * (1 + below(3))}));
    if (chance(0.4)) main.live.push_back(add_input(DType::kFloat64, {kLine * (2 + below(6))}));
    const std::vector<Drawn> states = states_ = main.live;
    // What is read after a state has its next value is still the old one.
    std::vector<Drawn> after(states.size());
    for (size_t k = 0; k < states.size(); ++k) {
      if (chance(0.5)) after[k] = next(main, states[k]);
      statements(main, 0, below(5));
    }
    statements(main, 0, 3);
    std::vector<ir::Graph::Update> updates;
    for (size_t k = 0; k < states.size(); ++k) {
      if (chance(0.2)) continue;
      Drawn v = after[k].name.empty() ? next(main, states[k]) : after[k];
      if (is_output(main, v)) v = emit(main, "Neg", {v});  // an output is listed once
      give(main, v);
      const auto input = std::find_if(inputs_.begin(), inputs_.end(),
                                      [&](const Drawn& x) { return x.name == states[k].name; });
      updates.push_back(
          {static_cast<int32_t>(input - inputs_.begin()), main.graph->output_size() - 1});
    }
    for (const Drawn& v : main.live)
      if (chance(0.3) && !is_output(main, v)) give(main, v);
    if (main.graph->output_size() == static_cast<int>(updates.size()))
      give(main, emit(main, "Neg", {states[0]}));
    return {model_, inputs_, updates};
  }

 private:
  // Whether a value is an output already: each is at most once.
  static bool is_output(const Scope& s, const Drawn& v) {
    const auto& outputs = s.graph->output();
    return std::any_of(outputs.begin(), outputs.end(),
                       [&](const auto& o) { return o.name() == v.name; });
  }
  Drawn some(const Scope& s, size_t rank) {
    std::vector<Drawn> all;
    for (const Drawn& v : s.live)
      if (v.shape.size() == rank) all.push_back(v);
    return pick(all);
  }
  Drawn some_like(const Scope& s, const Drawn& like) {
    std::vector<Drawn> all;
    for (const Drawn& v : s.live)
      if (v.same_type(like)) all.push_back(v);
    return pick(all);
  }

  Drawn some_state(const Drawn& like) {
    std::vector<Drawn> all;
    for (const Drawn& v : states_)
      if (v.same_type(like)) all.push_back(v);
    return pick(all);
  }

  // Draws views, joins and kernels; control flow only outside of control flow.
  void statements(Scope& s, int depth, int64_t count) {
    for (int64_t k = 0; k < count; ++k) switch (below(depth == 0 ? 12 : 10)) {
        case 0:
        case 1: pointwise(s); break;
        case 2: product(s); break;
        case 3: turn(s); break;
        case 4:
        case 5: part(s, some(s, 2)); break;
        case 6:
        case 7: join(s); break;
        case 8: reshape(s, some(s, 2)); break;
        case 9: view_of_product(s); break;
        case 10: branch(s, depth); break;
        default: loop(s, depth); break;
      }
  }
  void pointwise(Scope& s) {
    const Drawn x = pick(s.live), y = some_like(s, x);
    if (chance(0.4))
      emit(s, pick<std::string>({"Neg", "Sin", "Tanh"}), {x});
    else
      bounded(s, pick<std::string>({"Add", "Sub", "Mul"}), {x, y}, x.shape);
  }
  Drawn bounded(Scope& s, const std::string& op, const std::vector<Drawn>& operands,
                const Shape& shape) {
    const Drawn x = emit(s, op, operands, DType::kFloat64, shape);
    s.live.pop_back();
    return emit(s, "Tanh", {x});
  }
  // A kernel that reads whole rows for each element, so that it stores nothing over what it reads.
  Drawn product(Scope& s) { return product(s, some(s, 2), kLine * (1 + below(3))); }
  Drawn product(Scope& s, const Drawn& x, int64_t columns) {
    return bounded(s, "MatMul",
                   {x, constant(s, random_tensor(DType::kFloat64, {x.shape[1], columns}, random_))},
                   {x.shape[0], columns});
  }
  // Transposes a matrix whose rows make whole lines.
  void turn(Scope& s) {
    const Drawn x = some(s, 2);
    if (x.shape[0] % kLine) return pointwise(s);
    auto* n = node(s, "Transpose", {x});
    set(n, "perm", {1, 0});
    result(s, n, x.dtype, {x.shape[1], x.shape[0]});
  }
  Drawn slice(Scope& s, const Drawn& x, int64_t from, int64_t to, int64_t axis) {
    Shape shape = x.shape;
    shape[static_cast<size_t>(axis)] = to - from;
    return emit(s, "Slice", {x, integers(s, {from}), integers(s, {to}), integers(s, {axis})},
                x.dtype, shape);
  }
  // From the last row or column to the first.
  Drawn mirrored(Scope& s, const Drawn& x) {
    const int64_t axis = below(static_cast<int64_t>(x.shape.size()));
    const std::vector<Drawn> operands{x, integers(s, {-1}), integers(s, {-1000}),
                                      integers(s, {axis}), integers(s, {-1})};
    return emit(s, "Slice", operands, x.dtype, x.shape);
  }
  // A kernel's result seen in another shape.
  void view_of_product(Scope& s) {
    const Drawn x = pick(s.live), row = reshaped(s, x, {1, count(x)});
    reshaped(s, product(s, slice(s, row, 0, kLine, 1), count(x)), x.shape);
  }
  static int64_t count(const Drawn& x) { return *element_count(x.shape); }
  // Some rows, or some whole lines of all rows.
  Drawn part(Scope& s, const Drawn& x) {
    const int64_t axis =
        static_cast<int64_t>(x.shape.size()) - 1 - below(static_cast<int64_t>(x.shape.size()));
    const int64_t unit = axis + 1 == static_cast<int64_t>(x.shape.size()) ? kLine : 1,
                  count = x.shape[static_cast<size_t>(axis)] / unit, first = below(count);
    return slice(s, x, unit * first, unit * (first + 1 + below(count - first)), axis);
  }
  Drawn reshaped(Scope& s, const Drawn& x, const Shape& shape) {
    return emit(s, "Reshape", {x, integers(s, {shape.begin(), shape.end()})}, x.dtype, shape);
  }
  // Views a matrix as another one, or as a vector.
  void reshape(Scope& s, const Drawn& x) {
    const int64_t lines = x.shape[0] * x.shape[1] / kLine;
    std::vector<int64_t> rows;
    for (int64_t r = 1; r <= lines; ++r)
      if (lines % r == 0) rows.push_back(r);
    const int64_t r = pick(rows);
    reshaped(s, x, chance(0.2) ? Shape{lines * kLine} : Shape{r, lines / r * kLine});
  }
  // What fits beside it, one value or views of it more than once among them.
  void join(Scope& s) {
    const Drawn x = some(s, 2);
    const auto axis = static_cast<size_t>(below(2));
    if (x.shape[0] * x.shape[1] > 400) return pointwise(s);
    std::vector<Drawn> fitting, parts{x};
    for (const Drawn& v : s.live)
      if (v.shape.size() == 2 && v.shape[1 - axis] == x.shape[1 - axis]) fitting.push_back(v);
    for (int64_t k = 1 + below(3); k > 0; --k) {
      Drawn v = chance(0.3) ? product(s, x, x.shape[1]) : pick(fitting);
      if (chance(0.2)) v = slice(s, v, 0, axis == 1 ? kLine : 1, static_cast<int64_t>(axis));
      parts.push_back(v);
    }
    std::shuffle(parts.begin(), parts.end(), random_);
    joined(s, parts, axis);
  }
  Drawn joined(Scope& s, const std::vector<Drawn>& parts, size_t axis) {
    Shape shape = parts[0].shape;
    for (size_t k = 1; k < parts.size(); ++k) shape[axis] += parts[k].shape[axis];
    auto* n = node(s, "Concat", parts);
    set(n, "axis", static_cast<int64_t>(axis));
    return result(s, n, parts[0].dtype, shape);
  }
  // Draws an If that may read and give what is updated elsewhere.
  void branch(Scope& s, int depth) {
    auto* n = node(s, "If", {pick(conditions_)});
    Scope taken = subgraph(s, n, "then_branch"), other = subgraph(s, n, "else_branch");
    statements(taken, depth + 1, below(4));
    statements(other, depth + 1, below(4));
    std::vector<Drawn> results;
    for (int64_t k = 1 + below(2); k > 0; --k) {
      results.push_back(pick(s.live));
      give(taken, some_like(taken, results.back()));
      give(other, some_like(other, results.back()));
    }
    for (const Drawn& v : results) result(s, n, v.dtype, v.shape);
  }
  // Draws a Loop that carries two values of one type, which its body can exchange.
  void loop(Scope& s, int depth) {
    const Drawn x = pick(s.live), y = some_like(s, x);
    auto* n =
        node(s, "Loop", {scalar(s, DType::kInt64, static_cast<double>(below(4))), Drawn{}, x, y});
    Scope body = subgraph(s, n, "body");
    Scope numbers{body.graph, {}};
    take(numbers, DType::kInt64, {});
    give(body, take(numbers, DType::kBool, {}));
    for (int k = 0; k < 2; ++k) take(body, x.dtype, x.shape);
    statements(body, depth + 1, 1 + below(3));
    for (int k = 0; k < 2; ++k) give(body, some_like(body, x));
    for (int k = 0; k < 2; ++k) result(s, n, x.dtype, x.shape);
  }

  // What a state becomes: of its own elements, pieces of it moved, others' values.
  Drawn next(Scope& s, const Drawn& state) {
    const auto rows = static_cast<size_t>(0);
    switch (below(8)) {
      case 0: return some_like(s, state);
      case 1:  // of another state, which may become something of this one
      case 2: {
        const Drawn x = some_state(state), y = chance(0.5) ? x : some_like(s, state);
        return x.shape.size() == 2 && chance(0.3) ? product(s, x, x.shape.back())
                                                  : bounded(s, "Sub", {x, y}, x.shape);
      }
      case 3:
        return bounded(s, pick<std::string>({"Add", "Sub"}), {state, some_like(s, state)},
                       state.shape);
      case 4: return pieces(s, state);
      case 6: return bounded(s, "Sub", {state, mirrored(s, some_state(state))}, state.shape);
      case 5:  // the first part leaves, another comes
        if (const int64_t unit = state.shape.size() == 1 ? kLine : 1; state.shape[rows] > unit) {
          const Drawn kept = slice(s, state, unit, state.shape[rows], 0);
          Drawn come = slice(s, state, 0, unit, 0);
          if (chance(0.7)) come = emit(s, "Sin", {come});
          return joined(
              s, chance(0.8) ? std::vector<Drawn>{kept, come} : std::vector<Drawn>{come, kept},
              rows);
        }
        [[fallthrough]];
      default:
        return state.shape.size() == 2
                   ? product(s, some_like(s, state), state.shape[1])
                   : bounded(s, "Mul", {state, some_like(s, state)}, state.shape);
    }
  }
  // Its parts, each changed by itself, in the same order.
  Drawn pieces(Scope& s, const Drawn& state) {
    const size_t axis = state.shape.size() == 2 && chance(0.5) ? 1 : 0;
    const int64_t unit = axis + 1 == state.shape.size() ? kLine : 1,
                  count = state.shape[axis] / unit;
    std::vector<Drawn> parts;
    for (int64_t at = 0; at < count;) {
      const int64_t end = at + 1 + below(count - at);
      Drawn x = slice(s, state, at * unit, end * unit, static_cast<int64_t>(axis));
      const Shape shape = x.shape;
      if (shape.size() == 1 && chance(0.5)) x = reshaped(s, x, {end - at, kLine});
      if (x.shape.size() == 2 && chance(0.4))
        x = product(s, x, x.shape[1]);
      else if (chance(0.8))
        x = bounded(s, "Add", {x, some_like(s, x)}, x.shape);
      if (x.shape != shape) x = reshaped(s, x, shape);
      parts.push_back(x);
      at = end;
    }
    return parts.size() == 1 ? emit(s, "Neg", {state}) : joined(s, parts, axis);
  }

  std::vector<Drawn> conditions_, states_;
};

}  // namespace

StateModel draw_state(uint64_t seed) { return StateDrawing(seed).run(); }

Tensors draw_inputs(const StateModel& model, uint64_t number) {
  std::mt19937_64 random(number);
  Tensors all;
  for (const Drawn& v : model.inputs) {
    all.push_back(random_tensor(v.dtype, v.shape, random));
    if (v.dtype == DType::kBool) all.back().bytes[0] = random() % 2;
  }
  return all;
}

}  // namespace tilewright
