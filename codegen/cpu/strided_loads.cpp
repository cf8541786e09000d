#include "codegen/cpu/strided_loads.h"

#include <bit>

#include "ir/loops/linear.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"

namespace tilewright::cpu {

using namespace ir;

namespace {

// The loads of a value that are made whatever its conditions say.
class StridedLoads : public Visitor {
 public:
  using Visitor::visit;
  void visit(const Expr& e) override {
    if (e.kind() == NodeKind::kSelect) return;
    const auto* l = e.as<Load>();
    const auto* r = l && !l->mask ? l->indices[0].as<Ramp>() : nullptr;
    if (r && !is_one(r->stride) && !is_zero(r->stride)) found.push_back(l);
    Visitor::visit(e);
  }
  std::vector<const Load*> found;
};
const Ramp& ramp_of(const Load& l) { return *l.indices[0].as<Ramp>(); }

// The strided load of `st` that reads column k where `first` reads column 0.
const Load* column(const Store& st, const Load& first, int64_t k) {
  if (st.buffer == first.buffer) return nullptr;
  StridedLoads loads;
  loads.visit(st.value);
  for (const Load* l : loads.found)
    if (l->buffer == first.buffer && l->type == first.type &&
        can_prove_equal(ramp_of(*l).stride, ramp_of(first).stride) &&
        can_prove_equal(ramp_of(*l).base, ramp_of(first).base + Expr(k)))
      return l;
  return nullptr;
}

}  // namespace

std::vector<const Load*> columns_of_square(const std::vector<Stmt>& statements, size_t first) {
  const auto* store = statements[first].as<Store>();
  if (!store) return {};
  StridedLoads loads;
  loads.visit(store->value);
  for (const Load* head : loads.found) {
    const auto n = static_cast<size_t>(head->type.lanes);
    if (n < 4 || !std::has_single_bit(n) || first + n > statements.size()) continue;
    std::vector<const Load*> columns;
    while (columns.size() < n) {
      const auto* st = statements[first + columns.size()].as<Store>();
      const Load* l = st ? column(*st, *head, static_cast<int64_t>(columns.size())) : nullptr;
      if (!l) break;
      columns.push_back(l);
    }
    if (columns.size() == n) return columns;
  }
  return {};
}

}  // namespace tilewright::cpu
