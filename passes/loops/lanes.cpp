// Recognising reductions in a vectorised loop: a store whose index does not move with the lanes is
// only legal when what it does can be combined across lanes in one step (horizontal reduction).
#include "passes/loops/lanes.h"

#include <algorithm>

#include "ir/loops/linear.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool reads(const Expr& e, const Buffer& buffer) {
  bool found = false;
  for_each_expr(e, [&](const Expr& x) {
    if (const auto* l = x.as<Load>()) found |= l->buffer == buffer;
  });
  return found;
}

// null for operations that combine no lanes.
// The identity element, which lanes that are off contribute.
Expr neutral_of(BinaryOp op, DType t) {
  switch (op) {
    case BinaryOp::kAdd: return constant(0, t);
    case BinaryOp::kMul: return constant(1, t);
    case BinaryOp::kMax:
    case BinaryOp::kMaxNumber: return lowest(t);
    case BinaryOp::kMin: return highest(t);
    case BinaryOp::kAnd: return t == DType::kBool ? bool_imm(true) : int_imm(-1, t);
    case BinaryOp::kOr: return constant(0, t);
    default: return nullptr;
  }
}

std::optional<LaneReduction> reduction(BinaryOp op, Expr term) {
  Expr neutral = neutral_of(op, term.dtype());
  if (!neutral) return std::nullopt;
  return LaneReduction{op, std::move(term), std::move(neutral)};
}

// A number for what is loaded from a buffer.
class LoadAs : public Rewriter {
 public:
  LoadAs(const Buffer& buffer, int64_t n) : buffer_(buffer), n_(n) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    const auto* load = e.as<Load>();
    return load && load->buffer == buffer_ ? Expr(n_) : Rewriter::rewrite(e);
  }

 private:
  const Buffer buffer_;
  const int64_t n_;
};

// Simplification multiplies i64 out: c * (x + 3) is c * x + c * 3. What it was follows from the
// values for c = 0 and c = 1.
std::optional<LaneReduction> linear_reduction(const Store& st) {
  const Expr at_zero = simplify(LoadAs(st.buffer, 0).rewrite(st.value)),
             at_one = simplify(LoadAs(st.buffer, 1).rewrite(st.value)),
             carried = load(st.buffer, st.indices);
  auto is = [](const Expr& e, int64_t n) { return as_int(simplify(e)) == n; };
  if (is(at_zero, 0) && is(st.value - carried * at_one, 0))
    return reduction(BinaryOp::kMul, at_one);
  if (is(st.value - at_zero - carried, 0)) return reduction(BinaryOp::kAdd, at_zero);
  return std::nullopt;
}

}  // namespace

bool updates_itself(const Store& st) { return reads(st.value, st.buffer); }

std::optional<LaneReduction> find_lane_reduction(const Store& st) {
  if (st.mask) return std::nullopt;
  if (st.value.dtype() == DType::kInt64)
    if (auto linear = linear_reduction(st)) return linear;
  const auto* update = st.value.as<Binary>();
  const auto* carried = update ? update->a.as<Load>() : nullptr;
  if (!carried || carried->buffer != st.buffer || carried->mask ||
      !std::equal(carried->indices.begin(), carried->indices.end(), st.indices.begin(),
                  st.indices.end(), same_expr) ||
      reads(update->b, st.buffer))
    return std::nullopt;
  return reduction(update->op, update->b);
}

}  // namespace tilewright::passes
