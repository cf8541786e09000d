// As Halide's align_bounds: the region that a block computes is rounded up to whole tiles, so that
// none is cut short whatever the extents; and as Halide infers bounds, whatever it then reads of
// temporaries is computed as well. What lies outside of a parameter must be guarded already.
#include <algorithm>
#include <optional>

#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "passes/schedule/primitives.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// A dimension of a temporary, and how long it has to be.
struct Needed {
  Buffer buffer;
  size_t dim;
  Expr extent;
};

// Loads under the conditions of the selects around them.
class GuardedLoads : public Visitor {
 public:
  using OnLoad = std::function<void(const Load&, const std::vector<Expr>& conditions)>;
  explicit GuardedLoads(OnLoad on_load) : on_load_(std::move(on_load)) {}
  using Visitor::visit;
  void visit(const Expr& e) override {
    if (const auto* l = e.as<Load>()) on_load_(*l, conditions_);
    const auto* s = e.as<Select>();
    if (!s) return Visitor::visit(e);
    visit(s->condition);
    const size_t outside = conditions_.size();
    add(s->condition);
    visit(s->a);
    conditions_.resize(outside);
    visit(s->b);
  }

 private:
  void add(const Expr& condition) {
    const auto* both = condition.as<Binary>();
    if (!both || both->op != BinaryOp::kAnd) {
      conditions_.push_back(condition);
      return;
    }
    add(both->a);
    add(both->b);
  }
  const OnLoad on_load_;
  std::vector<Expr> conditions_;
};

bool is_guarded(const Expr& index, const Expr& extent, const std::vector<Expr>& conditions) {
  return std::any_of(conditions.begin(), conditions.end(), [&](const Expr& c) {
    const auto* less = c.as<Binary>();
    return less && less->op == BinaryOp::kLt && same_expr(less->a, index) &&
           can_prove_equal(less->b, extent);
  });
}

// Grows axes of blocks, one after the other, until every temporary is as large as what is read.
class AlignBounds {
 public:
  explicit AlignBounds(Kernel kernel) : kernel_(std::move(kernel)) {}
  Result<Kernel> run(const std::string& block, size_t axis, int64_t multiple) {
    TW_ASSIGN(const BlockPlace place, find_block(kernel_.body, block));
    if (axis >= place.block->axes.size()) return invalid("block '" + block + "' has no such axis");
    TW_RETURN_IF_ERROR(
        grow(block, axis, simplify(ceildiv(place.block->axes[axis].extent, multiple) * multiple)));
    return std::move(kernel_);
  }

