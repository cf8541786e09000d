// Few results of many terms: runs of terms with a partial result each, which make tasks. How many
// follows from the shape alone, so that results do not depend on the number of threads.
//
// Split-K in GEMM's terms: the reduction is the only parallelism there is (a batch of one against
// large weights, global sums). Partial results cost memory and a second pass, so only few results
// qualify. So do sums of many terms one after the other, be there tasks enough or not: the error of
// n terms in sequence grows with n, that of runs with their length and number (blocked summation,
// N. J. Higham, The accuracy of floating point summation, 1993).
#include <algorithm>
#include <optional>

#include "passes/cost/cache_room.h"
#include "passes/loops/loop_passes.h"
#include "passes/schedule/rules/block_kinds.h"
#include "passes/schedule/rules/rule.h"
#include "passes/schedule/rules/term_blocks.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kRuns = 16, kFewestTerms = 1 << 18;
// Of a sum in sequence. The gradients of a normalisation's statistics nearly cancel, so that what is
// left of them shows the rounding of each term.
constexpr int64_t kMostInSequence = 512;
// Of products: tasks that are worth cutting, by their number and the multiply-adds of each.
constexpr int64_t kFewTasks = 8, kLeastCost = 1 << 16;

// Is each term read for one result alone? What is the same for all terms of a result (a mean that
// each differs from) is none.
bool reads_once(const Block& b, const std::vector<BlockAccess>& accesses) {
  const auto same_for_all_terms = [&](const BlockAccess& a) {
    for (size_t i = 0; i < b.axes.size(); ++i)
      if (b.axes[i].kind == AxisKind::kReduce && !is_one(b.axes[i].extent) &&
          (!a.strides[i] || !is_zero(a.strides[i])))
        return false;
    return true;
  };
  for (const BlockAccess& a : accesses) {
    if (a.write || a.buffer == accesses.back().buffer || same_for_all_terms(a)) continue;
    for (size_t i = 0; i < b.axes.size(); ++i)
      if (!is_one(b.axes[i].extent) && (!a.strides[i] || is_zero(a.strides[i]))) return false;
  }
  return true;
}
// Of each result; 0: not known.
int64_t terms_of(const Block& b) {
  int64_t terms = 1;
  for (const BlockAxis& a : b.axes)
    if (a.kind == AxisKind::kReduce)
      terms =
          std::min<int64_t>(terms * std::min<int64_t>(extent_or(a.extent, 0), 1 << 20), 1 << 30);
  return terms;
}
// Stretches of results that tasks of their own could make: those of one stretch lie side by side
// in what is read.
int64_t stretches(const ScheduleState& s, const Block& b,
                  const std::vector<BlockAccess>& accesses) {
  const int64_t stretch = bytes_beside_a_stream(s.machine()) / 4;  // as columns_rule cuts them
  int64_t n = 1;
  for (size_t i = 0; i < b.axes.size(); ++i) {
    if (b.axes[i].kind != AxisKind::kParallel) continue;
    bool side_by_side = true;
    for (const BlockAccess& a : accesses) side_by_side &= a.strides[i] && is_one(a.strides[i]);
    const int64_t extent = std::max<int64_t>(extent_or(b.axes[i].extent, kUnknownExtent), 1);
    n = std::min<int64_t>(n * (side_by_side ? (extent + stretch - 1) / stretch : extent), 1 << 30);
  }
  return n;
}

// Runs of one length, a multiple of `step`, where some number of them near `runs` has it.
int64_t even_runs(int64_t extent, int64_t runs, int64_t step = 1) {
  int64_t even = runs;
  for (int64_t n = 2 * runs; n >= runs / 2 && extent % (even * step) != 0; --n)
    if (extent % (n * step) == 0) even = n;
  return even;
}

// A sum over one axis of products whose results make rows of columns.
struct Product {
  size_t axis = 0;
  int64_t terms = 1, rows = 1, columns = 1;
};
std::optional<Product> shape_of_product(const Block& b) {
  Product p;
  std::optional<int64_t> terms;
  const auto accesses = block_accesses(b);
  for (size_t i = 0; i < b.axes.size(); ++i) {
    const auto extent = as_int(b.axes[i].extent);
    if (!extent) return std::nullopt;
    if (b.axes[i].kind == AxisKind::kParallel) {
      const Expr& along = accesses.back().strides[i];
      (along && is_one(along) ? p.columns : p.rows) *= std::min<int64_t>(*extent, 1 << 20);
    } else if (!terms && b.axes[i].kind == AxisKind::kReduce) {
      terms = extent;
      p.axis = i;
    } else {
      return std::nullopt;
    }
    if (p.rows > 1 << 20) return std::nullopt;
  }
  if (!terms || accesses.size() < 4) return std::nullopt;
  p.terms = *terms;
  return p;
}
// The tasks that tile_rule would make of it, and what one costs in multiply-adds of vectors; what
// was measured of the machine has no say.
struct Tasks {
  int64_t count = 1, cost = 0;
};
Tasks tasks_of(const ScheduleState& s, const Block& b, const Product& p, int64_t terms_at_once) {
  constexpr int64_t kRows = 4, kFewestSums = 8;  // fewer wait for one another
  const int bytes = std::max(byte_size(b.body.as<Store>()->buffer->dtype), 4);
  const int64_t lanes = s.machine().lanes(bytes);
  const int64_t vectors =
      std::min<int64_t>(s.machine().vector_registers / 8, (p.columns + lanes - 1) / lanes);
  const int64_t width = vectors * lanes, panels = (p.columns + width - 1) / width,
                row_tiles = (p.rows + kRows - 1) / kRows;
  const int64_t sums = std::max(std::min(p.rows, kRows) * vectors, kFewestSums),
                tile = p.terms / terms_at_once * sums;
  // A panel of columns that no cache holds is one task with all rows, when it can hold their sums.
  const bool whole_panels =
      p.terms * width * bytes / terms_at_once > bytes_of_a_panel(s.machine()) && row_tiles > 2 &&
      p.rows * width * bytes <= kMostLocalBytes;
  return whole_panels ? Tasks{panels, tile * row_tiles} : Tasks{panels * row_tiles, tile};
}

