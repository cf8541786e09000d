#include "ir/verify_loops.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/interpreter/scalar_ops.h"
#include "ir/loops/rewrite.h"
#include "ir/text/printer_loops.h"

namespace tilewright::ir {

using interpreter::has_meaning;
using interpreter::is_comparison;

namespace {

constexpr size_t kMaxViolations = 50;

class Verifier {
 public:
  Verifier(const Kernel& kernel, Stage stage)
      : kernel_(kernel), flat_(stage == Stage::kFlat), stage_(stage) {}
  Status run();

 private:
  enum class Origin : uint8_t { kScalar, kLoop, kLet, kAxis };
  struct Definition {
    Origin origin;
    int depth;
    bool parallel;
    AxisKind axis;
  };

  void report(std::string text);
  bool require(bool condition, const std::string& text) {
    if (!condition) report(text);
    return condition;
  }
  std::string text(const Expr& e);

  // Expressions.
  void expr(const Expr& e);
  void check(const IntImm& n, const Expr& e);
  void check(const FloatImm& n, const Expr& e);
  void check(const VarNode& n, const Expr& e);
  void check(const Cast& n, const Expr& e);
  void check(const Bitcast& n, const Expr& e);
  void check(const Unary& n, const Expr& e);
  void check(const Binary& n, const Expr& e);
  void check(const Select& n, const Expr& e);
  void check(const Load& n, const Expr& e);
  void check(const Ramp& n, const Expr& e);
  void check(const Broadcast& n, const Expr& e);
  void check(const ReduceLanes& n, const Expr& e);
  void check(const Dot& n, const Expr& e);
  void stated(const Expr& e, ScalarType expected) {
    require(e.type() == expected, "'" + text(e) + "' states type " + to_text(e.type()) +
                                      ", its operands give " + to_text(expected));
  }
  void scalar_index(const Expr& e, const std::string& what);
  void condition(const Expr& e);
  int access(const Buffer& b, const std::vector<Expr>& indices, const Expr& mask);

  // Statements.
  void stmt(const Stmt& s);
  void check(const Store& n);
  void check(const Let& n);
  void check(const For& n);
  void check(const While& n);
  void check(const If& n);
  void check(const Seq& n);
  void check(const Allocate& n);
  void check(const Block& n);
  void block_axes(const Block& n);

  void define(const Var& v, Definition d);
  void forget(const Var& v) { visible_.erase(v.get()); }
  void buffer_shape(const Buffer& b);

