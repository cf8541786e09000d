// Proves that a kernel may store its result over an operand. A kernel stores all of its result; if the number of stored
// elements equals the size of the result, it stores each element exactly once. A load that precedes the store with the
// same index, in the same iteration, therefore reads the operand's original value. Branch conditions and masks that
// depend on one loop variable are evaluated for each value of that variable.
#include <algorithm>
#include <numeric>

#include "ir/loops/compare.h"
#include "ir/loops/rewrite.h"
#include "passes/loops/loop_passes.h"
#include "passes/loops/strided_stores.h"
#include "passes/update_in_place.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class Accesses final : public Visitor {
 public:
  Accesses(const Buffer& input, const Buffer& result) : input_(input), result_(result) {}
  using Visitor::visit;

  bool run(const Stmt& body) {
    visit(body);
    end_scope(0);
    return provable_ && stored_ == as_int(storage_elements(*result_)).value_or(-1);
  }

  void visit(const Expr& e) override {
    if (const auto* load = e.as<Load>())
      if (load->buffer == input_) pending_.push_back(load);
    Visitor::visit(e);
  }
  void visit(const Stmt& s) override {
    if (const auto* loop = s.as<For>()) {
      loops_.push_back({loop->var.get(), as_int(loop->extent).value_or(kUnknown), {}});
      within(loop->body);
      loops_.pop_back();
      visit(loop->extent);
    } else if (const auto* branch = s.as<If>()) {
      visit(branch->condition);
      in_branch(branch->then, branch->condition, 1);
      if (branch->otherwise) in_branch(branch->otherwise, branch->condition, 0);
    } else if (const auto* store = s.as<Store>(); store && store->buffer == result_) {
      Visitor::visit(s);
      count(*store);
    } else if (const auto* loop = s.as<While>()) {
      visit(loop->condition);
      often(loop->body);
    } else {
      if (const auto* tile = s.as<DotTile>())
        for (const TileOperand* x : {&tile->sum, &tile->a, &tile->b})
          provable_ &= x->buffer != input_ && x->buffer != result_;
      Visitor::visit(s);
    }
  }

 private:
  static constexpr int64_t kUnknown = -1, kMostValues = 1 << 12;

  // An enclosing loop, and the iterations in which the current statement runs; empty: all.
  struct Loop {
    const ExprNode* variable;
    int64_t extent;
    std::vector<int64_t> values;

    int64_t count() const { return values.empty() ? extent : static_cast<int64_t>(values.size()); }
  };

  // Visits a scope. The store that matches a load of the operand must follow in the same scope.
  void within(const Stmt& body) {
    const size_t first = pending_.size();
    visit(body);
    end_scope(first);
  }
  // Visits a loop body, which runs an unknown number of times.
  void often(const Stmt& body) {
    ++unknown_;
    within(body);
    --unknown_;
  }
  void end_scope(size_t first) { provable_ &= pending_.size() == first; }

  // Visits a branch for the iterations in which the condition equals `taken`.
  void in_branch(const Stmt& body, const Expr& condition, int64_t taken) {
    if (const auto known = as_int(condition)) {
      if (*known == taken) within(body);
      return;
    }
    Loop* const loop = provable_ ? loop_of(condition) : nullptr;
    if (!loop) return often(body);
    std::vector<int64_t> values;
    for (const int64_t v : values_of(*loop)) {
      const auto found = as_int(substitute(condition, {{loop->variable, int_imm(v)}}));
      provable_ &= found.has_value();
      if (found == taken) values.push_back(v);
    }
    if (values.empty()) return;
    const auto place = static_cast<size_t>(loop - loops_.data());
    std::swap(loop->values, values);
    within(body);
    std::swap(loops_[place].values, values);
  }
  // Returns the loop whose variable is the only free variable of the expression; null if there are several, or if the
  // loop has more than kMostValues iterations.
  Loop* loop_of(const Expr& e) {
    const std::vector<Var> variables = free_vars_in_order(e);
    if (variables.size() != 1) return nullptr;
    for (Loop& l : loops_)
      if (l.variable == variables[0].get()) return l.count() <= kMostValues ? &l : nullptr;
    return nullptr;
  }
  static std::vector<int64_t> values_of(const Loop& loop) {
    if (!loop.values.empty()) return loop.values;
    std::vector<int64_t> all(static_cast<size_t>(std::max<int64_t>(loop.extent, 0)));
    std::iota(all.begin(), all.end(), int64_t{0});
    return all;
  }

  // Returns the number of executions of the current statement, over all enclosing loops except `but`.
  int64_t repeats(const Loop* but = nullptr) {
    int64_t product = 1;
    for (const Loop& l : loops_) {
      if (&l == but) continue;
      provable_ &= l.extent != kUnknown;
      product *= l.count();
    }
    return product;
  }
  void count(const Store& store) {
    provable_ &= unknown_ == 0;
    stored_ += store.mask ? masked(store.mask) : repeats() * store.value.type().lanes;
    std::erase_if(pending_, [&](const Load* load) {
      const bool same_lanes = !load->mask || same_mask(load->mask, store.mask);
      return same_lanes && load->indices.size() == 1 &&
             structurally_equal(load->indices[0], store.indices[0]);
    });
  }
  // Returns the number of elements that a masked store writes, over all iterations.
  int64_t masked(const Expr& mask) {
    const bool fixed = free_vars_in_order(mask).empty();
    Loop* const loop = fixed || !provable_ ? nullptr : loop_of(mask);
    if (!fixed && !loop) {
      provable_ = false;
      return 0;
    }
    int64_t lanes = 0;
    for (const int64_t v : fixed ? std::vector<int64_t>{0} : values_of(*loop)) {
      const Expr at = fixed ? mask : substitute(mask, {{loop->variable, int_imm(v)}});
      for (int k = 0; k < mask.lanes(); ++k) {
        const Expr lane = lane_of(at, k);
        const auto found = lane ? as_int(lane) : std::nullopt;
        provable_ &= found.has_value();
        lanes += found.value_or(0);
      }
    }
    return lanes * repeats(loop);
  }
  // Returns lane k of a vector of integers; null if it has other nodes than ramps, broadcasts and binary operations.
  static Expr lane_of(const Expr& e, int64_t k) {
    if (e.lanes() == 1) return e;
    if (const auto* r = e.as<Ramp>())
      return r->base.lanes() == 1 ? r->base + r->stride * int_imm(k) : nullptr;
    if (const auto* b = e.as<Broadcast>()) return lane_of(b->value, k % b->value.lanes());
    const auto* op = e.as<Binary>();
    const Expr x = op ? lane_of(op->a, k) : nullptr, y = op ? lane_of(op->b, k) : nullptr;
    return x && y ? binary(op->op, x, y) : nullptr;
  }

  const Buffer &input_, &result_;
  std::vector<const Load*> pending_;  // whose element has not been stored
  std::vector<Loop> loops_;
  int64_t stored_ = 0;
  int unknown_ = 0;  // scopes around that run an unknown number of times
  bool provable_ = true;
};

}  // namespace

bool updates_by_element(const Kernel& kernel, const Buffer& input, const Buffer& result) {
  const auto elements = as_int(storage_elements(*input));
  const bool alike =
      elements && elements == as_int(storage_elements(*result)) && input->dtype == result->dtype;
  return alike && Accesses(input, result).run(kernel.body);
}

}  // namespace tilewright::passes
