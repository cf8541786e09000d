// Spelling of the loop IR's enumerations; the text form uses the same words.
#include <array>

#include "ir/loops/nodes.h"

namespace tilewright::ir {

std::string_view name(UnaryOp op) {
  static constexpr std::array<std::string_view, 30> kNames{
      "neg",   "not",   "abs",     "sqrt",    "exp",   "log",     "sin",   "cos",
      "tan",   "asin",  "acos",    "atan",    "sinh",  "cosh",    "tanh",  "asinh",
      "acosh", "atanh", "erf",     "expm1",   "log1p", "sigmoid", "floor", "ceil",
      "round", "trunc", "rounded", "watched", "isnan", "isinf"};
  return kNames[static_cast<size_t>(op)];
}
std::string_view name(BinaryOp op) {
  static constexpr std::array<std::string_view, 21> kNames{
      "+",   "-",   "*",   "/",          "floordiv", "floormod", "truncmod",
      "pow", "min", "max", "max_number", "and",      "or",       "xor",
      "shl", "shr", "==",  "!=",         "<",        "<=",       ">"};
  return op == BinaryOp::kGe ? ">=" : kNames[static_cast<size_t>(op)];
}
std::string_view name(LoopKind kind) {
  static constexpr std::array<std::string_view, 5> kNames{"serial", "parallel", "vectorized",
                                                          "unrolled", "dot"};
  return kNames[static_cast<size_t>(kind)];
}
std::string_view name(AxisKind kind) {
  static constexpr std::array<std::string_view, 3> kNames{"parallel", "reduce", "ordered"};
  return kNames[static_cast<size_t>(kind)];
}
std::string_view name(PrefetchKind kind) {
  static constexpr std::array<std::string_view, 3> kNames{"near", "outer", "write"};
  return kNames[static_cast<size_t>(kind)];
}
std::string_view name(Scope scope) {
  static constexpr std::array<std::string_view, 3> kNames{"param", "workspace", "local"};
  return kNames[static_cast<size_t>(scope)];
}

}  // namespace tilewright::ir
