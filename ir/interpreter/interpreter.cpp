// Compiles a kernel to a register program (machine.h) and runs it.
//
// Registers: every statement takes its registers from a stack and gives them back at its end;
// constants lie behind all others and are numbered from kConstants until the height of the stack is
// known. Vectors under a Select run under a mask, so that a side not chosen touches no memory;
// scalar Selects jump.
#include "ir/interpreter/interpreter.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "ir/interpreter/machine.h"
#include "ir/loops/blocks.h"
#include "ir/loops/rewrite.h"

namespace tilewright::ir {

using namespace interpreter;

namespace {

constexpr uint32_t kConstants = uint32_t{1} << 30;

class Compiler {
 public:
  explicit Compiler(const Kernel& kernel) : flat_(is_flat(kernel)) {}
  Status compile(const Kernel& kernel);
  MachineCode take() { return std::move(program_); }
  uint32_t height() const { return height_; }

 private:
  void fail(std::string message) {
    if (!error_) error_ = internal_error(std::move(message));
  }
  uint32_t reserve(int n) {
    const uint32_t reg = top_;
    top_ += static_cast<uint32_t>(n);
    height_ = std::max(height_, top_);
    return reg;
  }
  size_t emit(Handler h, uint32_t dst, uint32_t a = kNoReg, uint32_t b = kNoReg,
              uint32_t c = kNoReg, int n = 1) {
    program_.code.push_back({h, dst, a, b, c, n});
    return program_.code.size() - 1;
  }
  void land(size_t jump) { program_.code[jump].c = static_cast<uint32_t>(program_.code.size()); }
  uint32_t constant(Slot value);

  // Expressions: the register of the value, computed here unless an enclosing or earlier part of
  // the statement has it.
  uint32_t expr(const Expr& e);
  uint32_t expr(const Expr& e, int lanes);  // broadcast to that many lanes
  uint32_t compile(const IntImm& n, ScalarType t);
  uint32_t compile(const FloatImm& n, ScalarType t);
  uint32_t compile(const VarNode& n, ScalarType t);
  uint32_t compile(const Cast& n, ScalarType t);
  uint32_t compile(const Bitcast& n, ScalarType t);
  uint32_t compile(const Unary& n, ScalarType t);
  uint32_t compile(const Binary& n, ScalarType t);
  uint32_t compile(const Select& n, ScalarType t);
  uint32_t compile(const Load& n, ScalarType t);
  uint32_t compile(const Ramp& n, ScalarType t);
  uint32_t compile(const Broadcast& n, ScalarType t);
  uint32_t compile(const ReduceLanes& n, ScalarType t);
  uint32_t binary_of(BinaryOp op, DType t, uint32_t a, uint32_t b, int lanes);
  uint32_t access(const Buffer& buffer, const std::vector<Expr>& indices, int lanes);
  uint32_t mask_for(int lanes);
  uint32_t masked(const Expr& own, int lanes);
  size_t memo_mark() const { return memo_log_.size(); }
  void memo_forget(size_t mark);

  void stmt(const Stmt& s);
  void compile(const Store& n);
  void compile(const Let& n);
  void compile(const For& n);
  void compile(const While& n);
  void compile(const If& n);
  void compile(const Seq& n);
  void compile(const Allocate& n);
  void compile(const Block& n);
  void bring_up(const Buffer& buffer, bool param);
  void relocate();

