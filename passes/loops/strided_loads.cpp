// Finding interleaved access groups among loads, see group_accesses.cpp. Conditions are
// conservative: one statement of the group that is of another form, or that may write what is read,
// and there is no group.
#include "passes/loops/strided_loads.h"

#include <bit>

#include "ir/loops/linear.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "passes/loops/strided_stores.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// The loads of a value that are made whatever its conditions say.
class StridedLoads : public Visitor {
 public:
  using Visitor::visit;
  void visit(const Expr& e) override {
    if (e.kind() == NodeKind::kSelect) return;
    const auto* l = e.as<Load>();
    const auto* r = l ? l->indices[0].as<Ramp>() : nullptr;
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
    if (l->buffer == first.buffer && l->type == first.type && same_mask(l->mask, first.mask) &&
        can_prove_equal(ramp_of(*l).stride, ramp_of(first).stride) &&
        can_prove_equal(ramp_of(*l).base, ramp_of(first).base + Expr(k)))
      return l;
  return nullptr;
}

// The loads of columns 0, 1, ... by the statements from `first` on; empty where there are fewer
// than n.
std::vector<const Load*> columns_from(const Load& head, const std::vector<Stmt>& statements,
                                      size_t first, size_t n) {
  if (first + n > statements.size()) return {};
  std::vector<const Load*> columns;
  while (columns.size() < n) {
    const auto* st = statements[first + columns.size()].as<Store>();
    const Load* l = st ? column(*st, head, static_cast<int64_t>(columns.size())) : nullptr;
    if (!l) return {};
    columns.push_back(l);
  }
  return columns;
}
// Those of the first strided load of statement `first` for which `count` gives a number of columns,
// not 0, that are all there.
template <typename Count>
std::vector<const Load*> columns_of(const std::vector<Stmt>& statements, size_t first,
                                    Count&& count) {
  const auto* store = statements[first].as<Store>();
  if (!store) return {};
  StridedLoads loads;
  loads.visit(store->value);
  for (const Load* head : loads.found) {
    const size_t n = count(*head);
    std::vector<const Load*> columns;
    if (n > 0) columns = columns_from(*head, statements, first, n);
    if (!columns.empty()) return columns;
  }
  return {};
}

}  // namespace

std::vector<const Load*> columns_of_square(const std::vector<Stmt>& statements, size_t first) {
  return columns_of(statements, first, [](const Load& head) {
    const auto n = static_cast<size_t>(head.type.lanes);
    return head.mask || n < 4 || !std::has_single_bit(n) ? 0 : n;
  });
}

std::vector<const Load*> columns_of_stretch(const std::vector<Stmt>& statements, size_t first) {
  return columns_of(statements, first, [](const Load& head) -> size_t {
    const int64_t n = as_int(ramp_of(head).stride).value_or(0);
    const bool fits =
        n >= 2 && n <= head.type.lanes && n * byte_size(head.type.dtype) <= kWidestGroup;
    return fits ? static_cast<size_t>(n) : 0;
  });
}

}  // namespace tilewright::passes
