#include "ir/graph/compute.h"

#include <utility>

namespace tilewright::ir {

// The identity element of the monoid: where a reduction starts, and what padding may hold.
Expr neutral(Combiner c, DType t) {
  switch (c) {
    case Combiner::kSum:
    case Combiner::kOr: return constant(0, t);
    case Combiner::kProduct:
    case Combiner::kAnd: return constant(1, t);
    case Combiner::kMax:
    case Combiner::kMaxNumber: return lowest(t);
    case Combiner::kMin: return highest(t);
  }
  return nullptr;
}
Expr combine(Combiner c, Expr a, Expr b) {
  switch (c) {
    case Combiner::kSum: return binary(BinaryOp::kAdd, std::move(a), std::move(b));
    case Combiner::kProduct: return binary(BinaryOp::kMul, std::move(a), std::move(b));
    case Combiner::kMax: return binary(BinaryOp::kMax, std::move(a), std::move(b));
    case Combiner::kMaxNumber: return binary(BinaryOp::kMaxNumber, std::move(a), std::move(b));
    case Combiner::kMin: return binary(BinaryOp::kMin, std::move(a), std::move(b));
    case Combiner::kAnd: return binary(BinaryOp::kAnd, std::move(a), std::move(b));
    case Combiner::kOr: return binary(BinaryOp::kOr, std::move(a), std::move(b));
  }
  return nullptr;
}

std::string LoopsBuilder::unique(const std::string& name) {
  std::string candidate = name;
  for (int n = 1; !names_.insert(candidate).second; ++n) candidate = name + "_" + std::to_string(n);
  return candidate;
}

LoopsBuilder::Nest LoopsBuilder::begin(const std::string& name, const std::vector<Expr>& extents,
                                       const std::vector<Expr>& reduce, Axes& axes,
                                       Axes& reduce_axes) {
  Nest nest;
  nest.block.name = unique(name);
  auto add = [&](const Expr& extent, AxisKind kind, const std::string& letter, Axes& to) {
    Var loop(nest.block.name + "." + letter), axis("v" + letter);
    nest.loops.push_back(loop);
    nest.block.axes.push_back({axis, extent, kind});
    nest.block.bindings.push_back(loop);
    to.push_back(axis);
  };
  for (size_t i = 0; i < extents.size(); ++i)
    add(extents[i], AxisKind::kParallel, "i" + std::to_string(i), axes);
  for (size_t i = 0; i < reduce.size(); ++i)
    add(reduce[i], AxisKind::kReduce, "r" + std::to_string(i), reduce_axes);
  return nest;
}

void LoopsBuilder::finish(Nest nest) {
  std::vector<BlockAxis> axes = nest.block.axes;
  Stmt s = block(std::move(nest.block));
  for (size_t i = axes.size(); i-- > 0;) s = for_loop(nest.loops[i], axes[i].extent, s);
  stmts_.push_back(std::move(s));
}

void LoopsBuilder::compute(const Buffer& out, const std::function<Expr(const Axes&)>& value,
                           const std::string& name) {
  compute_at(out, out->shape, [&](const Axes& i) { return Write{i, value(i)}; }, name);
}
void LoopsBuilder::compute_at(const Buffer& out, const std::vector<Expr>& extents,
                              const std::function<Write(const Axes&)>& at,
                              const std::string& name) {
  Axes axes, none;
  Nest nest = begin(name, extents, {}, axes, none);
  Write w = at(axes);
  nest.block.body = store(out, w.indices, w.value);
  finish(std::move(nest));
}
void LoopsBuilder::compute_where(const Buffer& out, const std::vector<Expr>& extents,
                                 const std::function<Write(const Axes&)>& at,
                                 const std::function<Expr(const Axes&)>& condition,
                                 const std::string& name) {
  Axes axes, none;
  Nest nest = begin(name, extents, {}, axes, none);
  Write w = at(axes);
  nest.block.body = store(out, w.indices, w.value);
  nest.block.predicate = condition({nest.loops.begin(), nest.loops.end()});
  finish(std::move(nest));
}
void LoopsBuilder::reduce(const Buffer& out, const std::vector<Expr>& reduce, Combiner c,
                          const std::function<Expr(const Axes&, const Axes&)>& value,
                          const std::string& name) {
  reduce_custom(
      out->shape, reduce, [&](const Axes& i) { return store(out, i, neutral(c, out->dtype)); },
      [&](const Axes& i, const Axes& k) {
        return store(out, i, combine(c, load(out, i), cast(out->dtype, value(i, k))));
      },
      name);
}
void LoopsBuilder::reduce_custom(const std::vector<Expr>& extents, const std::vector<Expr>& reduce,
                                 const std::function<Stmt(const Axes&)>& init,
                                 const std::function<Stmt(const Axes&, const Axes&)>& update,
                                 const std::string& name) {
  Axes axes, reduce_axes;
  // A reduction over nothing still writes its neutral element: one more axis keeps the block a
  // reduction.
  std::vector<Expr> extents_of_reduction = reduce;
  if (extents_of_reduction.empty()) extents_of_reduction.push_back(Expr(1));
  Nest nest = begin(name, extents, extents_of_reduction, axes, reduce_axes);
  bool maybe_empty = false;
  for (const Expr& e : reduce) maybe_empty |= !as_int(e) || *as_int(e) == 0;
  if (maybe_empty) {  // the init must run although no reduce step does
    Axes again, none;
    Nest first = begin(name + "_init", extents, {}, again, none);
    first.block.body = init(again);
    finish(std::move(first));
  }
  nest.block.init = init(axes);
  if (reduce.empty()) reduce_axes.clear();
  nest.block.body = update(axes, reduce_axes);
  finish(std::move(nest));
}
void LoopsBuilder::ordered(Expr extent, const std::function<void(Expr)>& body,
                           const std::string& name) {
  std::vector<Stmt> outer = std::move(stmts_);
  stmts_.clear();
  // The step is the axis of a block around the blocks of one step, so that they may name it.
  Block step;
  step.name = unique(name);
  Var loop(step.name + ".t"), axis("vt");
  step.axes.push_back({axis, extent, AxisKind::kOrdered});
  step.bindings.push_back(loop);
  body(axis);
  step.body = seq(std::move(stmts_));
  stmts_ = std::move(outer);
  stmts_.push_back(for_loop(loop, extent, block(std::move(step))));
}
void LoopsBuilder::each(const std::vector<Expr>& extents,
                        const std::function<void(const Axes&)>& body, const std::string& name) {
  std::vector<Stmt> outer = std::move(stmts_);
  stmts_.clear();
  Axes axes, none;
  Nest nest = begin(name, extents, {}, axes, none);
  body(axes);
  nest.block.body = seq(std::move(stmts_));
  stmts_ = std::move(outer);
  finish(std::move(nest));
}
void LoopsBuilder::opaque(Stmt body, const std::string& name) {
  Block blk;
  blk.name = unique(name);
  blk.body = std::move(body);
  stmts_.push_back(block(std::move(blk)));
}
void LoopsBuilder::opaque_over(const std::vector<Expr>& extents,
                               const std::function<Stmt(const Axes&)>& body,
                               const std::string& name) {
  Axes axes, none;
  Nest nest = begin(name, extents, {}, axes, none);
  nest.block.body = body(axes);
  finish(std::move(nest));
}
std::vector<Stmt> LoopsBuilder::collect(const std::function<void()>& build) {
  std::vector<Stmt> outer = std::move(stmts_);
  stmts_.clear();
  build();
  return std::exchange(stmts_, std::move(outer));
}
Buffer LoopsBuilder::temp(const std::string& name, DType dtype, std::vector<Expr> shape,
                          Layout layout) {
  Buffer b =
      make_buffer(unique(name), dtype, std::move(shape), Scope::kWorkspace, std::move(layout));
  temps_.push_back(b);
  return b;
}
Stmt LoopsBuilder::finish() {
  Stmt s = seq(std::move(stmts_));
  for (size_t i = temps_.size(); i-- > 0;) s = allocate(temps_[i], s);
  stmts_.clear();
  temps_.clear();
  return s;
}

Expr broadcast_load(const Buffer& buffer, const Axes& indices) {
  TW_CHECK(buffer->rank() <= static_cast<int>(indices.size()));
  const size_t skip = indices.size() - buffer->shape.size();
  Axes at;
  for (size_t d = 0; d < buffer->shape.size(); ++d)
    at.push_back(is_one(buffer->shape[d]) ? Expr(0) : indices[skip + d]);
  return load(buffer, std::move(at));
}
Expr ComputeContext::read(int i, const Axes& indices) const {
  return broadcast_load(in(i), indices);
}
Expr ComputeContext::int_element(int i, int k) const {
  if (auto elements = known(i)) return cast(DType::kInt64, (*elements)[static_cast<size_t>(k)]);
  return cast(DType::kInt64, rank(i) == 0 ? load(in(i), {}) : load(in(i), {Expr(k)}));
}

}  // namespace tilewright::ir
