// A block is some fifty to a hundred terms, as cost/cache_room.h has it.
#include "passes/schedule/rules/term_blocks.h"

#include <algorithm>
#include <numeric>

#include "passes/analysis/accesses.h"
#include "passes/cost/cache_room.h"
#include "passes/schedule/rules/rows_of_tiles.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kFewestInBlock = 56;  // where a divisor of extents has so many
constexpr int64_t kFewestBlocks = 16;

// The operands, and the sizes of the results.
struct Shape {
  BlockAccess by_row, by_column;
  int64_t rows = 1, columns = 1;
  std::vector<size_t> summed;
  // Positions of a window, one axis after the other, whose rows run on from those before.
  std::vector<int64_t> windows;
};

bool lies_plain(const ScheduleState& s, const BlockAccess& a) {
  const Layout& layout = a.buffer->layout;
  return a.buffer->scope == Scope::kParam && !s.is_constant(a.buffer) &&
         is_float(a.buffer->dtype) && byte_size(a.buffer->dtype) >= 4 &&
         (layout.empty() || layout.back().modulus == 0);
}

std::optional<Shape> shape_of(const ScheduleState& s, const Block& b) {
  const auto accesses = block_accesses(b);
  std::vector<BlockAccess> operands;
  for (const BlockAccess& a : accesses)
    if (!a.write && a.buffer != accesses.back().buffer) operands.push_back(a);
  if (operands.size() != 2 || !lies_plain(s, operands[0]) || !lies_plain(s, operands[1]))
    return std::nullopt;
  Shape shape;
  size_t of_rows = 0, of_columns = 0, row = 0;
  for (size_t k = 0; k < b.axes.size(); ++k) {
    const auto extent = as_int(b.axes[k].extent);
    const auto first = operands[0].stride(k), second = operands[1].stride(k);
    if (!extent || *extent < 1 || !first || !second) return std::nullopt;
    if (*extent == 1) continue;
    if (*first != 0 && *second != 0) {
      if (b.axes[k].kind == AxisKind::kReduce) shape.summed.push_back(k);
      continue;
    }
    if (b.axes[k].kind != AxisKind::kParallel) return std::nullopt;
    if (*first + *second != 1) continue;  // a window's positions
    const bool columns = accesses.back().stride(k) == 1;
    (columns ? of_columns : of_rows) += 1;
    if (!columns) row = k;
    (columns ? shape.columns : shape.rows) = *extent;
    (columns ? shape.by_column : shape.by_row) = operands[*first == 1 ? 0 : 1];
  }
  if (of_rows != 1 || of_columns != 1 || shape.by_row.buffer == shape.by_column.buffer)
    return std::nullopt;
  if (accesses.back().stride(row) != shape.columns) return std::nullopt;
  int64_t joined = shape.rows;
  for (size_t k = b.axes.size(); k-- > 0;)
    if (is_parallel(b.axes[k]) && shape.by_column.stride(k) == 0 &&
        shape.by_row.stride(k) == joined && accesses.back().stride(k) == joined * shape.columns) {
      shape.windows.push_back(*as_int(b.axes[k].extent));
      joined *= shape.windows.back();
    }
  const auto stride = [&](size_t k) { return *shape.by_row.stride(k); };
  std::stable_sort(shape.summed.begin(), shape.summed.end(),
                   [&](size_t a, size_t c) { return stride(a) > stride(c); });
  return shape;
}

// The largest divisor up to `most`; where that is below `fewest`, the next one up to `limit`.
int64_t divisor_near(int64_t n, int64_t fewest, int64_t most, int64_t limit) {
  int64_t found = 1;
  for (int64_t d = 2; d <= limit && (d <= most || found < fewest); ++d)
    if (n % d == 0) found = d;
  return found;
}

// Pieces so many bytes apart, a power of two, fall into few sets.
double pieces_of_a_way(const MachineDescription& m, int64_t pieces, int64_t apart) {
  constexpr int64_t kWay = 4096;  // bytes, a page: sets are told by addresses within it
  const int64_t ways = kWay / std::gcd(apart, kWay) * std::max<int64_t>(m.l1_bytes / kWay, 1);
  return static_cast<double>(pieces) / static_cast<double>(ways);
}

}  // namespace

std::optional<TermBlocks> term_blocks(const ScheduleState& s, const Block& b) {
  const auto shape = shape_of(s, b);
  if (!shape || shape->summed.empty()) return std::nullopt;
  const int64_t bytes = byte_size(b.body.as<Store>()->buffer->dtype),
                room = bytes_of_all_sums(s.machine()) / bytes;
  const auto fits = [&](int64_t rows) { return shape->columns <= room / rows; };
  int64_t rows = shape->rows;
  if (!fits(rows)) return std::nullopt;
  for (const int64_t positions : shape->windows) {
    if (!fits(rows * positions)) break;
    rows *= positions;
  }
  const int64_t of_a_term = (rows + shape->columns) * bytes,
                most = std::clamp(s.machine().l2_bytes / 12 / of_a_term, kFewestInBlock,
                                  kMostTermsOfABlock);
  TermBlocks blocks{.axes = shape->summed, .rows = rows};
  for (size_t n = blocks.axes.size(); n-- > 0;) {
    const int64_t extent = *as_int(b.axes[blocks.axes[n]].extent);
    blocks.split = n;
    const auto part = [&](int64_t terms) { return (terms + blocks.terms - 1) / blocks.terms; };
    const int64_t usual = most / blocks.terms;
    if (n == 0 && extent <= usual) return std::nullopt;  // all terms are no block
    blocks.steps =
        divisor_near(extent, part(kFewestInBlock), usual,
                     std::min(kMostTermsOfABlock / blocks.terms, n == 0 ? extent - 1 : extent));
    blocks.terms *= blocks.steps;
    if (blocks.steps < extent) break;
  }
  if (blocks.terms < kLeastTermsOfABlock) return std::nullopt;
  blocks.crowded = pieces_of_a_way(s.machine(), blocks.terms,
                                   std::abs(*shape->by_column.stride(blocks.axes.back())) * bytes);
  int64_t terms = 1;
  for (size_t k : blocks.axes) terms *= *as_int(b.axes[k].extent);
  blocks.usual = blocks.terms >= kFewestInBlock && blocks.terms <= most &&
                 terms >= kFewestBlocks * blocks.terms;
  return blocks;
}

}  // namespace tilewright::passes
