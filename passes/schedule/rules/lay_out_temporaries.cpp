// Where the temporaries of an operator lie: as the result that they are a step to, so that both are
// written and read along the same vectors; or as what they are a copy of, where sums that lie row by row go along that
// (the gradient of a depthwise convolution's weights). From the last block to the first, as the sum before the
// result hands its layout on to the padded operand before the sum.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/schedule/rules/block_kinds.h"
#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Does dimension d of what is read belong to dimension d of the result, or to what is summed? Then
// both take the same layout.
bool goes_along(const Load& l, const Store& result, const Block& b) {
  for (size_t d = 0; d < l.indices.size(); ++d)
    for (const BlockAxis& a : b.axes)
      if (uses_var(l.indices[d], a.var) && a.kind == AxisKind::kParallel &&
          !uses_var(result.indices[d], a.var))
        return false;
  return true;
}

class LayOutTemporaries {
 public:
  explicit LayOutTemporaries(ScheduleState& s) : s_(s) {}
  void run() {
    const std::vector<std::string> names = block_names(s_);
    for (size_t i = names.size(); i-- > 0;) {
      const BlockPlace place = s_.place(names[i]);  // as it is now: steps replace buffers
      const Block& b = *place.block;
      const auto* st = b.body.as<Store>();
      if (!st || st->indices.empty()) continue;
      const bool rows = st->buffer->layout.empty();
      std::vector<const Load*> found;
      for_each_expr(st->value, [&](const Expr& e) {
        const auto* l = e.as<Load>();
        if (l && l->buffer->scope == Scope::kWorkspace && l->buffer->layout.empty() &&
            (rows ? is_reduction(b) && copies_along(*l, *st, b)
                  : l->indices.size() == st->indices.size() && goes_along(*l, *st, b)))
          found.push_back(l);
      });
      for (const Load* l : found)
        if (asked_.insert(l->buffer->name).second)
          lay_out(*l, *st, is_reduction(b) ? bits_of_order(b) : Bits::kKept);
    }
  }

 private:
  enum Answer : size_t { kRowMajor, kAsResult, kAsSource };

  // The order in which a sum goes through its terms may follow from where they lie.
  void lay_out(const Load& l, const Store& result, Bits bits) {
    const Buffer copied = source_of(l.buffer);
    const Layout as[] = {{}, result.buffer->layout, copied ? copied->layout : Layout{}};
    std::vector<std::string> labels{"row_major", "as_result"};
    if (!as[kAsSource].empty() && as[kAsSource] != as[kAsResult]) labels.emplace_back("as_source");
    Answer usual = usual_answer(l.buffer, result, copied != nullptr);
    if (usual == kAsSource && labels.size() <= kAsSource)
      usual = as[kAsSource].empty() ? kRowMajor : kAsResult;
    const size_t answer = s_.decide_which(l.buffer->name + ".layout", labels, usual, bits);
    std::vector<int64_t> numbers;
    for (const LayoutAxis& a : as[answer])
      numbers.insert(numbers.end(), {a.dim, a.divisor, a.modulus});
    if (!numbers.empty()) s_.attempt("transform_layout", {l.buffer->name}, numbers);
  }
  // Is it a copy of what lies along the results of a row?
  bool copies_along(const Load& l, const Store& result, const Block& b) const {
    const Buffer copied = source_of(l.buffer);
    if (!copied || copied->layout.empty()) return false;
    const Expr& inner = l.indices[static_cast<size_t>(copied->layout.back().dim)];
    return std::any_of(b.axes.begin(), b.axes.end(), [&](const BlockAxis& a) {
      return a.kind == AxisKind::kParallel && uses_var(result.indices.back(), a.var) &&
             uses_var(inner, a.var);
    });
  }
  // Few channels, as of an image, stay as they lie: each is read for all results at once. Results of
  // one channel lie side by side along a row, and so do the elements that they read.
  static Answer usual_answer(const Buffer& b, const Store& result, bool is_copy) {
    constexpr int64_t kFewChannels = 4;
    if (result.buffer->layout.empty()) return kAsSource;
    const auto inner = static_cast<size_t>(result.buffer->layout.back().dim);
    if (is_one(result.buffer->shape[inner])) return kRowMajor;
    const bool few = as_int(b->shape[inner]).value_or(kFewChannels + 1) <= kFewChannels;
    return is_copy && few ? kAsSource : kAsResult;
  }
  // The parameter of as many dimensions that a pointwise block makes the temporary of, if any.
  Buffer source_of(const Buffer& temporary) const {
    Buffer found;
    for (const BlockPlace& p : all_blocks(s_.kernel().body)) {
      const auto* st = p.block->body.as<Store>();
      if (!st || st->buffer != temporary) continue;
      if (is_reduction(*p.block)) return nullptr;
      for_each_expr(st->value, [&](const Expr& e) {
        const auto* l = e.as<Load>();
        if (l && l->buffer->scope == Scope::kParam && l->indices.size() == st->indices.size())
          found = l->buffer;
      });
    }
    return found;
  }

  ScheduleState& s_;
  std::set<std::string> asked_;
};

}  // namespace

void lay_out_temporaries(ScheduleState& s) { LayOutTemporaries(s).run(); }

}  // namespace tilewright::passes
