// Gradients of weights by Winograd's form: tiles of both operands are transformed into the panels that
// the product reads, and its sums are transformed while they are in the first cache.
#include "ir/ops/winograd.h"
#include "passes/cost/tile_cost.h"
#include "passes/loops/vector_width.h"
#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kBytes = 4;

//    for image, row of tiles: parallel:      of x, then of dy
//      for line of channels:
//        along columns, for a row of tiles;  then along rows, a tile at a time
//    for each of the (m + 2)^2 points:       a GEMM of [c, tiles] by [tiles, o], in register tiles
//    for o / 16 parallel, c, vector of o: the 3x3 weights of (m + 2)^2 sums
class WinogradGradientRule {
 public:
  explicit WinogradGradientRule(ScheduleState& s) : s_(s) {}

  bool run() {
    const std::set<std::string> blocks{
        kWinogradRows,          kWinogradInput,           kWinogradGradientRows,
        kWinogradGradientInput, kWinogradGradientProduct, kWinogradGradientColumns,
        kWinogradGradientOutput};
    for (const std::string& b : blocks)
      if (!s_.has_block(b)) return false;
    return s_.all_or_nothing([&] {
      inline_producers(s_, blocks);
      if (all_blocks(s_.kernel().body).size() != blocks.size()) return false;
      const Block& product = *s_.place(kWinogradGradientProduct).block;  // [p, p, c, o]
      const int64_t ins = extent_or(product.axes[2].extent, kUnknownExtent),
                    outs = extent_or(product.axes[3].extent, kUnknownExtent),
                    lanes = lanes_for(s_.machine(), kBytes, outs);
      const TileCost tile =
          choose_tile(s_.machine(), {.rows = ins, .columns = outs, .lanes = lanes}).best;
      return transform_tiles(kWinogradRows, kWinogradInput, kCacheLine / kBytes) &&
             transform_tiles(kWinogradGradientRows, kWinogradGradientInput,
                             std::max<int64_t>(tile.vectors, 1) * lanes) &&
             take_tile(s_, {kWinogradGradientProduct, ""}) && transform_sums();
    });
  }

 private:
  std::string loop(const std::string& block, size_t axis) const {
    return loop_of_axis(*s_.place(block).block, axis);
  }

  // tiles: [p, p, n, down, across, channels], in panels of `width` channels of each point.
  bool transform_tiles(const std::string& rows, const std::string& tiles, int64_t width) {
    const auto part = [&](const char* name) { return tiles + "." + name; };
    const int64_t lanes =
        std::min(width, fitting_lanes(s_.machine().lanes(kBytes),
                                      extent_or(s_.place(tiles).block->axes[5].extent, width)));
    const std::string buffer = s_.place(tiles).block->body.as<Store>()->buffer->name;
    std::vector<std::string> of_axis;
    for (size_t i = 0; i < 6; ++i) of_axis.push_back(loop(tiles, i));
    return s_.apply("transform_layout", {buffer},
                    {0, 1, 0, 1, 1, 0, 5, width, 0, 2, 1, 0, 3, 1, 0, 4, 1, 0, 5, 1, width}) &&
           s_.apply("split", {of_axis[5], part("panel"), part("l")}, {width}) &&
           s_.apply("split", {part("l"), part("c"), part("v")}, {lanes}) &&
           s_.apply("reorder", {of_axis[2], of_axis[3], part("panel"), of_axis[0], of_axis[4],
                                part("c"), of_axis[1], part("v")}) &&
           s_.apply("compute_at", {rows, part("panel")}) &&
           s_.apply("split", {rows + ".s4", rows + ".c", rows + ".v"}, {lanes}) &&
           s_.apply("reorder", {rows + ".s1", rows + ".s2", rows + ".s3", rows + ".c", rows + ".s0",
                                rows + ".v"}) &&
           s_.apply("vectorize", {rows + ".v"}) && s_.apply("unroll", {rows + ".s0"}) &&
           s_.apply("vectorize", {part("v")}) && s_.apply("unroll", {of_axis[1]}) &&
           s_.apply("collapse", {of_axis[2], of_axis[3], part("task")}) &&
           s_.apply("parallelize", {part("task")});
  }

  // [p, p, c, o] to [o, c, 3, 3]: as in `short_rows`, blocks that are whole lines on both sides.
  bool transform_sums() {
    const std::string y = kWinogradGradientOutput, columns = kWinogradGradientColumns;
    const auto part = [&](const char* name) { return y + "." + name; };
    const std::string o = loop(y, 0), c = loop(y, 1), down = loop(y, 2), across = loop(y, 3);
    const int64_t lanes =
        fitting_lanes(s_.machine().lanes(kBytes),
                      extent_or(s_.place(y).block->axes[0].extent, kCacheLine / kBytes));
    return s_.apply("split", {o, part("jo"), part("jt")}, {kCacheLine / kBytes}) &&
           s_.apply("split", {part("jt"), part("jc"), part("jv")}, {lanes}) &&
           s_.apply("split", {c, part("co"), part("ci")}, {kCacheLine / kBytes}) &&
           s_.apply("reorder",
                    {part("jo"), part("co"), part("ci"), part("jc"), down, across, part("jv")}) &&
           s_.apply("compute_at", {columns, part("jc")}) &&
           s_.apply("vectorize", {columns + ".s3"}) && s_.apply("unroll", {columns + ".s0"}) &&
           s_.apply("unroll", {columns + ".s1"}) && s_.apply("vectorize", {part("jv")}) &&
           s_.apply("unroll", {down}) && s_.apply("unroll", {across}) &&
           s_.apply("collapse", {part("jo"), part("co"), part("task")}) &&
           s_.apply("parallelize", {part("task")});
  }

  ScheduleState& s_;
};

}  // namespace

std::optional<Taken> take_winograd_gradient(ScheduleState& s, const Work&) {
  return WinogradGradientRule(s).run() ? std::optional(Taken{.all = true}) : std::nullopt;
}

}  // namespace tilewright::passes
