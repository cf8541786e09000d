// Runs an operator's loops on expressions instead of numbers: the elements of small results as
// constants or as expressions over symbols.
//
// Symbolic execution: loads give expressions, stores keep them, loops must have constant extents.
// Shape computations of a model (Shape, Gather, Mul, Concat, ...) vanish here, whatever operators
// they use: each has its loops already. It gives up (GaveUp) at anything that is not known, without
// an error.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "ir/graph/compute.h"
#include "ir/graph/infer.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"

namespace tilewright::ir {

namespace {

struct GaveUp {};
constexpr int64_t kMostSteps = 200000;

using Memory = std::unordered_map<const BufferNode*, std::vector<Expr>>;

// Arithmetic on float immediates, which `binary` leaves alone.
Expr fold_floats(BinaryOp op, double a, double b, DType t) {
  switch (op) {
    case BinaryOp::kAdd: return float_imm(a + b, t);
    case BinaryOp::kSub: return float_imm(a - b, t);
    case BinaryOp::kMul: return float_imm(a * b, t);
    case BinaryOp::kDiv: return float_imm(a / b, t);
    case BinaryOp::kPow: return float_imm(std::pow(a, b), t);
    case BinaryOp::kMin: return float_imm(std::isnan(a) || a < b ? a : b, t);
    case BinaryOp::kMax: return float_imm(std::isnan(a) || a > b ? a : b, t);
    case BinaryOp::kMaxNumber: return float_imm(b > a ? b : a, t);
    case BinaryOp::kEq: return bool_imm(a == b);
    case BinaryOp::kNe: return bool_imm(a != b);
    case BinaryOp::kLt: return bool_imm(a < b);
    case BinaryOp::kLe: return bool_imm(a <= b);
    case BinaryOp::kGt: return bool_imm(a > b);
    case BinaryOp::kGe: return bool_imm(a >= b);
    default: return nullptr;
  }
}
Expr fold_float(UnaryOp op, double x, DType t) {
  switch (op) {
    case UnaryOp::kAbs: return float_imm(std::fabs(x), t);
    case UnaryOp::kSqrt: return float_imm(std::sqrt(x), t);
    case UnaryOp::kFloor: return float_imm(std::floor(x), t);
    case UnaryOp::kCeil: return float_imm(std::ceil(x), t);
    case UnaryOp::kTrunc: return float_imm(std::trunc(x), t);
    case UnaryOp::kRoundEven: return float_imm(std::nearbyint(x), t);
    case UnaryOp::kIsNan: return bool_imm(std::isnan(x));
    case UnaryOp::kIsInf: return bool_imm(std::isinf(x));
    default: return nullptr;
  }
}

// A float of at most 2^53 as an integer of the type, whose ends limit it.
int64_t saturated(double x, DType t) {
  const int bits = 8 * byte_size(t) - (is_unsigned(t) ? 0 : 1);
  const double most = bits < 63 ? std::ldexp(1.0, bits) - 1 : 0x1p53;
  const double least = is_unsigned(t) ? 0 : -most - 1;
  return static_cast<int64_t>(std::min(std::max(std::trunc(x), least), most));
}

// What is made of itself again and again doubles with every step: beyond so many nodes an element is
// not known.
constexpr double kLargestTree = 1000;

class Evaluate : public Rewriter {
 public:
  Evaluate(Memory& memory, const VarMap& vars) : memory_(memory), vars_(vars) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    if (e.kind() == NodeKind::kVar) {
      auto it = vars_.find(e.get());
      return it == vars_.end() ? e : it->second;
    }
    if (const auto* s = e.as<Select>()) {  // only the chosen side is read
      Expr c = rewrite(s->condition);
      if (auto known = as_int(c)) return rewrite(*known ? s->a : s->b);
      return select(c, rewrite(s->a), rewrite(s->b));
    }
    if (const auto* l = e.as<Load>()) return element(*l);
    Expr x = Rewriter::rewrite(e);
    return fold(simplify(x));
  }
  std::vector<Expr>& storage(const Buffer& b) {
    auto it = memory_.find(b.get());
    if (it == memory_.end()) throw GaveUp{};
    return it->second;
  }
  size_t offset(const Buffer& b, const std::vector<Expr>& indices) {
    int64_t flat = 0;
    for (size_t d = 0; d < indices.size(); ++d) {
      auto i = as_int(rewrite(indices[d])), extent = as_int(b->shape[d]);
      if (!i || !extent || *i < 0 || *i >= *extent) throw GaveUp{};
      flat = flat * *extent + *i;
    }
    return static_cast<size_t>(flat);
  }

