// Reads the text form of graphs (printer_graph.h). Errors are kInvalid with "line:column" as
// location; no input crashes. Names are resolved and operators looked up; for all other rules see
// verify_graph.h.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "runtime/core/result.h"

namespace tilewright::ir {

// constants: what #0, #1, ... in the text refer to.
Result<Graph> parse_graph(std::string_view text, const std::vector<ConstantRef>& constants = {});
// Gives what #n stands for; null: it is not known.
using FindConstant = std::function<ConstantRef(int64_t n, DType dtype, const Shape& shape)>;
Result<Graph> parse_graph(std::string_view text, const FindConstant& find);

}  // namespace tilewright::ir
