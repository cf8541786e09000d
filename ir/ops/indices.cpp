#include "ir/ops/indices.h"

#include <algorithm>

#include "ir/loops/simplify.h"

namespace tilewright::ir {

Expr wrapped_index(Expr index, const Expr& extent) {
  index = cast(DType::kInt64, std::move(index));
  if (auto i = as_int(index)) return *i < 0 ? Expr(*i) + extent : index;
  return select(index < Expr(0), index + extent, index);
}
Expr clamped_index(Expr index, const Expr& extent) {
  return clamp(wrapped_index(std::move(index), extent), 0, extent - 1);
}

Expr within(const Expr& i, const Expr& extent, const Expr& limit) {
  return can_prove(extent <= limit) ? i : min(i, limit - 1);
}

std::optional<std::vector<Expr>> known_dims(const NodeView& c, int operand) {
  auto elements = c.known(operand);
  if (!elements) return std::nullopt;
  for (Expr& e : *elements) e = simplify(cast(DType::kInt64, e));
  return elements;
}

const Expr* beyond_extents(const std::vector<Expr>& numbers) {
  constexpr int64_t kMost = int64_t{1} << 31;
  const auto found = std::ranges::find_if(numbers, [](const Expr& e) {
    const auto i = as_int(e);
    return i && (*i > kMost || *i < -kMost);
  });
  return found == numbers.end() ? nullptr : &*found;
}

std::string axis_message(int64_t axis, const TensorType& type) {
  return "axis " + std::to_string(axis) + " of " + to_string(type);
}

Result<std::vector<int>> distinct_axes(const std::vector<int64_t>& axes, const TensorType& type) {
  std::vector<int> found;
  for (const int64_t axis : axes) {
    const int64_t a = axis < 0 ? axis + type.rank() : axis;
    if (a < 0 || a >= type.rank()) return invalid(axis_message(axis, type));
    if (std::ranges::find(found, static_cast<int>(a)) != found.end())
      return invalid(axis_message(axis, type) + " is named twice");
    found.push_back(static_cast<int>(a));
  }
  return found;
}

}  // namespace tilewright::ir
