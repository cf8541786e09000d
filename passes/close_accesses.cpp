#include "passes/close_accesses.h"

#include <set>
#include <unordered_map>

#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// By access, the dimensions whose index gets a guard.
using Guards = std::unordered_map<const void*, std::set<int>>;

// Loads become selects, whose other side reads nothing; stores become conditional.
class Guard : public Rewriter {
 public:
  explicit Guard(const Guards& guards) : guards_(guards) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    const Expr inside = Rewriter::rewrite(e);
    const auto it = guards_.find(e.get());
    if (it == guards_.end()) return inside;
    const auto& l = *inside.as<Load>();
    return select(within(*l.buffer, l.indices, it->second), inside, constant(0, inside.dtype()));
  }
  Stmt rewrite(const Stmt& s) override {
    const Stmt inside = Rewriter::rewrite(s);
    const auto it = guards_.find(s.get());
    if (it == guards_.end()) return inside;
    const auto& st = *inside.as<Store>();
    return if_then(within(*st.buffer, st.indices, it->second), inside);
  }

 private:
  static Expr within(const BufferNode& b, const std::vector<Expr>& indices,
                     const std::set<int>& dims) {
    Expr all = bool_imm(true);
    for (const int d : dims) {
      const Expr& i = indices[static_cast<size_t>(d)];
      all = logical_and(all, logical_and(Expr(0) <= i, i < b.shape[static_cast<size_t>(d)]));
    }
    return all;
  }
  const Guards& guards_;
};

bool has(const std::vector<Requirement>& all, const Requirement& r) {
  for (const Requirement& other : all)
    if (other.relation == r.relation && same_expr(other.a, r.a) && same_expr(other.b, r.b))
      return true;
  return false;
}

}  // namespace

// What is known is asked only where the kernel's own text leaves something open: most kernels do without.
ClosedKernel close_accesses(const Kernel& kernel, const std::vector<CheckedElements>& checked,
                            const std::vector<Requirement>& known,
                            const std::function<std::string(const OpenAccess&)>& who) {
  std::vector<OpenAccess> open = open_accesses(kernel, checked, {});
  if (!open.empty() && !known.empty()) open = open_accesses(kernel, checked, known);
  ClosedKernel closed{kernel.body, {}, 0};
  Guards guards;
  for (const OpenAccess& a : open) {
    if (!a.certain || !a.low || !a.high) {
      guards[a.access].insert(a.dim);
      continue;
    }
    for (const Requirement& r :
         {Requirement{0, simplify(a.low * a.runs), Relation::kAtMost, who(a)},
          Requirement{simplify((a.high + Expr(1)) * a.runs), a.extent, Relation::kAtMost, who(a)}})
      if (!can_prove(r.a <= r.b) && !has(closed.requirements, r)) closed.requirements.push_back(r);
  }
  closed.guards = guards.size();
  if (!guards.empty()) closed.body = Guard(guards).rewrite(kernel.body);
  return closed;
}

}  // namespace tilewright::passes
