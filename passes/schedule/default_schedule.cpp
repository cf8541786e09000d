#include "passes/schedule/default_schedule.h"

#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/schedule/primitives.h"
#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

bool ScheduleState::apply(std::string primitive, std::vector<std::string> names,
                          std::vector<int64_t> numbers) {
  Step step{std::move(primitive), std::move(names), std::move(numbers)};
  auto next = apply_trace(kernel_, {step});
  if (!next.ok()) return false;
  kernel_ = std::move(next).value();
  trace_.push_back(std::move(step));
  return true;
}

std::string loop_of_axis(const Block& block, size_t axis) {
  const auto* v = block.bindings[axis].as<VarNode>();
  return v ? v->name : "";
}
int64_t extent_or(const Expr& e, int64_t fallback) { return as_int(e).value_or(fallback); }
int64_t extent_with(const Expr& e, int64_t symbol) {
  VarMap values;
  for (const Var& v : free_vars_in_order(e)) values[v.get()] = Expr(symbol);
  return std::max<int64_t>(as_int(simplify(substitute(e, values))).value_or(symbol), 1);
}
int64_t instances(const Block& block) {
  int64_t n = 1;
  for (const BlockAxis& a : block.axes)
    n = std::min<int64_t>(n * std::max<int64_t>(extent_or(a.extent, kUnknownExtent), 1),
                          int64_t{1} << 40);
  return n;
}

namespace {

bool is_reduction(const Block& b) {
  return std::any_of(b.axes.begin(), b.axes.end(),
                     [](const BlockAxis& a) { return a.kind == AxisKind::kReduce; });
}
// One plain store, or a reduction of one: what the rules know how to move.
bool is_simple(const Block& b) {
  return b.body.as<Store>() != nullptr && (!b.init || b.init.as<Store>());
}

// Does the innermost reduction axis run along memory in what is read, rather than the results' last
// axis?
bool reduces_along_rows(const Block& b) {
  size_t inner = b.axes.size();
  for (size_t i = 0; i < b.axes.size(); ++i)
    if (b.axes[i].kind == AxisKind::kReduce && !is_one(b.axes[i].extent)) inner = i;
  if (inner == b.axes.size()) return false;
  bool along = false;
  for (const BlockAccess& a : block_accesses(b)) {
    if (a.write || !a.strides[inner] || is_zero(a.strides[inner])) continue;
    if (!is_one(a.strides[inner])) return false;
    along = true;
  }
  // A result's axis that also runs along memory in all that is read is as good, and needs no
  // combining of lanes.
  return along;
}

class DefaultSchedule {
 public:
  explicit DefaultSchedule(ScheduleState& s) : s_(s) {}

  void run() {
    if (has_empty_block()) return;
    compose_inits();
    if (winograd_rule(s_)) return;
    order_sums();
    inline_rule(s_);
    std::vector<std::string> names;
    for (const BlockPlace& p : all_blocks(s_.kernel().body)) names.push_back(p.block->name);
    if (rows_kernel(names)) return;
    for (size_t i = 0; i < names.size(); ++i) {
      if (!s_.has_block(names[i]) || done_.count(names[i])) continue;
      const BlockPlace p = s_.place(names[i]);
      if (!is_simple(*p.block)) {
        lanes_rule(s_, names[i]);
        continue;
      }
      if (!is_reduction(*p.block)) {
        const std::string reader = resampled_rows_rule(s_, names[i]);
        if (reader.empty())
          pointwise_rule(s_, names[i]);
        else
          done_.insert(reader);
        continue;
      }
      const std::string epilogue = epilogue_of(p, names);
      const SumOrder* sums = s_.sum_order(names[i]);
      if (sums && sums->in_parts) {
        rows_rule(s_, {names[i]});
        continue;
      }
      const bool by_rows = !sums && reduces_along_rows(*p.block) &&
                           (!worth_a_tile(*p.block) || gathers_for_nothing(*p.block));
      if (!sums &&
          (split_rule(s_, names[i]) || (!by_rows && !parts_.count(names[i]) &&
                                        split_product_rule(s_, names[i])))) {  // the parts first
        parts_.insert(names[i] + "_runs");
        names.insert(names.begin() + static_cast<long>(i), names[i] + "_runs");
        --i;
        continue;
      }
      if (s_.explains()) note_direct_form(s_, names[i]);
      if (by_rows && rows_rule(s_, {names[i]})) continue;
      if (columns_rule(s_, names[i], epilogue) || tile_rule(s_, names[i], epilogue)) {
        if (!epilogue.empty()) done_.insert(epilogue);
        continue;
      }
      if (!epilogue.empty() && tile_rule(s_, names[i], "")) continue;
      rows_rule(s_, {names[i]});
    }
    parallel_tasks();
  }

