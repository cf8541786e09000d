// Winograd convolutions: a task takes a block of tiles through all steps while they are in cache.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "ir/ops/winograd.h"
#include "passes/cost/cache_room.h"
#include "passes/cost/winograd_cost.h"
#include "passes/loops/vector_width.h"
#include "passes/schedule/rules/rule.h"
#include "passes/schedule/rules/share_out.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// The five blocks of winograd_conv fused by tiles (as oneDNN's W_S_GEMM_D variant), so that
// transformed inputs and products stay in L2:
//
//    for task (image, block of tiles, group of panels) parallel:
//      input transform of the block           its first half is shared by tiles side by side
//      for panel of output channels:
//        for each of the (m+2)^2 points:      a GEMM of [tiles, c] by [c, panel], in register tiles
//        output transform and epilogue
class WinogradRule {
 public:
  explicit WinogradRule(ScheduleState& s) : s_(s) {}

  bool run() {
    for (const char* name :
         {kWinogradRows, kWinogradInput, kWinogradProduct, kWinogradColumns, kWinogradOutput})
      if (!s_.has_block(name)) return false;
    return s_.all_or_nothing([&] {
      inline_producers(s_, {kWinogradRows, kWinogradInput, kWinogradColumns, kWinogradOutput});
      if (!find_results() || !find_sizes()) return false;
      decide();
      return write();
    });
  }

 private:
  static std::string name(const std::string& block, const char* part) { return block + "." + part; }
  std::string loop(const std::string& block, size_t axis) const {
    return loop_of_axis(*s_.place(block).block, axis);
  }
  bool split(const std::string& loop, const std::string& outer, const std::string& inner,
             int64_t factor) {
    return s_.apply("split", {loop, outer, inner}, {factor});
  }

  // Where only the run knows how many tiles there are, all blocks of them are whole.
  bool align_tiles() {
    return !any_size_ || (s_.apply("align_bounds", {kWinogradColumns}, {3, plan_.down}) &&
                          s_.apply("align_bounds", {kWinogradColumns}, {4, plan_.across}));
  }

  bool write() {
    if (!align_tiles()) return false;
    if (!s_.apply("cache_write", {kWinogradProduct, "sums", kSums})) return false;
    if (!pack_weights() || !tile_results() || !tile_columns() || !place_products() ||
        !share_out() || !stage_input() || !tile_products())
      return false;
    std::vector<std::string> rest;  // names: steps replace the blocks
    for (const BlockPlace& p : all_blocks(s_.kernel().body))
      if (p.loops.empty() || p.loops[0]->var.name() != task_) rest.push_back(p.block->name);
    for (const std::string& b : rest) schedule_pointwise(b);
    return true;
  }
  void schedule_pointwise(const std::string& block) {
    for (const Rule& r : rules())
      if (r.to == Applies::kPointwise && r.take != take_resampled_rows && r.take(s_, {block, ""}))
        return;
  }

  // The block that writes the results: the epilogue, when one block alone reads those of the
  // convolution.
  bool find_results() {
    y_ = kWinogradOutput;
    const Buffer y = s_.place(y_).block->body.as<Store>()->buffer;
    if (y->scope != Scope::kParam)
      for (const BlockPlace& p : all_blocks(s_.kernel().body)) {
        if (!touched(p.stmt).reads.count(y.get())) continue;
        if (y_ != kWinogradOutput || !p.block->body.as<Store>() || p.block->init) return false;
        y_ = p.block->name;
      }
    const Block& results = *s_.place(y_).block;
    for (size_t i = 0; i < results.axes.size(); ++i)
      if (loop_of_axis(results, i).empty()) return false;
    return results.axes.size() == 4;
  }

