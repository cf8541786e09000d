#include <algorithm>

#include "passes/schedule/primitives.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

using namespace ir;

// Legal when the loops are perfectly nested around one block without ordered axes: its instances
// commute, but for the order within a reduction, which its combiner allows.
// Loop interchange.
Result<Kernel> reorder(const Kernel& k, const Step& step) {
  std::vector<const For*> wanted;
  for (const std::string& name : step.names) {
    TW_ASSIGN(const For* f, find_loop(k.body, name));
    wanted.push_back(f);
  }
  // The chain from the outermost of them down to the innermost, each loop the only child of the one
  // before.
  const For* top = nullptr;
  for (const For* f : wanted) {
    size_t inside = 0;
    for (const For* g = f; g; g = g->body.as<For>())
      inside += static_cast<size_t>(std::count(wanted.begin(), wanted.end(), g));
    if (inside == wanted.size()) top = f;
  }
  if (!top) return invalid("the loops are not perfectly nested");
  std::vector<const For*> chain;
  for (const For* g = top; g; g = g->body.as<For>()) chain.push_back(g);
  while (std::find(wanted.begin(), wanted.end(), chain.back()) == wanted.end()) chain.pop_back();
  const Stmt body = chain.back()->body;
  bool ordered = false;
  for (const BlockPlace& p : all_blocks(body))
    for (const BlockAxis& a : p.block->axes) ordered |= a.kind == AxisKind::kOrdered;
  if (ordered) return invalid("a loop feeds an ordered axis");
  // Loops of the chain that are not named keep their place; the named ones fill the rest in the new
  // order.
  std::vector<const For*> order;
  size_t next = 0;
  for (const For* f : chain)
    order.push_back(std::find(wanted.begin(), wanted.end(), f) == wanted.end() ? f
                                                                               : wanted[next++]);
  Stmt nest = body;
  for (size_t i = order.size(); i-- > 0;)
    nest = for_loop(order[i]->var, order[i]->extent, nest, order[i]->loop_kind);
  return with_body(k, replace_loop(k.body, top, [&](const For&) { return nest; }));
}

}  // namespace tilewright::passes
