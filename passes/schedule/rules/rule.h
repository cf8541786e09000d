// What rules share: a kernel under schedule together with the trace that led to it.
#pragma once

#include <string>
#include <vector>

#include "passes/analysis/accesses.h"
#include "passes/schedule/default_schedule.h"
#include "passes/schedule/rules/sum_order.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

class ScheduleState {
 public:
  ScheduleState(ir::Kernel kernel, const ScheduleInput& input)
      : kernel_(std::move(kernel)), input_(input), orders_(sum_orders(kernel_)) {}
  // Applies a step and records it; false, and nothing changes, when it is not legal.
  bool apply(std::string primitive, std::vector<std::string> names,
             std::vector<int64_t> numbers = {});
  // Why a rule does what it does: for the reader of `lower --explain`.
  bool explains() const { return input_.notes != nullptr; }
  void note(std::string text) {
    if (input_.notes) input_.notes->push_back(std::move(text));
  }
  const ir::Kernel& kernel() const { return kernel_; }
  const Trace& trace() const { return trace_; }
  const ir::MachineDescription& machine() const { return *input_.machine; }
  // The order that the sums of a block must keep; null where any will do.
  const SumOrder* sum_order(const std::string& block) const {
    const auto it = orders_.find(block);
    return it == orders_.end() ? nullptr : &it->second;
  }
  bool is_constant(const ir::Buffer& b) const {
    return b->scope == ir::Scope::kParam && input_.constants.count(b->name) != 0;
  }
  bool has_block(const std::string& name) const { return find_block(kernel_.body, name).ok(); }
  BlockPlace place(const std::string& block) const {
    return find_block(kernel_.body, block).value();
  }
  // Runs steps that belong together: where they return false, none of them is left.
  template <typename Steps>
  bool all_or_nothing(Steps&& steps) {
    const ir::Kernel before = kernel_;
    const size_t taken = trace_.size();
    if (steps()) return true;
    kernel_ = before;
    trace_.resize(taken);
    return false;
  }

 private:
  ir::Kernel kernel_;
  const ScheduleInput& input_;
  const std::map<std::string, SumOrder> orders_;
  Trace trace_;
};

// The loop that feeds an axis directly (its binding is that loop's variable); empty when it is more
// than that.
std::string loop_of_axis(const ir::Block& block, size_t axis);
int64_t extent_or(const ir::Expr& e, int64_t fallback);
int64_t extent_with(const ir::Expr& e, int64_t symbol);  // at least 1; what each symbol is
// Work of one nest in block instances, symbolic extents taken as 64.
int64_t instances(const ir::Block& block);

constexpr int64_t kUnknownExtent = 64;  // what symbolic extents are taken for
constexpr int64_t kParallelWork =
    16384;  // instances of pointwise work below which a fork does not pay

// Makes tasks of the loops of a block that stand around each other, the outermost first: of as few
// of them as give enough tasks.
void share_out(ScheduleState& s, const std::string& block, const std::vector<std::string>& loops);

// What rules for one block have in common: they look for the axes that they need, then take steps,
// all or none of them.
class BlockRule {
 public:
  BlockRule(ScheduleState& s, std::string block) : s_(s), name_(std::move(block)) {}
  virtual ~BlockRule() = default;
  bool run() {
    block_ = *s_.place(name_).block;
    return find_axes() && s_.all_or_nothing([&] { return build(); });
  }

 protected:
  virtual bool find_axes() = 0;
  virtual bool build() = 0;
  std::string loop(const char* part) const { return name_ + "." + part; }
  int64_t extent(size_t axis) const { return extent_or(block_.axes[axis].extent, kUnknownExtent); }
  // The axes, not yet in use, whose addresses run on from those of `inner` in every access; the
  // innermost first.
  std::vector<size_t> with_outer(size_t inner, std::vector<bool>& used,
                                 const std::vector<BlockAccess>& accesses) const;
  // One loop for axes that run on; empty where they cannot be joined.
  std::string fuse(const std::vector<size_t>& axes, const char* label);
  // Where the work is worth a second thread.
  void share_out(const std::vector<std::string>& loops);

