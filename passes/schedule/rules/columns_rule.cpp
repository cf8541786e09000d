// Sums whose results lie side by side and whose terms are each read once: whole rows of terms in
// the order of memory, added to a row of accumulators.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class ColumnsRule {
 public:
  ColumnsRule(ScheduleState& s, std::string block, std::string epilogue)
      : s_(s), m_(std::move(block)), e_(std::move(epilogue)) {}

  bool run() {
    const BlockPlace place = s_.place(m_);
    block_ = *place.block;
    if (place.loops.size() != block_.axes.size() || !reads_rows()) return false;
    return s_.all_or_nothing([&] { return build(); });
  }

 private:
  static std::string name(const std::string& block, const char* part) { return block + "." + part; }
  int64_t extent(size_t axis) const { return extent_or(block_.axes[axis].extent, kUnknownExtent); }

  // Sets the axes; false where a term serves several results, or lies elsewhere than beside the
  // next one.
  bool reads_rows() {
    accesses_ = block_accesses(block_);
    const BlockAccess& store = accesses_.back();
    int64_t terms = 1;
    bool found = false;
    for (size_t i = 0; i < block_.axes.size(); ++i) {
      if (loop_of_axis(block_, i).empty() || block_.axes[i].kind == AxisKind::kOrdered)
        return false;
      const bool reduce = block_.axes[i].kind == AxisKind::kReduce;
      (reduce ? reduce_ : outer_).push_back(i);
      if (reduce) terms *= extent(i);
      if (reduce || !store.strides[i] || !is_one(store.strides[i]) || is_one(block_.axes[i].extent))
        continue;
      column_ = i;
      found = true;
    }
    bool plain = found && terms >= kFewestTerms;
    for_each_expr(block_.body, [&](const Expr& e) { plain &= e.as<Select>() == nullptr; });
    for (const BlockAccess& a : accesses_) plain = plain && (a.write || fits(a));
    if (!plain) return false;
    outer_.erase(std::find(outer_.begin(), outer_.end(), column_));
    by_stride(outer_, store);
    if (const SumOrder* sums = s_.sum_order(m_)) {
      reduce_ = sums->axes;
      return true;
    }
    for (const BlockAccess& a : accesses_)
      if (moves_with_terms(a)) by_stride(reduce_, a);
    return true;
  }
  bool moves_with_terms(const BlockAccess& a) const {
    return std::any_of(reduce_.begin(), reduce_.end(), [&](size_t r) {
      return !a.strides[r] || (!is_zero(a.strides[r]) && !is_one(block_.axes[r].extent));
    });
  }
  bool fits(const BlockAccess& a) const {
    if (a.buffer == accesses_.back().buffer || !moves_with_terms(a)) return true;
    for (size_t i : outer_)
      if (!is_one(block_.axes[i].extent) && (!a.strides[i] || is_zero(a.strides[i]))) return false;
    return a.strides[column_] && is_one(a.strides[column_]);
  }
  static void by_stride(std::vector<size_t>& axes, const BlockAccess& a) {
    auto stride = [&](size_t i) {
      return a.strides[i] ? as_int(a.strides[i]).value_or(int64_t{1} << 40) : int64_t{1} << 50;
    };
    std::stable_sort(axes.begin(), axes.end(),
                     [&](size_t x, size_t y) { return stride(x) > stride(y); });
  }

  bool build() {
    if (e_.empty()) {
      e_ = m_ + "_out";
      if (!s_.apply("cache_write", {m_, m_ + "_acc", e_})) return false;
    }
    const BlockPlace e = s_.place(e_);
    const Block epilogue = *e.block;
    const size_t results = block_.axes.size() - reduce_.size();
    if (epilogue.axes.size() != results || e.loops.size() != results) return false;
    for (size_t i = 0; i < results; ++i)
      if (loop_of_axis(epilogue, i).empty() ||
          !can_prove_equal(epilogue.axes[i].extent, block_.axes[i].extent))
        return false;
    choose();
    if (!order_loops(m_, block_, true) || !order_loops(e_, epilogue, false)) return false;
    if (!s_.apply("compute_at", {e_, name(m_, "jb")}) ||
        !s_.apply("decompose_reduction", {m_, first_term_}))
      return false;
    annotate();
    parallelize();
    return true;
  }

  void choose() {
    const int bytes = std::max(byte_size(block_.body.as<Store>()->buffer->dtype), 4);
    const int64_t columns = extent(column_);
    lanes_ = s_.machine().lanes(bytes);
    while (lanes_ > 4 && columns <= lanes_ / 2) lanes_ /= 2;
    const int64_t vectors = (columns + lanes_ - 1) / lanes_;
    in_registers_ = vectors <= s_.machine().vector_registers / 4;
    // A row of accumulators stays in L1 beside the rows that pass by; parts of a row are alike.
    const int64_t most = std::max<int64_t>(s_.machine().l1_bytes / 4 / (bytes * lanes_), 1),
                  parts = (vectors + most - 1) / most;
    width_ = (vectors + parts - 1) / parts * lanes_;
    s_.note(m_ + ": rows of " + std::to_string(width_) + " sums, " +
            (in_registers_ ? "in registers" : "in the cache") +
            "; what is added is read row by row, as it lies in memory");
  }

  // Loops: outer axes, jb, terms, jo, jv; several rows are added to a vector of sums that waits in
  // the cache.
  bool order_loops(const std::string& block, const Block& b, bool main) {
    std::vector<std::string> order, terms;
    for (size_t i : outer_) order.push_back(loop_of_axis(b, i));
    const std::string column = loop_of_axis(b, column_);
    order.push_back(column);
    if (main)
      for (size_t i : reduce_) terms.push_back(loop_of_axis(b, i));
    order.insert(order.end(), terms.begin(), terms.end());
    if (order.size() > 1 && !s_.apply("reorder", order)) return false;
    if (!s_.apply("split", {column, name(block, "jb"), name(block, "jt")}, {width_}) ||
        !s_.apply("split", {name(block, "jt"), name(block, "jo"), name(block, "jv")}, {lanes_}))
      return false;
    std::vector<std::string> inside{name(block, "jb")};
    if (main && !in_registers_) {
      std::string inner = terms.back();
      terms.pop_back();
      // Axes that run on make one long one.
      for (size_t k = reduce_.size() - 1; k-- > 0;) {
        if (!s_.apply("fuse_axes", {terms.back(), inner, name(block, "r") + std::to_string(k)}))
          break;
        inner = name(block, "r") + std::to_string(k);
        terms.pop_back();
      }
      if (!s_.apply("split", {inner, name(block, "ro"), name(block, "ri")}, {kRows})) return false;
      terms.push_back(name(block, "ro"));
    }
    if (main) first_term_ = terms[0];
    inside.insert(inside.end(), terms.begin(), terms.end());
    inside.push_back(name(block, "jo"));
    if (main && !in_registers_) inside.push_back(name(block, "ri"));
    inside.push_back(name(block, "jv"));
    return s_.apply("reorder", inside);
  }

  void annotate() {
    for (const std::string& block : {m_, e_}) s_.apply("vectorize", {name(block, "jv")});
    s_.apply("vectorize", {name(m_, "jv_init")});
    if (!in_registers_) {
      s_.apply("unroll", {name(m_, "ri")});
      return;
    }
    for (const std::string& block : {m_, e_}) s_.apply("unroll", {name(block, "jo")});
    s_.apply("unroll", {name(m_, "jo_init")});
  }

  void parallelize() {
    if (instances(block_) < kParallelWork * 4) return;
    std::vector<std::string> loops;  // names: steps replace the loops
    for (const For* f : s_.place(m_).loops) loops.push_back(f->var.name());
    std::string parallel = loops[0];
    for (size_t i = 1; i <= outer_.size(); ++i) {
      const std::string fused = name(m_, "p") + std::to_string(i);
      if (!s_.apply("fuse_axes", {parallel, loops[i], fused})) break;
      parallel = fused;
    }
    s_.apply("parallelize", {parallel});
  }

  static constexpr int64_t kFewestTerms = 32, kRows = 4;

  ScheduleState& s_;
  std::string m_, e_, first_term_;
  Block block_;
  std::vector<BlockAccess> accesses_;
  std::vector<size_t> outer_, reduce_;  // outermost in memory first
  size_t column_ = 0;
  int64_t lanes_ = 1, width_ = 1;
  bool in_registers_ = false;
};

}  // namespace

bool columns_rule(ScheduleState& s, const std::string& block, const std::string& epilogue) {
  return ColumnsRule(s, block, epilogue).run();
}

}  // namespace tilewright::passes
