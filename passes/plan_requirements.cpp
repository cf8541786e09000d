// What must hold of extents that only the run knows. A graph requires what the types of its nodes
// assume (a matrix product of [m, k] and [j, n]: k and j are equal). This is collected before nodes
// are rewritten, so that it is still required where another node computes the result, or none. A
// kernel requires the same of its own nodes. In addition, each plain access x[.., i, ..] with i in
// [0, n) requires that the dimension has at least n elements, unless this follows from the
// expressions of the extents.
#include <algorithm>

#include "ir/graph/infer.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "passes/graph/graph_passes.h"
#include "passes/planner.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Reads and writes whose index is a loop or block variable alone, outside of conditions that name
// it or extents alone: those may guard the access.
class PlainAccesses : public Visitor {
 public:
  explicit PlainAccesses(std::function<void(const Expr& extent, const Expr& dim)> found)
      : found_(std::move(found)) {}
  using Visitor::visit;

  void visit(const Expr& e) override {
    if (const auto* s = e.as<Select>()) {
      visit(s->condition);
      conditions_.push_back(s->condition);
      visit(s->a);
      visit(s->b);
      conditions_.pop_back();
      return;
    }
    if (const auto* l = e.as<Load>()) access(*l->buffer, l->indices);
    Visitor::visit(e);
  }
  void visit(const Stmt& s) override {
    if (const auto* f = s.as<For>()) extents_[f->var.get()] = f->extent;
    if (const auto* l = s.as<Let>()) lets_.insert(l->var.get());
    if (const auto* st = s.as<Store>()) access(*st->buffer, st->indices);
    const auto* b = s.as<Block>();
    for (size_t k = 0; b && k < b->axes.size(); ++k)
      extents_[b->axes[k].var.get()] = b->axes[k].extent;
    const auto* choice = s.as<If>();
    const Expr condition = choice ? choice->condition : b ? b->predicate : Expr();
    if (condition) conditions_.push_back(condition);
    Visitor::visit(s);
    if (condition) conditions_.pop_back();
  }

 private:
  void access(const BufferNode& buffer, const std::vector<Expr>& indices) {
    for (size_t d = 0; d < indices.size() && d < buffer.shape.size(); ++d) {
      const auto extent = extents_.find(indices[d].get());
      if (extent != extents_.end() && is_uniform(extent->second) && is_uniform(buffer.shape[d]) &&
          !is_guarded(Var(indices[d])))
        found_(extent->second, buffer.shape[d]);
    }
  }
  // The same in the whole kernel: neither read or worked out there nor of loops around.
  bool is_uniform(const Expr& e) const {
    bool uniform = true;
    for_each_expr(e, [&](const Expr& x) {
      uniform &= x.kind() != NodeKind::kLoad && !extents_.count(x.get()) && !lets_.count(x.get());
    });
    return uniform;
  }
  bool is_guarded(const Var& v) const {
    for (const Expr& c : conditions_)
      if (uses_var(c, v) || is_uniform(c)) return true;
    return false;
  }

  std::function<void(const Expr&, const Expr&)> found_;
  std::unordered_map<const ExprNode*, Expr> extents_;
  std::unordered_set<const ExprNode*> lets_;
  std::vector<Expr> conditions_;
};

}  // namespace

Graph collect_requirements(Graph graph) {
  for (const Node& n : graph.nodes)
    for (Requirement& r : ir::requirements_of(graph, n)) {
      const bool known = std::any_of(graph.requirements.begin(), graph.requirements.end(),
                                     [&](const Requirement& other) {
                                       return r.relation == other.relation &&
                                              same_expr(r.a, other.a) && same_expr(r.b, other.b);
                                     });
      if (!known) graph.requirements.push_back(std::move(r));
    }
  return graph;
}

std::vector<RequireInstruction> requirements_of(const Graph& graph,
                                                const std::vector<size_t>& nodes,
                                                const Kernel& kernel) {
  std::vector<RequireInstruction> all;
  auto add = [&](const Requirement& required) {
    for (const RequireInstruction& r : all)
      if (r.relation == required.relation && same_expr(r.a, required.a) &&
          same_expr(r.b, required.b))
        return;
    all.push_back({required.a, required.b, required.relation, to_string(required)});
  };
  for (size_t n : nodes)
    for (const Requirement& r : ir::requirements_of(graph, graph.nodes[n])) add(r);
  if (!kernel.body) return all;
  PlainAccesses([&](const Expr& extent, const Expr& dim) {
    if (as_int(extent) && as_int(dim)) return;
    if (can_prove(extent <= dim)) return;
    for (const RequireInstruction& r : all)
      if (r.relation == Relation::kEqual && can_prove_equal(extent - dim, r.a - r.b)) return;
    for (const RequireInstruction& r : all)
      if (r.relation == Relation::kEqual && can_prove_equal(dim - extent, r.a - r.b)) return;
    add({extent, dim, Relation::kAtMost, describe(graph.nodes[nodes.back()])});
  }).visit(kernel.body);
  return all;
}

}  // namespace tilewright::passes