  bool flat_;
  MachineCode program_;
  std::optional<Error> error_;
  uint32_t top_ = 0, height_ = 0;
  std::unordered_map<const ExprNode*, uint32_t> vars_;
  std::unordered_map<const BufferNode*, uint32_t> buffers_;
  std::vector<std::pair<std::string, uint32_t>> scope_;
  std::map<uint64_t, uint32_t> constants_;
  std::unordered_map<const ExprNode*, uint32_t> memo_;
  std::vector<const ExprNode*> memo_log_;
  uint32_t mask_ = kNoReg;  // lanes that are on, where a vector Select is around
  int mask_lanes_ = 0;
};

uint32_t Compiler::constant(Slot value) {
  auto [it, fresh] =
      constants_.emplace(value.u, kConstants + static_cast<uint32_t>(program_.constants.size()));
  if (fresh) program_.constants.push_back(value);
  return it->second;
}

void Compiler::memo_forget(size_t mark) {
  for (; memo_log_.size() > mark; memo_log_.pop_back()) memo_.erase(memo_log_.back());
}

uint32_t Compiler::expr(const Expr& e) {
  if (!e) {
    fail("an expression is missing");
    return 0;
  }
  if (auto it = memo_.find(e.get()); it != memo_.end()) return it->second;
  const uint32_t reg = dispatch(e, [&](const auto& n) { return compile(n, e.type()); });
  if (memo_.emplace(e.get(), reg).second) memo_log_.push_back(e.get());
  return reg;
}
uint32_t Compiler::expr(const Expr& e, int lanes) {
  const uint32_t reg = expr(e);
  if (!e || e.lanes() == lanes) return reg;
  if (e.lanes() != 1)
    fail("an operand has " + std::to_string(e.lanes()) + " lanes, expected " +
         std::to_string(lanes));
  const uint32_t dst = reserve(lanes);
  emit(broadcast_handler, dst, reg, kNoReg, kNoReg, lanes);
  return dst;
}

uint32_t Compiler::compile(const IntImm& n, ScalarType t) {
  Slot s;
  s.i = n.value;
  if (is_float(t.dtype)) fail("an integer immediate has type " + std::string(name(t.dtype)));
  return constant(s);
}
uint32_t Compiler::compile(const FloatImm& n, ScalarType t) {
  Slot s;
  s.u = 0;
  switch (t.dtype) {
    case DType::kFloat64: s.d = n.value; break;
    case DType::kFloat32: s.f = rounded<DType::kFloat32>(n.value); break;
    case DType::kFloat16: s.f = rounded<DType::kFloat16>(n.value); break;
    case DType::kBFloat16: s.f = rounded<DType::kBFloat16>(n.value); break;
    default: fail("a floating-point immediate has type " + std::string(name(t.dtype)));
  }
  return constant(s);
}
uint32_t Compiler::compile(const VarNode& n, ScalarType) {
  auto it = vars_.find(&n);
  if (it != vars_.end()) return it->second;
  fail("variable '" + n.name + "' is not defined here");
  return 0;
}
uint32_t Compiler::compile(const Cast& n, ScalarType t) {
  const uint32_t a = expr(n.value, t.lanes), dst = reserve(t.lanes);
  emit(cast_handler(n.value.dtype(), t.dtype), dst, a, kNoReg, kNoReg, t.lanes);
  return dst;
}
uint32_t Compiler::compile(const Bitcast& n, ScalarType t) {
  const uint32_t a = expr(n.value, t.lanes), dst = reserve(t.lanes);
  Handler h = bitcast_handler(n.value.dtype(), t.dtype);
  if (!h) fail("bitcast between types of different size");
  emit(h, dst, a, kNoReg, kNoReg, t.lanes);
  return dst;
}
uint32_t Compiler::compile(const Unary& n, ScalarType t) {
  const uint32_t a = expr(n.value, t.lanes), dst = reserve(t.lanes);
  Handler h = unary_handler(n.op, n.value.dtype(), t.lanes > 1);
  if (!h)
    fail(std::string(name(n.op)) + " has no meaning for " + std::string(name(n.value.dtype())));
  emit(h, dst, a, kNoReg, kNoReg, t.lanes);
  return dst;
}
uint32_t Compiler::binary_of(BinaryOp op, DType t, uint32_t a, uint32_t b, int lanes) {
  Handler h = binary_handler(op, t, lanes > 1);
  if (!h) fail(std::string(name(op)) + " has no meaning for " + std::string(name(t)));
  const uint32_t mask = is_division(op) && !is_float(t) ? mask_for(lanes) : kNoReg;
  const uint32_t dst = reserve(lanes);
  emit(h, dst, a, b, mask, lanes);
  return dst;
}
uint32_t Compiler::compile(const Binary& n, ScalarType t) {
  const uint32_t a = expr(n.a, t.lanes), b = expr(n.b, t.lanes);
  if (n.a.dtype() != n.b.dtype())
    fail("operands of " + std::string(name(n.op)) + " differ in type");
  return binary_of(n.op, n.a.dtype(), a, b, t.lanes);
}

// The current mask for a value of that many lanes; between different widths: any lane, for all
// lanes.
uint32_t Compiler::mask_for(int lanes) {
  if (mask_ == kNoReg || mask_lanes_ == lanes) return mask_;
  uint32_t any = mask_;
  if (mask_lanes_ > 1) emit(any_handler, any = reserve(1), mask_, kNoReg, kNoReg, mask_lanes_);
  if (lanes == 1) return any;
  const uint32_t dst = reserve(lanes);
  emit(broadcast_handler, dst, any, kNoReg, kNoReg, lanes);
  return dst;
}
// The current mask and the access's own.
uint32_t Compiler::masked(const Expr& own, int lanes) {
  const uint32_t outer = mask_for(lanes);
  if (!own) return outer;
  const uint32_t inner = expr(own, lanes);
  return outer == kNoReg ? inner : binary_of(BinaryOp::kAnd, DType::kBool, inner, outer, lanes);
}

uint32_t Compiler::compile(const Select& n, ScalarType t) {
  const uint32_t dst = reserve(t.lanes);
  if (n.condition.lanes() == 1 && mask_ == kNoReg) {
    const uint32_t condition = expr(n.condition);
    const size_t to_b = emit(jump_if_false_handler, kNoReg, condition);
    const size_t mark = memo_mark();
    const uint32_t a = expr(n.a, t.lanes);
    emit(copy_handler, dst, a, kNoReg, kNoReg, t.lanes);
    memo_forget(mark);
    const size_t to_end = emit(jump_handler, kNoReg);
    land(to_b);
    const uint32_t b = expr(n.b, t.lanes);
    emit(copy_handler, dst, b, kNoReg, kNoReg, t.lanes);
    memo_forget(mark);
    land(to_end);
    return dst;
  }
  const uint32_t condition = expr(n.condition, t.lanes);
  const uint32_t outer = mask_for(t.lanes);
  const auto saved = std::pair(mask_, mask_lanes_);
  const size_t mark = memo_mark();
  auto side = [&](const Expr& e, uint32_t chosen) {
    mask_ = kNoReg;
    mask_ =
        outer == kNoReg ? chosen : binary_of(BinaryOp::kAnd, DType::kBool, chosen, outer, t.lanes);
    mask_lanes_ = t.lanes;
    const uint32_t value = expr(e, t.lanes);
    memo_forget(mark);
    return value;
  };
  const uint32_t a = side(n.a, condition);
  const uint32_t not_chosen = reserve(t.lanes);
  emit(unary_handler(UnaryOp::kNot, DType::kBool, t.lanes > 1), not_chosen, condition, kNoReg,
       kNoReg, t.lanes);
  const uint32_t b = side(n.b, not_chosen);
  std::tie(mask_, mask_lanes_) = saved;
  emit(select_handler, dst, a, b, condition, t.lanes);
  return dst;
}

uint32_t Compiler::access(const Buffer& buffer, const std::vector<Expr>& indices, int lanes) {
  Access a{0, flat_, {}, scope_};
  auto it = buffers_.find(buffer.get());
  if (it == buffers_.end())
    fail("buffer '" + (buffer ? buffer->name : std::string()) + "' is not allocated here");
  else
    a.buffer = it->second;
  const size_t expected = flat_ ? 1 : buffer ? buffer->shape.size() : 0;
  if (indices.size() != expected || expected > 16)
    fail("buffer '" + (buffer ? buffer->name : std::string()) + "' is accessed with " +
         std::to_string(indices.size()) + " indices, expected " + std::to_string(expected));
  for (const Expr& e : indices) {
    const uint32_t reg = expr(e);
    if (e && e.lanes() != 1 && e.lanes() != lanes)
      fail("lanes of an index disagree with the access");
    if (e && is_float(e.dtype())) fail("an index is not an integer");
    a.indices.push_back({reg, e && e.lanes() > 1 ? 1u : 0u});
  }
  program_.accesses.push_back(std::move(a));
  return static_cast<uint32_t>(program_.accesses.size() - 1);
}
uint32_t Compiler::compile(const Load& n, ScalarType t) {
  const uint32_t mask = masked(n.mask, t.lanes);
  const uint32_t row = access(n.buffer, n.indices, t.lanes), dst = reserve(t.lanes);
  emit(load_handler(t.dtype, t.lanes > 1), dst, row, kNoReg, mask, t.lanes);
  return dst;
}
uint32_t Compiler::compile(const Ramp& n, ScalarType t) {
  const uint32_t base = expr(n.base), stride = expr(n.stride);
  if (t.dtype == DType::kInt64) {
    const uint32_t dst = reserve(t.lanes);
    emit(ramp_handler, dst, base, stride, kNoReg, t.lanes);
    return dst;
  }
  // Of any other type: lane numbers, times the stride, plus the base.
  const uint32_t lane = reserve(t.lanes), numbers = reserve(t.lanes), strides = reserve(t.lanes),
                 bases = reserve(t.lanes);
  Slot zero, one;
  zero.i = 0;
  one.i = 1;
  emit(ramp_handler, lane, constant(zero), constant(one), kNoReg, t.lanes);
  emit(cast_handler(DType::kInt64, t.dtype), numbers, lane, kNoReg, kNoReg, t.lanes);
  emit(broadcast_handler, strides, stride, kNoReg, kNoReg, t.lanes);
  emit(broadcast_handler, bases, base, kNoReg, kNoReg, t.lanes);
  return binary_of(BinaryOp::kAdd, t.dtype, bases,
                   binary_of(BinaryOp::kMul, t.dtype, numbers, strides, t.lanes), t.lanes);
}
uint32_t Compiler::compile(const Broadcast& n, ScalarType t) { return expr(n.value, t.lanes); }
uint32_t Compiler::compile(const ReduceLanes& n, ScalarType t) {
  uint32_t value = expr(n.value);
  for (int lanes = n.value.lanes();
       lanes > 1;) {  // the upper half onto the lower one; an odd lane in the middle stays
    const int half = (lanes + 1) / 2;
    const uint32_t dst = reserve(half);
    Handler h = binary_handler(n.op, t.dtype, true);
    if (!h || is_comparison(n.op))
      fail(std::string(name(n.op)) + " cannot combine lanes of " + std::string(name(t.dtype)));
    emit(copy_handler, dst, value, kNoReg, kNoReg, half);
    emit(h, dst, value, value + static_cast<uint32_t>(half), kNoReg, lanes - half);
    value = dst;
    lanes = half;
  }
  return value;
}

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
  stmt(n.body);
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
  bring_up(n.buffer, false);
  stmt(n.body);
  buffers_.erase(n.buffer.get());
}
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

void Compiler::bring_up(const Buffer& buffer, bool param) {
  const auto id = static_cast<uint32_t>(program_.buffers.size());
  LiveBuffer live;
  live.name = buffer->name;
  live.dtype = buffer->dtype;
  live.layout = buffer->layout;
  for (const LayoutAxis& a : buffer->layout)
    if (a.dim < 0 || a.dim >= buffer->rank() || a.divisor < 1 || a.modulus < 0)
      return fail("buffer '" + buffer->name + "' has a layout that does not fit its rank");
  program_.buffers.push_back(std::move(live));
  program_.shapes.emplace_back(static_cast<uint32_t>(program_.shape_regs.size()),
                               static_cast<uint32_t>(buffer->rank()));
  std::vector<uint32_t> regs;
  for (const Expr& e : buffer->shape) regs.push_back(expr(e));
  program_.shape_regs.insert(program_.shape_regs.end(), regs.begin(), regs.end());
  emit(allocate_handler, kNoReg, id, kNoReg, param ? 0 : kNoReg);
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
  stmt(kernel.body);
  emit(halt_handler, kNoReg);
  if (error_) return *error_;
  relocate();
  return {};
}

}  // namespace

