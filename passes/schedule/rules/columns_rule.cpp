// Sums whose results lie side by side and whose terms are each read once: whole rows of terms in
// the order of memory, added to a row of accumulators.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/cost/cache_room.h"
#include "passes/loops/vector_width.h"
#include "passes/schedule/rules/rule.h"
#include "passes/schedule/rules/share_out.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Column sums, depthwise convolutions over channels-last images, pooling: arithmetic intensity is
// low, so the rule aims at streaming memory once, in order:
//
//    for jb: for terms: for jo: acc[jo] += x[term, jb, jo]      acc: a row of vectors in L1 or registers
//
// The axis along which results lie side by side, of more than one; none: the number of axes.
size_t column_of(const Block& b, const BlockAccess& store) {
  size_t column = b.axes.size();
  for (size_t i = 0; i < b.axes.size(); ++i)
    if (b.axes[i].kind != AxisKind::kReduce && store.strides[i] && is_one(store.strides[i]) &&
        !is_one(b.axes[i].extent))
      column = i;
  return column;
}

class ColumnsRule : public BlockRule {
 public:
  ColumnsRule(ScheduleState& s, const Work& work) : BlockRule(s, work.block), e_(work.epilogue) {}

 private:
  static std::string name(const std::string& block, const char* part) { return block + "." + part; }

  bool applies() override {
    if (s_.place(name_).loops.size() != block_.axes.size() || !reads_rows()) return false;
    if (e_.empty()) {
      e_ = name_ + "_out";
      if (!s_.apply("cache_write", {name_, name_ + "_acc", e_})) return false;
    }
    const BlockPlace e = s_.place(e_);
    epilogue_ = *e.block;
    const size_t results = block_.axes.size() - reduce_.size();
    if (epilogue_.axes.size() != results || e.loops.size() != results) return false;
    for (size_t i = 0; i < results; ++i)
      if (loop_of_axis(epilogue_, i).empty() ||
          !can_prove_equal(epilogue_.axes[i].extent, block_.axes[i].extent))
        return false;
    return true;
  }

