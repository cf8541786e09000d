// The rules of statements (verify_loops.h): scopes of variables and buffers, blocks and their axes,
// kinds of loops. A scope is entered and left with the walk, so `visible_` is what the text above
// can name.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "ir/loops_verifier.h"

namespace tilewright::ir {

void LoopsVerifier::stmt(const Stmt& s) {
  if (!s) return report("a statement is missing");
  checked_.clear();
  dispatch(s, [&](const auto& n) { check(n); });
}
void LoopsVerifier::define(const Var& v, Definition d) {
  if (!TW_REQUIRE(static_cast<bool>(v), "a variable is missing")) return;
  TW_REQUIRE(defined_.insert(v.get()).second,
             "variable '" + text(v) + "' is defined more than once");
  if (d.origin != Origin::kLet)
    TW_REQUIRE(v.type() == ScalarType{}, "'" + text(v) +
                                             "' is a scalar, loop variable or axis of type " +
                                             to_text(v.type()) + ", expected i64");
  visible_[v.get()] = d;
}
void LoopsVerifier::check(const Store& n) {
  const int lanes = access(n.buffer, n.indices, n.mask);
  expr(n.value);
  if (!n.buffer || !n.value) return;
  const std::string who = "'" + names_.of(n.buffer) + "'";
  TW_REQUIRE(n.value.dtype() == n.buffer->dtype, "a value of type " + to_text(n.value.type()) +
                                                     " is stored to " + who + " of " +
                                                     std::string(name(n.buffer->dtype)));
  TW_REQUIRE(n.value.lanes() == lanes, "store to " + who + ": the index has " +
                                           std::to_string(lanes) + " lanes, the value " +
                                           std::to_string(n.value.lanes()));
  TW_REQUIRE(n.store_kind == StoreKind::kCached || n.buffer->scope != Scope::kLocal,
             "a streamed store to " + who + ", which is of one task");
  auto it = live_.find(n.buffer.get());
  if (it == live_.end() || it->second >= depth_) return;
  for (const Expr& i : n.indices)
    if (i)
      for_each_expr(i, [&](const Expr& e) {
        auto v = visible_.find(e.get());
        if (v != visible_.end() && v->second.origin == Origin::kAxis &&
            v->second.axis == AxisKind::kReduce && v->second.depth == depth_)
          report("store to " + who + " is indexed by the reduce axis '" + text(e) + "'");
      });
}
void LoopsVerifier::check(const DotTile& n) {
  TW_REQUIRE(flat_, "a dot_tile before the flat stage");
  bool whole = true;
  for (const TileOperand* x : {&n.sum, &n.a, &n.b}) {
    access(x->buffer, {x->index}, nullptr);
    scalar_index(x->index, "the index of a dot_tile");
    scalar_index(x->stride, "the stride of a dot_tile");
    whole &= x->buffer != nullptr;
  }
  if (!whole) return;
  const DType left = n.a.buffer->dtype;
  TW_REQUIRE(dot_terms(left) > 0 && n.b.buffer->dtype == dot_partner(left) &&
                 n.sum.buffer->dtype == dot_sum(left),
             "dot_tile takes sums and operands of the types of dot, found " +
                 std::string(name(n.sum.buffer->dtype)) + ", " + std::string(name(left)) + " and " +
                 std::string(name(n.b.buffer->dtype)));
  TW_REQUIRE(
      n.sum.buffer != n.a.buffer && n.sum.buffer != n.b.buffer,
      "dot_tile reads as an operand the buffer of its sums, '" + names_.of(n.sum.buffer) + "'");
  const auto fits = [](int64_t count, int64_t most) { return count >= 1 && count <= most; };
  TW_REQUIRE(
      fits(n.rows, n.kMostRows) && fits(n.columns, n.kMostColumns) && fits(n.groups, n.kMostGroups),
      "dot_tile takes 1 to 16 rows, columns and groups, found " + std::to_string(n.rows) + ", " +
          std::to_string(n.columns) + " and " + std::to_string(n.groups));
  if (found_ > 0) return;
  const int64_t terms = dot_terms(left);
  inside(n.sum, n.rows, n.columns);
  inside(n.a, n.rows, n.groups * terms);
  inside(n.b, n.groups, n.columns * terms);
}
void LoopsVerifier::check(const Prefetch& n) {
  scalar_index(n.offset, "the offset of a prefetch");
  const auto& params = kernel_.params;
  const bool is_param = std::find(params.begin(), params.end(), n.buffer) != params.end(),
             is_workspace = n.buffer && n.buffer->scope == Scope::kWorkspace &&
                            live_.count(n.buffer.get()) > 0;
  TW_REQUIRE(is_param || is_workspace,
             "a prefetch of what is no parameter of the kernel and no workspace around");
}
void LoopsVerifier::check(const Let& n) {
  expr(n.value);
  if (n.value && n.var)
    TW_REQUIRE(n.value.type() == n.var.type(), "'" + text(n.var) + "' has type " +
                                                   to_text(n.var.type()) + ", its value " +
                                                   to_text(n.value.type()));
  define(n.var, {Origin::kLet, depth_, false, AxisKind::kParallel});
  stmt(n.body);
  forget(n.var);
}
void LoopsVerifier::check(const For& n) {
  scalar_index(n.extent, "extent of loop '" + (n.var ? text(n.var) : "") + "'");
  place_.push_back("loop " + (n.var ? text(n.var) : ""));
  const bool constant_only = n.loop_kind == LoopKind::kVectorized ||
                             n.loop_kind == LoopKind::kUnrolled || n.loop_kind == LoopKind::kDot;
  if (constant_only && n.extent)
    TW_REQUIRE(as_int(n.extent).has_value(), std::string(name(n.loop_kind)) +
                                                 " loop has the extent '" + text(n.extent) +
                                                 "', expected a constant");
  TW_REQUIRE(n.loop_kind != LoopKind::kParallel || !vectorized_,
             "a parallel loop is nested in a vectorized one");
  define(n.var, {Origin::kLoop, depth_, n.loop_kind == LoopKind::kParallel, AxisKind::kParallel});
  if (n.var && as_int(n.extent)) ranges_.set(n.var, n.extent);
  vectorized_ += n.loop_kind == LoopKind::kVectorized;
  const bool parallel = n.loop_kind == LoopKind::kParallel, shared = parallel && !is_one(n.extent);
  parallel_ += parallel;
  shared_ += shared;
  stmt(n.body);
  parallel_ -= parallel;
  shared_ -= shared;
  vectorized_ -= n.loop_kind == LoopKind::kVectorized;
  forget(n.var);
  place_.pop_back();
}
void LoopsVerifier::check(const While& n) {
  condition(n.condition);
  stmt(n.body);
}
void LoopsVerifier::check(const If& n) {
  condition(n.condition);
  stmt(n.then);
  if (n.otherwise) stmt(n.otherwise);
}
void LoopsVerifier::check(const Seq& n) {
  for (const Stmt& s : n.stmts) stmt(s);
}
void LoopsVerifier::buffer_shape(const Buffer& b) {
  for (const Expr& e : b->shape) {
    scalar_index(e, "an extent of buffer '" + names_.of(b) + "'");
    if (b->scope == Scope::kLocal && e)
      TW_REQUIRE(as_int(e).has_value(), "local buffer '" + names_.of(b) + "' has the extent '" +
                                            text(e) + "', expected a constant");
  }
  for (const LayoutAxis& a : b->layout)
    TW_REQUIRE(a.fits(b->rank()),
               "the layout of buffer '" + names_.of(b) + "' does not fit its rank");
}
void LoopsVerifier::check(const Allocate& n) {
  if (!TW_REQUIRE(n.buffer != nullptr, "a buffer is missing")) return;
  TW_REQUIRE(n.buffer->scope != Scope::kParam,
             "buffer '" + names_.of(n.buffer) + "' is allocated with scope param");
  TW_REQUIRE(allocated_.insert(n.buffer.get()).second,
             "buffer '" + names_.of(n.buffer) + "' is allocated more than once");
  buffer_shape(n.buffer);
  live_[n.buffer.get()] = depth_;
  if (!parallel_) of_walkers_.insert(n.buffer.get());
  const size_t around = placed_.size();
  place(n);
  stmt(n.body);
  placed_.resize(around);
  live_.erase(n.buffer.get());
}

void LoopsVerifier::block_axes(const Block& n) {
  const std::string who = "block '" + n.name + "'";
  TW_REQUIRE(n.axes.size() == n.bindings.size(),
             who + " has " + std::to_string(n.axes.size()) + " axes and " +
                 std::to_string(n.bindings.size()) + " bindings");
  for (size_t i = 0; i < std::min(n.axes.size(), n.bindings.size()); ++i) {
    const Expr& b = n.bindings[i];
    scalar_index(b, "a binding of " + who);
    if (!b || n.axes[i].kind == AxisKind::kParallel) continue;
    for_each_expr(b, [&](const Expr& e) {
      auto v = visible_.find(e.get());
      if (v != visible_.end() && v->second.parallel)
        report("the " + std::string(name(n.axes[i].kind)) + " axis '" + text(n.axes[i].var) +
               "' is bound to the parallel loop '" + text(e) + "'");
    });
  }
}
void LoopsVerifier::check(const Block& n) {
  TW_REQUIRE(!flat_, "block '" + n.name + "' is left in the flat stage");
  block_axes(n);
  place_.push_back("block \"" + n.name + "\"");
  ++depth_;
  bool reduces = false;
  for (const BlockAxis& a : n.axes) {
    checked_.clear();
    scalar_index(a.extent, "the extent of an axis");
    reduces |= a.kind == AxisKind::kReduce;
  }
  for (const BlockAxis& a : n.axes) define(a.var, {Origin::kAxis, depth_, false, a.kind});
  if (n.predicate) {
    hide_loops_ = false;
    checked_.clear();
    condition(n.predicate);
    hide_loops_ = true;
  }
  if (stage_ == Stage::kBlocks)
    TW_REQUIRE(!reduces || n.init, "the block has a reduce axis and no init");
  TW_REQUIRE(reduces || !n.init, "the block has an init and no reduce axis");
  if (n.init) {
    in_init_ = true;
    stmt(n.init);
    in_init_ = false;
  }
  stmt(n.body);
  for (const BlockAxis& a : n.axes) forget(a.var);
  --depth_;
  place_.pop_back();
}

}  // namespace tilewright::ir
