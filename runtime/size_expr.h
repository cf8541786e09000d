// Integer expressions over the symbols of a variant (SizeExpr, executable.h): checking, evaluating,
// printing.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>

#include "runtime/executable.h"

namespace tilewright {

// The value of a symbol that is not defined yet; it poisons every expression that needs it.
inline constexpr int64_t kUnknownSize = std::numeric_limits<int64_t>::min();

// Operands on the stack at once; check_size_expr refuses deeper expressions.
inline constexpr int kSizeStackLimit = 64;

// The value of the expression; 0 for an empty one. Nothing when it overflows, divides by zero or
// needs a symbol that is not defined (in the branch of a select that is taken). Allocates nothing.
std::optional<int64_t> evaluate(const SizeExpr& expr, std::span<const int64_t> symbols);

// Whether the postfix form is well formed and names symbols below symbol_count only.
Status check_size_expr(const SizeExpr& expr, int64_t symbol_count);

bool is_constant(const SizeExpr& expr);  // names no symbol
// A single step: the symbol, or the number, itself. Such extents of inputs define symbols, or are
// compared at once.
bool is_plain_symbol(const SizeExpr& expr);
bool is_plain_constant(const SizeExpr& expr);

// Infix text with the symbols' names: "batch * (seq + 1)".
std::string to_string(const SizeExpr& expr, const std::vector<std::string>& symbol_names);

// Expressions of one step.
inline SizeExpr constant_size(int64_t value) { return {{SizeOp::kConstant, value}}; }
inline SizeExpr symbol_size(int64_t symbol) { return {{SizeOp::kSymbol, symbol}}; }

}  // namespace tilewright
