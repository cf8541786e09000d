// The expressions of the loop IR.
#pragma once

#include "ir/loops/handles.h"

namespace tilewright::ir {

struct IntImm : ExprNode {  // any integer type or bool
  static constexpr NodeKind kKind = NodeKind::kIntImm;
  int64_t value = 0;
  template <typename F>
  void fields(F&& f) {
    f("value", value);
  }
};
struct FloatImm : ExprNode {
  static constexpr NodeKind kKind = NodeKind::kFloatImm;
  double value = 0;
  template <typename F>
  void fields(F&& f) {
    f("value", value);
  }
};
struct VarNode : ExprNode {
  static constexpr NodeKind kKind = NodeKind::kVar;
  std::string name;
  template <typename F>
  void fields(F&& f) {
    f("name", name);
  }
};
// Conversion as in C++, but float to integer saturates at the ends of the type and NaN becomes 0;
// to bool: x != 0.
struct Cast : ExprNode {
  static constexpr NodeKind kKind = NodeKind::kCast;
  Expr value;
  template <typename F>
  void fields(F&& f) {
    f("value", value);
  }
};
struct Bitcast : ExprNode {  // same number of bits
  static constexpr NodeKind kKind = NodeKind::kBitcast;
  Expr value;
  template <typename F>
  void fields(F&& f) {
    f("value", value);
  }
};
struct Unary : ExprNode {
  static constexpr NodeKind kKind = NodeKind::kUnary;
  UnaryOp op = UnaryOp::kNeg;
  Expr value;
  template <typename F>
  void fields(F&& f) {
    f("op", op);
    f("value", value);
  }
};
struct Binary : ExprNode {  // a and b are of one type
  static constexpr NodeKind kKind = NodeKind::kBinary;
  BinaryOp op = BinaryOp::kAdd;
  Expr a, b;
  template <typename F>
  void fields(F&& f) {
    f("op", op);
    f("a", a);
    f("b", b);
  }
};
// condition ? a : b. Only the chosen side is evaluated where memory is concerned: a Load in the
// other side never faults.
struct Select : ExprNode {
  static constexpr NodeKind kKind = NodeKind::kSelect;
  Expr condition, a, b;
  template <typename F>
  void fields(F&& f) {
    f("condition", condition);
    f("a", a);
    f("b", b);
  }
};
// One index per dimension, or (flat loops) one index into the storage, in elements. `mask` (flat
// loops only, may be null): lanes that are off are not read and give 0; `true`: may be read even
// where a Select around does not choose it. `ahead`, where not 0: the elements that lie so many
// further on in storage, if there are any, are brought near; a hint, which changes no value.
struct Load : ExprNode {
  static constexpr NodeKind kKind = NodeKind::kLoad;
  Buffer buffer;
  std::vector<Expr> indices;
  Expr mask;
  int64_t ahead = 0;
  template <typename F>
  void fields(F&& f) {
    f("buffer", buffer);
    f("indices", indices);
    f("mask", mask);
    f("ahead", ahead);
  }
};
// base, base + stride, ... (lanes of them). Of a base with several lanes (flat loops, i64): all of
// these, then all of these + stride, ...: rows of n elements each are ramp(ramp(base, 1, n),
// stride, rows * n).
struct Ramp : ExprNode {
  static constexpr NodeKind kKind = NodeKind::kRamp;
  Expr base, stride;
  template <typename F>
  void fields(F&& f) {
    f("base", base);
    f("stride", stride);
  }
};
struct Broadcast : ExprNode {  // a scalar in all lanes, or a short vector over and over
  static constexpr NodeKind kKind = NodeKind::kBroadcast;
  Expr value;
  template <typename F>
  void fields(F&& f) {
    f("value", value);
  }
};
// Lanes first, first + step, first + 2 * step, ... of a vector: two or more, one of each `step`
// lanes. Of rows of `step` elements one after the other, column `first`.
struct EveryLane : ExprNode {
  static constexpr NodeKind kKind = NodeKind::kEveryLane;
  Expr value;
  int64_t first = 0, step = 1;
  template <typename F>
  void fields(F&& f) {
    f("value", value);
    f("first", first);
    f("step", step);
  }
};
// Lane 0 of each part in turn, then lane 1 of each, ...: the parts are two or more vectors of one
// type.
struct Interleave : ExprNode {
  static constexpr NodeKind kKind = NodeKind::kInterleave;
  std::vector<Expr> parts;
  template <typename F>
  void fields(F&& f) {
    f("parts", parts);
  }
};
// All lanes of a vector combined by op (a tree of halves: fixed order); result is a scalar. For
// max_number, lanes that are NaN count as the lowest number.
struct ReduceLanes : ExprNode {
  static constexpr NodeKind kKind = NodeKind::kReduceLanes;
  BinaryOp op = BinaryOp::kAdd;
  Expr value;
  template <typename F>
  void fields(F&& f) {
    f("op", op);
    f("value", value);
  }
};

// sum[i] + a[ti] * b[ti] + ... + a[ti + t - 1] * b[ti + t - 1]: a and b have t = dot_terms times as
// many lanes as sum. What dot product instructions compute: four terms of u8 by i8 or two of i16 by
// i16 in i32, modulo 2^32; two of bf16 by bf16 in f32, with the roundings of the instruction.
struct Dot : ExprNode {
  static constexpr NodeKind kKind = NodeKind::kDot;
  Expr sum, a, b;
  template <typename F>
  void fields(F&& f) {
    f("sum", sum);
    f("a", a);
    f("b", b);
  }
};
// Terms of one sum by the type of a; 0: no dot product takes it.
constexpr int dot_terms(DType a) {
  return a == DType::kUInt8 ? 4 : a == DType::kInt16 || a == DType::kBFloat16 ? 2 : 0;
}
// The type of b that goes with a, and that of the sum.
constexpr DType dot_partner(DType a) { return a == DType::kUInt8 ? DType::kInt8 : a; }
constexpr DType dot_sum(DType a) { return a == DType::kBFloat16 ? DType::kFloat32 : DType::kInt32; }

}  // namespace tilewright::ir
