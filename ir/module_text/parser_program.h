// Reads the text form of programs (printer_program.h). Errors are kInvalid with "line:column" as
// location; no input crashes. For the rules that programs obey see verify_program.h.
#pragma once

#include <string_view>
#include <vector>

#include "ir/program/program.h"
#include "runtime/core/result.h"

namespace tilewright::ir {

// constants: what #0, #1, ... in the text refer to.
Result<Program> parse_program(std::string_view text,
                              const std::vector<ConstantRef>& constants = {});

}  // namespace tilewright::ir
