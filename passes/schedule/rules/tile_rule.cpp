// A tile of accumulators in registers: rows by vectors of results, the reduction inside, the
// epilogue on the tile.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/schedule/rules/share_out.h"
#include "passes/schedule/rules/tile_rule.h"

namespace tilewright::passes {

using namespace ir;

bool TileRule::applies() {
  for (size_t i = 0; i < block_.axes.size(); ++i)
    if (loop_of_axis(block_, i).empty()) return false;
  const size_t loops = s_.place(name_).loops.size();
  if (loops < block_.axes.size()) return false;
  outer_loops_ = loops - block_.axes.size();
  if (e_.empty()) {
    e_ = name_ + "_out";
    if (!s_.apply("cache_write", {name_, name_ + "_acc", e_})) return false;
  }
  part_groups();
  if (outer_loops_ == 0 && !s_.sum_order(name_)) join_terms_of_blocks();
  if (outer_loops_ == 0) join_columns();
  return find_axes();
}

// The loop nest that results, outermost first (example: GEMM, 6 x 2 tile of 8 lanes):
//
//    for jo: for io:                                panel of columns, rows
//      for k:                                       reduction
//        for ii in 0..6: for jc in 0..2: jv[8]      micro-kernel: 12 accumulators
//      epilogue on the 6 x 16 tile
bool TileRule::write() {
  pack_operands();
  if (!order_loops(name_, block_, true)) return false;
  epilogue_ = *s_.place(e_).block;
  if (epilogue_.axes.size() != parallel_.size() || !order_loops(e_, epilogue_, false)) return false;
  const std::string results = blocks_ ? results_loop_ : hoisted_.empty() ? loop("io") : loop("jo");
  if (!s_.apply("fuse_loops", {e_, results})) return false;
  if (!matrix_) bring_followers();
  if (!s_.apply("decompose_reduction",
                {name_, reduce_loops_.empty() ? loop("ii") : reduce_loops_[0]}))
    return false;
  if (matrix_ && !split_rows()) return false;
  if (!annotate_tile(name_)) return false;
  if (slides_ && !s_.apply("unroll", {reduce_loops_.back()})) return false;
  if (dot_ && !s_.apply("tensorize", {loop("kq"), "dot"})) return false;
  if (matrix_ && !s_.apply("tensorize", {loop("ii"), "dot_tile"})) return false;
  if (!annotate_tile(e_) || !annotate_init()) return false;
  if (!stage_padding()) parallelize();
  if (!make_copies()) return false;
  stream_results();
  prefetch();
  return true;
}

bool TileRule::order_loops(const std::string& block, const Block& b, bool main) {
  auto axis = [&](size_t n) { return loop_of_axis(b, main ? parallel_[n] : n); };
  std::vector<std::string> order;
  for (size_t n = 0; n < parallel_.size(); ++n)
    if (n != j_ && std::find(rows_.begin(), rows_.end(), n) == rows_.end() &&
        std::find(outer_.begin(), outer_.end(), n) == outer_.end())
      order.push_back(axis(n));
  for (size_t k = outer_.size(); k-- > 0;) order.push_back(axis(outer_[k]));
  outer_count_ = order.size();
  for (size_t k = rows_.size(); k-- > 0;) order.push_back(axis(rows_[k]));
  order.push_back(axis(j_));
  if (main)
    for (size_t r : reduce_in_order()) {
      order.push_back(loop_of_axis(b, r));
      reduce_loops_.push_back(order.back());
    }
  if (order.size() > 1 && !s_.apply("reorder", order)) return false;
  const int64_t width = tile_.vectors * lanes_;
  if (rows_.empty()) {  // one row, so that the tile has its shape all the same
    if (!s_.apply("split", {axis(j_), name(block, "jall"), name(block, "jt")}, {width}))
      return false;
    if (!s_.apply("split", {name(block, "jall"), name(block, "jo"), name(block, "row")}, {1}))
      return false;
    if (!s_.apply("split", {name(block, "row"), name(block, "io"), name(block, "ii")}, {1}))
      return false;
  } else {
    std::string row = axis(rows_.back());
    for (size_t k = rows_.size() - 1; k-- > 0;) {
      const std::string fused = name(block, "row") + std::to_string(k);  // no axis has that name
      if (!s_.apply("collapse", {row, axis(rows_[k]), fused})) return false;
      row = fused;
    }
    if (!s_.apply("split", {row, name(block, "io"), name(block, "ii")}, {tile_.rows})) return false;
    if (!s_.apply("split", {axis(j_), name(block, "jo"), name(block, "jt")}, {width})) return false;
  }
  if (!s_.apply("split", {name(block, "jt"), name(block, "jc"), name(block, "jv")}, {lanes_}))
    return false;
  if (main && dot_ && !split_terms()) return false;
  std::vector<std::string> tiled;
  const std::string panels = name(block, "jo"), groups = name(block, "jb");
  if (group_ > 0) {
    if (!s_.apply("split", {panels, groups, panels}, {group_})) return false;
    tiled.push_back(groups);
  }
  if (main && !(blocks_ ? block_terms() : block_reduction())) return false;
  if (main) tiled.insert(tiled.end(), hoisted_.begin(), hoisted_.end());
  tiled.insert(blocks_ ? tiled.end() : tiled.begin(), panels);
  if (main && blocks_) results_loop_ = group_ > 0 ? groups : order[outer_count_ - 1];
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
  const std::string groups = loop(matrix_ ? "kg" : "ko");
  if (!s_.apply("split", {reduce_loops_.back(), groups, loop("kq")}, {dot_})) return false;
  reduce_loops_.back() = loop("ko");
  return !matrix_ || s_.apply("split", {groups, loop("ko"), loop("kt")}, {MatrixTile::kGroups});
}

bool TileRule::split_rows() {
  std::vector<std::string> order;
  for (const char* part : {"ir", "jc", "ii", "kt", "jv", "kq"}) order.push_back(loop(part));
  return s_.apply("split", {loop("ii"), loop("ir"), loop("ii")}, {matrix_->rows}) &&
         s_.apply("reorder", order);
}

bool TileRule::annotate_tile(const std::string& block) {
  return annotate(s_, "vectorize", name(block, "jv")) &&
         annotate(s_, "unroll", name(block, "jc")) &&
         (!matrix_ || block != name_ || s_.apply("unroll", {loop("ir")})) &&
         (matrix_ || annotate(s_, "unroll", name(block, "ii")));
}

bool TileRule::annotate_init() {
  return annotate(s_, "vectorize", loop("jv_init")) && annotate(s_, "unroll", loop("jc_init")) &&
         (matrix_ || annotate(s_, "unroll", loop("ii_init")));
}

}  // namespace tilewright::passes