 private:
  Status grow(const std::string& block, size_t axis, const Expr& extent) {
    TW_ASSIGN(const BlockPlace place, find_block(kernel_.body, block));
    const Block& b = *place.block;
    const auto wrong = [&](const char* what) { return invalid("block '" + block + "' " + what); };
    const auto* st = b.body.as<Store>();
    if (!st || b.predicate) return wrong("does more than store, or not always");
    if (b.axes[axis].kind != AxisKind::kParallel) return wrong("sums along that axis");
    const auto loop = std::find_if(place.loops.begin(), place.loops.end(), [&](const For* f) {
      return f->var.get() == b.bindings[axis].get();
    });
    if (loop == place.loops.end() || all_blocks((*loop)->body).size() != 1)
      return wrong("has no loop of its own for that axis");
    const Var axis_var = b.axes[axis].var;
    std::optional<size_t> dim;
    for (size_t d = 0; d < st->indices.size(); ++d)
      if (uses_var(st->indices[d], axis_var)) {
        if (dim || st->indices[d].get() != axis_var.get())
          return wrong("writes elsewhere than there");
        dim = d;
      }
    if (!dim || st->buffer->scope == Scope::kParam) return wrong("writes a result of the kernel");
    TW_ASSIGN(const std::vector<Needed> needed, needed_by(b, axis, extent));
    const Buffer written = st->buffer;
    kernel_ = with_body(kernel_, replace_loop(kernel_.body, *loop, [&](const For& f) {
                          Block grown = b;
                          grown.axes[axis].extent = extent;
                          const Stmt body = replace_stmt(f.body, place.stmt, ir::block(grown));
                          return for_loop(f.var, extent, body, f.loop_kind);
                        }));
    lengthen(written, *dim, extent);
    for (const Needed& n : needed) TW_RETURN_IF_ERROR(make(n));
    return {};
  }
  // Of each temporary that is too short then, the dimension and the extent.
  static Result<std::vector<Needed>> needed_by(const Block& b, size_t axis, const Expr& extent) {
    Ranges all;
    for (size_t i = 0; i < b.axes.size(); ++i)
      all.set(b.axes[i].var, i == axis ? extent : b.axes[i].extent);
    std::vector<Needed> found;
    std::string obstacle;
    const auto need = [&](const Buffer& buffer, size_t d, const Expr& length) {
      for (Needed& n : found)
        if (n.buffer == buffer && n.dim == d) {
          if (can_prove(n.extent <= length))
            n.extent = length;
          else if (!can_prove(length <= n.extent))
            obstacle = "reads parts of '" + buffer->name + "' of which neither is the larger";
          return;
        }
      found.push_back({buffer, d, length});
    };
    GuardedLoads look([&](const Load& l, const std::vector<Expr>& conditions) {
      for (size_t d = 0; d < l.indices.size(); ++d) {
        if (!uses_var(l.indices[d], b.axes[axis].var)) continue;
        const Expr last = upper_bound(l.indices[d], all), &there = l.buffer->shape[d];
        if (last && can_prove(last < there)) continue;
        if (l.buffer->scope == Scope::kParam) {
          if (!is_guarded(l.indices[d], there, conditions))
            obstacle = "reads '" + l.buffer->name + "' beyond its end";
        } else if (last) {
          need(l.buffer, d, simplify(last + Expr(1)));
        } else {
          obstacle = "reads an unknown part of '" + l.buffer->name + "'";
        }
      }
    });
    look.visit(b.body);
    if (b.init) look.visit(b.init);
    if (!obstacle.empty()) return invalid("block '" + b.name + "' " + obstacle);
    return found;
  }
  void lengthen(const Buffer& buffer, size_t dim, const Expr& extent) {
    std::vector<Expr> shape = buffer->shape;
    shape[dim] = extent;
    kernel_ = with_buffer_replaced(
        kernel_, buffer.get(),
        make_buffer(buffer->name, buffer->dtype, std::move(shape), buffer->scope, buffer->layout));
  }
  // Lets the block that makes the temporary make as much.
  Status make(const Needed& n) {
    std::string maker;
    size_t axis = 0;
    for (const BlockPlace& p : all_blocks(kernel_.body)) {
      const auto* st = p.block->body.as<Store>();
      if (!st || st->buffer->name != n.buffer->name) continue;
      if (!maker.empty()) return invalid("two blocks make '" + n.buffer->name + "'");
      maker = p.block->name;
      for (axis = 0; axis < p.block->axes.size(); ++axis)
        if (p.block->axes[axis].var.get() == st->indices[n.dim].get()) break;
      if (axis == p.block->axes.size())
        return invalid("block '" + maker + "' does not make '" + n.buffer->name + "' by its axes");
    }
    if (maker.empty()) return invalid("no block makes '" + n.buffer->name + "'");
    return grow(maker, axis, n.extent);
  }

  Kernel kernel_;
};

}  // namespace

Result<Kernel> align_bounds(const Kernel& k, const Step& step) {
  if (step.numbers[0] < 0 || step.numbers[1] < 1)
    return invalid("axis " + std::to_string(step.numbers[0]) + ", a multiple of " +
                   std::to_string(step.numbers[1]));
  return AlignBounds(k).run(step.names[0], static_cast<size_t>(step.numbers[0]), step.numbers[1]);
}

}  // namespace tilewright::passes