  ScheduleState& s_;
  std::string name_;
  ir::Block block_;
};

// Does a value take a long chain of instructions, as exp does?
bool is_long_chain(const ir::Block& b);
// Vectors of a pointwise block to take at a time: several where each is a long chain of
// instructions, so that the chains overlap. `extent`: of the loop that is made vectors of.
int64_t vectors_at_once(const ScheduleState& s, const ir::Block& b, int64_t extent, int64_t lanes);

// Pointwise producers into their consumers, where that does not repeat costly work; the blocks
// `kept` stay.
void inline_rule(ScheduleState& s, const std::set<std::string>& kept = {});
// All blocks of a Winograd convolution with its epilogue; false, and nothing done, for other
// kernels.
bool winograd_rule(ScheduleState& s);
// Says what both forms cost when the block is a convolution that could have been one of Winograd.
void note_direct_form(ScheduleState& s, const std::string& block);
// A tile of accumulators in registers: contractions, and reductions whose results lie side by side
// in memory. `epilogue` (may be empty) is the pointwise block that reads the result.
bool tile_rule(ScheduleState& s, const std::string& block, const std::string& epilogue);
// Cuts a large reduction to few results into runs of terms, one task each. How many follows from
// the shape alone, so that results do not depend on the number of threads. False where it does not.
bool split_rule(ScheduleState& s, const std::string& block);
// The like for a product of few results, whose tiles would be too few tasks.
bool split_product_rule(ScheduleState& s, const std::string& block);
// Rows of accumulators: reductions of terms that are each read once and lie side by side like the
// results. False, and nothing changes, for others. `epilogue` as above.
bool columns_rule(ScheduleState& s, const std::string& block, const std::string& epilogue);
// Reductions of several values at once, one result a lane.
bool lanes_rule(ScheduleState& s, const std::string& block);
// Several blocks over the same rows share the row loops; reductions along the row use vectors of
// partial results.
bool rows_rule(ScheduleState& s, const std::vector<std::string>& blocks);
// Bytes of all elements; 0 where extents are unknown.
int64_t bytes_of(const ir::BufferNode& b);
// Is so little of a buffer in the caches, once it was walked through, that its start is not?
bool exceeds_caches(const ScheduleState& s, const ir::BufferNode& b);
// Rows that another block alone reads, at places it looks up, are made where that block reads them.
// Returns the other block; empty, and nothing changes, where it is not of that form.
std::string resampled_rows_rule(ScheduleState& s, const std::string& block);
// Has the block store its result past the caches when they could not hold it anyway.
void stream_rule(ScheduleState& s, const std::string& block);
// Has the last of the blocks that reads the largest input bring near what lies so many bytes
// further on: passes over a row, and long chains of instructions, would else wait for memory now
// and then. `blocks`: in the order they run, over the same rows.
void prefetch_rule(ScheduleState& s, const std::vector<std::string>& blocks, int64_t bytes);
// Four rows of 1024 floats: far enough for memory to answer while rows are computed, and little
// enough to stay in the first cache beside them.
constexpr int64_t kRowsAhead = 16 << 10;
constexpr int64_t kStretchAhead = 4 << 10;  // a page: the processor's own prefetches end with one
// Do all addresses run on from the inner axis, of this extent, to the outer one?
bool runs_on(const std::vector<BlockAccess>& accesses, size_t outer, size_t inner,
             const ir::Expr& inner_extent);
// Squares in registers, where what is read lies across what is stored. False, and nothing changes,
// where it does not.
bool transpose_rule(ScheduleState& s, const std::string& block);
// Vectors along each of a few planes whose elements are stored side by side. False, and nothing
// changes, for others.
bool interleave_rule(ScheduleState& s, const std::string& block);
// Copies to a layout of blocks of columns by groups of terms (graph/pack_operands.h). False, and
// nothing changes, for others.
bool pack_rule(ScheduleState& s, const std::string& block);
// Contiguous axes fused, split to vectors, outer part parallel.
void pointwise_rule(ScheduleState& s, const std::string& block);

}  // namespace tilewright::passes
