#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

struct Axis {
  size_t index;
  std::string loop;
  int64_t extent;
};

// Axes by how far the stored address moves: outermost first. Empty when an axis is not bound to a
// loop of its own.
std::vector<Axis> store_order(const Block& b, const BlockAccess& store) {
  std::vector<std::pair<int64_t, Axis>> order;
  for (size_t i = 0; i < b.axes.size(); ++i) {
    const std::string loop = loop_of_axis(b, i);
    if (loop.empty()) return {};
    int64_t stride =
        store.strides[i] ? as_int(store.strides[i]).value_or(int64_t{1} << 40) : int64_t{1} << 50;
    if (is_one(b.axes[i].extent)) stride = int64_t{1} << 60;  // anywhere: outermost
    order.push_back({stride, {i, loop, extent_or(b.axes[i].extent, kUnknownExtent)}});
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& x, const auto& y) { return x.first > y.first; });
  std::vector<Axis> axes;
  for (auto& [stride, a] : order) axes.push_back(a);
  return axes;
}

// Where the first `outer` axes take steps of whole lines anyway, memory is read in the order in
// which it lies: stores past the caches wait for nothing, reads do.
void order_by_reads(ScheduleState& s, const std::vector<BlockAccess>& accesses,
                    std::vector<Axis>& axes, size_t outer) {
  constexpr int64_t kLine = 64;
  const BlockAccess* most = nullptr;
  for (const BlockAccess& a : accesses)
    if (!a.write && (!most || bytes_of(*a.buffer) > bytes_of(*most->buffer))) most = &a;
  if (!most || outer < 2) return;
  std::vector<std::pair<int64_t, Axis>> order;
  for (size_t i = 0; i < outer; ++i) {
    const auto read = most->stride(axes[i].index), written = accesses.back().stride(axes[i].index);
    if (!read || !written || *written * byte_size(accesses.back().buffer->dtype) < kLine) return;
    order.push_back({*read, axes[i]});
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& x, const auto& y) { return x.first > y.first; });
  std::vector<std::string> loops;
  for (const auto& [stride, axis] : order) loops.push_back(axis.loop);
  if (!s.apply("reorder", loops)) return;
  for (size_t i = 0; i < outer; ++i) axes[i] = order[i].second;
}

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

}  // namespace

bool runs_on(const std::vector<BlockAccess>& accesses, size_t outer, size_t inner,
             const Expr& inner_extent) {
  for (const BlockAccess& a : accesses) {
    if (!a.strides[outer] || !a.strides[inner]) return false;
    if (!can_prove_equal(a.strides[outer], a.strides[inner] * inner_extent)) return false;
  }
  return true;
}

bool is_long_chain(const Block& b) {
  bool found = false;
  for_each_expr(b.body, [&](const Expr& e) {
    const auto* u = e.as<Unary>();
    found |= u && u->op >= UnaryOp::kExp && u->op <= UnaryOp::kSigmoid && is_float(e.dtype());
  });
  return found;
}

int64_t vectors_at_once(const ScheduleState& s, const Block& b, int64_t extent, int64_t lanes) {
  // Their values are all live at once, beside the coefficients. Lanes beyond the end are masked off
  // and computed for nothing.
  constexpr int64_t kRegistersEach = 4, kMostIdle = 8;  // at most one lane in so many
  int64_t vectors = is_long_chain(b) ? s.machine().vector_registers / kRegistersEach : 1;
  auto idle = [&] {
    const int64_t step = vectors * lanes;
    return (extent + step - 1) / step * step - extent;
  };
  while (vectors > 1 && idle() * kMostIdle > extent) vectors /= 2;
  return vectors;
}

void pointwise_rule(ScheduleState& s, const std::string& block) {
  if (pack_rule(s, block) || interleave_rule(s, block) || transpose_rule(s, block)) return;
  const BlockPlace p = s.place(block);
  const Block b = *p.block;
  const auto accesses = block_accesses(b);
  std::vector<Axis> axes = store_order(b, accesses.back());
  if (axes.empty()) return;
  std::vector<std::string> order;
  for (const Axis& a : axes) order.push_back(a.loop);
  if (order.size() > 1 && !s.apply("reorder", order)) return;

  // The innermost axes, as long as all addresses run on, become one.
  Axis inner = axes.back();
  Expr extent = b.axes[inner.index].extent;
  size_t last = axes.size() - 1;
  int fused = 0;
  while (last > 0) {
    const Axis& outer = axes[last - 1];
    const bool trivial = is_one(b.axes[outer.index].extent);
    if (!trivial && (!runs_on(accesses, outer.index, axes.back().index, extent) ||
                     in_condition(b, outer.index) || in_condition(b, axes.back().index)))
      break;
    const std::string name = block + ".f" + std::to_string(fused++);
    if (!s.apply("fuse_axes", {outer.loop, inner.loop, name})) break;
    inner.loop = name;
    inner.extent *= outer.extent;
    extent = simplify(extent * b.axes[outer.index].extent);
    --last;
  }

  if (exceeds_caches(s, *accesses.back().buffer)) order_by_reads(s, accesses, axes, last);

  int bytes = 1;
  for (const BlockAccess& a : accesses) {
    const auto stride = a.stride(inner.index);
    if (stride != 0) bytes = std::max(bytes, byte_size(a.buffer->dtype));
  }
  int64_t lanes = s.machine().lanes(std::max(bytes, 4));
  while (as_int(extent) && lanes > 4 && inner.extent <= lanes / 2) lanes /= 2;
  lanes *= vectors_at_once(s, b, inner.extent, lanes);
  const int64_t work = instances(b);
  const bool tasks_pay = work >= kParallelWork && p.loops.size() == b.axes.size();
  std::string innermost = inner.loop;
  if (inner.extent >= lanes / 2 || !as_int(extent)) {
    const std::string outer = block + ".o", vector = block + ".v";
    if (s.apply("split", {inner.loop, outer, vector}, {lanes}) && s.apply("vectorize", {vector}))
      innermost = outer;
  }
  std::vector<std::string> tasks;
  for (size_t i = 0; i < last; ++i) tasks.push_back(axes[i].loop);
  tasks.push_back(innermost);
  s.note(block + ": element by element, vectors along what lies side by side" +
         (tasks_pay ? "" : "; too little work for a second thread"));
  if (tasks_pay) share_out(s, block, tasks);
  stream_rule(s, block);
  if (is_long_chain(b) && exceeds_caches(s, *accesses.back().buffer))
    prefetch_rule(s, {block}, kStretchAhead);
}

}  // namespace tilewright::passes