 private:
  Expr element(const Load& l) {
    Expr value = storage(l.buffer).at(offset(l.buffer, l.indices));
    if (!value) throw GaveUp{};
    return value;
  }
  static Expr fold(const Expr& x) {
    if (const auto* b = x.as<Binary>()) {
      const auto *p = b->a.as<FloatImm>(), *q = b->b.as<FloatImm>();
      if (p && q)
        if (Expr f = fold_floats(b->op, p->value, q->value, b->a.dtype())) return f;
    }
    if (const auto* u = x.as<Unary>())
      if (const auto* p = u->value.as<FloatImm>())
        if (Expr f = fold_float(u->op, p->value, u->value.dtype())) return f;
    if (const auto* c = x.as<Cast>())
      if (const auto* p = c->value.as<FloatImm>();
          p && is_integer(x.dtype()) && std::fabs(p->value) < 9e15)
        return int_imm(saturated(p->value, x.dtype()), x.dtype());
    return x;
  }
  Memory& memory_;
  const VarMap& vars_;
};

class Run {
 public:
  explicit Run(Memory& memory) : memory_(memory) {}
  void run(const Stmt& s) {
    if (++steps_ > kMostSteps) throw GaveUp{};
    if (const auto* q = s.as<Seq>()) {
      for (const Stmt& x : q->stmts) run(x);
    } else if (const auto* f = s.as<For>()) {
      auto n = as_int(value(f->extent));
      if (!n) throw GaveUp{};
      for (int64_t i = 0; i < *n; ++i) {
        vars_[f->var.get()] = Expr(i);
        run(f->body);
      }
    } else if (const auto* b = s.as<Block>()) {
      run_block(*b);
    } else if (const auto* st = s.as<Store>()) {
      Evaluate e(memory_, vars_);
      const size_t at = e.offset(st->buffer, st->indices);
      e.storage(st->buffer).at(at) = Evaluate(memory_, vars_).rewrite(st->value);
    } else if (const auto* i = s.as<If>()) {
      auto c = as_int(value(i->condition));
      if (!c) throw GaveUp{};
      if (*c)
        run(i->then);
      else if (i->otherwise)
        run(i->otherwise);
    } else if (const auto* l = s.as<Let>()) {
      vars_[l->var.get()] = value(l->value);
      run(l->body);
    } else if (const auto* a = s.as<Allocate>()) {
      int64_t n = 1;
      for (const Expr& d : a->buffer->shape) n *= as_int(value(d)).value_or(int64_t{1} << 20);
      if (n > 65536) throw GaveUp{};
      memory_[a->buffer.get()].assign(static_cast<size_t>(n), Expr());
      run(a->body);
    } else {
      throw GaveUp{};
    }
  }

 private:
  Expr value(const Expr& e) { return Evaluate(memory_, vars_).rewrite(e); }
  void run_block(const Block& b) {
    bool first = true;
    for (size_t i = 0; i < b.axes.size(); ++i) {
      Expr v = value(b.bindings[i]);
      vars_[b.axes[i].var.get()] = v;
      if (b.axes[i].kind == AxisKind::kReduce) first &= is_zero(v);
    }
    if (b.init && first) run(b.init);
    run(b.body);
  }
  Memory& memory_;
  VarMap vars_;
  int64_t steps_ = 0;
};

Buffer buffer_of(const Graph& graph, ValueId v) {
  const Value& value = graph.value(v);
  return make_buffer(value.name, value.type.dtype, value.type.dims);
}

}  // namespace

std::optional<std::vector<std::vector<Expr>>> known_outputs(const Graph& graph, const Node& node) {
  NodeView view(graph, node);
  Memory memory;
  std::vector<Buffer> in, out;
  for (int i = 0; i < view.num_inputs(); ++i) {
    in.push_back(view.has(i) ? buffer_of(graph, node.inputs[static_cast<size_t>(i)]) : nullptr);
    if (!view.has(i) || node.op->of_types) continue;
    auto elements = view.known(i);
    if (!elements) return std::nullopt;
    memory[in.back().get()] = std::move(*elements);
  }
  for (ValueId v : node.outputs) {
    if (v == kNone) return std::nullopt;
    out.push_back(buffer_of(graph, v));
    auto n = tilewright::element_count(*constant_shape(graph.value(v).type));
    memory[out.back().get()].assign(static_cast<size_t>(*n), Expr());
  }
  LoopsBuilder builder;
  ComputeContext context(graph, node, in, out, builder);
  try {
    node.op->compute(context);
    Run(memory).run(builder.finish());
  } catch (const GaveUp&) { return std::nullopt; }
  std::vector<std::vector<Expr>> result;
  for (const Buffer& b : out) {
    result.push_back(std::move(memory[b.get()]));
    for (const Expr& e : result.back())
      if (!e || tree_size(e) > kLargestTree) return std::nullopt;
  }
  return result;
}

}  // namespace tilewright::ir
