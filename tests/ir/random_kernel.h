// Random kernels for laws that hold for every kernel: round trips of the text form, hashing,
// equality. They are well typed, with every kind of node, operation and element type, but not meant
// to be run.
#pragma once

#include <random>
#include <string>

#include "ir/loops/nodes.h"

namespace tilewright::ir {

// All choices follow from the seed, so that a failure is found again by its number.
class RandomKernel {
 public:
  // odd_sequences: also sequences that the makers of nodes.h would flatten.
  explicit RandomKernel(uint32_t seed, bool odd_sequences = true)
      : random_(seed), odd_sequences_(odd_sequences) {}

  // One kernel; for once per object.
  Kernel make() {
    Kernel k;
    k.name = pick(3) ? "random" : "odd name/'1'";
    for (int n = pick(3); n >= 0; --n) scalars_.push_back(Var(name(), {}));
    for (const Expr& s : scalars_) {
      k.scalars.push_back(Var(s));
      vars_.push_back(s);
    }
    for (int n = pick(4); n >= 0; --n) {
      k.params.push_back(buffer(Scope::kParam));
      buffers_.push_back(k.params.back());
    }
    k.body = stmt(4);
    k.exact = pick(2);
    k.team = pick(2);
    if (pick(2)) k.workspace.call = scalars_[0] * Expr(64);
    if (pick(2)) k.workspace.worker = 128;
    return k;
  }
  // An expression of this type over variables and buffers made so far, at most so deep.
  Expr expr(ScalarType t, int depth) {
    if (depth <= 0 || pick(8) == 0) return leaf(t);
    switch (pick(10)) {
      case 0: return cast(t.dtype, expr({dtype(), t.lanes}, depth - 1));
      case 1: return bitcast_of(t, depth);
      case 2: return unary_of(t, depth);
      case 3:
        return select(expr({DType::kBool, t.lanes}, depth - 1), expr(t, depth - 1),
                      expr(t, depth - 1));
      case 4: return load_of(t, depth);
      case 5:
        if (t.lanes > 1 && pick(2)) return lanes_of(t, depth);
        return t.lanes > 1 ? ramp(expr({t.dtype}, depth - 1), expr({t.dtype}, depth - 1), t.lanes)
                           : leaf(t);
      case 6:
        return t.lanes > 1 ? broadcast_of(t, depth)
                           : reduce_lanes(is_float(t.dtype) && pick(2) == 0 ? BinaryOp::kMaxNumber
                                                                            : BinaryOp::kMax,
                                          expr({t.dtype, 4}, depth - 1));
      case 7:
        return t.dtype == DType::kInt32 || t.dtype == DType::kFloat32 ? dot_of(t, depth)
                                                                      : binary_of(t, depth);
      default: return binary_of(t, depth);
    }
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  DType dtype() {
    return kDTypes[static_cast<size_t>(pick(static_cast<int>(kDTypes.size())))].dtype;
  }
  std::string name() {
    static const char* const kNames[] = {"i",      "j",   "A",   "for",    "x.y",
                                         "node/3", "i_1", "f32", "quote'", "\xc3\xa4"};
    return kNames[pick(10)];
  }
  Expr leaf(ScalarType t) {
    for (int tries = 0; tries < 4 && !vars_.empty(); ++tries)
      if (const Expr& v = vars_[static_cast<size_t>(pick(static_cast<int>(vars_.size())))];
          v.type() == t)
        return v;
    return broadcast(immediate(t.dtype), t.lanes);
  }
  Expr immediate(DType t) {
    if (!is_float(t))
      return int_imm(
          pick(2) ? pick(100) - 50 : static_cast<int64_t>(uint64_t{random_()} << 32 | random_()),
          t);
    static const double kValues[] = {0,   -0.0,     1,         1.5, -3.25e-30, 1e30,
                                     0.1, HUGE_VAL, -HUGE_VAL, NAN, 5e-324,    16777217};
    return float_imm(kValues[pick(12)], t);
  }
  Expr broadcast_of(ScalarType t, int depth) {
    const bool repeats = t.lanes % 2 == 0 && pick(2);
    return broadcast(expr({t.dtype, repeats ? t.lanes / 2 : 1}, depth - 1), t.lanes);
  }
  Expr lanes_of(ScalarType t, int depth) {
    if (pick(2) || t.lanes % 2)
      return every_lane(expr({t.dtype, 2 * t.lanes}, depth - 1), pick(2), 2);
    const ScalarType half{t.dtype, t.lanes / 2};
    return interleave({expr(half, depth - 1), expr(half, depth - 1)});
  }
  Expr dot_of(ScalarType t, int depth) {
    const DType left = t.dtype == DType::kFloat32 ? DType::kBFloat16
                       : pick(2)                  ? DType::kUInt8
                                                  : DType::kInt16;
    const int terms = dot_terms(left) * t.lanes;
    if (terms > 256) return leaf(t);
    return dot(expr(t, depth - 1), expr({left, terms}, depth - 1),
               expr({dot_partner(left), terms}, depth - 1));
  }
  Expr bitcast_of(ScalarType t, int depth) {
    DType from = dtype();
    while (byte_size(from) != byte_size(t.dtype)) from = dtype();
    return bitcast(t.dtype, expr({from, t.lanes}, depth - 1));
  }
  Expr unary_of(ScalarType t, int depth) {
    if (t.dtype == DType::kBool && pick(2))
      return unary(pick(2) ? UnaryOp::kIsNan : UnaryOp::kIsInf,
                   expr({DType::kFloat32, t.lanes}, depth - 1));
    return unary(static_cast<UnaryOp>(pick(static_cast<int>(UnaryOp::kIsNan))), expr(t, depth - 1));
  }
  Expr binary_of(ScalarType t, int depth) {
    const bool compare = t.dtype == DType::kBool && pick(2);
    const ScalarType of = compare ? ScalarType{dtype(), t.lanes} : t;
    const int first = compare ? static_cast<int>(BinaryOp::kEq) : 0;
    const int end = static_cast<int>(compare ? BinaryOp::kGe : BinaryOp::kShr) + 1;
    return binary(static_cast<BinaryOp>(first + pick(end - first)), expr(of, depth - 1),
                  expr(of, depth - 1));
  }
  Expr load_of(ScalarType t, int depth) {
    for (const Buffer& b : buffers_) {
      if (b->dtype != t.dtype || (b->rank() == 0 && t.lanes > 1)) continue;
      Expr mask = pick(3) ? Expr(nullptr) : expr({DType::kBool, t.lanes}, depth - 1);
      return load(b, indices(*b, t.lanes, depth - 1), mask);
    }
    return leaf(t);
  }
  std::vector<Expr> indices(const BufferNode& b, int lanes, int depth) {
    std::vector<Expr> is;
    for (int d = 0; d < b.rank(); ++d) is.push_back(expr({DType::kInt64, lanes}, depth));
    return is;
  }
  Buffer buffer(Scope scope) {
    std::vector<Expr> shape;
    for (int n = pick(4); n > 0; --n)
      shape.push_back(pick(2)
                          ? Expr(pick(9) + 1)
                          : scalars_[static_cast<size_t>(pick(static_cast<int>(scalars_.size())))] +
                                Expr(pick(3)));
    Layout layout;
    if (!shape.empty() && pick(3) == 0)
      layout = {{pick(static_cast<int>(shape.size())), pick(2) ? 4 : 1, 0},
                {0, 1, pick(2) ? 4 : 0}};
    return make_buffer(name(), dtype(), std::move(shape), scope, std::move(layout));
  }

  template <typename F>
  Stmt with(const Expr& v, F&& f) {
    vars_.push_back(v);
    Stmt s = f();
    vars_.pop_back();
    return s;
  }
  Stmt stmt(int depth) {
    if (depth <= 0) return store_of();
    switch (pick(10)) {
      case 0: return let_of(depth);
      case 1: {
        Var v(name());
        Expr extent = expr({}, 1);
        return for_loop(v, extent, with(v, [&] { return stmt(depth - 1); }),
                        static_cast<LoopKind>(pick(5)));
      }
      case 2: return while_loop(expr({DType::kBool}, 2), stmt(depth - 1));
      case 3:
        return if_then(expr({DType::kBool}, 2), stmt(depth - 1),
                       pick(2) ? stmt(depth - 1) : nullptr);
      case 4: {
        Buffer b = buffer(pick(2) ? Scope::kLocal : Scope::kWorkspace);
        buffers_.push_back(b);
        Stmt body = stmt(depth - 1);
        buffers_.pop_back();
        return allocate(b, body, pick(2) ? expr({}, 1) : Expr(nullptr));
      }
      case 5: return block_of(depth);
      case 6: return odd_sequences_ ? raw_seq(depth) : store_of();
      case 7: return dot_tile_of(depth);
      case 8: return prefetch_of(depth);
      default: return seq({stmt(depth - 1), stmt(depth - 1), pick(2) ? stmt(depth - 2) : Stmt()});
    }
  }
  Stmt let_of(int depth) {
    const ScalarType t{dtype(), pick(3) ? 1 : 4};
    Var v(name(), t);
    Expr value = expr(t, 2);
    return let(v, value, with(v, [&] { return stmt(depth - 1); }));
  }
  // Of any buffers: their types are the verifier's matter.
  Stmt dot_tile_of(int depth) {
    if (buffers_.empty()) return store_of();
    DotTile tile;
    for (TileOperand* x : {&tile.sum, &tile.a, &tile.b})
      *x = {buffers_[static_cast<size_t>(pick(static_cast<int>(buffers_.size())))],
            expr({}, depth - 1), expr({}, 1)};
    for (int64_t* n : {&tile.rows, &tile.columns, &tile.groups}) *n = pick(20);
    return dot_tile(std::move(tile));
  }
  Stmt prefetch_of(int depth) {
    const Buffer& b = buffers_[static_cast<size_t>(pick(static_cast<int>(buffers_.size())))];
    return prefetch_line(b, expr({}, depth - 1), static_cast<PrefetchKind>(pick(3)));
  }
  // Sequences that the makers would flatten: empty, of one statement, nested.
  Stmt raw_seq(int depth) {
    auto n = std::make_shared<Seq>();
    n->kind = Seq::kKind;
    for (int k = pick(3); k > 0; --k) n->stmts.push_back(stmt(depth - 1));
    return std::shared_ptr<const Seq>(n);
  }
  Stmt block_of(int depth) {
    Block b;
    b.name = name();
    for (int n = pick(3); n >= 0; --n) {
      b.axes.push_back({Var(name()), expr({}, 1), static_cast<AxisKind>(pick(3))});
      b.bindings.push_back(expr({}, 2));
    }
    for (const BlockAxis& a : b.axes) vars_.push_back(a.var);
    if (pick(2)) b.predicate = expr({DType::kBool}, 2);
    if (pick(2)) b.init = store_of();
    b.body = stmt(depth - 1);
    for (size_t n = 0; n < b.axes.size(); ++n) vars_.pop_back();
    return block(std::move(b));
  }
  Stmt store_of() {
    const Buffer& b = buffers_[static_cast<size_t>(pick(static_cast<int>(buffers_.size())))];
    const int lanes = b->rank() && pick(3) == 0 ? 4 : 1;
    Expr mask = pick(3) ? Expr(nullptr) : expr({DType::kBool, lanes}, 2);
    return store(b, indices(*b, lanes, 2), expr({b->dtype, lanes}, 4), mask);
  }

  std::mt19937 random_;
  bool odd_sequences_;
  std::vector<Expr> scalars_, vars_;
  std::vector<Buffer> buffers_;
};

}  // namespace tilewright::ir
