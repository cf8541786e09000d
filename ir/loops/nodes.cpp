#include "ir/loops/nodes.h"

#include <cmath>
#include <limits>

#include "ir/loops/folding.h"

namespace tilewright::ir {

namespace {

template <typename T>
std::shared_ptr<T> make(ScalarType type) {
  auto n = std::make_shared<T>();
  n->kind = T::kKind;
  n->type = type;
  return n;
}
template <typename T>
std::shared_ptr<T> make() {
  auto n = std::make_shared<T>();
  n->kind = T::kKind;
  return n;
}

bool is_comparison(BinaryOp op) { return op >= BinaryOp::kEq; }

}  // namespace

Expr::Expr(int64_t value) : Expr(int_imm(value)) {}
Var::Var(std::string name, ScalarType type) {
  auto n = make<VarNode>(type);
  n->name = std::move(name);
  *static_cast<Expr*>(this) = Expr(std::shared_ptr<const VarNode>(n));
}
const std::string& Var::name() const { return static_cast<const VarNode*>(get())->name; }

Layout permuted_layout(const std::vector<int>& order) {
  Layout l;
  for (int d : order) l.push_back({d});
  return l;
}

Buffer make_buffer(std::string name, DType dtype, std::vector<Expr> shape, Scope scope,
                   Layout layout) {
  return std::make_shared<const BufferNode>(
      BufferNode{std::move(name), dtype, std::move(shape), std::move(layout), scope});
}

Expr int_imm(int64_t value, DType dtype) {
  auto n = make<IntImm>({dtype, 1});
  n->value = wrap(value, dtype);
  return std::shared_ptr<const IntImm>(n);
}
Expr float_imm(double value, DType dtype) {
  auto n = make<FloatImm>({dtype, 1});
  n->value = rounded(value, dtype);
  return std::shared_ptr<const FloatImm>(n);
}
Expr bool_imm(bool value) { return int_imm(value, DType::kBool); }
Expr constant(double value, DType dtype) {
  return is_float(dtype) ? float_imm(value, dtype) : int_imm(static_cast<int64_t>(value), dtype);
}

Expr cast(DType dtype, Expr value) {
  if (value.dtype() == dtype) return value;
  if (const auto* i = value.as<IntImm>()) {
    if (!is_float(dtype)) return int_imm(i->value, dtype);
    // Rounded once: not by way of doubles that do not hold the number.
    constexpr int64_t kExact = int64_t{1} << 53;
    if (value.dtype() != DType::kUInt64 && i->value >= -kExact && i->value <= kExact)
      return float_imm(static_cast<double>(i->value), dtype);
  }
  if (const auto* f = value.as<FloatImm>();
      f && (dtype == DType::kFloat32 || dtype == DType::kFloat64))
    return float_imm(f->value, dtype);
  auto n = make<Cast>({dtype, value.lanes()});
  n->value = std::move(value);
  return std::shared_ptr<const Cast>(n);
}
Expr bitcast(DType dtype, Expr value) {
  TW_CHECK(byte_size(dtype) == byte_size(value.dtype()));
  if (value.dtype() == dtype) return value;
  auto n = make<Bitcast>({dtype, value.lanes()});
  n->value = std::move(value);
  return std::shared_ptr<const Bitcast>(n);
}

Expr unary(UnaryOp op, Expr value) {
  if (const auto* i = value.as<IntImm>()) {
    if (op == UnaryOp::kNeg) return fold_integers(BinaryOp::kSub, 0, i->value, value.dtype());
    if (op == UnaryOp::kNot)
      return value.dtype() == DType::kBool ? bool_imm(!i->value)
                                           : int_imm(~i->value, value.dtype());
  }
  if (const auto* f = value.as<FloatImm>(); f && op == UnaryOp::kNeg)
    return float_imm(-f->value, value.dtype());
  const bool test = op == UnaryOp::kIsNan || op == UnaryOp::kIsInf;
  auto n = make<Unary>({test ? DType::kBool : value.dtype(), value.lanes()});
  n->op = op;
  n->value = std::move(value);
  return std::shared_ptr<const Unary>(n);
}

Expr binary(BinaryOp op, Expr a, Expr b) {
  if (a.lanes() != b.lanes()) {
    const int lanes = std::max(a.lanes(), b.lanes());
    a = broadcast(a, lanes);
    b = broadcast(b, lanes);
  }
  TW_CHECK(a.dtype() == b.dtype());
  if (!is_float(a.dtype()) && a.lanes() == 1) {
    const auto *ia = a.as<IntImm>(), *ib = b.as<IntImm>();
    if (ia && ib)
      if (Expr folded = fold_integers(op, ia->value, ib->value, a.dtype())) return folded;
    if (Expr folded = fold_identity(op, a, b)) return folded;
  }
  auto n = make<Binary>({is_comparison(op) ? DType::kBool : a.dtype(), a.lanes()});
  n->op = op;
  n->a = std::move(a);
  n->b = std::move(b);
  return std::shared_ptr<const Binary>(n);
}

Expr select(Expr condition, Expr a, Expr b) {
  const int lanes = std::max({condition.lanes(), a.lanes(), b.lanes()});
  TW_CHECK(a.dtype() == b.dtype() && condition.dtype() == DType::kBool);
  if (const auto* c = condition.as<IntImm>()) return broadcast(c->value ? a : b, lanes);
  if (a.same_as(b)) return a;
  auto n = make<Select>({a.dtype(), lanes});
  n->condition = broadcast(std::move(condition), lanes);
  n->a = broadcast(std::move(a), lanes);
  n->b = broadcast(std::move(b), lanes);
  return std::shared_ptr<const Select>(n);
}

Expr load(Buffer buffer, std::vector<Expr> indices, Expr mask, int64_t ahead) {
  int lanes = 1;
  for (const Expr& i : indices) lanes = std::max(lanes, i.lanes());
  auto n = make<Load>({buffer->dtype, lanes});
  n->buffer = std::move(buffer);
  n->indices = std::move(indices);
  n->mask = std::move(mask);
  n->ahead = ahead;
  return std::shared_ptr<const Load>(n);
}
Expr load_vector(Buffer buffer, Expr index, Expr mask) {
  return load(std::move(buffer), {std::move(index)}, std::move(mask));
}

Expr ramp(Expr base, Expr stride, int lanes) {
  auto n = make<Ramp>({base.dtype(), lanes});
  n->base = std::move(base);
  n->stride = std::move(stride);
  return std::shared_ptr<const Ramp>(n);
}
Expr broadcast(Expr value, int lanes) {
  if (value.lanes() == lanes) return value;
  TW_CHECK(lanes % value.lanes() == 0);
  auto n = make<Broadcast>({value.dtype(), lanes});
  n->value = std::move(value);
  return std::shared_ptr<const Broadcast>(n);
}
Expr reduce_lanes(BinaryOp op, Expr value) {
  if (value.lanes() == 1) return value;
  auto n = make<ReduceLanes>({value.dtype(), 1});
  n->op = op;
  n->value = std::move(value);
  return std::shared_ptr<const ReduceLanes>(n);
}

Expr every_lane(Expr value, int64_t first, int64_t step) {
  TW_CHECK(step > 0 && value.lanes() % step == 0 && first >= 0 && first < step);
  auto n = make<EveryLane>({value.dtype(), static_cast<int>(value.lanes() / step)});
  n->value = std::move(value);
  n->first = first;
  n->step = step;
  return std::shared_ptr<const EveryLane>(n);
}
Expr interleave(std::vector<Expr> parts) {
  TW_CHECK(!parts.empty());
  const ScalarType part = parts[0].type();
  auto n = make<Interleave>({part.dtype, part.lanes * static_cast<int>(parts.size())});
  n->parts = std::move(parts);
  return std::shared_ptr<const Interleave>(n);
}
Expr dot(Expr sum, Expr a, Expr b) {
  TW_CHECK(a.lanes() == dot_terms(a.dtype()) * sum.lanes() && b.lanes() == a.lanes());
  auto n = make<Dot>({dot_sum(a.dtype()), sum.lanes()});
  n->sum = std::move(sum);
  n->a = std::move(a);
  n->b = std::move(b);
  return std::shared_ptr<const Dot>(n);
}

Stmt store(Buffer buffer, std::vector<Expr> indices, Expr value, Expr mask, StoreKind kind) {
  TW_CHECK(value.dtype() == buffer->dtype);
  auto n = make<Store>();
  n->buffer = std::move(buffer);
  n->indices = std::move(indices);
  n->value = std::move(value);
  n->mask = std::move(mask);
  n->store_kind = kind;
  return std::shared_ptr<const Store>(n);
}
Stmt dot_tile(DotTile fields) {
  auto n = make<DotTile>();
  n->sum = std::move(fields.sum);
  n->a = std::move(fields.a);
  n->b = std::move(fields.b);
  n->rows = fields.rows;
  n->columns = fields.columns;
  n->groups = fields.groups;
  return std::shared_ptr<const DotTile>(n);
}
Stmt prefetch_line(Buffer buffer, Expr offset, PrefetchKind kind) {
  auto n = make<Prefetch>();
  n->buffer = std::move(buffer);
  n->offset = std::move(offset);
  n->prefetch_kind = kind;
  return std::shared_ptr<const Prefetch>(n);
}
Stmt let(Var var, Expr value, Stmt body) {
  auto n = make<Let>();
  n->var = std::move(var);
  n->value = std::move(value);
  n->body = std::move(body);
  return std::shared_ptr<const Let>(n);
}
Stmt for_loop(Var var, Expr extent, Stmt body, LoopKind kind) {
  auto n = make<For>();
  n->var = std::move(var);
  n->extent = std::move(extent);
  n->loop_kind = kind;
  n->body = std::move(body);
  return std::shared_ptr<const For>(n);
}
Stmt while_loop(Expr condition, Stmt body) {
  auto n = make<While>();
  n->condition = std::move(condition);
  n->body = std::move(body);
  return std::shared_ptr<const While>(n);
}
Stmt if_then(Expr condition, Stmt then, Stmt otherwise) {
  auto n = make<If>();
  n->condition = std::move(condition);
  n->then = std::move(then);
  n->otherwise = std::move(otherwise);
  return std::shared_ptr<const If>(n);
}
Stmt seq(std::vector<Stmt> stmts) {
  std::vector<Stmt> flat;
  for (Stmt& s : stmts) {
    if (!s) continue;
    if (const auto* inner = s.as<Seq>())
      flat.insert(flat.end(), inner->stmts.begin(), inner->stmts.end());
    else
      flat.push_back(std::move(s));
  }
  if (flat.size() == 1) return flat[0];
  auto n = make<Seq>();
  n->stmts = std::move(flat);
  return std::shared_ptr<const Seq>(n);
}
Stmt allocate(Buffer buffer, Stmt body, Expr offset) {
  auto n = make<Allocate>();
  n->buffer = std::move(buffer);
  n->offset = std::move(offset);
  n->body = std::move(body);
  return std::shared_ptr<const Allocate>(n);
}
Stmt block(Block fields) {
  TW_CHECK(fields.axes.size() == fields.bindings.size());
  fields.kind = Block::kKind;
  return std::make_shared<const Block>(std::move(fields));
}

namespace {
// Immediates written in C++ are int64; they follow the type of the other side.
void match(Expr& a, Expr& b) {
  if (a.dtype() == b.dtype()) return;
  if (a.as<IntImm>() && a.dtype() == DType::kInt64)
    a = cast(b.dtype(), a);
  else if (b.as<IntImm>() && b.dtype() == DType::kInt64)
    b = cast(a.dtype(), b);
}
Expr matched(BinaryOp op, Expr a, Expr b) {
  match(a, b);
  return binary(op, std::move(a), std::move(b));
}
}  // namespace

Expr operator+(Expr a, Expr b) { return matched(BinaryOp::kAdd, std::move(a), std::move(b)); }
Expr operator-(Expr a, Expr b) { return matched(BinaryOp::kSub, std::move(a), std::move(b)); }
Expr operator*(Expr a, Expr b) { return matched(BinaryOp::kMul, std::move(a), std::move(b)); }
Expr operator/(Expr a, Expr b) { return matched(BinaryOp::kDiv, std::move(a), std::move(b)); }
Expr operator-(Expr a) { return unary(UnaryOp::kNeg, std::move(a)); }
Expr operator<(Expr a, Expr b) { return matched(BinaryOp::kLt, std::move(a), std::move(b)); }
Expr operator<=(Expr a, Expr b) { return matched(BinaryOp::kLe, std::move(a), std::move(b)); }
Expr operator>(Expr a, Expr b) { return matched(BinaryOp::kGt, std::move(a), std::move(b)); }
Expr operator>=(Expr a, Expr b) { return matched(BinaryOp::kGe, std::move(a), std::move(b)); }
Expr logical_and(Expr a, Expr b) { return binary(BinaryOp::kAnd, std::move(a), std::move(b)); }
Expr logical_or(Expr a, Expr b) { return binary(BinaryOp::kOr, std::move(a), std::move(b)); }
Expr logical_not(Expr a) { return unary(UnaryOp::kNot, std::move(a)); }
Expr eq(Expr a, Expr b) { return matched(BinaryOp::kEq, std::move(a), std::move(b)); }
Expr ne(Expr a, Expr b) { return matched(BinaryOp::kNe, std::move(a), std::move(b)); }
Expr min(Expr a, Expr b) { return matched(BinaryOp::kMin, std::move(a), std::move(b)); }
Expr max(Expr a, Expr b) { return matched(BinaryOp::kMax, std::move(a), std::move(b)); }
Expr floordiv(Expr a, Expr b) { return matched(BinaryOp::kFloorDiv, std::move(a), std::move(b)); }
Expr floormod(Expr a, Expr b) { return matched(BinaryOp::kFloorMod, std::move(a), std::move(b)); }
Expr ceildiv(Expr a, Expr b) { return floordiv(a + (b - Expr(1)), b); }
Expr clamp(Expr x, Expr low, Expr high) {
  return min(max(std::move(x), std::move(low)), std::move(high));
}

std::optional<int64_t> as_int(const Expr& e) {
  const auto* i = e.as<IntImm>();
  return i ? std::optional<int64_t>(i->value) : std::nullopt;
}
bool is_zero(const Expr& e) { return as_int(e) == 0; }
bool is_one(const Expr& e) { return as_int(e) == 1; }

Expr lowest(DType t) {
  if (is_float(t)) return float_imm(-std::numeric_limits<double>::infinity(), t);
  if (is_unsigned(t) || t == DType::kBool) return int_imm(0, t);
  return int_imm(-(int64_t{1} << (8 * byte_size(t) - 2)) * 2, t);
}
Expr highest(DType t) {
  if (is_float(t)) return float_imm(std::numeric_limits<double>::infinity(), t);
  if (t == DType::kBool) return int_imm(1, t);
  if (t == DType::kUInt64) return int_imm(-1, t);
  const int bits = 8 * byte_size(t) - (is_unsigned(t) ? 0 : 1);
  return int_imm(bits >= 63 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << bits) - 1, t);
}

}  // namespace tilewright::ir
