// The Winograd rule: the steps that its loops are made by.
#include <algorithm>

#include "ir/ops/winograd.h"
#include "passes/cost/cache_room.h"
#include "passes/loops/vector_width.h"
#include "passes/schedule/rules/share_out.h"
#include "passes/schedule/rules/winograd_rule.h"

namespace tilewright::passes {

using namespace ir;

bool WinogradRule::pack_weights() {
  for (const BlockAccess& a : block_accesses(*s_.place(kWinogradProduct).block))
    if (!a.write && s_.is_constant(a.buffer) && a.buffer->layout.empty() &&
        !s_.apply("transform_layout", {a.buffer->name},
                  {3, width_, 0, 0, 1, 0, 1, 1, 0, 2, 1, 0, 3, 1, width_}))
      return false;
  return true;
}

bool WinogradRule::split_channels(const std::string& b, size_t axis) {
  return split(loop(b, axis), name(b, "jg"), name(b, "jr"), plan_.panels * width_) &&
         split(name(b, "jr"), name(b, "jo"), name(b, "jt"), width_);
}

bool WinogradRule::split_panel(const std::string& b) {
  return split(name(b, "jt"), name(b, "jc"), name(b, "jv"), plan_.lanes);
}

bool WinogradRule::split_images(const std::string& b, size_t axis) {
  return plan_.images == 1 || split(loop(b, axis), name(b, "ng"), name(b, "ni"), plan_.images);
}

std::string WinogradRule::around_images(const std::string& b, size_t axis) const {
  return plan_.images == 1 ? loop(b, axis) : name(b, "ng");
}

std::vector<std::string> WinogradRule::with_images(const std::string& b,
                                                   std::vector<std::string> order,
                                                   const std::string& before) const {
  if (plan_.images > 1) order.insert(std::find(order.begin(), order.end(), before), name(b, "ni"));
  return order;
}

bool WinogradRule::split_tiles(const std::string& b) {
  return split(loop(b, 3), name(b, "tb"), name(b, "ty"), plan_.down) &&
         split(loop(b, 4), name(b, "wr"), name(b, "tx"), plan_.across);
}

bool WinogradRule::tile_results() {
  if (!tile_results_of(y_)) return false;
  return y_ == kWinogradOutput || (tile_results_of(kWinogradOutput) &&
                                   s_.apply("fuse_loops", {kWinogradOutput, name(y_, "jc")}));
}

bool WinogradRule::tile_results_of(const std::string& b) {
  const std::string n = around_images(b, 0), h = loop(b, 2), w = loop(b, 3);
  return split_images(b, 0) && split(h, name(b, "tb"), name(b, "hr"), plan_.down * m_) &&
         split(name(b, "hr"), name(b, "ty"), name(b, "hi"), m_) &&
         split(w, name(b, "wr"), name(b, "wx"), plan_.across * m_) &&
         split(name(b, "wx"), name(b, "tx"), name(b, "wi"), m_) && split_channels(b, 1) &&
         split_panel(b) &&
         s_.apply("reorder",
                  with_images(
                      b,
                      {n, name(b, "tb"), name(b, "wr"), name(b, "jg"), name(b, "jo"), name(b, "ty"),
                       name(b, "tx"), name(b, "jc"), name(b, "hi"), name(b, "wi"), name(b, "jv")},
                      name(b, "ty"))) &&
         s_.apply("vectorize", {name(b, "jv")}) && s_.apply("unroll", {name(b, "hi")}) &&
         s_.apply("unroll", {name(b, "wi")});
}

bool WinogradRule::tile_columns() {
  const std::string b = kWinogradColumns;
  const std::string i = loop(b, 0), point = loop(b, 1), n = around_images(b, 2);
  return split_images(b, 2) && split_tiles(b) && split_channels(b, 5) && split_panel(b) &&
         s_.apply("reorder", with_images(b,
                                         {n, name(b, "tb"), name(b, "wr"), name(b, "jg"),
                                          name(b, "jo"), name(b, "ty"), name(b, "tx"),
                                          name(b, "jc"), point, i, name(b, "jv")},
                                         name(b, "ty"))) &&
         s_.apply("fuse_loops", {b, name(y_, "jc")}) && s_.apply("vectorize", {name(b, "jv")}) &&
         s_.apply("unroll", {point}) && s_.apply("unroll", {i});
}

bool WinogradRule::place_products() {
  for (const std::string& b : {std::string(kSums), std::string(kWinogradProduct)}) {
    std::vector<std::string> order = with_images(
        b,
        {around_images(b, 2), name(b, "tb"), name(b, "wr"), name(b, "jg"), name(b, "jo"),
         loop(b, 0), loop(b, 1), name(b, "ty"), name(b, "tx"), name(b, "jt")},
        name(b, "ty"));
    const bool main = b == kWinogradProduct;
    if (main) order.push_back(loop(b, 6));
    if (!split_images(b, 2) || !split_tiles(b) || !split_channels(b, 5) ||
        !s_.apply("reorder", order))
      return false;
    if (!s_.apply("fuse_loops", {b, main ? loop(kSums, 1) : name(y_, "jo")})) return false;
  }
  return true;
}

bool WinogradRule::share_out() {
  task_ = name(y_, "task");
  return s_.apply("collapse", {around_images(y_, 0), name(y_, "tb"), name(y_, "rows")}) &&
         s_.apply("collapse", {name(y_, "rows"), name(y_, "wr"), name(y_, "blocks")}) &&
         s_.apply("collapse", {name(y_, "blocks"), name(y_, "jg"), task_}) &&
         s_.apply("parallelize", {task_});
}

bool WinogradRule::stage_input() {
  const std::string in = kWinogradInput, rows = kWinogradRows;
  const int64_t lanes = fitting_lanes(s_.machine().lanes(4), sizes_.in_channels);
  if (!s_.apply("compute_at", {in, task_}) ||
      !split(name(in, "s5"), name(in, "c"), name(in, "v"), lanes) ||
      !s_.apply("reorder", {name(in, "s2"), name(in, "s3"), name(in, "c"), name(in, "s0"),
                            name(in, "s4"), name(in, "s1"), name(in, "v")}) ||
      !s_.apply("compute_at", {rows, name(in, "c")}) ||
      !s_.apply("reorder", {name(rows, "s1"), name(rows, "s2"), name(rows, "s3"), name(rows, "s0"),
                            name(rows, "s4")}))
    return false;
  return s_.apply("vectorize", {name(in, "v")}) && s_.apply("vectorize", {name(rows, "s4")}) &&
         s_.apply("unroll", {name(in, "s1")}) && s_.apply("unroll", {name(rows, "s0")});
}

bool WinogradRule::tile_products() {
  const std::string m = kWinogradProduct, reduce = loop(m, 6);
  for (const std::string& b : {std::string(kSums), m}) {
    const bool several = plan_.images > 1;
    if ((several && !s_.apply("collapse", {name(b, "ni"), name(b, "ty"), name(b, "in")})) ||
        !s_.apply("collapse", {name(b, several ? "in" : "ty"), name(b, "tx"), name(b, "i")}) ||
        !split(name(b, "i"), name(b, "io"), name(b, "ii"), plan_.tile.best.rows) || !split_panel(b))
      return false;
    std::vector<std::string> order{name(b, "io")};
    if (b == m) order.push_back(reduce);
    for (const char* part : {"ii", "jc", "jv"}) order.push_back(name(b, part));
    if (!s_.apply("reorder", order)) return false;
  }
  if (!s_.apply("fuse_loops", {m, name(kSums, "io")}) ||
      !s_.apply("decompose_reduction", {m, reduce}))
    return false;
  if (!annotate_tile(kSums, "") || !annotate_tile(m, "") || !annotate_tile(m, "_init"))
    return false;
  prefetch_weights();
  return true;
}

void WinogradRule::prefetch_weights() {
  const BlockPlace p = s_.place(kWinogradProduct);
  for (const BlockAccess& a : block_accesses(*p.block)) {
    if (a.write || a.buffer->layout.size() != 5 || a.buffer->layout.back().modulus != width_ ||
        bytes_of(*a.buffer) <= bytes_of_a_panel(s_.machine()))
      continue;
    if (s_.decide_whether(name(kWinogradProduct, "next_weights"), true, Bits::kKept))
      s_.attempt("prefetch_next",
                 {kWinogradProduct, kWinogradProduct, a.buffer->name, loop(kSums, 1)},
                 {sizes_.in_channels * width_, static_cast<int64_t>(PrefetchKind::kOuter), 1});
  }
}

bool WinogradRule::annotate_tile(const std::string& b, const char* init) {
  return annotate(s_, "vectorize", name(b, "jv") + init) &&
         annotate(s_, "unroll", name(b, "jc") + init) &&
         annotate(s_, "unroll", name(b, "ii") + init);
}

}  // namespace tilewright::passes
