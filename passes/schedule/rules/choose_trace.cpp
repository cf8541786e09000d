// The driver of the rules: steps for the kernel as a whole, then, block by block, the first rule of
// the table (rules.cpp) that pays and applies, or the one that an answer asks for.
#include "passes/schedule/rules/choose_trace.h"

#include <algorithm>

#include "passes/schedule/rules/block_kinds.h"
#include "passes/schedule/rules/memory.h"
#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class ChooseTrace {
 public:
  explicit ChooseTrace(ScheduleState& s) : s_(s) {}

  // Whole-kernel rules first: they see blocks together that others would take apart.
  void run() {
    if (has_empty_block()) return;
    compose_inits(s_);
    if (whole_kernel(Applies::kOperators)) return;
    lay_out_temporaries(s_);
    order_sums(s_);
    inline_producers(s_);
    if (whole_kernel(Applies::kKernel)) return;
    names_ = block_names(s_);
    for (size_t i = 0; i < names_.size(); ++i) {
      if (!s_.has_block(names_[i]) || done_.count(names_[i])) continue;
      const auto taken = schedule(names_[i]);
      if (!taken) continue;
      done_.insert(taken->also.begin(), taken->also.end());
      if (taken->before.empty()) continue;
      split_.insert(names_[i]);
      runs_.insert(taken->before);
      names_.insert(names_.begin() + static_cast<long>(i), taken->before);
      --i;
    }
    share_nests(s_);
    share_steps(s_);
    share_out_points(s_);
    store_temporaries_past_caches(s_);
  }

 private:
  // Is there nothing to compute of some value? No rule has to divide such an extent.
  bool has_empty_block() const {
    for (const BlockPlace& p : all_blocks(s_.kernel().body))
      for (const BlockAxis& a : p.block->axes)
        if (is_zero(a.extent)) {
          s_.note(p.block->name + ": an extent is 0; the kernel stays as it is");
          return true;
        }
    return false;
  }

  // The rules of a kind that takes all blocks at once, one after the other. Has one scheduled all
  // that there is?
  bool whole_kernel(Applies kind) {
    for (const Rule& rule : rules()) {
      const auto taken = rule.to == kind ? try_kernel(rule) : std::nullopt;
      if (!taken) continue;
      if (taken->all) return true;
      compose_inits(s_);  // of the blocks that the rule made
    }
    return false;
  }
  std::optional<Taken> try_kernel(const Rule& rule) {
    const std::string decision = "kernel." + std::string(rule.name);
    std::optional<Taken> taken;
    const auto take = [&] {
      if (s_.decide_whether(decision, true, Bits::kChanged)) taken = rule.take(s_, {});
      return taken.has_value();
    };
    if (s_.answer(decision) != 0) {
      s_.all_or_nothing(take);
      return taken;
    }
    // Unwanted: but where it applies, the decision came up.
    bool applies = false;
    s_.all_or_nothing([&] {
      applies = rule.take(s_, {}).has_value();
      return false;
    });
    if (applies) s_.decide_whether(decision, true, Bits::kChanged);
    return std::nullopt;
  }

  // Rules of the block's kind that keep the order of its sums where that is fixed.
  std::vector<const Rule*> candidates(const std::string& block) const {
    const Applies kind = kind_of(*s_.place(block).block);
    const SumOrder* sums = s_.sum_order(block);
    const KeepsOrder least = !sums            ? KeepsOrder::kNo
                             : sums->in_parts ? KeepsOrder::kAlsoInParts
                                              : KeepsOrder::kOneAfterTheOther;
    std::vector<const Rule*> found;
    for (const Rule& r : rules())
      if (r.to == kind && (kind != Applies::kReduction || r.order >= least) &&
          !(runs_.count(block) && r.take == take_split_product))
        found.push_back(&r);
    return found;
  }

  // First the rules that pay, in the table's order; then those of last resort. An answer overrides
  // the order: then the rule asked for is tried and nothing else.
  std::optional<Taken> schedule(const std::string& block) {
    const Block b = *s_.place(block).block;
    const bool reduces = is_simple(b) && is_reduction(b);
    const Work work{block, reduces ? epilogue_of(s_, block, names_) : ""};
    if (reduces && s_.explains()) note_direct_form(s_, block);
    const std::vector<const Rule*> rows = candidates(block);
    // What combines the runs of a block that was split is scheduled anew.
    const std::string decision = block + (split_.count(block) ? ".combine" : ".rule");
    std::vector<std::string> labels;
    for (const Rule* r : rows) labels.emplace_back(r->name);
    std::optional<Taken> taken;
    // Tries rule `n`, or the one that was asked for.
    const auto attempt = [&](size_t n) {
      return s_.all_or_nothing([&] {
        const size_t wanted = s_.decide_which(decision, labels, n, bits_of_order(b));
        taken = rows[wanted]->take(s_, work);
        return taken.has_value();
      });
    };
    const auto given = s_.answer(decision);
    if (!given) {
      for (size_t n = 0; n < rows.size() && !taken; ++n)
        if (!rows[n]->pays || rows[n]->pays(s_, work)) attempt(n);
      for (size_t n = 0; n < rows.size() && !taken; ++n)
        if (rows[n]->last_resort) attempt(n);
    } else if (!attempt(0)) {
      s_.refuse("rule " + std::to_string(*given) + " does not apply to block '" + block +
                "': " + s_.obstacle());
    }
    return taken;
  }

  ScheduleState& s_;
  std::vector<std::string> names_;
  std::set<std::string> done_;
  std::set<std::string> split_, runs_;  // blocks that were split, and those of their runs
};

}  // namespace

Result<Choice> choose_trace(const Kernel& kernel, const ScheduleInput& input) {
  ScheduleState state(kernel, input);
  if (input.rules) ChooseTrace(state).run();
  TW_RETURN_IF_ERROR(take_out_inits(state));
  return state.finish();
}

}  // namespace tilewright::passes
