// The expressions of the loop IR.
#pragma once

#include "ir/loops/handles.h"

namespace tilewright::ir {

// Nodes are values: immutable, shared, compared by structure. Each is public data, a kind and
// `fields`, which names each child once; walking, rebuilding, equality, hashing and printing are
// written over it (rewrite.h). Nodes are made by make.h, which folds constants and checks types.
struct IntImm : ExprNode {  // any integer type or bool
  static constexpr NodeKind kKind = NodeKind::kIntImm;
  // In the range of the type; u64 as its bits.
  int64_t value = 0;
  template <typename F>
  void fields(F&& f) {
    f("value", value);
  }
};
// A number of a floating-point type, infinities and NaN included.
struct FloatImm : ExprNode {
  static constexpr NodeKind kKind = NodeKind::kFloatImm;
  // Representable in the type: f16, bf16 and f32 are rounded when the node is made. NaN is one
  // value.
  double value = 0;
  template <typename F>
  void fields(F&& f) {
    f("value", value);
  }
};
// A loop variable, block axis, let or symbol. Identity is the node's address; the name is for text.
struct VarNode : ExprNode {
  static constexpr NodeKind kKind = NodeKind::kVar;
  // Not unique; the printer adds suffixes.
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
  Expr value;  // reinterpreted, e.g. bf16 as u16
  template <typename F>
  void fields(F&& f) {
    f("value", value);
  }
};
struct Unary : ExprNode {
  static constexpr NodeKind kKind = NodeKind::kUnary;
  // The result has the operand's type, but for kIsNan and kIsInf: bool.
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
  // The result has the operands' type, or is bool (comparisons).
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
  // `condition` is a bool or a vector of them; `a` and `b` are of one type, the node's.
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
  // The element's type is the buffer's; its lanes are those of the index.
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
  // i64; the vector index of a contiguous access is ramp(base, 1, lanes).
  Expr base, stride;
  template <typename F>
  void fields(F&& f) {
    f("base", base);
    f("stride", stride);
  }
};
struct Broadcast : ExprNode {  // a scalar in all lanes, or a short vector over and over
  static constexpr NodeKind kKind = NodeKind::kBroadcast;
  Expr value;  // a scalar, or lanes that divide the node's
  template <typename F>
  void fields(F&& f) {
    f("value", value);
  }
};
// Lanes first, first + step, first + 2 * step, ... of a vector: two or more, one of each `step`
// lanes. Of rows of `step` elements one after the other, column `first`.
struct EveryLane : ExprNode {
  static constexpr NodeKind kKind = NodeKind::kEveryLane;
  // Has a multiple of `step` lanes.
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
  // A vector; `op` is associative: a sum, product, extremum, and, or.
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