 private:
  // Rules that leave the loops of a sum as they are keep its order then.
  void order_sums() {
    const Stmt before = s_.kernel().body;  // steps replace it
    for (const BlockPlace& p : all_blocks(before)) {
      const SumOrder* sums = s_.sum_order(p.block->name);
      if (!sums || std::is_sorted(sums->axes.begin(), sums->axes.end())) continue;
      std::vector<std::string> loops;
      for (size_t i : sums->axes) loops.push_back(loop_of_axis(*p.block, i));
      const bool done = s_.apply("reorder", loops);
      TW_CHECK(done);
    }
  }
  // What writes the init of a reduction that may be over nothing would keep rules from taking the
  // reduction for one.
  void compose_inits() {
    std::vector<std::string> names;
    for (const BlockPlace& p : all_blocks(s_.kernel().body)) names.push_back(p.block->name);
    for (size_t i = 1; i < names.size(); ++i)
      if (s_.place(names[i]).block->init) s_.apply("compose_init", {names[i], names[i - 1]});
  }
  // Blocks within one of parallel axes: its points are the tasks.
  void parallel_tasks() {
    const Stmt* s = &s_.kernel().body;
    while (const auto* a = s->as<Allocate>()) s = &a->body;
    std::vector<std::string> loops;
    for (const auto* f = s->as<For>(); f; f = s->as<For>()) {
      loops.push_back(f->var.name());
      s = &f->body;
    }
    const auto* outer = s->as<Block>();
    if (!outer || loops.empty() || all_blocks(outer->body).empty()) return;
    const std::string name = outer->name;  // steps replace the block
    std::string tasks = loops[0];
    for (size_t i = 1; i < loops.size(); ++i) {
      const std::string fused = name + ".tasks" + std::to_string(i);
      if (!s_.apply("fuse_axes", {tasks, loops[i], fused})) break;
      tasks = fused;
    }
    s_.apply("parallelize", {tasks});
  }
  // A product of two reads, each used for many results.
  bool worth_a_tile(const Block& b) const {
    const auto accesses = block_accesses(b);
    if (is_rows_by_vector(b, accesses)) return false;
    std::set<size_t> reused;
    for (const BlockAccess& a : accesses) {
      if (a.write || a.buffer == b.body.as<Store>()->buffer) continue;
      for (size_t i = 0; i < b.axes.size(); ++i)
        if (b.axes[i].kind == AxisKind::kParallel && a.strides[i] && is_zero(a.strides[i]) &&
            extent_or(b.axes[i].extent, kUnknownExtent) > 1)
          reused.insert(i);
    }
    return reused.size() >= 1 && accesses.size() >= 4;
  }
  // Results side by side would be read from places apart, and no result shares what is read.
  bool gathers_for_nothing(const Block& b) const {
    const auto accesses = block_accesses(b);
    const BlockAccess& store = accesses.back();
    for (size_t j = 0; j < b.axes.size(); ++j) {
      if (b.axes[j].kind != AxisKind::kParallel || is_one(b.axes[j].extent)) continue;
      if (!store.strides[j] || !is_one(store.strides[j])) continue;
      for (const BlockAccess& a : accesses) {
        if (a.write || a.buffer == store.buffer || !a.strides[j]) continue;
        if (s_.is_constant(a.buffer)) continue;  // can be laid out as it suits
        if (is_zero(a.strides[j]) || is_one(a.strides[j])) continue;
        bool shared = false;
        for (size_t i = 0; i < b.axes.size(); ++i)
          shared |= b.axes[i].kind == AxisKind::kParallel && !is_one(b.axes[i].extent) &&
                    a.strides[i] && is_zero(a.strides[i]);
        if (!shared) return true;
      }
    }
    return false;
  }
  // One vector for all results, and rows that are each read for one result and lie as they are:
  // nothing to keep in a tile.
  bool is_rows_by_vector(const Block& b, const std::vector<BlockAccess>& accesses) const {
    int64_t along = 1;  // extent of the innermost reduction: what one vector can take
    for (const BlockAxis& a : b.axes)
      if (a.kind == AxisKind::kReduce && !is_one(a.extent))
        along = extent_or(a.extent, kUnknownExtent);
    if (along < s_.machine().lanes(4)) return false;
    bool vector = false;
    for (const BlockAccess& a : accesses) {
      if (a.write || a.buffer == b.body.as<Store>()->buffer) continue;
      bool moves = false;
      for (size_t i = 0; i < b.axes.size(); ++i)
        moves |= b.axes[i].kind == AxisKind::kParallel && !is_one(b.axes[i].extent) &&
                 !(a.strides[i] && is_zero(a.strides[i]));
      if (moves && s_.is_constant(a.buffer)) return false;
      vector |= !moves;
    }
    return vector;
  }
  // The pointwise block that alone reads what block p writes, over the same axes.
  std::string epilogue_of(const BlockPlace& p, const std::vector<std::string>& names) const {
    const Buffer& result = p.block->body.as<Store>()->buffer;
    std::string found;
    if (result->scope == Scope::kParam) return found;
    for (const std::string& n : names) {
      if (n == p.block->name || !s_.has_block(n)) continue;
      const BlockPlace q = s_.place(n);
      if (!touched(q.stmt).reads.count(result.get())) continue;
      if (!found.empty() || is_reduction(*q.block) || !is_simple(*q.block)) return "";
      found = n;
    }
    return found;
  }
  // Softmax, normalisations: all blocks over the same leading axes, at least one reduction along
  // the rest.
  bool rows_kernel(const std::vector<std::string>& names) {
    if (names.size() < 2) return false;
    bool reduction = false;
    for (const std::string& n : names) {
      const BlockPlace p = s_.place(n);
      if (!is_simple(*p.block)) return false;
      if (!is_reduction(*p.block)) continue;
      reduction = true;
      if (worth_a_tile(*p.block) || !reduces_along_rows(*p.block)) return false;
    }
    if (!reduction) return false;
    return s_.all_or_nothing([&] { return rows_rule(s_, names); });
  }

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

