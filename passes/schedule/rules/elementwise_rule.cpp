// Pointwise blocks: loops in the order in which results lie in memory, the innermost ones that run
// on joined and split into vectors, the outer ones shared out to threads.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/loops/vector_width.h"
#include "passes/schedule/rules/memory.h"
#include "passes/schedule/rules/rule.h"
#include "passes/schedule/rules/share_out.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Memory bound, so what matters is contiguous vectors, few index computations, one pass, and
// non-temporal stores for results that no cache holds.
// Does the value name the variable, other than to say where it reads?
class NamesVar : public Visitor {
 public:
  explicit NamesVar(const Var& v) : var_(v) {}
  using Visitor::visit;
  void visit(const Expr& e) override {
    found |= e.same_as(var_);
    if (e.kind() != NodeKind::kLoad) Visitor::visit(e);
  }
  bool found = false;

 private:
  const Var& var_;
};
// Does a condition of the block's value name the axis? Joined with others it would have to be
// divided out again for each lane.
bool in_condition(const Block& b, size_t axis) {
  NamesVar names(b.axes[axis].var);
  for_each_expr(b.body, [&](const Expr& e) {
    if (const auto* s = e.as<Select>()) names.visit(s->condition);
  });
  return names.found;
}

class ElementwiseRule : public BlockRule {
 public:
  using BlockRule::BlockRule;

 private:
  struct Axis {
    size_t index;
    std::string loop;
    int64_t extent;
  };

  bool applies() override {
    accesses_ = block_accesses(block_);
    return order_by_stores() && reorder() && join_inner();
  }

