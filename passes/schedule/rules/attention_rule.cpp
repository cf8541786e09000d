// Attention: in which blocks of rows and keys it goes.
#include <algorithm>

#include "passes/cost/attention_cost.h"
#include "passes/cost/tile_cost.h"
#include "passes/schedule/attention_chain.h"
#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class AttentionRule {
 public:
  explicit AttentionRule(ScheduleState& s) : s_(s) {}

  // Blocks of keys are another order of sums; exact kernels keep theirs.
  bool run() {
    for (const BlockPlace& p : all_blocks(s_.kernel().body)) {
      if (!is_exponential(*p.block)) continue;
      auto found = find_attention(s_.kernel(), p.block->name);
      if (!found.ok()) continue;
      chain_ = std::move(found).value();
      if (s_.sum_order(chain_.values.block.name)) return false;
      const int64_t rows = decide_rows(), keys = decide_keys(rows);
      const bool all = as_int(chain_.keys) && *as_int(chain_.keys) <= keys;
      s_.note(chain_.weights.block.name + ": attention, " + std::to_string(rows) +
              " rows at a time, by " +
              (all ? "all keys"
                   : std::to_string(keys) + " keys, whose sums are rescaled as more come"));
      return s_.apply("tile_attention", {chain_.weights.block.name}, {rows, keys});
    }
    return false;
  }

 private:
  static bool is_exponential(const Block& b) {
    const auto* st = b.body.as<Store>();
    const auto* u = st ? st->value.as<Unary>() : nullptr;
    return u && u->op == UnaryOp::kExp;
  }
  std::string name(const char* what) const { return chain_.weights.block.name + "." + what; }
  // As many as cost least, but no fewer than kFewestAtOnce where there are more, as where nobody
  // knows; and no more than a tile of sums has.
  int64_t decide_rows() {
    const auto extent = [](const Expr& e) { return as_int(e).value_or(kUnknown); };
    const Expr& rows_there = chain_.rows.back();
    const AttentionSizes sizes{extent(rows_there), extent(chain_.keys), extent(chain_.depth),
                               extent(chain_.width)};
    std::vector<int64_t> values;
    std::vector<double> costs;
    size_t usual = 0;
    for (int64_t rows = 1; rows <= std::clamp<int64_t>(sizes.rows, 1, kMostRows); ++rows) {
      values.push_back(rows);
      costs.push_back(attention_cost(s_.machine(), sizes, rows));
      if (rows <= kFewestAtOnce ||
          (as_int(rows_there) && rows <= kMostTileRows && costs.back() < costs[usual]))
        usual = values.size() - 1;
    }
    return s_.decide(name("row_block"), values, values[usual], Bits::kChanged, costs);
  }
  int64_t decide_keys(int64_t row_block) {
    const int64_t usual = usual_keys(row_block);
    std::vector<int64_t> values;
    for (const int64_t b : {32, 64, 128, 256, 512})
      if (b < as_int(chain_.keys).value_or(kUnknownKeys)) values.push_back(b);
    if (as_int(chain_.keys) && *as_int(chain_.keys) <= kMostKeys)
      values = with(values, *as_int(chain_.keys));
    return s_.decide(name("key_block"), with(values, usual), usual, Bits::kChanged);
  }
  // All of them, while their scores stay in the innermost cache; else as many as do, in blocks
  // alike where there are such.
  int64_t usual_keys(int64_t row_block) const {
    constexpr int64_t kOfUnknown = 128, kFewest = 64, kMost = 256;
    const auto n = as_int(chain_.keys);
    if (!n) return kOfUnknown;
    const int64_t most =
        std::clamp(s_.machine().l1_bytes / 2 / (4 * row_block) / 64 * 64, kFewest, kMost);
    if (*n <= most + most / 2) return *n;
    for (int64_t b = most; b >= most / 2; --b)
      if (*n % b == 0) return b;
    return most;
  }

  static constexpr int64_t kUnknown = 64, kFewestAtOnce = 8, kMostRows = 16, kMostKeys = 1024,
                           kUnknownKeys = 512;
  ScheduleState& s_;
  AttentionChain chain_;
};

}  // namespace

std::optional<Taken> take_attention(ScheduleState& s, const Work&) {
  return AttentionRule(s).run() ? std::optional(Taken{}) : std::nullopt;
}

}  // namespace tilewright::passes
