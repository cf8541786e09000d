// Requirements of extents, which graphs and programs write alike but for brackets.
#pragma once

#include <functional>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/text/cursor.h"

namespace tilewright::ir {

// Parses the relation and the two extents of a requirement, without its text (`what`). `extents` parses
// the list of extents in the brackets of the form at hand.
Requirement parse_relation(Cursor& c, const std::function<std::vector<Expr>()>& extents);

}  // namespace tilewright::ir
