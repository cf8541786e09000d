#include "ir/module_text/parse_requirement.h"

namespace tilewright::ir {

Requirement parse_relation(Cursor& c, const std::function<std::vector<Expr>()>& extents) {
  Requirement r;
  const Token word = c.next();
  if (const auto relation = relation_from_name(word.text))
    r.relation = *relation;
  else
    c.fail(word, "expected equals, at_most or broadcast, found " + shown(word));
  const Token at = c.peek();
  const std::vector<Expr> both = extents();
  if (c.ok() && both.size() != 2)
    c.fail(at, "expected two extents, found " + std::to_string(both.size()));
  if (!c.ok()) return r;
  r.a = both[0];
  r.b = both[1];
  return r;
}

}  // namespace tilewright::ir