  // Axes by how far the stored address moves: outermost first.
  bool order_by_stores() {
    constexpr int64_t kOutermost = int64_t{1} << 60;  // of axes of one step, which may be anywhere
    std::vector<std::pair<int64_t, Axis>> order;
    for (size_t i = 0; i < block_.axes.size(); ++i) {
      const std::string loop = loop_of_axis(block_, i);
      if (loop.empty()) return false;
      const bool one = is_one(block_.axes[i].extent);
      order.push_back(
          {one ? kOutermost : stride_or_far(accesses_.back(), i), {i, loop, extent(i)}});
    }
    sort_by_first(order);
    for (auto& [stride, a] : order) axes_.push_back(a);
    return !axes_.empty();
  }
  static void sort_by_first(std::vector<std::pair<int64_t, Axis>>& order) {
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& x, const auto& y) { return x.first > y.first; });
  }
  bool reorder() {
    std::vector<std::string> order;
    for (const Axis& a : axes_) order.push_back(a.loop);
    return order.size() < 2 || s_.apply("reorder", order);
  }
  // The innermost axes, as long as all addresses run on, become one.
  bool join_inner() {
    inner_ = axes_.back();
    inner_extent_ = block_.axes[inner_.index].extent;
    last_ = axes_.size() - 1;
    const bool in_steps = loops_of_steps(s_, name_) > 0;  // which share rows (share_steps)
    for (int fused = 0; last_ > 0; ++fused, --last_) {
      const Axis& outer = axes_[last_ - 1];
      const bool trivial = is_one(block_.axes[outer.index].extent);
      if (!trivial &&
          (in_steps || !runs_on(accesses_, outer.index, axes_.back().index, inner_extent_) ||
           in_condition(block_, outer.index) || in_condition(block_, axes_.back().index)))
        break;
      const std::string name = name_ + ".f" + std::to_string(fused);
      if (!s_.apply("collapse", {outer.loop, inner_.loop, name})) break;
      inner_.loop = name;
      inner_.extent *= outer.extent;
      inner_extent_ = simplify(inner_extent_ * block_.axes[outer.index].extent);
    }
    return true;
  }

  void decide() override {
    from_memory_ = exceeds_caches(s_, *accesses_.back().buffer);
    int bytes = 1;
    for (const BlockAccess& a : accesses_)
      if (a.stride(inner_.index) != 0) bytes = std::max(bytes, byte_size(a.buffer->dtype));
    lanes_ = s_.machine().lanes(std::max(bytes, 4));
    if (as_int(inner_extent_)) lanes_ = fitting_lanes(lanes_, inner_.extent);
    const bool long_chain = is_long_chain(block_) || stands_by_long_chain();
    lanes_ *= decide_vectors_at_once(s_, name_, long_chain, inner_.extent, lanes_);
    alone_ = s_.place(name_).loops.size() == block_.axes.size() - (axes_.size() - 1 - last_);
  }

  // Does a long chain make what the block reads, element by element? They can share a loop that takes
  // as many vectors at a time (share_nests).
  bool stands_by_long_chain() const {
    if (loops_of_steps(s_, name_) > 0) return false;  // rows of a step are what these share
    const Touched own = touched(s_.place(name_).stmt);
    for (const BlockPlace& p : all_blocks(s_.kernel().body)) {
      const auto* st = p.block->body.as<Store>();
      if (st && own.reads.count(st->buffer.get()) && !p.block->init &&
          instances(*p.block) == instances(block_) && is_long_chain(*p.block))
        return true;
    }
    return false;
  }

  bool write() override {
    if (from_memory_) order_by_reads();
    std::string innermost = inner_.loop;
    if (inner_.extent >= lanes_ / 2 || !as_int(inner_extent_)) {
      if (!s_.apply("split", {inner_.loop, loop("o"), loop("v")}, {lanes_}) ||
          !s_.apply("vectorize", {loop("v")}))
        return false;
      innermost = loop("o");
    }
    std::vector<std::string> tasks;
    for (size_t i = 0; i < last_; ++i) tasks.push_back(axes_[i].loop);
    tasks.push_back(innermost);
    const bool shared = alone_ && forks(s_, name_);
    s_.note(name_ + ": element by element, vectors along what lies side by side" +
            (shared ? "" : "; too little work for a second thread"));
    if (shared) passes::share_out(s_, name_, tasks);
    store_past_caches(s_, name_);
    if (is_long_chain(block_) && from_memory_) prefetch_largest(s_, {name_}, kStretchAhead);
    return true;
  }

  // Where the outer axes take steps of whole lines anyway, memory is read in the order in which it
  // lies: stores past the caches wait for nothing, reads do.
  void order_by_reads() {
    const BlockAccess* most = nullptr;
    for (const BlockAccess& a : accesses_)
      if (!a.write && (!most || bytes_of(*a.buffer) > bytes_of(*most->buffer))) most = &a;
    if (!most || last_ < 2) return;
    const BlockAccess& stored = accesses_.back();
    std::vector<std::pair<int64_t, Axis>> order;
    for (size_t i = 0; i < last_; ++i) {
      const auto read = most->stride(axes_[i].index), written = stored.stride(axes_[i].index);
      if (!read || !written || *written * byte_size(stored.buffer->dtype) < kCacheLine) return;
      order.push_back({*read, axes_[i]});
    }
    if (!s_.decide_whether(loop("order_by_reads"), true, Bits::kKept)) return;
    sort_by_first(order);
    std::vector<std::string> loops;
    for (const auto& [stride, axis] : order) loops.push_back(axis.loop);
    if (!s_.apply("reorder", loops)) return;
    for (size_t i = 0; i < last_; ++i) axes_[i] = order[i].second;
  }

  std::vector<BlockAccess> accesses_;
  std::vector<Axis> axes_;  // outermost first
  size_t last_ = 0;         // of the axes, the one that starts the joined ones
  Axis inner_{};            // the joined ones
  Expr inner_extent_;
  int64_t lanes_ = 1;         // elements that are taken at once
  bool from_memory_ = false;  // no cache holds the result
  bool alone_ = false;        // no loop around is another block's
};

}  // namespace

bool is_long_chain(const Block& b) {
  bool found = false;
  for_each_expr(b.body, [&](const Expr& e) {
    const auto* u = e.as<Unary>();
    found |= u && is_costly(u->op) && u->op != UnaryOp::kSqrt && is_float(e.dtype());
  });
  return found;
}

int64_t decide_vectors_at_once(ScheduleState& s, const std::string& name, bool long_chain,
                               int64_t extent, int64_t lanes) {
  // Their values are all live at once, beside the coefficients. Lanes beyond the end are masked off
  // and computed for nothing.
  constexpr int64_t kRegistersEach = 4, kMostIdle = 8;  // at most one lane in so many
  int64_t vectors = long_chain ? s.machine().vector_registers / kRegistersEach : 1;
  auto idle = [&] {
    const int64_t step = vectors * lanes;
    return (extent + step - 1) / step * step - extent;
  };
  while (vectors > 1 && idle() * kMostIdle > extent) vectors /= 2;
  return s.decide(name + ".vectors", {1, 2, 4, 8}, vectors, Bits::kKept);
}

std::optional<Taken> take_elementwise(ScheduleState& s, const Work& work) {
  return take_block<ElementwiseRule>(s, work);
}

}  // namespace tilewright::passes
