#include "ir/text/printer_loops.h"

#include "ir/loops/rewrite.h"
#include "ir/text/lexer.h"
#include "ir/text/precedence.h"

namespace tilewright::ir {

namespace {

class Printer {
 public:
  explicit Printer(NameTable& names) : names_(names) {}

  void expr(const Expr& e, int around = 0);
  void body(const Stmt& s);  // the statements between braces
  void kernel(const Kernel& k);
  std::string take() { return std::move(out_); }

 private:
  // Expressions; `around`: parentheses are needed below this precedence.
  void print(const IntImm& n, ScalarType t, int around);
  void print(const FloatImm& n, ScalarType t, int around);
  void print(const VarNode& n, ScalarType t, int around);
  void print(const Cast& n, ScalarType t, int around);
  void print(const Bitcast& n, ScalarType t, int around);
  void print(const Unary& n, ScalarType t, int around);
  void print(const Binary& n, ScalarType t, int around);
  void print(const Select& n, ScalarType t, int around);
  void print(const Load& n, ScalarType t, int around);
  void print(const Ramp& n, ScalarType t, int around);
  void print(const Broadcast& n, ScalarType t, int around);
  void print(const ReduceLanes& n, ScalarType t, int around);
  void print(const Dot& n, ScalarType t, int around);
  void print(const EveryLane& n, ScalarType t, int around);
  void print(const Interleave& n, ScalarType t, int around);
  // Statements, from the beginning of a line to its end.
  void print(const Store& n);
  void print(const DotTile& n);
  void print(const Prefetch& n);
  void print(const Let& n);
  void print(const For& n);
  void print(const While& n);
  void print(const If& n);
  void print(const Seq& n);
  void print(const Allocate& n);
  void print(const Block& n);

  void stmt(const Stmt& s);
  void call(std::string_view function, std::initializer_list<const Expr*> arguments);
  void access(const Buffer& b, const std::vector<Expr>& indices, const Expr& mask);
  void declare(const Buffer& b);
  void typed_name(const Expr& var);
  void line() { out_.append(2 * static_cast<size_t>(indent_), ' '); }
  void nested(const Stmt& s) {
    out_ += "{\n";
    ++indent_;
    body(s);
    --indent_;
    line();
    out_ += "}";
  }

