// A tile of accumulators in registers: what the parts of the rule share. Included by tile_*.cpp
// alone.
#pragma once

#include <optional>
#include <set>

#include "passes/cost/matrix_tile.h"
#include "passes/cost/tile_cost.h"
#include "passes/schedule/rules/copied_operands.h"
#include "passes/schedule/rules/rule.h"
#include "passes/schedule/rules/term_blocks.h"

namespace tilewright::passes {

// The register-tiled GEMM schedule (Goto and van de Geijn's, in BLIS's terms): a micro-kernel of
// rows by vectors of accumulators, B packed in panels as wide as the tile, and the reduction
// blocked for the second-level cache where a panel exceeds it. Convolutions take it with pixels for
// rows and output channels for columns.
class TileRule : public BlockRule {
 public:
  // `epilogue`: the pointwise block that is moved onto the tile; empty: a copy-out is made.
  // `copies`: of operands, which are still to be scheduled. They must outlive the rule.
  TileRule(ScheduleState& s, const Work& work, std::string epilogue,
           const std::vector<Panels>& copies)
      : BlockRule(s, work.block),
        e_(std::move(epilogue)),
        copies_(copies),
        by_places_(work.by_places) {}
  // Blocks whose results are stored from the tile besides the epilogue's.
  const std::set<std::string>& followers() const { return followers_; }

 private:
  bool applies() override;
  void decide() override;
  bool write() override;
  static std::string name(const std::string& block, const char* part) { return block + "." + part; }

  // Channels in groups that read channels of their own are two axes then: groups, and the channels of
  // one. No vector crosses groups, and the channels of one share what they read.
  void part_groups();
  // j: the results' innermost axis; i: the next one, joined with those it runs on from.
  bool find_axes();
  // Does what moves with the columns stay when this axis moves?
  bool shares_columns(const std::vector<BlockAccess>& accesses, size_t axis) const;
  // The terms that one Dot takes of a sum of products of u8 and packed i8, or of i16 and packed i8
  // or i16, or of bf16, which lie side by side; 0 where it has not that form.
  int64_t terms_of_dot();
  // Columns whose groups of terms lie side by side, as the operand's layout has it; 0: it has not.
  int64_t packed_lanes(const BlockAccess& a, size_t reduce) const;
  void decide_order();   // of the reduction axes
  void decide_widths();  // lanes, whether by dot products, by a matrix unit
  void decide_shared();  // rows and vectors, where the results of a tile share an operand
  void decide_apart();   // and where none does
  // Is a value that neighbouring rows read, too, narrower than the sums? It is widened once for all
  // then.
  bool widens_again() const;
  // Of rows along several axes, that of the innermost one where tiles must cover whole parts of it; 0: any rows.
  int64_t whole_span() const;
  // Rows after which each of the joined axes but the last goes on.
  std::vector<int64_t> row_spans() const;
  // Tiles of one place that the axes around them make; 0 where these are no tasks.
  int64_t outer_tiles() const;
  // Columns of a panel of an operand that lies in such; 0: it, or none, does.
  int64_t width_of_panels(const BlockAccess& a) const;
  int64_t given_panels() const;
  int64_t rows_of_panels() const;
  int64_t terms() const;  // of a sum, as far as they are known
  int64_t steps_by_panels() const;
  int64_t row_bytes() const;  // of the operand that rows are read of; 0: not known
  bool shares_weights() const;
  // Weights that no cache holds pass by once, a panel of columns after the other, when all rows fit
  // into the cache beside a panel, or are fewer bytes for all panels than all weights for all places.
  bool goes_by_columns() const;
  bool keeps_columns() const;  // the same, for results without an operand in common
  struct OperandBytes {
    int64_t weights = 0, rest = 0;  // of constants and panels, and of what else the kernel is given
  };
  int64_t bytes_of_panels(const BlockAccess& a) const;
  OperandBytes operand_bytes() const;
  int64_t panels() const;      // of columns, whole ones
  int64_t all_panels() const;  // with one that lacks columns

  // Constants that move with j are laid out in the order in which the tile reads them.
  void pack_operands();
  bool starts_at_panels(const ir::Buffer& buffer, size_t dim, int64_t width) const;
  std::optional<int64_t> columns_from(const ir::Expr& index) const;
  // Is an index the axis itself, or that beyond the start of a run of terms?
  bool runs_along(const ir::Expr& index, const ir::Var& axis) const;
  // Reduction axes: the window outside, channels (that run along memory) inside.
  std::vector<size_t> reduce_by_stride() const;
  const std::vector<size_t>& reduce_in_order() const { return reduce_order_; }

