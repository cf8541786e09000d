// Which binary operators are written between their operands, and how tightly they bind; 0: written
// as a call.
#pragma once

#include "ir/loops/nodes.h"

namespace tilewright::ir {

// Levels, looser first; a unary minus binds tighter than any infix operator.
inline constexpr int kComparisonPrecedence = 3;  // does not chain: a < b < c is an error
inline constexpr int kUnaryPrecedence = 6;

// Larger binds tighter; printer and parser both read it, so that parentheses are neither lost nor
// idle.
constexpr int precedence(BinaryOp op) {
  switch (op) {
    case BinaryOp::kOr: return 1;
    case BinaryOp::kAnd: return 2;
    case BinaryOp::kEq:
    case BinaryOp::kNe:
    case BinaryOp::kLt:
    case BinaryOp::kLe:
    case BinaryOp::kGt:
    case BinaryOp::kGe: return kComparisonPrecedence;
    case BinaryOp::kAdd:
    case BinaryOp::kSub: return 4;
    case BinaryOp::kMul:
    case BinaryOp::kDiv: return 5;
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
    case BinaryOp::kTruncMod:
    case BinaryOp::kPow:
    case BinaryOp::kMin:
    case BinaryOp::kMax:
    case BinaryOp::kMaxNumber:
    case BinaryOp::kXor:
    case BinaryOp::kShl:
    case BinaryOp::kShr: return 0;
  }
  return 0;
}

}  // namespace tilewright::ir
