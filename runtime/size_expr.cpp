// A stack machine for integer expressions over symbols. Arithmetic is checked: overflow, division
// by zero and symbols without a value give kUnknownSize, which no legal result equals, and it
// spreads through what uses it as NaN does.
#include "runtime/size_expr.h"

#include <algorithm>

namespace tilewright {
namespace {

// How many numbers the operation pops; -1 for a code that is none (files are not trusted).
int operand_count(SizeOp op) {
  switch (op) {
    case SizeOp::kConstant:
    case SizeOp::kSymbol: return 0;
    case SizeOp::kNot: return 1;
    case SizeOp::kSelect: return 3;
    case SizeOp::kAdd:
    case SizeOp::kSub:
    case SizeOp::kMul:
    case SizeOp::kFloorDiv:
    case SizeOp::kFloorMod:
    case SizeOp::kMin:
    case SizeOp::kMax:
    case SizeOp::kEq:
    case SizeOp::kNe:
    case SizeOp::kLt:
    case SizeOp::kLe:
    case SizeOp::kAnd:
    case SizeOp::kOr: return 2;
  }
  return -1;
}

// Rounds towards minus infinity, as Python's //: -7 / 2 is -4. Tiles of a loop are counted so.
int64_t floor_div(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

// Neither operand is kUnknownSize, so a / -1 cannot overflow.
int64_t apply(SizeOp op, int64_t a, int64_t b) {
  int64_t r = 0;
  switch (op) {
    case SizeOp::kAdd: return __builtin_add_overflow(a, b, &r) ? kUnknownSize : r;
    case SizeOp::kSub: return __builtin_sub_overflow(a, b, &r) ? kUnknownSize : r;
    case SizeOp::kMul: return __builtin_mul_overflow(a, b, &r) ? kUnknownSize : r;
    case SizeOp::kFloorDiv: return b == 0 ? kUnknownSize : floor_div(a, b);
    case SizeOp::kFloorMod: return b == 0 ? kUnknownSize : a - floor_div(a, b) * b;
    case SizeOp::kMin: return std::min(a, b);
    case SizeOp::kMax: return std::max(a, b);
    case SizeOp::kEq: return a == b;
    case SizeOp::kNe: return a != b;
    case SizeOp::kLt: return a < b;
    case SizeOp::kLe: return a <= b;
    case SizeOp::kAnd: return a != 0 && b != 0;
    case SizeOp::kOr: return a != 0 || b != 0;
    case SizeOp::kConstant:
    case SizeOp::kSymbol:
    case SizeOp::kNot:
    case SizeOp::kSelect: break;
  }
  return kUnknownSize;
}

// `top` points at the first operand; the result replaces it.
int64_t step_result(SizeOp op, const int64_t* top) {
  if (top[0] == kUnknownSize) return kUnknownSize;
  if (op == SizeOp::kNot) return top[0] == 0;
  if (op == SizeOp::kSelect) return top[0] != 0 ? top[1] : top[2];
  return top[1] == kUnknownSize ? kUnknownSize : apply(op, top[0], top[1]);
}

const char* infix(SizeOp op) {
  switch (op) {
    case SizeOp::kAdd: return " + ";
    case SizeOp::kSub: return " - ";
    case SizeOp::kMul: return " * ";
    case SizeOp::kFloorDiv: return " / ";
    case SizeOp::kFloorMod: return " % ";
    case SizeOp::kEq: return " == ";
    case SizeOp::kNe: return " != ";
    case SizeOp::kLt: return " < ";
    case SizeOp::kLe: return " <= ";
    case SizeOp::kAnd: return " and ";
    case SizeOp::kOr: return " or ";
    case SizeOp::kMin:
    case SizeOp::kMax:
    case SizeOp::kConstant:
    case SizeOp::kSymbol:
    case SizeOp::kNot:
    case SizeOp::kSelect: break;
  }
  return nullptr;
}

std::string leaf_text(const SizeStep& step, const std::vector<std::string>& names) {
  if (step.op == SizeOp::kConstant) return std::to_string(step.value);
  const bool known = step.value >= 0 && step.value < static_cast<int64_t>(names.size());
  return known ? names[step.value] : "symbol " + std::to_string(step.value);
}

std::string step_text(SizeOp op, const std::string* a) {
  if (op == SizeOp::kNot) return "not " + a[0];
  if (op == SizeOp::kSelect) return "select(" + a[0] + ", " + a[1] + ", " + a[2] + ")";
  if (op == SizeOp::kMin) return "min(" + a[0] + ", " + a[1] + ")";
  if (op == SizeOp::kMax) return "max(" + a[0] + ", " + a[1] + ")";
  return "(" + a[0] + infix(op) + a[1] + ")";
}

}  // namespace

std::optional<int64_t> evaluate(const SizeExpr& expr, std::span<const int64_t> symbols) {
  if (expr.empty()) return 0;
  int64_t stack[kSizeStackLimit];
  int depth = 0;
  for (const SizeStep& step : expr) {
    const int n = operand_count(step.op);
    if (n < 0 || n > depth || depth - n >= kSizeStackLimit) return std::nullopt;
    int64_t value = step.value;
    if (step.op == SizeOp::kSymbol) {
      if (value < 0 || value >= static_cast<int64_t>(symbols.size())) return std::nullopt;
      value = symbols[value];
    } else if (n > 0) {
      value = step_result(step.op, stack + depth - n);
    }
    depth -= n;
    stack[depth++] = value;
  }
  if (depth != 1 || stack[0] == kUnknownSize) return std::nullopt;
  return stack[0];
}

Status check_size_expr(const SizeExpr& expr, int64_t symbol_count) {
  int depth = 0;
  for (const SizeStep& step : expr) {
    const int n = operand_count(step.op);
    if (n < 0) return invalid("size expression: unknown operation " + std::to_string(int(step.op)));
    if (n > depth) return invalid("size expression: an operation lacks operands");
    depth += 1 - n;
    if (depth > kSizeStackLimit)
      return limit_error("size expression: deeper than " + std::to_string(kSizeStackLimit));
    if (step.op == SizeOp::kSymbol && (step.value < 0 || step.value >= symbol_count))
      return invalid("size expression: symbol " + std::to_string(step.value) + " of " +
                     std::to_string(symbol_count));
  }
  if (!expr.empty() && depth != 1)
    return invalid("size expression: leaves " + std::to_string(depth) + " values");
  return {};
}

bool is_constant(const SizeExpr& expr) {
  return std::none_of(expr.begin(), expr.end(),
                      [](const SizeStep& s) { return s.op == SizeOp::kSymbol; });
}
bool is_plain_symbol(const SizeExpr& expr) {
  return expr.size() == 1 && expr[0].op == SizeOp::kSymbol;
}
bool is_plain_constant(const SizeExpr& expr) {
  return expr.size() == 1 && expr[0].op == SizeOp::kConstant;
}

std::string to_string(const SizeExpr& expr, const std::vector<std::string>& symbol_names) {
  std::vector<std::string> stack;
  for (const SizeStep& step : expr) {
    const int n = operand_count(step.op);
    if (n < 0 || n > static_cast<int>(stack.size())) return "<malformed>";
    std::string text =
        n == 0 ? leaf_text(step, symbol_names) : step_text(step.op, &stack[stack.size() - n]);
    stack.resize(stack.size() - n);
    stack.push_back(std::move(text));
  }
  if (stack.size() != 1) return expr.empty() ? "0" : "<malformed>";
  std::string& text = stack[0];
  const bool wrapped = expr.size() > 1 && text.front() == '(' && text.back() == ')';
  return wrapped ? text.substr(1, text.size() - 2) : text;
}

}  // namespace tilewright