  // Loops: outer axes, jo, io, reduction, ii, jc, jv (the reduction only in the main block).
  bool order_loops(const std::string& block, const ir::Block& b, bool main);
  // The terms of a Dot leave the innermost reduction, and the groups of a tile of Dots theirs.
  bool split_terms();
  // Tiles of Dots inside the tile of sums.
  bool split_rows();
  void note_blocks();
  // Where a packed panel of columns is too large to stay in cache while all rows pass over it, the
  // outer part of the reduction goes around the rows: their sums wait in a buffer of their own.
  bool block_reduction();
  // All sums wait, or those of a group of panels, while blocks of terms go around panels and rows.
  void join_terms_of_blocks();
  void join_columns();
  void decide_blocks();
  void decide_groups();
  bool block_terms();
  // Elements that a block of terms reads, where they lie side by side; else 0.
  int64_t stretch_of_terms(const BlockAccess& a) const;
  int64_t decide_parts(int64_t n, int64_t below, int64_t panel, int64_t most);
  bool reads_pieces() const;
  int64_t bytes_of_row_panel() const;
  bool follows(const BlockPlace& p, const std::vector<BlockAccess>& stored) const;
  void bring_followers();
  bool annotate_tile(const std::string& block);
  bool annotate_init();
  // The block that makes what the tile reads, of a copy with padding; empty when there is none.
  std::string padding_block() const;
  // Rows of results that share one copy of what they read: as many as leave tasks for all threads
  // and a copy that stays in cache. extent: rows of one place; bytes: of what all tasks read.
  int64_t rows_of_a_copy(int64_t extent, int64_t tasks, int64_t bytes) const;
  // A padded copy that no cache holds is made for rows of results by the task that reads it.
  bool stage_padding();
  void vectorize_copy(const std::string& padding, int bytes);

  // Is all around the block an ordered axis, of whose steps each is work for several threads? What
  // is not known of its extents may be 1.
  bool is_large_step() const;
  void parallelize_step();
  bool moves_rows_through_memory() const;
  double bytes_of_rows() const;
  int64_t panels_kept() const;
  void group_panels();
  bool copies_panels() const;
  bool shares_out_evenly(int64_t tasks) const;
  bool has_many_places() const;
  bool share_out_rows();
  void parallelize();

  std::string loop_that_moves(const std::vector<size_t>& axes) const;
  double steps_inside(const std::string& loop) const;
  double cycles_inside(const std::string& loop) const;
  bool terms_run_on(const BlockAccess& a) const;
  int64_t stretch_of_rows(const std::string& block, const BlockAccess& a, size_t row,
                          const std::string& around) const;
  double cycles_of_a_tile() const;
  bool is_there_before(const ir::Buffer& b) const;
  // In an iteration of the loop `around`, so many elements behind what it reads of the operand first; cycles: in
  // which these are read.
  void bring_next(const std::string& block, const BlockAccess& a, const std::string& around,
                  int64_t elements, double cycles);
  void bring_stream();
  void bring_panel(const BlockAccess& a);
  void bring_line_of_pixels(const BlockAccess& a);
  int64_t piece_of_panel(const BlockAccess& a) const;
  void bring_next_pieces();
  void bring_next_tiles();
  void bring_next_place();
  void prefetch();
  bool fills_lines(const BlockAccess& result) const;
  void stream_results();
  std::string loop_to_stage_at(const Panels& p) const;
  bool copy_inside(const Panels& p, const std::string& around);
  bool stage(const Panels& p);
  void bring_next_part(const Panels& p, const std::string& around);
  void copy_columns_of_blocks();
  bool make_copies();

  std::string e_;
  const std::vector<Panels>& copies_;
  const bool by_places_;
  ir::Block epilogue_;
  std::vector<size_t> parallel_, reduce_;  // axes of the main block
  std::vector<size_t> rows_, outer_;       // positions among the parallel axes, innermost first
  std::vector<size_t> reduce_order_;       // axes that are summed over, outermost first
  int64_t columns_ = 1, row_count_ = 1;    // of all results, as far as they are known
  size_t j_ = 0, outer_count_ = 0, outer_loops_ = 0;
  static constexpr int64_t kMostWindow = 7, kLongSum = 64;
  bool slides_ = false;         // the innermost reduction is unrolled: rows share what it reads
  bool columns_first_ = false;  // panels of columns go around the outer axes
  int64_t dot_ = 0;  // terms of a dot product that the innermost reduction goes by; 0: none
  DType left_ = DType::kInt32;        // with dot_: the type of the operand that is no constant,
  int64_t depth_ = 0;                 // and the extent of that reduction
  int64_t packed_lanes_ = 0;          // of an operand that is packed already
  std::optional<MatrixTile> matrix_;  // the rows of a tile are not unrolled then
  bool asks_where_ = false;           // something is computed with the row itself
  ir::Expr row_extent_ = 1;
  int64_t lanes_ = 1;
  TileCost tile_;
  std::optional<TermBlocks> blocks_;  // of terms, that go around panels and rows
  int64_t group_ = 0;                 // panels of a group of these; 0: all are one
  std::string results_loop_;          // that is around all sums of an iteration
  std::vector<std::string> reduce_loops_;
  std::vector<std::string> brought_;  // buffers
  std::set<std::string> followers_;
  bool streams_ = false;              // the epilogue's result, past the caches
  std::vector<std::string> staged_;   // copies that tasks make
  std::vector<std::string> hoisted_;  // reduction loops around the rows; the first of reduce_loops_
};

// Along how many elements an axis goes in an iteration of the loop.
int64_t moves_inside(const BlockPlace& p, const std::string& loop, size_t axis);
// The dimensions of a buffer from the outermost to the innermost; none where one is in several pieces.
std::vector<int> order_in_memory(const ir::BufferNode& b);

}  // namespace tilewright::passes