  // Sets the axes; false where a term serves several results, or lies elsewhere than beside the
  // next one.
  bool reads_rows() {
    accesses_ = block_accesses(block_);
    const BlockAccess& store = accesses_.back();
    for (size_t i = 0; i < block_.axes.size(); ++i) {
      if (loop_of_axis(block_, i).empty() || block_.axes[i].kind == AxisKind::kOrdered)
        return false;
      (block_.axes[i].kind == AxisKind::kReduce ? reduce_ : outer_).push_back(i);
    }
    column_ = column_of(block_, store);
    bool plain = column_ < block_.axes.size() && !reduce_.empty();
    for_each_expr(block_.body, [&](const Expr& e) { plain &= e.as<Select>() == nullptr; });
    for (const BlockAccess& a : accesses_) plain = plain && (a.write || fits(a));
    if (!plain) return false;
    outer_.erase(std::find(outer_.begin(), outer_.end(), column_));
    by_stride(outer_, store);
    if (const SumOrder* sums = s_.sum_order(name_)) {
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
    std::stable_sort(axes.begin(), axes.end(),
                     [&](size_t x, size_t y) { return stride_or_far(a, x) > stride_or_far(a, y); });
  }

  // How wide a row of accumulators is (registers if a quarter of them suffices, else a quarter of
  // L1), and how many rows are added per pass over it.
  void decide() override {
    const int bytes = std::max(byte_size(block_.body.as<Store>()->buffer->dtype), 4);
    const int64_t columns = extent(column_), widest = s_.machine().lanes(bytes);
    lanes_ = s_.decide(loop("lanes"), powers_of_two(kFewestLanes, widest),
                       fitting_lanes(widest, columns), Bits::kKept);
    const int64_t vectors = (columns + lanes_ - 1) / lanes_;
    in_registers_ = s_.decide_whether(loop("in_registers"),
                                      vectors <= s_.machine().vector_registers / 4, Bits::kKept);
    // A row of accumulators stays in L1 beside the rows that pass by; parts of a row are alike.
    const int64_t most =
                      std::max<int64_t>(bytes_beside_a_stream(s_.machine()) / (bytes * lanes_), 1),
                  parts = (vectors + most - 1) / most;
    const int64_t usual = (vectors + parts - 1) / parts;
    width_ = lanes_ * s_.decide(loop("vectors"),
                                with(powers_of_two(1, std::max<int64_t>(usual, 4)), usual), usual,
                                Bits::kKept);
    rows_ = in_registers_ ? 1 : s_.decide(loop("rows"), {1, 2, kRows, 8}, kRows, Bits::kKept);
    s_.note(name_ + ": rows of " + std::to_string(width_) + " sums, " +
            (in_registers_ ? "in registers" : "in the cache") +
            "; what is added is read row by row, as it lies in memory");
  }

  bool write() override {
    if (!order_loops(name_, block_, true) || !order_loops(e_, epilogue_, false)) return false;
    if (!s_.apply("fuse_loops", {e_, loop("jb")}) ||
        !s_.apply("decompose_reduction", {name_, first_term_}) || !annotate_loops())
      return false;
    parallelize();
    return true;
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
        if (!s_.apply("collapse", {terms.back(), inner, name(block, "r") + std::to_string(k)}))
          break;
        inner = name(block, "r") + std::to_string(k);
        terms.pop_back();
      }
      if (!s_.apply("split", {inner, name(block, "ro"), name(block, "ri")}, {rows_})) return false;
      terms.push_back(name(block, "ro"));
    }
    if (main) first_term_ = terms[0];
    inside.insert(inside.end(), terms.begin(), terms.end());
    inside.push_back(name(block, "jo"));
    if (main && !in_registers_) inside.push_back(name(block, "ri"));
    inside.push_back(name(block, "jv"));
    return s_.apply("reorder", inside);
  }

  bool annotate_loops() {
    if (!annotate(s_, "vectorize", loop("jv")) || !annotate(s_, "vectorize", name(e_, "jv")) ||
        !annotate(s_, "vectorize", loop("jv_init")))
      return false;
    if (!in_registers_) return annotate(s_, "unroll", loop("ri"));
    return annotate(s_, "unroll", loop("jo")) && annotate(s_, "unroll", name(e_, "jo")) &&
           annotate(s_, "unroll", loop("jo_init"));
  }

  void parallelize() {
    if (!forks(s_, name_)) return;
    std::vector<std::string> loops;  // names: steps replace the loops
    for (const For* f : s_.place(name_).loops) loops.push_back(f->var.name());
    loops.resize(outer_.size() + 1);
    s_.attempt(
        "parallelize",
        {collapse_loops(s_, loops, [&](size_t i) { return loop("p") + std::to_string(i); })});
  }

  static constexpr int64_t kRows = 4;

  std::string e_, first_term_;
  Block epilogue_;
  std::vector<BlockAccess> accesses_;
  std::vector<size_t> outer_, reduce_;  // outermost in memory first
  size_t column_ = 0;
  int64_t lanes_ = 1, width_ = 1, rows_ = 1;
  bool in_registers_ = false;
};

}  // namespace

bool columns_pay(const ScheduleState& s, const Work& work) {
  constexpr int64_t kFewestTerms = 32;
  const BlockPlace p = s.place(work.block);
  int64_t terms = 1;
  for (const BlockAxis& a : p.block->axes)
    if (a.kind == AxisKind::kReduce) terms *= extent_or(a.extent, kUnknownExtent);
  return terms >= kFewestTerms;
}

std::optional<Taken> take_columns(ScheduleState& s, const Work& work) {
  if (!ColumnsRule(s, work).run()) return std::nullopt;
  return Taken{.also = {work.epilogue}, .before = ""};
}

}  // namespace tilewright::passes
