// Code for statements: structured control flow as jumps that are patched (`land`) once their target
// is known.
#include <algorithm>

#include "ir/interpreter/compiler.h"
#include "ir/loops/blocks.h"
#include "ir/loops/dot_tile.h"
#include "ir/loops/rewrite.h"

namespace tilewright::ir::interpreter {

void Compiler::stmt(const Stmt& s) {
  if (!s || error_) return;
  const uint32_t top = top_;
  memo_forget(0);
  dispatch(s, [&](const auto& n) { compile(n); });
  memo_forget(0);
  top_ = top;
}
void Compiler::compile(const Store& n) {
  int lanes = n.value.lanes();
  for (const Expr& i : n.indices) lanes = std::max(lanes, i.lanes());
  const uint32_t mask = masked(n.mask, lanes);
  const uint32_t value = expr(n.value, lanes);
  if (n.buffer && n.value.dtype() != n.buffer->dtype)
    fail("a value of another type is stored to '" + n.buffer->name + "'");
  const uint32_t row = access(n.buffer, n.indices, lanes);
  emit(store_handler(n.value.dtype(), lanes > 1), kNoReg, row, value, mask, lanes);
}
void Compiler::compile(const DotTile& n) {
  expanded_.push_back(as_dots(n));
  stmt(expanded_.back());
}
void Compiler::compile(const Let& n) {
  const uint32_t value = expr(n.value, n.var.lanes());
  vars_[n.var.get()] = value;
  if (n.var.lanes() == 1 && n.var.dtype() == DType::kInt64)
    scope_.emplace_back(n.var.name(), value);
  const size_t depth = scope_.size();
  stmt(n.body);
  scope_.resize(std::min(depth, scope_.size()));
  if (n.var.lanes() == 1 && n.var.dtype() == DType::kInt64) scope_.pop_back();
  vars_.erase(n.var.get());
}
void Compiler::compile(const For& n) {
  const uint32_t extent = expr(n.extent), var = reserve(1);
  vars_[n.var.get()] = var;
  scope_.emplace_back(n.var.name(), var);
  const size_t begin = emit(for_begin_handler, var, extent);
  const auto body = static_cast<uint32_t>(program_.code.size());
  parallel_ += n.loop_kind == LoopKind::kParallel;
  stmt(n.body);
  parallel_ -= n.loop_kind == LoopKind::kParallel;
  emit(for_next_handler, var, extent, kNoReg, body);
  land(begin);
  scope_.pop_back();
  vars_.erase(n.var.get());
}
void Compiler::compile(const While& n) {
  const auto begin = static_cast<uint32_t>(program_.code.size());
  const uint32_t condition = expr(n.condition);
  const size_t out = emit(jump_if_false_handler, kNoReg, condition);
  stmt(n.body);
  emit(jump_handler, kNoReg, kNoReg, kNoReg, begin);
  land(out);
}
void Compiler::compile(const If& n) {
  const uint32_t condition = expr(n.condition);
  const size_t to_otherwise = emit(jump_if_false_handler, kNoReg, condition);
  stmt(n.then);
  if (!n.otherwise) return land(to_otherwise);
  const size_t to_end = emit(jump_handler, kNoReg);
  land(to_otherwise);
  stmt(n.otherwise);
  land(to_end);
}
void Compiler::compile(const Seq& n) {
  for (const Stmt& s : n.stmts) stmt(s);
}
void Compiler::compile(const Allocate& n) {
  bring_up(n.buffer, false, n.offset);
  stmt(n.body);
  buffers_.erase(n.buffer.get());
}
// Bindings first, then the predicate, then the init where all reduce axes are at 0, then the body.
void Compiler::compile(const Block& n) {
  BlockAxes axes{n.name, {}};
  bool reduces = false;
  for (size_t a = 0; a < n.axes.size(); ++a) {
    const BlockAxis& axis = n.axes[a];
    const uint32_t extent = expr(axis.extent), value = expr(n.bindings[a]);
    axes.axes.push_back({axis.var.name(), value, extent, axis.kind == AxisKind::kReduce});
    reduces |= axis.kind == AxisKind::kReduce;
  }
  for (size_t a = 0; a < n.axes.size(); ++a) vars_[n.axes[a].var.get()] = axes.axes[a].value;
  const auto row = static_cast<uint32_t>(program_.blocks.size());
  const size_t depth = scope_.size();
  for (const BlockAxes::Axis& a : axes.axes) scope_.emplace_back(a.name, a.value);
  program_.blocks.push_back(std::move(axes));
  auto where = [&](const Expr& condition, auto&& inside) {
    std::optional<size_t> skip;
    if (condition) skip = emit(jump_if_false_handler, kNoReg, expr(condition));
    inside();
    if (skip) land(*skip);
  };
  auto init = [&] {
    std::optional<size_t> not_first;
    if (reduces) not_first = emit(jump_if_not_first_handler, kNoReg, row);
    emit(check_axes_handler, kNoReg, row);
    stmt(n.init);
    if (not_first) land(*not_first);
  };
  const Expr own = n.init ? init_predicate(n) : n.predicate;
  const bool apart = !own.same_as(n.predicate);
  if (apart) where(own, init);
  where(n.predicate, [&] {
    emit(check_axes_handler, kNoReg, row);
    if (n.init && !apart) init();
    stmt(n.body);
  });
  scope_.resize(depth);
  for (const BlockAxis& axis : n.axes) vars_.erase(axis.var.get());
}

void Compiler::bring_up(const Buffer& buffer, bool param, const Expr& offset) {
  const auto id = static_cast<uint32_t>(program_.buffers.size());
  LiveBuffer live;
  live.name = buffer->name;
  live.dtype = buffer->dtype;
  live.layout = buffer->layout;
  for (const LayoutAxis& a : buffer->layout)
    if (!a.fits(buffer->rank()))
      return fail("buffer '" + buffer->name + "' has a layout that does not fit its rank");
  program_.buffers.push_back(std::move(live));
  program_.shapes.emplace_back(static_cast<uint32_t>(program_.shape_regs.size()),
                               static_cast<uint32_t>(buffer->rank()));
  std::vector<uint32_t> regs;
  for (const Expr& e : buffer->shape) regs.push_back(expr(e));
  program_.shape_regs.insert(program_.shape_regs.end(), regs.begin(), regs.end());
  const uint32_t place = offset ? expr(offset) : kNoReg;
  emit(allocate_handler, kNoReg, id, place, param ? 0 : kNoReg, parallel_ ? 1 : 0);
  buffers_[buffer.get()] = id;
}

// Constants move behind the other registers.
void Compiler::relocate() {
  program_.first_constant = height_;
  auto move = [&](uint32_t& reg) {
    if (reg != kNoReg && reg >= kConstants) reg = reg - kConstants + height_;
  };
  for (Inst& i : program_.code) {
    move(i.dst);
    move(i.a);
    move(i.b);
    move(i.c);
  }
  for (Access& a : program_.accesses) {
    for (Operand& o : a.indices) move(o.reg);
    for (auto& [name, reg] : a.scope) move(reg);
  }
  for (BlockAxes& b : program_.blocks)
    for (BlockAxes::Axis& a : b.axes) {
      move(a.value);
      move(a.extent);
    }
  for (uint32_t& reg : program_.shape_regs) move(reg);
}

Status Compiler::compile(const Kernel& kernel) {
  for (const Var& v : kernel.scalars) vars_[v.get()] = reserve(1);
  for (const Buffer& b : kernel.params) bring_up(b, true);
  const Workspace& w = kernel.workspace;
  if (!is_zero(w.call) || !is_zero(w.worker))
    emit(workspaces_handler, kNoReg, expr(w.call), expr(w.worker));
  stmt(kernel.body);
  emit(halt_handler, kNoReg);
  if (error_) return *error_;
  relocate();
  return {};
}

}  // namespace tilewright::ir::interpreter