  bool find_sizes() {
    const Block &product = *s_.place(kWinogradProduct).block, &y = *s_.place(y_).block;
    for (size_t i = 1; i < 4; ++i)
      if (as_int(y.axes[i].extent).value_or(i == 1 ? 0 : 1) < 1) return false;
    sizes_ = {.images = std::max<int64_t>(as_int(y.axes[0].extent).value_or(1), 1),
              .in_channels = as_int(product.axes.back().extent).value_or(0),
              .out_channels = *as_int(y.axes[1].extent),
              .height = as_int(y.axes[2].extent).value_or(0),
              .width = as_int(y.axes[3].extent).value_or(0)};
    if (sizes_.in_channels < 1) return false;
    m_ = as_int(product.axes[0].extent).value_or(6) - 2;
    any_size_ = !as_int(y.axes[2].extent) || !as_int(y.axes[3].extent);
    assumed_ = assume(sizes_, y.axes[2].extent, y.axes[3].extent);
    return true;
  }

  void decide() {
    plan_ = any_size_ ? plan_blocks(s_.machine(), assumed_, m_)
                      : plan_winograd(s_.machine(), sizes_, m_);
    if (any_size_) sizes_ = assumed_.usual;
    const std::string product = kWinogradProduct;
    const auto ask = [&](const char* what, int64_t most, int64_t usual) {
      return s_.decide(name(product, what), with(powers_of_two(1, std::max(most, usual)), usual),
                       usual, Bits::kKept);
    };
    if (!any_size_) plan_.images = decide_images();
    plan_.down = ask("down", sizes_.tiles_down(m_), plan_.down);
    plan_.across = ask("across", sizes_.tiles_across(m_), plan_.across);
    plan_.tile.best.vectors = ask("vectors", 4, plan_.tile.best.vectors);
    plan_.tile.best.rows = ask("rows", 8, plan_.tile.best.rows);
    width_ = plan_.tile.best.vectors * plan_.lanes;
    plan_.panels = ask("panels", (sizes_.out_channels + width_ - 1) / width_, plan_.panels);
    note_plan();
  }
  // All of their tiles, and as many images as divide all.
  int64_t decide_images() {
    std::vector<int64_t> values;
    for (int64_t n = 1; n <= std::min(sizes_.images, WinogradPlan::kMostImages); ++n)
      if (sizes_.images % n == 0) values.push_back(n);
    return s_.decide(name(kWinogradProduct, "images"), values, plan_.images, Bits::kKept);
  }
  void note_plan() {
    WindowedProduct one = sizes_;
    one.images = 1;
    const std::string block = std::string(kWinogradProduct) + ": ";
    s_.note(block + "Winograd's form: " + explain(s_.machine(), one));
    s_.note(block + "a task takes " +
            (plan_.images > 1 ? std::to_string(plan_.images) + " images of " : "") +
            std::to_string(plan_.down) + " x " + std::to_string(plan_.across) + " tiles of " +
            std::to_string(m_) + " x " + std::to_string(m_) + " results through all steps, and " +
            std::to_string(plan_.panels) + " panels of channels");
    s_.note(block + explain(plan_.tile, plan_.lanes, s_.machine().vector_registers));
  }

  // [p, p, c, o]: panels of output channels, each in the order in which the tile reads it.
  bool pack_weights() {
    for (const BlockAccess& a : block_accesses(*s_.place(kWinogradProduct).block))
      if (!a.write && s_.is_constant(a.buffer) && a.buffer->layout.empty() &&
          !s_.apply("transform_layout", {a.buffer->name},
                    {3, width_, 0, 0, 1, 0, 1, 1, 0, 2, 1, 0, 3, 1, width_}))
        return false;
    return true;
  }

  // Channels of results into groups of panels, panels and, if wanted, vectors.
  bool split_channels(const std::string& b, size_t axis) {
    return split(loop(b, axis), name(b, "jg"), name(b, "jr"), plan_.panels * width_) &&
           split(name(b, "jr"), name(b, "jo"), name(b, "jt"), width_);
  }
  bool split_panel(const std::string& b) {
    return split(name(b, "jt"), name(b, "jc"), name(b, "jv"), plan_.lanes);
  }

