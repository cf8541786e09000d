// cache_read, cache_write and transform_layout: where data lies while it is used.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/schedule/primitives.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// to[axes] = from[axes] over the whole shape.
Stmt copy_nest(const Buffer& to, const Buffer& from, const std::string& name) {
  Block b;
  b.name = name;
  std::vector<Expr> at;
  std::vector<Var> loops;
  for (size_t d = 0; d < to->shape.size(); ++d) {
    Var axis("v" + std::to_string(d)), loop(name + ".i" + std::to_string(d));
    b.axes.push_back({axis, to->shape[d], AxisKind::kParallel});
    b.bindings.push_back(loop);
    at.push_back(axis);
    loops.push_back(loop);
  }
  b.body = store(to, at, load(from, at));
  const std::vector<BlockAxis> axes = b.axes;
  Stmt s = block(std::move(b));
  for (size_t d = axes.size(); d-- > 0;) s = for_loop(loops[d], axes[d].extent, s);
  return s;
}

// Does one run of the nest write every element of the buffer? So it does when the stores' indices
// are axes over the whole shape that no loop outside of the nest feeds.
bool writes_all(const BlockPlace& place, const Stmt& nest, const Buffer& buffer) {
  const Block& b = *place.block;
  auto from_outside = [&](const Expr& binding) {
    for (const For* loop : place.loops) {
      if (nest.get() == loop) return false;
      if (uses_var(binding, loop->var)) return true;
    }
    return false;
  };
  bool all = true;
  for_each_stmt(b.body, [&](const Stmt& s) {
    const auto* st = s.as<Store>();
    if (!st) return;
    for (size_t d = 0; d < st->indices.size(); ++d) {
      bool whole = false;
      for (size_t i = 0; i < b.axes.size(); ++i)
        whole |= b.axes[i].var.same_as(st->indices[d]) && !from_outside(b.bindings[i]) &&
                 can_prove_equal(b.axes[i].extent, buffer->shape[d]);
      for (size_t e = 0; e < d; ++e) whole &= !st->indices[d].same_as(st->indices[e]);
      all &= whole;
    }
  });
  return all;
}

// Are the physical axes of a dimension the digits of its index, each there once?
bool holds_every_digit(const Layout& layout, int dim) {
  std::vector<std::pair<int64_t, int64_t>> digits;  // divisor and modulus, lowest first
  for (const LayoutAxis& a : layout)
    if (a.dim == dim) digits.emplace_back(a.divisor, a.modulus);
  std::sort(digits.begin(), digits.end());
  int64_t divisor = 1;
  for (size_t i = 0; i < digits.size(); ++i) {
    const bool last = i + 1 == digits.size();
    if (digits[i].first != divisor || (digits[i].second == 0) != last) return false;
    divisor *= digits[i].second;
  }
  return !digits.empty();
}

}  // namespace

// The copy-out of a GEMM tile: the block accumulates in a buffer of its own, which place_buffers
// then makes registers.
Result<Kernel> cache_write(const Kernel& k, const Step& step) {
  TW_ASSIGN(BlockPlace place, find_block(k.body, step.names[0]));
  Touched t = touched(place.stmt);
  if (t.writes.size() != 1)
    return invalid("block '" + step.names[0] + "' writes more than one buffer");
  Buffer old;
  for_each_stmt(place.stmt, [&](const Stmt& s) {
    if (const auto* st = s.as<Store>()) old = st->buffer;
  });
  for (const BlockPlace& p : all_blocks(k.body))
    if (p.block != place.block && touched(p.stmt).writes.count(old.get()))
      return invalid("another block writes '" + old->name + "'");
  Buffer cached =
      make_buffer(step.names[1], old->dtype, old->shape, Scope::kWorkspace, old->layout);
  Stmt nest = nest_of(k.body, step.names[0]);
  if (!writes_all(place, nest, old))
    return invalid("block '" + step.names[0] + "' does not write all of '" + old->name + "'");
  Stmt both =
      seq({replace_buffers(nest, {{old.get(), cached}}), copy_nest(old, cached, step.names[2])});
  return with_body(k, allocate(cached, replace_stmt(k.body, nest, both)));
}

// Packing of an operand, when combined with transform_layout. The copy stands before all loops, so that one
// serves all steps of an ordered axis.
Result<Kernel> cache_read(const Kernel& k, const Step& step) {
  TW_ASSIGN(BlockPlace place, find_block(k.body, step.names[0]));
  TW_ASSIGN(Buffer old, find_buffer(k, step.names[1]));
  if (!touched(place.stmt).reads.count(old.get()))
    return invalid("block '" + step.names[0] + "' does not read '" + step.names[1] + "'");
  for (const BlockPlace& p : all_blocks(k.body))
    if (touched(p.stmt).writes.count(old.get()))
      return invalid("'" + step.names[1] + "' is written in this kernel");
  Buffer cached = make_buffer(step.names[2], old->dtype, old->shape, Scope::kWorkspace);
  const Stmt nest = nest_of(k.body, step.names[0]),
             around = outermost_nest_of(k.body, step.names[0]),
             reading = replace_stmt(around, nest, replace_buffers(nest, {{old.get(), cached}}));
  const Stmt both = seq({copy_nest(cached, old, step.names[2] + "_copy"), reading});
  return with_body(k, allocate(cached, replace_stmt(k.body, around, both)));
}

Result<Kernel> transform_layout(const Kernel& k, const Step& step) {
  TW_ASSIGN(Buffer old, find_buffer(k, step.names[0]));
  if (step.numbers.size() < 3 || step.numbers.size() % 3 == 2)
    return invalid("a layout takes three numbers for each physical axis");
  auto changed = std::make_shared<BufferNode>(*old);
  changed->layout.clear();
  for (size_t i = 0; i + 2 < step.numbers.size(); i += 3) {
    const int64_t dim = step.numbers[i];
    if (dim < 0 || dim >= old->rank() || step.numbers[i + 1] < 1 || step.numbers[i + 2] < 0)
      return invalid("physical axis of dimension " + std::to_string(dim));
    changed->layout.push_back({static_cast<int>(dim), step.numbers[i + 1], step.numbers[i + 2]});
  }
  if (step.numbers.size() % 3) {
    LayoutAxis& innermost = changed->layout.back();
    innermost.padded = step.numbers.back();
    if (innermost.padded <= innermost.modulus || !innermost.fits(old->rank()))
      return invalid("the innermost physical axis cannot be padded to " +
                     std::to_string(innermost.padded));
  }
  for (int dim = 0; dim < old->rank(); ++dim)
    if (!holds_every_digit(changed->layout, dim))
      return invalid("the physical axes of dimension " + std::to_string(dim) +
                     " do not hold its index once");
  return with_buffer_replaced(k, old.get(), changed);
}

}  // namespace tilewright::passes
