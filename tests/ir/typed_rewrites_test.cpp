// Laws of rewriting over all element types: makers that fold constants, and simplification, keep
// the type of an expression and its value, which the interpreter gives for loads that nothing is
// known of.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "ir/interpreter/interpreter.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "ir/text/printer_loops.h"

namespace tilewright::ir {
namespace {

constexpr int64_t kElements = 8;

// Delicate elements of each type. Those of 64 bits are small: sums of indices do not overflow.
int64_t integer(DType t, int64_t i) {
  const int64_t low = as_int(lowest(t)).value_or(0), high = as_int(highest(t)).value_or(0);
  const bool wide = byte_size(t) == 8;
  const int64_t values[] = {0, 1, wide ? 7 : -1, wide ? 3 : low, wide ? 5 : high, 2, 9, 100};
  return *as_int(int_imm(values[i], t));
}
double floating(int64_t i) {
  const double values[] = {0.0, -0.0, 1.0, -2.5, 0.1, 300.0, NAN, 1e-3};
  return values[i];
}
Expr immediate(DType t, int64_t i) {
  return is_float(t) ? float_imm(floating(i), t) : int_imm(integer(t, i), t);
}

// Loads of the elements of one buffer for each type become those elements.
class KnownElements : public Rewriter {
 public:
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    const auto* l = e.as<Load>();
    if (!l) return Rewriter::rewrite(e);
    if (const auto i = as_int(l->indices[0])) return immediate(l->buffer->dtype, *i);
    return e;
  }
};

class TypedRewrites : public testing::TestWithParam<uint32_t> {
 protected:
  TypedRewrites() : random_(GetParam()) {
    for (const DTypeInfo& t : kDTypes)
      buffers_.push_back(make_buffer(std::string(name(t.dtype)), t.dtype, {Expr(kElements)}));
  }
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  DType dtype() {
    return buffers_[static_cast<size_t>(pick(static_cast<int>(buffers_.size())))]->dtype;
  }
  Buffer buffer(DType t) {
    for (const Buffer& b : buffers_)
      if (b->dtype == t) return b;
    return nullptr;
  }
  Expr leaf(ScalarType t) {
    const int i = pick(kElements);
    if (pick(3) == 0) return broadcast(immediate(t.dtype, i), t.lanes);
    if (t.lanes == 1 || pick(2)) return broadcast(load(buffer(t.dtype), {Expr(i)}), t.lanes);
    return load(buffer(t.dtype),
                {ramp(Expr(pick(static_cast<int>(kElements) - t.lanes + 1)), Expr(1), t.lanes)});
  }
  Expr expr(ScalarType t, int depth) {
    if (depth <= 0 || pick(8) == 0) return leaf(t);
    if (pick(6) == 0) return converted(t, depth);
    if (pick(6) == 0)
      return select(expr({DType::kBool, t.lanes}, depth - 1), expr(t, depth - 1),
                    expr(t, depth - 1));
    if (t.dtype == DType::kBool) return condition(t.lanes, depth);
    if (pick(4) == 0) return unary(pick(3) ? UnaryOp::kNeg : UnaryOp::kAbs, expr(t, depth - 1));
    const Expr a = expr(t, depth - 1);
    if (pick(6) == 0) return pick(2) ? a - a : binary(BinaryOp::kMin, a, a);
    if (!is_float(t.dtype) && pick(4) == 0) return divided(a);
    static constexpr BinaryOp kOps[] = {BinaryOp::kAdd, BinaryOp::kSub, BinaryOp::kMul,
                                        BinaryOp::kMin, BinaryOp::kMax, BinaryOp::kAnd,
                                        BinaryOp::kOr,  BinaryOp::kXor};
    return binary(kOps[pick(is_float(t.dtype) ? 5 : 8)], a, expr(t, depth - 1));
  }
  // Numbers beyond i64 are no indices: only elements become such.
  Expr converted(ScalarType t, int depth) {
    const bool wide = byte_size(t.dtype) == 8 && !is_float(t.dtype);
    const DType from = dtype();
    return cast(t.dtype, expr({from, t.lanes}, wide && is_float(from) ? 0 : depth - 1));
  }
  Expr divided(const Expr& a) {
    static constexpr BinaryOp kOps[] = {BinaryOp::kDiv, BinaryOp::kFloorDiv, BinaryOp::kFloorMod,
                                        BinaryOp::kTruncMod};
    const bool negative = !is_unsigned(a.dtype()) && pick(4) == 0;
    const Expr by = int_imm(negative ? -2 - pick(3) : 1 + pick(9), a.dtype());
    return binary(kOps[pick(4)], a, broadcast(by, a.lanes()));
  }
  Expr condition(int lanes, int depth) {
    const ScalarType t{DType::kBool, lanes};
    if (pick(4) == 0) return unary(UnaryOp::kNot, expr(t, depth - 1));
    if (pick(4) == 0)
      return binary(pick(2) ? BinaryOp::kAnd : BinaryOp::kOr, expr(t, depth - 1),
                    expr(t, depth - 1));
    static constexpr BinaryOp kOps[] = {BinaryOp::kEq, BinaryOp::kNe, BinaryOp::kLt,
                                        BinaryOp::kLe, BinaryOp::kGt, BinaryOp::kGe};
    const ScalarType of{dtype(), lanes};
    const Expr a = expr(of, depth - 1);
    return binary(kOps[pick(6)], a, pick(5) ? expr(of, depth - 1) : a);
  }