  // Images that share a task: the loop around them, and that inside, which there may not be.
  bool split_images(const std::string& b, size_t axis) {
    return plan_.images == 1 || split(loop(b, axis), name(b, "ng"), name(b, "ni"), plan_.images);
  }
  std::string around_images(const std::string& b, size_t axis) const {
    return plan_.images == 1 ? loop(b, axis) : name(b, "ng");
  }
  std::vector<std::string> with_images(const std::string& b, std::vector<std::string> order,
                                       const std::string& before) const {
    if (plan_.images > 1)
      order.insert(std::find(order.begin(), order.end(), before), name(b, "ni"));
    return order;
  }
  // The tiles, axes 3 and 4, into blocks and those of a block.
  bool split_tiles(const std::string& b) {
    return split(loop(b, 3), name(b, "tb"), name(b, "ty"), plan_.down) &&
           split(loop(b, 4), name(b, "wr"), name(b, "tx"), plan_.across);
  }

  // Results: [n, o, h, w].
  bool tile_results() {
    if (!tile_results_of(y_)) return false;
    return y_ == kWinogradOutput || (tile_results_of(kWinogradOutput) &&
                                     s_.apply("fuse_loops", {kWinogradOutput, name(y_, "jc")}));
  }
  bool tile_results_of(const std::string& b) {
    const std::string n = around_images(b, 0), h = loop(b, 2), w = loop(b, 3);
    return split_images(b, 0) && split(h, name(b, "tb"), name(b, "hr"), plan_.down * m_) &&
           split(name(b, "hr"), name(b, "ty"), name(b, "hi"), m_) &&
           split(w, name(b, "wr"), name(b, "wx"), plan_.across * m_) &&
           split(name(b, "wx"), name(b, "tx"), name(b, "wi"), m_) && split_channels(b, 1) &&
           split_panel(b) &&
           s_.apply("reorder",
                    with_images(b,
                                {n, name(b, "tb"), name(b, "wr"), name(b, "jg"), name(b, "jo"),
                                 name(b, "ty"), name(b, "tx"), name(b, "jc"), name(b, "hi"),
                                 name(b, "wi"), name(b, "jv")},
                                name(b, "ty"))) &&
           s_.apply("vectorize", {name(b, "jv")}) && s_.apply("unroll", {name(b, "hi")}) &&
           s_.apply("unroll", {name(b, "wi")});
  }
  // columns: [m, p, n, down, across, o], made for each tile and vector of channels.
  bool tile_columns() {
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
  // products and their sums: [p, p, n, down, across, o], made for each panel.
  bool place_products() {
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
  // Images, blocks of tiles and groups of panels are the tasks.
  bool share_out() {
    task_ = name(y_, "task");
    return s_.apply("collapse", {around_images(y_, 0), name(y_, "tb"), name(y_, "rows")}) &&
           s_.apply("collapse", {name(y_, "rows"), name(y_, "wr"), name(y_, "blocks")}) &&
           s_.apply("collapse", {name(y_, "blocks"), name(y_, "jg"), task_}) &&
           s_.apply("parallelize", {task_});
  }
  // Each task transforms its input: a vector of channels and a row of tiles at a time.
  bool stage_input() {
    const std::string in = kWinogradInput, rows = kWinogradRows;
    const int64_t lanes = fitting_lanes(s_.machine().lanes(4), sizes_.in_channels);
    if (!s_.apply("compute_at", {in, task_}) ||
        !split(name(in, "s5"), name(in, "c"), name(in, "v"), lanes) ||
        !s_.apply("reorder", {name(in, "s2"), name(in, "s3"), name(in, "c"), name(in, "s0"),
                              name(in, "s4"), name(in, "s1"), name(in, "v")}) ||
        !s_.apply("compute_at", {rows, name(in, "c")}) ||
        !s_.apply("reorder", {name(rows, "s1"), name(rows, "s2"), name(rows, "s3"),
                              name(rows, "s0"), name(rows, "s4")}))
      return false;
    return s_.apply("vectorize", {name(in, "v")}) && s_.apply("vectorize", {name(rows, "s4")}) &&
           s_.apply("unroll", {name(in, "s1")}) && s_.apply("unroll", {name(rows, "s0")});
  }
  // Sums of a tile of rows by vectors stay in registers over all input channels.
  bool tile_products() {
    const std::string m = kWinogradProduct, reduce = loop(m, 6);
    for (const std::string& b : {std::string(kSums), m}) {
      const bool several = plan_.images > 1;
      if ((several && !s_.apply("collapse", {name(b, "ni"), name(b, "ty"), name(b, "in")})) ||
          !s_.apply("collapse", {name(b, several ? "in" : "ty"), name(b, "tx"), name(b, "i")}) ||
          !split(name(b, "i"), name(b, "io"), name(b, "ii"), plan_.tile.best.rows) ||
          !split_panel(b))
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
  // Those of the next point, while the products with these are made, where they come from beyond the second cache.
  void prefetch_weights() {
    const BlockPlace p = s_.place(kWinogradProduct);
    for (const BlockAccess& a : block_accesses(*p.block)) {
      if (a.write || a.buffer->layout.size() != 5 || a.buffer->layout.back().modulus != width_ ||
          bytes_of(*a.buffer) <= bytes_of_a_panel(s_.machine()))
        continue;
      if (s_.decide_whether(name(kWinogradProduct, "next_weights"), true, Bits::kKept))
        s_.attempt("prefetch_next",
                   {kWinogradProduct, kWinogradProduct, a.buffer->name, loop(kSums, 1)},
                   {sizes_.in_channels * width_, static_cast<int64_t>(PrefetchKind::kOuter)});
    }
  }
  bool annotate_tile(const std::string& b, const char* init) {
    return annotate(s_, "vectorize", name(b, "jv") + init) &&
           annotate(s_, "unroll", name(b, "jc") + init) &&
           annotate(s_, "unroll", name(b, "ii") + init);
  }

  static constexpr const char* kSums = "winograd_sums";
  ScheduleState& s_;
  WindowedProduct sizes_;
  AssumedProduct assumed_;
  WinogradPlan plan_;
  int64_t m_ = 4;          // results of a tile along one dimension
  int64_t width_ = 1;      // of a panel
  bool any_size_ = false;  // of results: blocks are of a size that suits all, and whole ones
  std::string y_, task_;
};

}  // namespace

std::optional<Taken> take_winograd(ScheduleState& s, const Work&) {
  return WinogradRule(s).run() ? std::optional(Taken{.all = true}) : std::nullopt;
}

void note_direct_form(ScheduleState& s, const std::string& block) {
  const Block& b = *s.place(block).block;
  // Results [n, o, h, w], sums over c and a window of 3x3 that moves by one.
  if (b.axes.size() != 7 || b.body.as<Store>()->buffer->dtype != DType::kFloat32) return;
  int64_t extents[7];
  for (size_t i = 0; i < 7; ++i) {
    if ((b.axes[i].kind == AxisKind::kReduce) != (i >= 4)) return;
    extents[i] = as_int(b.axes[i].extent).value_or(i == 0 ? 1 : 0);
    if (extents[i] < 1) return;
  }
  if (extents[5] != 3 || extents[6] != 3) return;
  const Buffer& y = b.body.as<Store>()->buffer;
  for (const BlockAccess& a : block_accesses(b)) {
    if (a.write || a.buffer == y || s.is_constant(a.buffer)) continue;
    for (size_t i : {size_t{2}, size_t{3}})
      if (!a.strides[i] || !a.strides[i + 3] || !can_prove_equal(a.strides[i], a.strides[i + 3]))
        return;
  }
  s.note(block + ": the direct form: " +
         explain(s.machine(), {.in_channels = extents[4],
                               .out_channels = extents[1],
                               .height = extents[2],
                               .width = extents[3]}));
}

}  // namespace tilewright::passes
