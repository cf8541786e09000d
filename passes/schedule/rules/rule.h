// The rules: each takes the blocks that it applies to, decides, and writes its steps. To add one:
// a file beside this one, its `take` below, a row in the table (rules.cpp).
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "passes/analysis/accesses.h"
#include "passes/schedule/rules/schedule_state.h"

namespace tilewright::passes {

// What a rule is tried on.
struct Work {
  std::string block;     // empty: the whole kernel
  std::string epilogue;  // the pointwise block that alone reads its result, over the same axes
  bool by_places =
      false;  // of many products side by side each shall be a task, with all of its rows
};
// What a rule has scheduled besides the block that it was tried on.
struct Taken {
  std::set<std::string> also;  // blocks that need no other rule
  std::string before;          // a block that the rule made, to be scheduled before `block` itself
  bool all = false;            // the whole kernel: nothing is left for other rules
};

// What there is to schedule, in one of five kinds.
enum class Applies : uint8_t {
  kOperators,      // all blocks at once, as operators have them
  kKernel,         // all blocks at once, pointwise producers inlined
  kPointwise,      // one store, no reduction
  kReduction,      // one value that is reduced
  kSeveralValues,  // several stores, or several values that are reduced at once
};

// How far a rule keeps the order of sums where that is fixed (SumOrder).
enum class KeepsOrder : uint8_t { kNo, kOneAfterTheOther, kAlsoInParts };

// A row of the table: a schedule template and when it is tried.
struct Rule {
  // As decisions and notes call it.
  std::string_view name;
  // Blocks of other kinds never meet the rule.
  Applies to;
  KeepsOrder order;
  bool last_resort;  // tried again when no rule applied, whether it pays or not
  // A phrase, for lists of rules.
  std::string_view summary;
  // Is it worth trying, before the rules that come after it? Null: always. A rule that says no is
  // still tried when an answer asks for it.
  bool (*pays)(const ScheduleState&, const Work&);
  // Takes all of its steps; nothing, and nothing changes, where it does not apply.
  std::optional<Taken> (*take)(ScheduleState&, const Work&);
};
// THE table of rules: those of one kind in the order in which they are tried.
std::span<const Rule> rules();

// What rules for one block have in common: they look for the axes that they need, decide, and then
// write all of their steps, or none.
class BlockRule {
 public:
  // `block` must exist when run() is called.
  BlockRule(ScheduleState& s, std::string block) : s_(s), name_(std::move(block)) {}
  virtual ~BlockRule() = default;
  // Takes all steps of the rule, or none, and says which.
  bool run() {
    block_ = *s_.place(name_).block;
    return s_.all_or_nothing([&] {
      if (!applies()) return false;
      decide();
      return write();
    });
  }

 protected:
  // May take steps that decisions build on, such as a cache for results.
  virtual bool applies() = 0;
  virtual void decide() {}
  virtual bool write() = 0;

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
// A rule without more blocks than its own.
template <typename R>
std::optional<Taken> take_block(ScheduleState& s, const Work& work) {
  return R(s, work.block).run() ? std::optional(Taken{}) : std::nullopt;
}

// Attention, whose blocks other rules schedule then; Winograd convolutions with their epilogues;
// lines of blocks over the same rows (softmax, normalisations): whole kernels.
std::optional<Taken> take_attention(ScheduleState& s, const Work& work);
std::optional<Taken> take_winograd(ScheduleState& s, const Work& work);
std::optional<Taken> take_winograd_weights(ScheduleState& s, const Work& work);
std::optional<Taken> take_winograd_gradient(ScheduleState& s, const Work& work);
std::optional<Taken> take_shared_rows(ScheduleState& s, const Work& work);
std::optional<Taken> take_product_rows(ScheduleState& s, const Work& work);
// Pointwise blocks.
std::optional<Taken> take_resampled_rows(ScheduleState& s, const Work& work);
std::optional<Taken> take_pack(ScheduleState& s, const Work& work);
std::optional<Taken> take_panels(ScheduleState& s, const Work& work);
std::optional<Taken> take_interleave(ScheduleState& s, const Work& work);
std::optional<Taken> take_short_rows(ScheduleState& s, const Work& work);
std::optional<Taken> take_transpose(ScheduleState& s, const Work& work);
std::optional<Taken> take_elementwise(ScheduleState& s, const Work& work);
// Reductions.
bool split_pays(const ScheduleState& s, const Work& work);
std::optional<Taken> take_split(ScheduleState& s, const Work& work);
bool split_product_pays(const ScheduleState& s, const Work& work);
std::optional<Taken> take_split_product(ScheduleState& s, const Work& work);
bool rows_pay(const ScheduleState& s, const Work& work);
std::optional<Taken> take_rows(ScheduleState& s, const Work& work);
bool columns_pay(const ScheduleState& s, const Work& work);
std::optional<Taken> take_columns(ScheduleState& s, const Work& work);
std::optional<Taken> take_tile(ScheduleState& s, const Work& work);
// Says what both forms cost when the block is a convolution that could have been one of Winograd.
void note_direct_form(ScheduleState& s, const std::string& block);
std::optional<Taken> take_lanes(ScheduleState& s, const Work& work);
std::optional<Taken> take_nested(ScheduleState& s, const Work& work);

// Steps before any rule: temporaries lie as what is made of them, inits that stand before their
// reductions become part of them, sums of exact kernels get their order, pointwise producers go into
// their consumers.
void lay_out_temporaries(ScheduleState& s);
void compose_inits(ScheduleState& s);
void order_sums(ScheduleState& s);
void inline_producers(ScheduleState& s, const std::set<std::string>& kept = {});
// And after all: results over the same elements share a nest, and what steps do element by element their
// rows, which are shared out; blocks within one of parallel axes are
// tasks; inits of reductions become nests before their loops. An error where one cannot and its
// reduction may be over nothing.
void share_nests(ScheduleState& s);
void share_steps(ScheduleState& s);
void share_out_points(ScheduleState& s);
Status take_out_inits(ScheduleState& s);

}  // namespace tilewright::passes