  const Kernel& kernel_;
  bool flat_;
  Stage stage_;
  NameTable names_;
  std::vector<std::string> violations_;
  size_t found_ = 0;
  std::unordered_map<const ExprNode*, Definition> visible_;
  std::unordered_set<const ExprNode*> defined_;
  std::unordered_map<const BufferNode*, int> live_;  // block depth at which a buffer was allocated
  std::unordered_set<const BufferNode*> allocated_;
  std::unordered_set<const ExprNode*> checked_;  // within one statement
  std::vector<std::string> place_;
  int depth_ = 0;  // of blocks
  int vectorized_ = 0;
  bool in_init_ = false, hide_loops_ = true;
};

void Verifier::report(std::string text) {
  ++found_;
  if (violations_.size() >= kMaxViolations) return;
  std::string where;
  for (const std::string& p : place_) where += (where.empty() ? "" : ", ") + p;
  violations_.push_back(where.empty() ? std::move(text) : text + " (in " + where + ")");
}
std::string Verifier::text(const Expr& e) {
  std::string s = to_text(e, names_);
  return s.size() <= 80 ? s : s.substr(0, 77) + "...";
}

// --- expressions
// -----------------------------------------------------------------------------------------------------

void Verifier::expr(const Expr& e) {
  if (!e) return report("an expression is missing");
  if (!checked_.insert(e.get()).second) return;
  require(e.lanes() >= 1, "'" + text(e) + "' has " + std::to_string(e.lanes()) + " lanes");
  if (!flat_) require(e.lanes() == 1, "'" + text(e) + "' is a vector before the flat stage");
  dispatch(e, [&](const auto& n) { check(n, e); });
}
void Verifier::check(const IntImm& n, const Expr& e) {
  require(!is_float(e.dtype()), "an integer immediate has type " + to_text(e.type()));
  if (!is_float(e.dtype()))
    require(
        as_int(int_imm(n.value, e.dtype())) == n.value,
        "immediate " + std::to_string(n.value) + " is outside the range of " + to_text(e.type()));
  require(e.lanes() == 1, "an immediate has several lanes");
}
void Verifier::check(const FloatImm&, const Expr& e) {
  require(is_float(e.dtype()) && e.lanes() == 1,
          "a floating-point immediate has type " + to_text(e.type()));
}
void Verifier::check(const VarNode&, const Expr& e) {
  auto it = visible_.find(e.get());
  if (!require(it != visible_.end(),
               "variable '" + text(e) + "' is used outside of its definition"))
    return;
  const Definition& d = it->second;
  const bool outside = d.depth < depth_ && (d.origin == Origin::kLoop || d.origin == Origin::kLet);
  require(!outside || !hide_loops_,
          "variable '" + text(e) + "' of a loop or let around the block is named inside of it");
  require(!in_init_ || d.origin != Origin::kAxis || d.axis != AxisKind::kReduce || d.depth < depth_,
          "an init names the reduce axis '" + text(e) + "'");
}
void Verifier::check(const Cast& n, const Expr& e) {
  expr(n.value);
  if (n.value) stated(e, {e.dtype(), n.value.lanes()});
}
void Verifier::check(const Bitcast& n, const Expr& e) {
  expr(n.value);
  if (!n.value) return;
  stated(e, {e.dtype(), n.value.lanes()});
  require(byte_size(e.dtype()) == byte_size(n.value.dtype()),
          "'" + text(e) + "': bitcast from " + to_text(n.value.type()) + ", the sizes differ");
}
void Verifier::check(const Unary& n, const Expr& e) {
  expr(n.value);
  if (!n.value) return;
  const bool test = n.op == UnaryOp::kIsNan || n.op == UnaryOp::kIsInf;
  stated(e, {test ? DType::kBool : n.value.dtype(), n.value.lanes()});
  require(has_meaning(n.op, n.value.dtype()), std::string(name(n.op)) + " has no meaning for " +
                                                  to_text(n.value.type()) + " in '" + text(e) +
                                                  "'");
}
void Verifier::check(const Binary& n, const Expr& e) {
  expr(n.a);
  expr(n.b);
  if (!n.a || !n.b) return;
  if (!require(n.a.type() == n.b.type(), "operands of " + std::string(name(n.op)) +
                                             " differ in type: " + to_text(n.a.type()) + " and " +
                                             to_text(n.b.type()) + " in '" + text(e) + "'"))
    return;
  stated(e, {is_comparison(n.op) ? DType::kBool : n.a.dtype(), n.a.lanes()});
  require(has_meaning(n.op, n.a.dtype()), std::string(name(n.op)) + " has no meaning for " +
                                              to_text(n.a.type()) + " in '" + text(e) + "'");
}
void Verifier::check(const Select& n, const Expr& e) {
  expr(n.condition);
  expr(n.a);
  expr(n.b);
  if (!n.condition || !n.a || !n.b) return;
  require(n.a.type() == n.b.type(),
          "sides of select differ in type: " + to_text(n.a.type()) + " and " + to_text(n.b.type()));
  require(n.condition.type() == ScalarType{DType::kBool, n.a.lanes()},
          "condition of select has type " + to_text(n.condition.type()) +
              ", expected bool of as many lanes as " + to_text(n.a.type()));
  stated(e, n.a.type());
}
void Verifier::check(const Load& n, const Expr& e) {
  const int lanes = access(n.buffer, n.indices, n.mask);
  if (n.buffer) stated(e, {n.buffer->dtype, lanes});
}
void Verifier::check(const Ramp& n, const Expr& e) {
  expr(n.base);
  expr(n.stride);
  if (!n.base || !n.stride) return;
  require(n.base.type() == n.stride.type() && n.base.lanes() == 1,
          "base and stride of a ramp must be scalars of one type: '" + text(e) + "'");
  stated(e, {n.base.dtype(), e.lanes()});
}
void Verifier::check(const Broadcast& n, const Expr& e) {
  expr(n.value);
  if (!n.value) return;
  require(e.lanes() % n.value.lanes() == 0,
          "a broadcast to lanes that no number of copies gives: '" + text(e) + "'");
  stated(e, {n.value.dtype(), e.lanes()});
}
void Verifier::check(const ReduceLanes& n, const Expr& e) {
  expr(n.value);
  if (!n.value) return;
  require(!is_comparison(n.op) && has_meaning(n.op, n.value.dtype()),
          std::string(name(n.op)) + " cannot combine the lanes of " + to_text(n.value.type()));
  stated(e, {n.value.dtype(), 1});
}

void Verifier::check(const Dot& n, const Expr& e) {
  for (const Expr& x : {n.sum, n.a, n.b}) expr(x);
  if (!n.sum || !n.a || !n.b) return;
  const int terms = kDotTerms * n.sum.lanes();
  require(n.sum.dtype() == DType::kInt32 && n.a.type() == ScalarType{DType::kUInt8, terms} &&
              n.b.type() == ScalarType{DType::kInt8, terms},
          "dot takes i32, and four times as many lanes of u8 and of i8: '" + text(e) + "'");
  stated(e, n.sum.type());
}

void Verifier::scalar_index(const Expr& e, const std::string& what) {
  expr(e);
  if (e)
    require(e.type() == ScalarType{},
            what + " has type " + to_text(e.type()) + ", expected a scalar i64");
}
void Verifier::condition(const Expr& e) {
  expr(e);
  if (e)
    require(
        e.type() == ScalarType{DType::kBool, 1},
        "condition '" + text(e) + "' has type " + to_text(e.type()) + ", expected a scalar bool");
}

// Checks a load or store; the number of lanes it works on.
int Verifier::access(const Buffer& b, const std::vector<Expr>& indices, const Expr& mask) {
  if (!require(b != nullptr, "a buffer is missing")) return 1;
  const std::string who = "'" + names_.of(b) + "'";
  require(live_.count(b.get()) != 0,
          "buffer " + who + " is neither a parameter nor allocated around its use");
  const size_t expected = flat_ ? 1 : b->shape.size();
  require(indices.size() == expected, who + " is accessed with " + std::to_string(indices.size()) +
                                          " indices, expected " + std::to_string(expected));
  int lanes = 1;
  for (const Expr& i : indices) {
    expr(i);
    if (!i) continue;
    require(i.dtype() == DType::kInt64, "index '" + text(i) + "' of " + who + " has type " +
                                            to_text(i.type()) + ", expected i64");
    lanes = std::max(lanes, i.lanes());
  }
  if (!mask) return lanes;
  expr(mask);
  require(flat_, "a mask on " + who + " before the flat stage");
  require(mask.type() == ScalarType{DType::kBool, lanes} || is_one(mask),
          "mask on " + who + " has type " + to_text(mask.type()) + ", expected bool of " +
              std::to_string(lanes) + " lanes");
  return lanes;
}

// --- statements
// ------------------------------------------------------------------------------------------------------

void Verifier::stmt(const Stmt& s) {
  if (!s) return report("a statement is missing");
  checked_.clear();
  dispatch(s, [&](const auto& n) { check(n); });
}
void Verifier::define(const Var& v, Definition d) {
  if (!require(static_cast<bool>(v), "a variable is missing")) return;
  require(defined_.insert(v.get()).second, "variable '" + text(v) + "' is defined more than once");
  if (d.origin != Origin::kLet)
    require(v.type() == ScalarType{}, "'" + text(v) +
                                          "' is a scalar, loop variable or axis of type " +
                                          to_text(v.type()) + ", expected i64");
  visible_[v.get()] = d;
}
void Verifier::check(const Store& n) {
  const int lanes = access(n.buffer, n.indices, n.mask);
  expr(n.value);
  if (!n.buffer || !n.value) return;
  const std::string who = "'" + names_.of(n.buffer) + "'";
  require(n.value.dtype() == n.buffer->dtype, "a value of type " + to_text(n.value.type()) +
                                                  " is stored to " + who + " of " +
                                                  std::string(name(n.buffer->dtype)));
  require(n.value.lanes() == lanes, "store to " + who + ": the index has " + std::to_string(lanes) +
                                        " lanes, the value " + std::to_string(n.value.lanes()));
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
void Verifier::check(const Let& n) {
  expr(n.value);
  if (n.value && n.var)
    require(n.value.type() == n.var.type(), "'" + text(n.var) + "' has type " +
                                                to_text(n.var.type()) + ", its value " +
                                                to_text(n.value.type()));
  define(n.var, {Origin::kLet, depth_, false, AxisKind::kParallel});
  stmt(n.body);
  forget(n.var);
}
void Verifier::check(const For& n) {
  scalar_index(n.extent, "extent of loop '" + (n.var ? text(n.var) : "") + "'");
  place_.push_back("loop " + (n.var ? text(n.var) : ""));
  const bool constant_only = n.loop_kind == LoopKind::kVectorized ||
                             n.loop_kind == LoopKind::kUnrolled || n.loop_kind == LoopKind::kDot;
  if (constant_only && n.extent)
    require(as_int(n.extent).has_value(), std::string(name(n.loop_kind)) +
                                              " loop has the extent '" + text(n.extent) +
                                              "', expected a constant");
  require(n.loop_kind != LoopKind::kParallel || !vectorized_,
          "a parallel loop is nested in a vectorized one");
  define(n.var, {Origin::kLoop, depth_, n.loop_kind == LoopKind::kParallel, AxisKind::kParallel});
  vectorized_ += n.loop_kind == LoopKind::kVectorized;
  stmt(n.body);
  vectorized_ -= n.loop_kind == LoopKind::kVectorized;
  forget(n.var);
  place_.pop_back();
}
void Verifier::check(const While& n) {
  condition(n.condition);
  stmt(n.body);
}
void Verifier::check(const If& n) {
  condition(n.condition);
  stmt(n.then);
  if (n.otherwise) stmt(n.otherwise);
}
void Verifier::check(const Seq& n) {
  for (const Stmt& s : n.stmts) stmt(s);
}
void Verifier::buffer_shape(const Buffer& b) {
  for (const Expr& e : b->shape) {
    scalar_index(e, "an extent of buffer '" + names_.of(b) + "'");
    if (b->scope == Scope::kLocal && e)
      require(as_int(e).has_value(), "local buffer '" + names_.of(b) + "' has the extent '" +
                                         text(e) + "', expected a constant");
  }
  for (const LayoutAxis& a : b->layout)
    require(a.dim >= 0 && a.dim < b->rank() && a.divisor >= 1 && a.modulus >= 0,
            "the layout of buffer '" + names_.of(b) + "' does not fit its rank");
}
void Verifier::check(const Allocate& n) {
  if (!require(n.buffer != nullptr, "a buffer is missing")) return;
  require(n.buffer->scope != Scope::kParam,
          "buffer '" + names_.of(n.buffer) + "' is allocated with scope param");
  require(allocated_.insert(n.buffer.get()).second,
          "buffer '" + names_.of(n.buffer) + "' is allocated more than once");
  buffer_shape(n.buffer);
  live_[n.buffer.get()] = depth_;
  stmt(n.body);
  live_.erase(n.buffer.get());
}

void Verifier::block_axes(const Block& n) {
  const std::string who = "block '" + n.name + "'";
  require(n.axes.size() == n.bindings.size(), who + " has " + std::to_string(n.axes.size()) +
                                                  " axes and " + std::to_string(n.bindings.size()) +
                                                  " bindings");
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
void Verifier::check(const Block& n) {
  require(!flat_, "block '" + n.name + "' is left in the flat stage");
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
    require(!reduces || n.init, "the block has a reduce axis and no init");
  require(reduces || !n.init, "the block has an init and no reduce axis");
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

Status Verifier::run() {
  for (const Var& v : kernel_.scalars) define(v, {Origin::kScalar, 0, false, AxisKind::kParallel});
  for (const Buffer& b : kernel_.params) {
    if (!require(b != nullptr, "a parameter is missing")) continue;
    require(b->scope == Scope::kParam,
            "parameter '" + names_.of(b) + "' has scope " + std::string(name(b->scope)));
    require(live_.emplace(b.get(), 0).second,
            "parameter '" + names_.of(b) + "' occurs more than once");
    buffer_shape(b);
  }
  for (const Buffer& b : kernel_.params) allocated_.insert(b.get());
  stmt(kernel_.body);
  if (violations_.empty()) return {};
  static constexpr const char* kStages[] = {"blocks", "scheduled", "flat"};
  Error e = internal_error("the loops break " + std::to_string(found_) +
                               (found_ == 1 ? " rule" : " rules") + " of stage " +
                               kStages[static_cast<size_t>(stage_)],
                           "kernel '" + kernel_.name + "'");
  e.notes = std::move(violations_);
  return e;
}

}  // namespace

Status verify(const Kernel& kernel, Stage stage) { return Verifier(kernel, stage).run(); }

}  // namespace tilewright::ir
