// The tile rule: what threads share out.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/schedule/rules/tile_rule.h"

namespace tilewright::passes {

using namespace ir;

bool TileRule::is_large_step() const {
  int64_t least = 1;
  for (const BlockAxis& a : block_.axes) least *= extent_or(a.extent, 1);
  const BlockPlace p = s_.place(m_);
  size_t ordered = 0;
  for_each_stmt(s_.kernel().body, [&](const Stmt& s) {
    const auto* around = s.as<Block>();
    if (!around || !find_block(around->body, m_).ok()) return;
    for (size_t i = 0; i < outer_loops_; ++i)
      for (size_t a = 0; a < around->axes.size(); ++a)
        ordered += around->axes[a].kind == AxisKind::kOrdered &&
                   around->bindings[a].same_as(p.loops[i]->var);
  });
  return ordered == outer_loops_ && least >= kParallelWork * 4;
}

void TileRule::parallelize_step() {
  if (!is_large_step()) return;
  const BlockPlace p = s_.place(m_);
  size_t n = outer_loops_;
  while (n + 1 < p.loops.size() && is_one(p.loops[n]->extent)) ++n;
  s_.apply("parallelize", {p.loops[n]->var.name()});
}

void TileRule::parallelize() {
  if (outer_loops_ > 0) return parallelize_step();
  if (instances(block_) < kParallelWork * 4) return;
  const BlockPlace p = s_.place(m_);
  std::string parallel = p.loops[0]->var.name();
  std::vector<std::string> rest;
  for (size_t i = 1; i <= outer_count_ && i < p.loops.size(); ++i)
    rest.push_back(p.loops[i]->var.name());
  for (const std::string& next : rest) {
    const std::string fused = m_ + ".par" + next.substr(next.rfind('.') + 1);
    if (!s_.apply("fuse_axes", {parallel, next, fused})) break;
    parallel = fused;
  }
  const int64_t tasks = extent_with(s_.place(m_).loops[0]->extent, 1);
  const int64_t threads = std::max(s_.machine().threads, 1);
  // Too few tasks to balance: the row tiles are dealt out too, when no row is left over.
  const auto rows = as_int(row_extent_);
  if (tasks < 4 * threads && rows && *rows % tile_.rows == 0 && !rows_.empty()) {
    const std::string fused = m_ + ".par_io";
    if (s_.apply("fuse_axes", {parallel, name(m_, "io"), fused})) parallel = fused;
  }
  s_.apply("parallelize", {parallel});
}

}  // namespace tilewright::passes
