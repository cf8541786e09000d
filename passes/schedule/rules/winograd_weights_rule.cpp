// The weights of Winograd convolutions: both transforms of a line of output channels while they are
// in the first cache.
#include "ir/ops/winograd.h"
#include "passes/loops/vector_width.h"
#include "passes/schedule/rules/memory.h"
#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

//    for o / 16 parallel, c:                 (a line of the cache)
//      for vector of output channels:
//        the columns' transform of their 3x3 weights, then the rows': (m + 2)^2 vectors of results
class WinogradWeightsRule {
 public:
  explicit WinogradWeightsRule(ScheduleState& s) : s_(s) {}

  bool run() {
    const std::string rows = kWinogradWeightsRows, columns = kWinogradWeightsColumns;
    if (!s_.has_block(rows) || !s_.has_block(columns)) return false;
    return s_.all_or_nothing([&] {
      inline_producers(s_, {columns});
      if (all_blocks(s_.kernel().body).size() != 2) return false;
      const Block block = *s_.place(rows).block;  // [p, p, c, o]
      for (size_t i = 0; i < block.axes.size(); ++i)
        if (loop_of_axis(block, i).empty()) return false;
      const auto loop = [&](size_t axis) { return loop_of_axis(block, axis); };
      const auto part = [&](const char* name) { return rows + "." + name; };
      constexpr int64_t kBytes = 4;
      const int64_t lanes = fitting_lanes(s_.machine().lanes(kBytes),
                                          as_int(block.axes[3].extent).value_or(kCacheLine));
      const bool done =
          s_.apply("split", {loop(3), part("jo"), part("jt")}, {kCacheLine / kBytes}) &&
          s_.apply("split", {part("jt"), part("jc"), part("jv")}, {lanes}) &&
          s_.apply("reorder", {part("jo"), loop(2), part("jc"), loop(0), loop(1), part("jv")}) &&
          s_.apply("compute_at", {columns, part("jc")}) &&
          s_.apply("vectorize", {columns + ".s3"}) && s_.apply("unroll", {columns + ".s0"}) &&
          s_.apply("unroll", {columns + ".s1"}) && s_.apply("vectorize", {part("jv")}) &&
          s_.apply("unroll", {loop(0)}) && s_.apply("unroll", {loop(1)}) &&
          s_.apply("parallelize", {part("jo")});
      // Lines that are stored by halves would be read first.
      if (done && lanes * kBytes == kCacheLine) store_copy_past_caches(s_, rows);
      return done;
    });
  }

 private:
  ScheduleState& s_;
};

}  // namespace

std::optional<Taken> take_winograd_weights(ScheduleState& s, const Work&) {
  return WinogradWeightsRule(s).run() ? std::optional(Taken{.all = true}) : std::nullopt;
}

}  // namespace tilewright::passes
