// The operators that a drawn graph has besides control flow. Each draws its operands from the values in scope, and adds
// nothing if none fit. Results of floats stay within [-1, 1], so that iterations do not overflow.
#include <algorithm>
#include <numeric>

#include "tests/differential/programs/control_flow_drawing.h"

namespace tilewright {

namespace {
// Returns the number of elements, with the largest number of passes for an extent that is open.
int64_t known_elements(const Shape& shape) {
  int64_t n = 1;
  for (const int64_t e : shape) n *= e < 0 ? kMostPasses : std::max<int64_t>(e, 1);
  return n;
}
bool is_float64(const Drawn& v) { return v.dtype == DType::kFloat64; }
bool is_index(const Drawn& v) { return v.dtype == DType::kInt64 && v.shape.empty(); }
bool is_truth(const Drawn& v) { return v.dtype == DType::kBool && v.shape.empty(); }
// Whether a value of `end` broadcasts to one of `shape` without a change of extents.
bool ends_in(const Shape& shape, const Shape& end) {
  return shape.size() >= end.size() && std::equal(end.rbegin(), end.rend(), shape.rbegin());
}
}  // namespace

// Returns a scalar in scope, or a new constant if there is none of the type.
Drawn ControlFlowDrawing::scalar_of(Scope& s, DType dtype) {
  const auto found = find(s, [&](const Drawn& v) { return v.dtype == dtype && v.shape.empty(); });
  return found ? *found : scalar(s, dtype, static_cast<double>(below(2)));
}

// Adds the operator and tanh of its result; the unbounded value leaves the scope.
void ControlFlowDrawing::bounded(Scope& s, const std::string& op,
                                 const std::vector<Drawn>& operands, const Shape& shape) {
  const Drawn x = emit(s, op, operands, DType::kFloat64, shape);
  s.live.pop_back();
  emit(s, "Tanh", {x});
}

void ControlFlowDrawing::operation(Scope& s) {
  ++nodes_;
  switch (below(12)) {
    case 0: return pointwise(s);
    case 1:
    case 2: return combine(s);
    case 3: return integer(s);
    case 4: return truth(s);
    case 5:
    case 6: return reduce(s);
    case 7: return move(s);
    case 8: return join(s);
    case 9: return product(s);
    case 10: return look_up(s);
    default: return select(s);
  }
}

void ControlFlowDrawing::pointwise(Scope& s) {
  if (const auto x = find(s, is_float64))
    emit(s, pick<std::string>({"Tanh", "Sin", "Neg", "Sigmoid", "Identity"}), {*x});
}
// The second operand is broadcast where it has fewer dimensions.
void ControlFlowDrawing::combine(Scope& s) {
  const auto x = find(s, is_float64);
  const auto y =
      find(s, [&](const Drawn& v) { return is_float64(v) && ends_in(x->shape, v.shape); });
  std::vector<Drawn> operands{*x, *y};
  if (chance(0.5)) std::swap(operands[0], operands[1]);
  bounded(s, pick<std::string>({"Add", "Sub", "Mul", "Max", "Min"}), operands, x->shape);
}
// Integers stay below 16: they become indices and numbers of iterations.
void ControlFlowDrawing::integer(Scope& s) {
  const Drawn x = scalar_of(s, DType::kInt64), y = scalar_of(s, DType::kInt64);
  const Drawn z = emit(s, pick<std::string>({"Add", "Sub", "Max", "Min"}), {x, y});
  s.live.pop_back();
  emit(s, "BitwiseAnd", {z, scalar(s, DType::kInt64, 15)});
}
// Of floats only what is not near the number that it is compared with decides.
void ControlFlowDrawing::truth(Scope& s) {
  const DType b = DType::kBool;
  const auto x = find(s, [](const Drawn& v) { return is_float64(v) && v.shape.empty(); });
  switch (below(x ? 4 : 3)) {
    case 0:
      emit(s, pick<std::string>({"Less", "Equal"}),
           {scalar_of(s, DType::kInt64), scalar_of(s, DType::kInt64)}, b, {});
      return;
    case 1: emit(s, "Not", {scalar_of(s, b)}); return;
    case 2:
      emit(s, pick<std::string>({"And", "Or", "Xor"}), {scalar_of(s, b), scalar_of(s, b)});
      return;
    default: emit(s, "Less", {*x, scalar(s, DType::kFloat64, 0.1234567890123)}, b, {}); return;
  }
}
// Values of open extents first: these can be read in few other ways.
void ControlFlowDrawing::reduce(Scope& s) {
  auto x = find(s, [](const Drawn& v) { return is_float64(v) && !v.is_closed(); });
  if (!x || chance(0.3))
    x = find(s, [](const Drawn& v) { return is_float64(v) && !v.shape.empty(); });
  if (!x) return;
  Shape shape = x->shape;
  auto axis = std::find_if(shape.begin(), shape.end(), [](int64_t e) { return e < 0; });
  if (axis == shape.end()) axis = shape.begin() + below(static_cast<int64_t>(shape.size()));
  const int64_t at = axis - shape.begin();
  shape.erase(axis);
  auto* n = node(s, "ReduceSum", {*x, integers(s, {at})});
  set(n, "keepdims", 0);
  const Drawn sum = result(s, n, DType::kFloat64, shape);
  s.live.pop_back();
  emit(s, "Tanh", {sum});
}
// Permutes the dimensions of a value in any way.
void ControlFlowDrawing::move(Scope& s) {
  const auto x = find(s, [](const Drawn& v) { return is_float64(v) && v.shape.size() >= 2; });
  if (!x) return;
  std::vector<int64_t> perm(x->shape.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::shuffle(perm.begin(), perm.end(), random_);
  Shape shape;
  for (const int64_t d : perm) shape.push_back(x->shape[static_cast<size_t>(d)]);
  auto* n = node(s, "Transpose", {*x});
  set(n, "perm", perm);
  result(s, n, DType::kFloat64, shape);
}
// Concatenates two values of one type, as long as the result stays small.
void ControlFlowDrawing::join(Scope& s) {
  const auto x = find(s, [](const Drawn& v) {
    return is_float64(v) && v.is_closed() && !v.shape.empty() &&
           2 * known_elements(v.shape) <= kMostElements;
  });
  if (!x) return;
  const auto y = find_like(s, *x);
  const int64_t axis = below(static_cast<int64_t>(x->shape.size()));
  Shape shape = x->shape;
  shape[static_cast<size_t>(axis)] *= 2;
  auto* n = node(s, "Concat", {*x, *y});
  set(n, "axis", axis);
  result(s, n, DType::kFloat64, shape);
}
// Multiplies two matrices whose extents happen to fit.
void ControlFlowDrawing::product(Scope& s) {
  const auto matrix = [](const Drawn& v) { return is_float64(v) && v.shape.size() == 2; };
  const auto x = find(s, matrix);
  if (!x) return;
  const auto y = find(s, [&](const Drawn& v) { return matrix(v) && v.shape[0] == x->shape[1]; });
  if (y) bounded(s, "MatMul", {*x, *y}, {x->shape[0], y->shape[1]});
}
// An index that is one of 0 and 1; the number of the iteration, often.
void ControlFlowDrawing::look_up(Scope& s) {
  const auto x = find(s, [](const Drawn& v) {
    return is_float64(v) &&
           std::any_of(v.shape.begin(), v.shape.end(), [](int64_t e) { return e >= 2; });
  });
  const auto index = find(s, is_index);
  if (!x || !index) return;
  std::vector<int64_t> axes;
  for (size_t d = 0; d < x->shape.size(); ++d)
    if (x->shape[d] >= 2) axes.push_back(static_cast<int64_t>(d));
  const int64_t axis = pick(axes);
  Shape shape = x->shape;
  shape.erase(shape.begin() + axis);
  const Drawn at = emit(s, "BitwiseAnd", {*index, scalar(s, DType::kInt64, 1)});
  auto* n = node(s, "Gather", {*x, at});
  set(n, "axis", axis);
  result(s, n, DType::kFloat64, shape);
}
// Selects one of two values of a type by a scalar condition.
void ControlFlowDrawing::select(Scope& s) {
  const auto c = find(s, is_truth), x = find(s, is_float64);
  if (!c || !x) return;
  emit(s, "Where", {*c, *x, *find_like(s, *x)}, x->dtype, x->shape);
}

}  // namespace tilewright