// Of a product whose terms pass by in blocks (term_blocks.h), which is shared out by panels of columns alone: are these
// less than a few, or uneven?
bool are_few_panels(const ScheduleState& s, const Block& b, const Product& p) {
  constexpr int64_t kVectors = 4, kMostPanels = 3;  // of a panel
  const int64_t lanes = s.machine().lanes(byte_size(b.body.as<Store>()->buffer->dtype)),
                vectors = (p.columns + lanes - 1) / lanes;
  const bool halves = vectors == kVectors || vectors == 2 * kVectors;  // two alike
  return vectors <= kMostPanels * kVectors && !halves;
}

// Terms of narrow operands that one instruction takes.
int64_t terms_at_once(const Block& b) {
  int bytes = 4;
  for (const BlockAccess& a : block_accesses(b))
    bytes = std::min(bytes, byte_size(a.buffer->dtype));
  return 4 / bytes;
}

int64_t decide_runs(ScheduleState& s, const std::string& block, int64_t usual) {
  return s.decide(block + ".runs", with({2, 4, 8, 16, 32}, usual), usual,
                  bits_of_order(*s.place(block).block));
}
bool split_off(ScheduleState& s, const std::string& block, size_t axis, int64_t runs) {
  return s.apply("split_reduction", {block, block + "_runs"}, {static_cast<int64_t>(axis), runs});
}

}  // namespace

bool split_product_pays(const ScheduleState& s, const Work& work) {
  const BlockPlace p = s.place(work.block);
  const auto product = shape_of_product(*p.block);
  if (!product || rows_pay(s, work)) return false;
  const Tasks tasks = tasks_of(s, *p.block, *product, terms_at_once(*p.block));
  if (term_blocks(s, *p.block) && are_few_panels(s, *p.block, *product))
    return tasks.count * tasks.cost >= kFewTasks * kLeastCost;
  return tasks.count < kFewTasks && tasks.cost >= kLeastCost;
}

std::optional<Taken> take_split_product(ScheduleState& s, const Work& work) {
  const BlockPlace p = s.place(work.block);
  const Block& b = *p.block;
  const auto product = shape_of_product(b);
  if (!product || p.loops.size() != b.axes.size()) return std::nullopt;
  // Runs are whole numbers of what one instruction takes.
  const int64_t step = terms_at_once(b), usual = even_runs(product->terms, kRuns, step);
  const int64_t runs = decide_runs(s, work.block, usual);
  if (step > 1 && product->terms % (runs * step) != 0) return std::nullopt;
  if (!split_off(s, work.block, product->axis, runs)) return std::nullopt;
  s.note(work.block + ": a product of few results: " + std::to_string(runs) +
         " runs of terms, one task each");
  return Taken{.also = {}, .before = work.block + "_runs"};
}

bool split_pays(const ScheduleState& s, const Work& work) {
  const BlockPlace p = s.place(work.block);
  if (instances(*p.block) >= kFewestTerms &&
      stretches(s, *p.block, block_accesses(*p.block)) < kRuns)
    return true;
  return bits_of_order(*p.block) == Bits::kChanged && terms_of(*p.block) > kMostInSequence &&
         !rows_pay(s, work);
}

std::optional<Taken> take_split(ScheduleState& s, const Work& work) {
  const BlockPlace p = s.place(work.block);
  const Block& b = *p.block;
  const auto accesses = block_accesses(b);
  if (p.loops.size() != b.axes.size() || !reads_once(b, accesses)) return std::nullopt;
  // Runs of the axis that moves furthest are whole stretches of memory.
  size_t axis = b.axes.size();
  int64_t furthest = 0;
  for (size_t i = 0; i < b.axes.size(); ++i) {
    const int64_t extent = as_int(b.axes[i].extent).value_or(0);
    const bool even = extent >= kRuns / 2 && extent % even_runs(extent, kRuns) == 0;
    if (b.axes[i].kind != AxisKind::kReduce || (!even && extent < kRuns * kRuns)) continue;
    for (const BlockAccess& a : accesses) {
      const int64_t stride = a.stride(i).value_or(0);
      if (!a.write && stride > furthest) {
        furthest = stride;
        axis = i;
      }
    }
  }
  if (axis == b.axes.size()) return std::nullopt;
  const int64_t runs = decide_runs(s, work.block, even_runs(*as_int(b.axes[axis].extent), kRuns));
  if (!split_off(s, work.block, axis, runs)) return std::nullopt;
  s.note(work.block + ": few results of many terms: " + std::to_string(runs) +
         " runs of terms, one task each");
  return Taken{.also = {}, .before = work.block + "_runs"};
}

}  // namespace tilewright::passes
