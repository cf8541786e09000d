// Reads the text form of the loop IR (printer_loops.h). Errors are kInvalid with "line:column" as
// location; no input crashes. Types of operands are checked as they are read; for all other rules
// see verify_loops.h.
#pragma once

#include <string_view>

#include "ir/loops/nodes.h"
#include "ir/text/parser_exprs.h"
#include "runtime/core/result.h"

namespace tilewright::ir {

// A whole kernel, and nothing behind it.
Result<Kernel> parse_kernel(std::string_view text);
// With the free variables and buffers that the text may name.
Result<Expr> parse_expr(std::string_view text, Names& names);

}  // namespace tilewright::ir