  // The bytes that storing e leaves.
  std::vector<uint8_t> value(const Expr& e) {
    Kernel k;
    k.name = "k";
    std::vector<std::vector<uint8_t>> storage;
    for (const Buffer& b : buffers_) {
      storage.push_back(elements(b->dtype));
      k.params.push_back(b);
    }
    const Buffer out = make_buffer("out", e.dtype(), {Expr(e.lanes())});
    k.params.push_back(out);
    storage.emplace_back(static_cast<size_t>(e.lanes() * byte_size(e.dtype())));
    k.body = store(out, {e.lanes() == 1 ? Expr(0) : ramp(Expr(0), Expr(1), e.lanes())}, e);
    std::vector<void*> pointers;
    for (auto& s : storage) pointers.push_back(s.data());
    const Status s = interpret(k, pointers, {});
    EXPECT_TRUE(s.ok()) << s.error().to_string();
    return canonical(storage.back(), e.dtype());
  }
  std::vector<uint8_t> elements(DType t);
  // One NaN stands for all.
  std::vector<uint8_t> canonical(std::vector<uint8_t> bytes, DType t) {
    if (!is_float(t)) return bytes;
    const size_t n = bytes.size() / static_cast<size_t>(byte_size(t));
    const Buffer in = make_buffer("in", t, {Expr(static_cast<int64_t>(n))}),
                 out = make_buffer("nan", DType::kBool, {Expr(static_cast<int64_t>(n))});
    std::vector<uint8_t> nan(n);
    const Var i("i");
    const Kernel k{"k",
                   {in, out},
                   {},
                   for_loop(i, Expr(static_cast<int64_t>(n)),
                            store(out, {i}, unary(UnaryOp::kIsNan, load(in, {i}))))};
    EXPECT_TRUE(interpret(k, {bytes.data(), nan.data()}, {}).ok());
    for (size_t k2 = 0; k2 < n; ++k2)
      if (nan[k2])
        std::memset(bytes.data() + k2 * static_cast<size_t>(byte_size(t)), 0xff,
                    static_cast<size_t>(byte_size(t)));
    return bytes;
  }

  std::mt19937 random_;
  std::vector<Buffer> buffers_;
};

std::vector<uint8_t> TypedRewrites::elements(DType t) {
  std::vector<uint8_t> bytes(static_cast<size_t>(kElements * byte_size(t)));
  const Buffer out = make_buffer("out", t, {Expr(kElements)});
  std::vector<Stmt> stores;
  for (int64_t i = 0; i < kElements; ++i) stores.push_back(store(out, {Expr(i)}, immediate(t, i)));
  EXPECT_TRUE(interpret(Kernel{"k", {out}, {}, seq(std::move(stores))}, {bytes.data()}, {}).ok());
  return bytes;
}

TEST_P(TypedRewrites, KeepTypeAndValue) {
  for (int i = 0; i < 150 && !HasFailure(); ++i) {
    const ScalarType t{dtype(), pick(3) ? 1 : 4};
    const Expr e = expr(t, 1 + i % 5);
    ASSERT_EQ(e.type(), t) << to_text(e);
    const std::vector<uint8_t> expected = value(e);
    for (const bool known : {false, true}) {
      const Expr start = known ? KnownElements().rewrite(e) : e;
      for (const Expr& r : {start, simplify(start)}) {
        ASSERT_EQ(r.type(), t) << to_text(e) << "\n-> " << to_text(r);
        EXPECT_EQ(value(r), expected) << to_text(e) << "\n-> " << to_text(r);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, TypedRewrites, testing::Range(1u, 31u));

}  // namespace
}  // namespace tilewright::ir
