// An analytic model of a GEMM micro-kernel (the register tile of BLIS and oneDNN; Low, Igual, Smith
// and Quintana-Orti, "Analytical Modeling Is Enough for High-Performance BLIS", 2016). A step of
// the reduction for a tile of r rows by v vectors takes
//
//    multiply   r v / FMA ports          latency   until the same sum may be added to again
//    loads      (r + v) / load ports     cycles    max of the five, and a part of loads and stream
//    stream     bytes of both operands / what L2 gives a cycle, where panels of both exceed L1
//    columns    bytes of the right operand, likewise, where its panel exceeds L1
//
// The tile must fit the registers: r v sums, v vectors of B, one broadcast of A. What rows and
// columns waste (padding, leftovers) and idle threads enter as factors. The sizes of caches do not:
// panels are packed so that they stream (block_reduction bounds them). Their sets do: rows that lie
// pages apart push one another out, and then fewer rows are better, by as many vectors.
#include "passes/cost/tile_cost.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "passes/loops/vector_width.h"

namespace tilewright::passes {

namespace {

// Of a measurement only what the hardware can have: noise in it changes no schedule.
double fma_ports(const ir::MachineDescription& m) {
  return std::clamp(std::round(m.speed.fma_ports), 1.0, 4.0);
}
double fma_latency(const ir::MachineDescription& m) {
  return std::clamp(std::round(m.speed.fma_latency_cycles), 2.0, 12.0);
}
constexpr double kLoadPorts = 2;
constexpr double kSpilled = 0.4;      // of the speed: sums are stored and loaded on the way
constexpr double kStart = 100;        // cycles of a tile beside its steps: stores, a branch missed
constexpr double kSumAgain = 2;       // cycles of a vector of sums, stored and loaded
constexpr double kLoadOverlap = 0.1;  // part of what is read that multiply-adds do not hide

double part_used(int64_t n, int64_t by) {
  return static_cast<double>(n) / static_cast<double>((n + by - 1) / by * by);
}
double cycles(const TileCost& t) {
  return std::max({t.multiply, t.loads, t.latency, t.stream, t.columns}) +
         kLoadOverlap * (t.loads + t.stream) + t.again;
}

// Rows of A are read side by side, each a line at a time. Where they lie multiples of a page apart
// (1024 columns of f32), their lines share the sets of the first cache, and more of them than it has
// ways push one another out before the line is used up; what passes by takes a few where they have all but one.
double conflicts(const ir::MachineDescription& m, int64_t row_bytes, int64_t rows) {
  constexpr int64_t kWay = 4096;  // bytes: virtually indexed caches have no larger ones
  // Cycles of a line from L2 that multiply-adds do not hide: of all rows, and of some.
  constexpr double kAgain = 0.2, kAtTimes = 0.03;
  if (row_bytes == 0) return 0;
  const int64_t places = kWay / std::gcd(row_bytes, kWay), in_a_set = (rows + places - 1) / places;
  const int64_t ways_left = m.l1_bytes / kWay - in_a_set;
  return static_cast<double>(rows) * (ways_left < 1 ? kAgain : ways_left < 2 ? kAtTimes : 0);
}
constexpr double kBytesPerCycle = 24;  // of L2, measured: of the 32 that caches are said to give
// Wide tiles of few rows read their columns faster than L2 gives them.
double columns(const ir::MachineDescription& m, const TileSizes& sizes, const TileCost& t) {
  const int64_t of_step = t.vectors * sizes.lanes * sizes.bytes;
  return sizes.terms * of_step > m.l1_bytes ? static_cast<double>(of_step) / kBytesPerCycle : 0;
}
// A step that reads panels of both operands reads less than it multiplies where a tile is square.
double stream(const ir::MachineDescription& m, const TileSizes& sizes, const TileCost& t) {
  const int64_t side = sizes.panel_rows > 0 ? sizes.panel_rows : t.rows,
                left = (t.rows + side - 1) / side * side,
                of_step = (t.vectors * sizes.lanes + left) * sizes.bytes;
  return sizes.steps * of_step > m.l1_bytes ? static_cast<double>(of_step) / kBytesPerCycle : 0;
}
double with_conflicts(const TileCost& t) { return t.score * cycles(t) / (cycles(t) + t.conflicts); }
// Tiles of no more sums than latency and ports need have the shortest steps: beginning and ending them counts.
bool is_smallest(const TileCost& t) { return t.multiply <= t.latency; }
double with_starts(const TileCost& t) {
  return t.score * cycles(t) / (cycles(t) + t.conflicts + t.start);
}

// score = estimated share of the FMA peak.
TileCost tile_cost(const ir::MachineDescription& machine, const TileSizes& sizes, int64_t rows,
                   int64_t vectors) {
  TileCost t{.rows = rows, .vectors = vectors};
  const int64_t sums = rows * vectors, width = vectors * sizes.lanes;
  t.multiply = static_cast<double>(sums) / fma_ports(machine);
  t.loads = static_cast<double>(rows + vectors) / kLoadPorts;
  t.latency = fma_latency(machine);
  t.conflicts = conflicts(machine, sizes.row_bytes, rows);
  t.stream = stream(machine, sizes, t);
  t.columns = columns(machine, sizes, t);
  if (sizes.depth > 0) t.start = kStart / static_cast<double>(sizes.depth);
  if (sizes.block > 0)
    t.again = (kStart + kSumAgain * static_cast<double>(sums)) / static_cast<double>(sizes.block);
  // Leftover rows run in a tile of their own: cheaper than a full one, dearer than their share.
  t.row_use = 0.5 + 0.5 * part_used(sizes.rows, rows);
  t.column_use = part_used(sizes.columns, width);
  if (sizes.outer > 0 && machine.threads > 1) {
    // Leftover rows stay with the panel.
    const int64_t panels = (sizes.columns + width - 1) / width;
    t.balance = part_used(sizes.outer * panels * (sizes.rows % rows ? 1 : sizes.rows / rows),
                          machine.threads);
  }
  const int64_t registers = sums + vectors + 1;
  t.fits = registers <= machine.vector_registers;
  // What is said of the machine may be wrong: tuners may try twice as many, below all that fit.
  if (registers <= 2 * machine.vector_registers)
    t.score =
        (t.fits ? 1 : kSpilled) * t.multiply / cycles(t) * t.row_use * t.column_use * t.balance;
  return t;
}

constexpr int64_t kMostVectors = 8;
constexpr double kBetter = 1.001;  // equal ones: the first, of fewer vectors

}  // namespace

int64_t lanes_for(const ir::MachineDescription& machine, int bytes, int64_t columns) {
  return fitting_lanes(machine.lanes(std::max(bytes, 4)), columns);
}

bool tiles_cover(const ir::MachineDescription& machine, int64_t within) {
  constexpr int64_t kFewestRows = 4;
  const int64_t most = std::min<int64_t>(kMostTileRows, machine.vector_registers / 2 - 2);
  for (int64_t rows = kFewestRows; rows <= most; ++rows)
    if (within % rows == 0 || rows % within == 0) return true;
  return false;
}

std::vector<TileCost> tiles_of(const ir::MachineDescription& machine, const TileSizes& sizes,
                               int64_t vectors) {
  std::vector<TileCost> tiles;
  for (int64_t rows = 1; rows <= std::min(sizes.rows, kMostTileRows); ++rows) {
    if (sizes.within && sizes.within % rows && rows % sizes.within) continue;
    const TileCost t = tile_cost(machine, sizes, rows, vectors);
    if (t.score > 0) tiles.push_back(t);
  }
  return tiles;
}

std::vector<TileCost> best_tiles(const ir::MachineDescription& machine, const TileSizes& sizes) {
  std::vector<TileCost> best;
  for (int64_t vectors = 1; vectors <= kMostVectors; ++vectors) {
    TileCost most;
    for (const TileCost& t : tiles_of(machine, sizes, vectors))
      if (t.fits && t.score > most.score * kBetter) most = t;
    if (most.fits) best.push_back(most);
  }
  return best;
}

TileChoice choose_tile(const ir::MachineDescription& machine, const TileSizes& sizes) {
  TileChoice choice;
  for (int64_t vectors = 1; vectors <= kMostVectors; ++vectors)
    for (const TileCost& t : tiles_of(machine, sizes, vectors)) {
      if (!t.fits) continue;
      if (t.score > choice.best.score * kBetter) {
        choice.next = choice.best;
        choice.best = t;
      } else if (t.score > choice.next.score) {
        choice.next = t;
      }
    }
  const auto of_rows = is_smallest(choice.best) ? with_starts : with_conflicts;
  for (const TileCost& t : tiles_of(machine, sizes, choice.best.vectors))
    if (t.fits && of_rows(t) > of_rows(choice.best) * kBetter) {
      choice.next = choice.best;
      choice.best = t;
    }
  return choice;
}

TileCost tile_with(const ir::MachineDescription& machine, const TileSizes& sizes, int64_t width) {
  const TileCost best = choose_tile(machine, sizes).best;
  if (best.vectors * sizes.lanes == width) return best;
  for (const TileCost& t : best_tiles(machine, sizes))
    if (t.vectors * sizes.lanes == width) return t;
  return best;
}

double microseconds(const ir::MachineDescription& machine, const TileCost& tile,
                    double multiply_adds) {
  return 2 * multiply_adds / (machine.speed.f32_gflops * 1e3 * with_conflicts(tile));
}

std::string explain(const TileChoice& choice, int64_t lanes, int registers) {
  const TileCost &t = choice.best, &n = choice.next;
  char text[512];
  std::snprintf(text, sizeof text,
                "a tile of %lld rows x %lld vectors of %lld lanes: %lld sums in %d registers\n"
                "  a step of the reduction takes %.1f cycles: multiply-adds %.1f, loads %.1f, "
                "latency %.1f, from L2 %.1f, rows in one cache set %.1f, beginning and end %.1f\n"
                "  of rows %.0f %% and of lanes %.0f %% are real, threads busy %.0f %%: estimated "
                "%.0f %% of the peak; "
                "next best: %lld x %lld with %.0f %%",
                static_cast<long long>(t.rows), static_cast<long long>(t.vectors),
                static_cast<long long>(lanes), static_cast<long long>(t.rows * t.vectors),
                registers, cycles(t), t.multiply, t.loads, t.latency, std::max(t.stream, t.columns),
                t.conflicts, t.start + t.again, 100 * t.row_use, 100 * t.column_use,
                100 * t.balance, 100 * t.score, static_cast<long long>(n.rows),
                static_cast<long long>(n.vectors), 100 * n.score);
  return text;
}

}  // namespace tilewright::passes