  NameTable& names_;
  std::string out_;
  int indent_ = 0;
};

void Printer::expr(const Expr& e, int around) {
  if (!e)
    out_ += "<missing>";
  else if (e.kind() == NodeKind::kVar)
    out_ += names_.of(e);
  else
    dispatch(e, [&](const auto& n) { print(n, e.type(), around); });
}
void Printer::print(const IntImm& n, ScalarType t, int) {
  if (t.dtype == DType::kBool)
    out_ += n.value ? "true" : "false";
  else if (t.dtype == DType::kUInt64)
    out_ += std::to_string(static_cast<uint64_t>(n.value));
  else
    out_ += std::to_string(n.value);
  if (t.dtype != DType::kInt64 && t.dtype != DType::kBool) out_ += ":" + std::string(name(t.dtype));
}
void Printer::print(const FloatImm& n, ScalarType t, int) {
  out_ += float_to_text(n.value, t.dtype);
  if (t.dtype != DType::kFloat32) out_ += ":" + std::string(name(t.dtype));
}
void Printer::print(const VarNode& n, ScalarType, int) { out_ += name_to_text(n.name); }
void Printer::call(std::string_view function, std::initializer_list<const Expr*> arguments) {
  out_ += function;
  out_ += "(";
  bool first = true;
  for (const Expr* e : arguments) {
    if (!first) out_ += ", ";
    first = false;
    expr(*e);
  }
  out_ += ")";
}
void Printer::print(const Cast& n, ScalarType t, int) { call(name(t.dtype), {&n.value}); }
void Printer::print(const Bitcast& n, ScalarType t, int) {
  out_ += "bitcast(" + std::string(name(t.dtype)) + ", ";
  expr(n.value);
  out_ += ")";
}
void Printer::print(const Unary& n, ScalarType, int around) {
  // "-3" is an immediate.
  const bool sign = n.op == UnaryOp::kNeg && n.value && n.value.kind() != NodeKind::kIntImm &&
                    n.value.kind() != NodeKind::kFloatImm;
  if (!sign) return call(name(n.op), {&n.value});
  if (around > kUnaryPrecedence) out_ += "(";
  out_ += "-";
  expr(n.value, kUnaryPrecedence + 1);
  if (around > kUnaryPrecedence) out_ += ")";
}
void Printer::print(const Binary& n, ScalarType, int around) {
  const int p = precedence(n.op);
  if (!p) return call(name(n.op), {&n.a, &n.b});
  if (p < around) out_ += "(";
  expr(n.a, p == kComparisonPrecedence ? p + 1 : p);
  out_ += " " + std::string(name(n.op)) + " ";
  expr(n.b, p + 1);
  if (p < around) out_ += ")";
}
void Printer::print(const Select& n, ScalarType, int) {
  call("select", {&n.condition, &n.a, &n.b});
}
void Printer::print(const Load& n, ScalarType, int) {
  access(n.buffer, n.indices, n.mask);
  if (n.ahead) out_ += " ahead(" + std::to_string(n.ahead) + ")";
}
void Printer::print(const Ramp& n, ScalarType t, int) {
  call("ramp", {&n.base, &n.stride});
  out_.back() = ',';
  out_ += " " + std::to_string(t.lanes) + ")";
}
void Printer::print(const Broadcast& n, ScalarType t, int) {
  call("broadcast", {&n.value});
  out_.back() = ',';
  out_ += " " + std::to_string(t.lanes) + ")";
}
void Printer::print(const ReduceLanes& n, ScalarType, int) {
  out_ += "reduce_lanes(" + std::string(name(n.op)) + ", ";
  expr(n.value);
  out_ += ")";
}
void Printer::print(const Dot& n, ScalarType, int) { call("dot", {&n.sum, &n.a, &n.b}); }
void Printer::print(const EveryLane& n, ScalarType, int) {
  call("every", {&n.value});
  out_.back() = ',';
  out_ += " " + std::to_string(n.first) + ", " + std::to_string(n.step) + ")";
}
void Printer::print(const Interleave& n, ScalarType, int) {
  out_ += "interleave(";
  for (size_t i = 0; i < n.parts.size(); ++i) {
    if (i) out_ += ", ";
    expr(n.parts[i]);
  }
  out_ += ")";
}
void Printer::access(const Buffer& b, const std::vector<Expr>& indices, const Expr& mask) {
  out_ += b ? names_.of(b) : "<missing>";
  out_ += "[";
  for (size_t i = 0; i < indices.size(); ++i) {
    if (i) out_ += ", ";
    expr(indices[i]);
  }
  if (mask) {
    out_ += " where ";
    expr(mask);
  }
  out_ += "]";
}

// Statements that hold to the end of the braces around them are put into braces of their own unless
// they come last.
bool holds_to_the_end(const Stmt& s) { return s.as<Let>() || s.as<Allocate>(); }

void Printer::body(const Stmt& s) {
  const auto* list = s ? s.as<Seq>() : nullptr;
  if (!list || list->stmts.size() == 1) return stmt(s);
  for (size_t i = 0; i < list->stmts.size(); ++i) {
    const Stmt& x = list->stmts[i];
    if (!x || !holds_to_the_end(x) || i + 1 == list->stmts.size()) {
      stmt(x);
      continue;
    }
    line();
    nested(x);
    out_ += "\n";
  }
}
void Printer::stmt(const Stmt& s) {
  if (s) return dispatch(s, [&](const auto& n) { print(n); });
  line();
  out_ += "<missing>\n";
}
void Printer::print(const Store& n) {
  line();
  access(n.buffer, n.indices, n.mask);
  out_ += " = ";
  expr(n.value);
  if (n.store_kind == StoreKind::kStreamed) out_ += " streamed";
  out_ += "\n";
}
// dot_tile(acc[0, 32], x[i * 64, 64], w[0, 128], 16, 16, 16)
void Printer::print(const DotTile& n) {
  line();
  out_ += "dot_tile(";
  for (const TileOperand* x : {&n.sum, &n.a, &n.b}) {
    if (x != &n.sum) out_ += ", ";
    access(x->buffer, {x->index, x->stride}, nullptr);
  }
  out_ += ", " + std::to_string(n.rows) + ", " + std::to_string(n.columns) + ", " +
          std::to_string(n.groups) + ")\n";
}
// prefetch(A[i * 64 + 64], near)
void Printer::print(const Prefetch& n) {
  line();
  out_ += "prefetch(";
  access(n.buffer, {n.offset}, nullptr);
  out_ += ", " + std::string(name(n.prefetch_kind)) + ")\n";
}
void Printer::typed_name(const Expr& var) {
  out_ += var ? names_.of(var) : "<missing>";
  if (var && !(var.type() == ScalarType{})) out_ += ": " + to_text(var.type());
}
void Printer::print(const Let& n) {
  line();
  out_ += "let ";
  typed_name(n.var);
  out_ += " = ";
  expr(n.value);
  out_ += "\n";
  body(n.body);
}
void Printer::print(const For& n) {
  line();
  out_ += "for ";
  typed_name(n.var);
  out_ += " in 0..";
  expr(n.extent);
  out_ += " ";
  if (n.loop_kind != LoopKind::kSerial) out_ += std::string(name(n.loop_kind)) + " ";
  nested(n.body);
  out_ += "\n";
}
void Printer::print(const While& n) {
  line();
  out_ += "while ";
  expr(n.condition);
  out_ += " ";
  nested(n.body);
  out_ += "\n";
}
void Printer::print(const If& n) {
  line();
  out_ += "if ";
  expr(n.condition);
  out_ += " ";
  nested(n.then);
  if (n.otherwise) {
    out_ += " else ";
    nested(n.otherwise);
  }
  out_ += "\n";
}
void Printer::print(const Seq& n) {  // inside another Seq, or of one statement
  line();
  out_ += "{\n";
  ++indent_;
  for (const Stmt& x : n.stmts) {
    if (!x || !holds_to_the_end(x)) {
      stmt(x);
      continue;
    }
    line();
    nested(x);
    out_ += "\n";
  }
  --indent_;
  line();
  out_ += "}\n";
}
void Printer::declare(const Buffer& b) {
  if (!b) {
    out_ += "<missing>";
    return;
  }
  out_ += names_.of(b) + ": " + std::string(name(b->dtype)) + "[";
  for (size_t i = 0; i < b->shape.size(); ++i) {
    if (i) out_ += ", ";
    expr(b->shape[i]);
  }
  out_ += "]";
  if (!b->layout.empty()) out_ += " " + to_text(b->layout);
}
void Printer::print(const Allocate& n) {
  line();
  out_ += std::string(name(n.buffer ? n.buffer->scope : Scope::kWorkspace)) + " ";
  declare(n.buffer);
  if (n.offset) {
    out_ += " at ";
    expr(n.offset);
  }
  out_ += "\n";
  body(n.body);
}
void Printer::print(const Block& n) {
  line();
  out_ += "block " + quoted(n.name, '"') + " (";
  for (size_t i = 0; i < n.axes.size(); ++i) {
    const BlockAxis& a = n.axes[i];
    if (i) out_ += ", ";
    typed_name(a.var);
    out_ += a.var && a.var.type() == ScalarType{} ? ": " : " ";
    out_ += std::string(name(a.kind)) + " ";
    expr(a.extent);
    out_ += " = ";
    expr(n.bindings[i]);
  }
  out_ += ") ";
  if (n.predicate) {
    out_ += "where (";
    expr(n.predicate);
    out_ += ") ";
  }
  if (n.init) {
    out_ += "init ";
    nested(n.init);
    out_ += " body ";
  }
  nested(n.body);
  out_ += "\n";
}

void Printer::kernel(const Kernel& k) {
  out_ += "kernel " + name_to_text(k.name) + "(";
  for (const Var& v : k.scalars) names_.of(v);
  for (size_t i = 0; i < k.params.size(); ++i) {
    if (i) out_ += ", ";
    declare(k.params[i]);
  }
  out_ += ") ";
  if (!k.scalars.empty()) {
    out_ += "scalars(";
    for (size_t i = 0; i < k.scalars.size(); ++i) {
      if (i) out_ += ", ";
      typed_name(k.scalars[i]);
    }
    out_ += ") ";
  }
  if (k.exact) out_ += "exact ";
  if (k.team) out_ += "team ";
  for (const auto& [who, bytes] :
       {std::pair{"call", &k.workspace.call}, std::pair{"worker", &k.workspace.worker}}) {
    if (is_zero(*bytes)) continue;
    call(std::string(who) + "_workspace", {bytes});
    out_ += " ";
  }
  nested(k.body);
  out_ += "\n";
}

}  // namespace

std::string to_text(const Expr& e, NameTable& names) {
  Printer p(names);
  p.expr(e);
  return p.take();
}
std::string to_text(const Expr& e) {
  NameTable names;
  return to_text(e, names);
}
std::string to_text(const Stmt& s) {
  NameTable names;
  Printer p(names);
  p.body(s);
  return p.take();
}
std::string to_text(const Kernel& k) {
  NameTable names;
  Printer p(names);
  p.kernel(k);
  return p.take();
}

}  // namespace tilewright::ir
