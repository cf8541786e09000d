// Strided accesses of neighbouring statements that together touch all of a stretch or a square of
// memory become one access to whole rows and a choice of lanes: what LLVM's loop vectorizer calls
// interleaved access groups, and transposing in registers. Rules of schedules (interleave_rule,
// transpose_rule) unroll such statements side by side; a gather or scatter for each would move the
// elements one by one.
//
//   B[ramp(j, 1, 8)] = A[ramp(i, 3, 8)]           let rows: f32x24 = A[ramp(ramp(i, 1, 3), 3, 24)]
//   B[ramp(j + 64, 1, 8)] = A[ramp(i + 1, 3, 8)]  B[ramp(j, 1, 8)] = every(rows, 0, 3)
//   B[ramp(j + 128, 1, 8)] = A[ramp(i + 2, 3, 8)] ...
#include "ir/loops/linear.h"
#include "ir/loops/rewrite.h"
#include "passes/loops/loop_passes.h"
#include "passes/loops/strided_loads.h"
#include "passes/loops/strided_stores.h"

namespace tilewright::passes {

using namespace ir;

namespace {

const Ramp& ramp_of(const Expr& index) { return *index.as<Ramp>(); }
// n rows of the mask that each part has; null: all lanes.
Expr mask_of_rows(const Expr& mask, int lanes, size_t n) {
  return mask ? interleave(std::vector<Expr>(n, broadcast(mask, lanes))) : Expr();
}

// What a statement reads of the columns becomes lanes of the rows.
class ReadColumns : public Rewriter {
 public:
  ReadColumns(const std::vector<const Load*>& columns, Expr rows)
      : columns_(columns), rows_(std::move(rows)) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    const auto* l = e.as<Load>();
    for (size_t k = 0; l && k < columns_.size(); ++k)
      if (reads_alike(*l, *columns_[k]))
        return every_lane(rows_, static_cast<int64_t>(k), static_cast<int64_t>(columns_.size()));
    return Rewriter::rewrite(e);
  }

 private:
  static bool reads_alike(const Load& a, const Load& b) {
    return a.buffer == b.buffer && same_expr(a.indices[0], b.indices[0]) &&
           (a.mask && b.mask ? same_expr(a.mask, b.mask) : !a.mask && !b.mask);
  }
  const std::vector<const Load*>& columns_;
  Expr rows_;
};

class GroupAccesses : public Rewriter {
 public:
  using Rewriter::rewrite;
  Stmt rewrite(const Stmt& s) override {
    const auto* list = s.as<Seq>();
    if (!list) return Rewriter::rewrite(s);
    std::vector<Stmt> stmts, grouped;
    for (const Stmt& x : list->stmts) stmts.push_back(rewrite(x));
    for (size_t i = 0; i < stmts.size();) add_from(stmts, i, grouped);
    bool same = grouped.size() == stmts.size();
    for (size_t i = 0; same && i < grouped.size(); ++i) same = grouped[i].same_as(list->stmts[i]);
    return same ? s : seq(std::move(grouped));
  }

 private:
  // The statement i, or the group that begins there; i goes on behind.
  static void add_from(const std::vector<Stmt>& stmts, size_t& i, std::vector<Stmt>& to) {
    std::vector<const Load*> columns = columns_of_square(stmts, i);
    const bool square = !columns.empty();
    if (!square) columns = columns_of_stretch(stmts, i);
    if (columns.empty()) return add_store(stmts, i, to);
    std::vector<Stmt> inside;
    for (const size_t end = i + columns.size(); i < end;) add_store(stmts, i, inside);
    to.push_back(read_rows(columns, square, seq(std::move(inside))));
  }
  static void add_store(const std::vector<Stmt>& stmts, size_t& i, std::vector<Stmt>& to) {
    const auto n = static_cast<size_t>(stores_of_stretch(stmts, i));
    to.push_back(n ? interleaved(stmts, i, n) : stmts[i]);
    i += std::max<size_t>(n, 1);
  }

  static Stmt read_rows(const std::vector<const Load*>& columns, bool square, const Stmt& body) {
    const Load& head = *columns[0];
    const Ramp& column = ramp_of(head.indices[0]);
    const int n = static_cast<int>(columns.size()), rows = head.type.lanes;
    // A mask of `true` lets loads be made where a Select does not choose them: here none is around.
    const Expr mask = head.mask && !is_one(head.mask) ? head.mask : Expr();
    const Expr index = ramp(ramp(column.base, Expr(1), n), column.stride, n * rows);
    const Expr all = load(head.buffer, {index}, mask_of_rows(mask, rows, columns.size()),
                          square ? head.ahead : 0);
    const Var var(head.buffer->name + "_rows", all.type());
    return let(var, all, ReadColumns(columns, var).rewrite(body));
  }
  static Stmt interleaved(const std::vector<Stmt>& stmts, size_t first, size_t n) {
    const Store& head = *stmts[first].as<Store>();
    const Ramp& along = ramp_of(head.indices[0]);
    const int lanes = along.type.lanes;
    std::vector<Expr> parts;
    for (size_t k = first; k < first + n; ++k)
      parts.push_back(broadcast(stmts[k].as<Store>()->value, lanes));
    return store(head.buffer, {ramp(along.base, Expr(1), lanes * static_cast<int>(n))},
                 interleave(std::move(parts)), mask_of_rows(head.mask, lanes, n), head.store_kind);
  }
};

}  // namespace

Stmt group_accesses(const Stmt& s) { return GroupAccesses().rewrite(s); }

}  // namespace tilewright::passes