  ScheduleState& s_;
  std::set<std::string> done_, parts_;
};

}  // namespace

Trace default_schedule(Kernel& kernel, const ScheduleInput& input) {
  ScheduleState state(kernel, input);
  DefaultSchedule(state).run();
  kernel = state.kernel();
  return state.trace();
}

Result<Kernel> hoist_inits(Kernel kernel) {
  std::vector<Step> steps;
  for (const BlockPlace& p : all_blocks(kernel.body)) {
    if (!p.block->init) continue;
    for (const For* loop : p.loops) {
      bool feeds = false;
      for (size_t i = 0; i < p.block->axes.size(); ++i)
        feeds |=
            p.block->axes[i].kind == AxisKind::kReduce && uses_var(p.block->bindings[i], loop->var);
      if (!feeds) continue;
      steps.push_back({"decompose_reduction", {p.block->name, loop->var.name()}, {}});
      break;
    }
  }
  for (const Step& step : steps) {
    auto next = decompose_reduction(kernel, step);
    if (next.ok()) kernel = std::move(next).value();
  }
  for (const BlockPlace& p : all_blocks(kernel.body))
    for (const BlockAxis& a : p.block->axes)
      if (p.block->init && a.kind == AxisKind::kReduce && !as_int(a.extent))
        return internal_error("block '" + p.block->name +
                              "' may be over nothing and keeps its init");
  return kernel;
}

}  // namespace tilewright::passes