Status interpret(const Kernel& kernel, const std::vector<void*>& params,
                 const std::vector<int64_t>& scalars, const InterpretOptions& options) {
  if (params.size() != kernel.params.size() || scalars.size() != kernel.scalars.size())
    return internal_error("kernel '" + kernel.name + "' takes " +
                          std::to_string(kernel.params.size()) + " buffers and " +
                          std::to_string(kernel.scalars.size()) + " scalars, found " +
                          std::to_string(params.size()) + " and " + std::to_string(scalars.size()));
  Compiler compiler(kernel);
  if (Status s = compiler.compile(kernel); !s.ok()) {
    s.error().location = "kernel '" + kernel.name + "'";
    return s;
  }
  MachineCode program = compiler.take();
  for (size_t n = 0; n < params.size(); ++n)
    program.buffers[n].data = static_cast<uint8_t*>(params[n]);
  Slot zero;
  zero.u = 0;
  std::vector<Slot> registers(compiler.height() + program.constants.size() + 1, zero);
  for (size_t n = 0; n < scalars.size(); ++n) registers[n].i = scalars[n];
  std::copy(program.constants.begin(), program.constants.end(),
            registers.begin() + program.first_constant);

  Machine m;
  m.r = registers.data();
  m.program = &program;
  m.pc = program.code.data();
  m.halt = &program.code.back();
  m.check_uninitialised = options.check_uninitialised;
  while (m.running) {
    const Inst& i = *m.pc++;
    i.handler(m, i);
  }
  if (!m.error) return {};
  m.error->location = "kernel '" + kernel.name + "'";
  return *m.error;
}

}  // namespace tilewright::ir
