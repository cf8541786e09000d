// A tile of accumulators in registers: rows by vectors of results, the reduction inside, the
// epilogue on the tile.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/schedule/rules/tile_rule.h"

namespace tilewright::passes {

using namespace ir;

bool TileRule::run() {
  const BlockPlace place = s_.place(m_);
  block_ = *place.block;
  for (size_t i = 0; i < block_.axes.size(); ++i)
    if (loop_of_axis(block_, i).empty()) return false;
  if (place.loops.size() < block_.axes.size()) return false;
  outer_loops_ = place.loops.size() - block_.axes.size();
  return s_.all_or_nothing([&] { return build(); });
}

bool TileRule::build() {
  if (e_.empty()) {
    e_ = m_ + "_out";
    if (!s_.apply("cache_write", {m_, m_ + "_acc", e_})) return false;
  }
  if (!find_axes()) return false;
  choose();
  pack_operands();
  if (!order_loops(m_, block_, true)) return false;
  const BlockPlace e = s_.place(e_);
  const Block epilogue = *e.block;
  if (epilogue.axes.size() != parallel_.size()) return false;
  if (!order_loops(e_, epilogue, false)) return false;
  if (!s_.apply("compute_at", {e_, name(m_, hoisted_.empty() ? "io" : "jo")})) return false;
  if (!s_.apply("decompose_reduction",
                {m_, reduce_loops_.empty() ? name(m_, "ii") : reduce_loops_[0]}))
    return false;
  if (matrix_ && !split_rows()) return false;
  annotate(m_);
  if (slides_) s_.apply("unroll", {reduce_loops_.back()});
  if (dot_ && !s_.apply("tensorize", {name(m_, "kq")})) return false;
  if (matrix_ && !s_.apply("tensorize", {name(m_, "ii")})) return false;
  annotate(e_);
  annotate_init();
  if (!stage_padding()) parallelize();
  return true;
}

bool TileRule::order_loops(const std::string& block, const Block& b, bool main) {
  auto loop = [&](size_t n) { return loop_of_axis(b, main ? parallel_[n] : n); };
  std::vector<std::string> order;
  for (size_t n = 0; n < parallel_.size(); ++n)
    if (n != j_ && std::find(rows_.begin(), rows_.end(), n) == rows_.end() &&
        std::find(outer_.begin(), outer_.end(), n) == outer_.end())
      order.push_back(loop(n));
  for (size_t k = outer_.size(); k-- > 0;) order.push_back(loop(outer_[k]));
  outer_count_ = order.size();
  for (size_t k = rows_.size(); k-- > 0;) order.push_back(loop(rows_[k]));
  order.push_back(loop(j_));
  if (main)
    for (size_t r : reduce_in_order()) {
      order.push_back(loop_of_axis(b, r));
      reduce_loops_.push_back(order.back());
    }
  if (order.size() > 1 && !s_.apply("reorder", order)) return false;
  const int64_t width = tile_.vectors * lanes_;
  if (rows_.empty()) {  // one row, so that the tile has its shape all the same
    if (!s_.apply("split", {loop(j_), name(block, "jall"), name(block, "jt")}, {width}))
      return false;
    if (!s_.apply("split", {name(block, "jall"), name(block, "jo"), name(block, "row")}, {1}))
      return false;
    if (!s_.apply("split", {name(block, "row"), name(block, "io"), name(block, "ii")}, {1}))
      return false;
  } else {
    std::string row = loop(rows_.back());
    for (size_t k = rows_.size() - 1; k-- > 0;) {
      const std::string fused = name(block, "row") + std::to_string(k);  // no axis has that name
      if (!s_.apply("fuse_axes", {row, loop(rows_[k]), fused})) return false;
      row = fused;
    }
    if (!s_.apply("split", {row, name(block, "io"), name(block, "ii")}, {tile_.rows})) return false;
    if (!s_.apply("split", {loop(j_), name(block, "jo"), name(block, "jt")}, {width})) return false;
  }
  if (!s_.apply("split", {name(block, "jt"), name(block, "jc"), name(block, "jv")}, {lanes_}))
    return false;
  if (main && dot_ && !split_terms()) return false;
  std::vector<std::string> tiled{name(block, "jo")};
  if (main && !block_reduction()) return false;
  if (main) tiled.insert(tiled.end(), hoisted_.begin(), hoisted_.end());
  if (columns_first_)
    tiled.insert(tiled.end(), order.begin(), order.begin() + static_cast<long>(outer_count_));
  tiled.push_back(name(block, "io"));
  if (main)
    tiled.insert(tiled.end(), reduce_loops_.begin() + static_cast<long>(hoisted_.size()),
                 reduce_loops_.end());
  if (main && matrix_) tiled.push_back(name(block, "kt"));
  for (const char* part : {"ii", "jc", "jv"}) tiled.push_back(name(block, part));
  if (main && dot_) tiled.push_back(name(block, "kq"));
  return s_.apply("reorder", tiled);
}

bool TileRule::split_terms() {
  const std::string groups = name(m_, matrix_ ? "kg" : "ko");
  if (!s_.apply("split", {reduce_loops_.back(), groups, name(m_, "kq")}, {dot_})) return false;
  reduce_loops_.back() = name(m_, "ko");
  return !matrix_ ||
         s_.apply("split", {groups, name(m_, "ko"), name(m_, "kt")}, {MatrixTile::kGroups});
}

bool TileRule::split_rows() {
  std::vector<std::string> order;
  for (const char* part : {"ir", "jc", "ii", "kt", "jv", "kq"}) order.push_back(name(m_, part));
  return s_.apply("split", {name(m_, "ii"), name(m_, "ir"), name(m_, "ii")}, {matrix_->rows}) &&
         s_.apply("reorder", order);
}

void TileRule::annotate(const std::string& block) {
  s_.apply("vectorize", {name(block, "jv")});
  s_.apply("unroll", {name(block, "jc")});
  if (matrix_ && block == m_) s_.apply("unroll", {name(m_, "ir")});
  if (!matrix_) s_.apply("unroll", {name(block, "ii")});
}

void TileRule::annotate_init() {
  s_.apply("vectorize", {name(m_, "jv_init")});
  s_.apply("unroll", {name(m_, "jc_init")});
  if (!matrix_) s_.apply("unroll", {name(m_, "ii_init")});
}

bool tile_rule(ScheduleState& s, const std::string& block, const std::string& epilogue) {
  return TileRule(s, block, epilogue).run();
}

}  // namespace tilewright::passes
