#include "ir/loops/rewrite.h"

namespace tilewright::ir {

namespace {

// Applies a visitor to one field of any type; other fields (names, numbers, enums) are passed over.
template <typename V>
struct VisitField {
  V& v;
  void operator()(const char*, const Expr& e) const {
    if (e) v.visit(e);
  }
  void operator()(const char*, const Var& e) const { v.visit(static_cast<const Expr&>(e)); }
  void operator()(const char*, const Stmt& s) const {
    if (s) v.visit(s);
  }
  void operator()(const char*, const std::vector<Expr>& es) const {
    for (const Expr& e : es) v.visit(e);
  }
  void operator()(const char*, const std::vector<Stmt>& ss) const {
    for (const Stmt& s : ss) v.visit(s);
  }
  void operator()(const char*, const std::vector<BlockAxis>& axes) const {
    for (const BlockAxis& a : axes) v.visit(a.extent);
  }
  void operator()(const char*, const Buffer& b) const { v.visit_buffer(b); }
  template <typename T>
  void operator()(const char*, const T&) const {}
};

}  // namespace

void Visitor::visit(const Expr& e) {
  struct Access {
    Visitor& self;
    void visit(const Expr& x) { self.visit(x); }
    void visit(const Stmt& x) { self.visit(x); }
    void visit_buffer(const Buffer& b) { self.visit(b); }
  } access{*this};
  dispatch(e, [&](const auto& n) { const_fields(n, VisitField<Access>{access}); });
}
void Visitor::visit(const Stmt& s) {
  struct Access {
    Visitor& self;
    void visit(const Expr& x) { self.visit(x); }
    void visit(const Stmt& x) { self.visit(x); }
    void visit_buffer(const Buffer& b) { self.visit(b); }
  } access{*this};
  dispatch(s, [&](const auto& n) {
    using Node = std::decay_t<decltype(n)>;
    if constexpr (std::is_same_v<Node, Let> || std::is_same_v<Node, For>) {
      if constexpr (std::is_same_v<Node, Let>)
        visit(n.value);
      else
        visit(n.extent);
      visit(n.body);
    } else {
      const_fields(n, VisitField<Access>{access});
    }
  });
}

template <typename Node>
bool Rewriter::rewrite_fields(Node& copy) {
  bool changed = false;
  auto on = [&](auto& field, auto value, bool same) {
    if (!same) {
      field = std::move(value);
      changed = true;
    }
  };
  copy.fields([&](const char* field_name, auto& field) {
    using T = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<T, Var>) {
      Var v = define(field);
      on(field, v, v.same_as(field));
    } else if constexpr (std::is_same_v<T, Expr> || std::is_same_v<T, Stmt>) {
      if (!field) return;
      T r = rewrite(field);
      on(field, r, r.same_as(field));
    } else if constexpr (std::is_same_v<T, std::vector<Expr>> ||
                         std::is_same_v<T, std::vector<Stmt>>) {
      for (auto& x : field) {
        auto r = rewrite(x);
        on(x, r, r.same_as(x));
      }
    } else if constexpr (std::is_same_v<T, std::vector<BlockAxis>>) {
      for (BlockAxis& a : field) {
        Var v = define(a.var);
        on(a.var, v, v.same_as(a.var));
        Expr e = rewrite(a.extent);
        on(a.extent, e, e.same_as(a.extent));
      }
    } else if constexpr (std::is_same_v<T, Buffer>) {
      Buffer b = rewrite(field);
      on(field, b, b == field);
    }
    (void)field_name;
  });
  return changed;
}

namespace {
// The lanes of a rebuilt node follow its children: vectorising replaces scalars below by vectors.
template <typename Node>
void fit_lanes(Node& n) {
  if constexpr (std::is_same_v<Node, Cast> || std::is_same_v<Node, Bitcast> ||
                std::is_same_v<Node, Unary>) {
    n.type.lanes = n.value.lanes();
  } else if constexpr (std::is_same_v<Node, Load>) {
    n.type.dtype = n.buffer->dtype;
    for (const Expr& i : n.indices) n.type.lanes = std::max(n.type.lanes, i.lanes());
  }
}
}  // namespace

// Nodes with a maker are made anew, so that what folds, folds. The memo keeps the key alive: an
// address may not be used again while it stands there.
Expr Rewriter::rewrite(const Expr& e) {
  if (e.kind() == NodeKind::kVar || e.kind() == NodeKind::kIntImm ||
      e.kind() == NodeKind::kFloatImm)
    return e;
  if (auto it = memo_.find(e.get()); it != memo_.end()) return it->second.second;
  Expr result = dispatch(e, [&](const auto& n) -> Expr {
    using Node = std::decay_t<decltype(n)>;
    auto copy = std::make_shared<Node>(n);
    if (!rewrite_fields(*copy)) return e;
    if constexpr (std::is_same_v<Node, Binary>)
      return binary(copy->op, copy->a, copy->b);
    else if constexpr (std::is_same_v<Node, Select>)
      return select(copy->condition, copy->a, copy->b);
    else if constexpr (std::is_same_v<Node, Cast>)
      return cast(copy->type.dtype, copy->value);
    else if constexpr (std::is_same_v<Node, Unary>)
      return unary(copy->op, copy->value);
    else if constexpr (std::is_same_v<Node, Broadcast>)
      return broadcast(copy->value, copy->type.lanes);
    else {
      fit_lanes(*copy);
      return std::shared_ptr<const Node>(std::move(copy));
    }
  });
  memo_.emplace(e.get(), std::pair{e, result});
  return result;
}

Stmt Rewriter::rewrite(const Stmt& s) {
  forget();
  return dispatch(s, [&](const auto& n) -> Stmt {
    using Node = std::decay_t<decltype(n)>;
    auto copy = std::make_shared<Node>(n);
    if (!rewrite_fields(*copy)) return s;
    if constexpr (std::is_same_v<Node, Seq>)
      return seq(copy->stmts);
    else
      return std::shared_ptr<const Node>(std::move(copy));
  });
}

namespace {

class Substitute : public Rewriter {
 public:
  explicit Substitute(const VarMap& values) : values_(values) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    if (e.kind() == NodeKind::kVar) {
      auto it = values_.find(e.get());
      return it == values_.end() ? e : it->second;
    }
    return Rewriter::rewrite(e);
  }

 private:
  const VarMap& values_;
};

class ReplaceBuffers : public Rewriter {
 public:
  explicit ReplaceBuffers(const BufferMap& buffers) : buffers_(buffers) {}

 protected:
  Buffer rewrite(const Buffer& b) override {
    auto it = buffers_.find(b.get());
    return it == buffers_.end() ? b : it->second;
  }
  using Rewriter::rewrite;

 private:
  const BufferMap& buffers_;
};

// Alpha renaming: code that is copied (unrolled, peeled) must not bind a variable twice.
class FreshNames : public Rewriter {
 public:
  explicit FreshNames(std::string suffix) : suffix_(std::move(suffix)) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    if (e.kind() != NodeKind::kVar) return Rewriter::rewrite(e);
    auto it = vars_.find(e.get());
    return it == vars_.end() ? e : it->second;
  }
  Stmt rewrite(const Stmt& s) override {
    if (const auto* a = s.as<Allocate>()) {
      auto b = std::make_shared<BufferNode>(*a->buffer);
      b->name += suffix_;
      for (Expr& e : b->shape) e = rewrite(e);
      buffers_[a->buffer.get()] = b;
    }
    return Rewriter::rewrite(s);
  }

 protected:
  Var define(const Var& v) override {
    Var fresh(v.name() + suffix_, v.type());
    vars_[v.get()] = fresh;
    return fresh;
  }
  Buffer rewrite(const Buffer& b) override {
    auto it = buffers_.find(b.get());
    return it == buffers_.end() ? b : it->second;
  }

 private:
  std::string suffix_;
  VarMap vars_;
  BufferMap buffers_;
};

class EachNode : public Visitor {
 public:
  EachNode(const std::function<void(const Expr&)>* on_expr,
           const std::function<void(const Stmt&)>* on_stmt)
      : on_expr_(on_expr), on_stmt_(on_stmt) {}
  void visit(const Expr& e) override {
    if (!seen_.insert(e.get()).second)
      return;  // shared: inlining makes expressions with far more paths than nodes
    if (!on_expr_) return;
    (*on_expr_)(e);
    Visitor::visit(e);
  }
  void visit(const Stmt& s) override {
    if (on_stmt_) (*on_stmt_)(s);
    Visitor::visit(s);
  }
  using Visitor::visit;

 private:
  const std::function<void(const Expr&)>* on_expr_;
  std::unordered_set<const ExprNode*> seen_;
  const std::function<void(const Stmt&)>* on_stmt_;
};

}  // namespace

Expr substitute(const Expr& e, const VarMap& values) { return Substitute(values).rewrite(e); }
Stmt substitute(const Stmt& s, const VarMap& values) { return Substitute(values).rewrite(s); }
Stmt replace_buffers(const Stmt& s, const BufferMap& buffers) {
  ReplaceBuffers r(buffers);
  return static_cast<Rewriter&>(r).rewrite(s);
}
Stmt clone_with_fresh_names(const Stmt& s, const std::string& suffix) {
  return FreshNames(suffix).rewrite(s);
}

void for_each_expr(const Stmt& s, const std::function<void(const Expr&)>& f) {
  EachNode(&f, nullptr).visit(s);
}
void for_each_expr(const Expr& e, const std::function<void(const Expr&)>& f) {
  EachNode(&f, nullptr).visit(e);
}
void for_each_stmt(const Stmt& s, const std::function<void(const Stmt&)>& f) {
  EachNode(nullptr, &f).visit(s);
}

bool uses_var(const Expr& e, const Var& v) {
  if (e.kind() == NodeKind::kVar || e.kind() == NodeKind::kIntImm) return e.same_as(v);
  bool found = false;
  for_each_expr(e, [&](const Expr& x) { found |= x.same_as(v); });
  return found;
}

namespace {
double tree_size(const Expr& e, const BufferNode* buffer, double weight,
                 std::unordered_map<const ExprNode*, double>& seen) {
  if (auto it = seen.find(e.get()); it != seen.end()) return it->second;
  double n = 1;
  const auto* l = e.as<Load>();
  if (l && l->buffer.get() == buffer)
    n = weight;
  else
    dispatch(e, [&](const auto& node) {
      const_fields(node, [&](const char*, const auto& field) {
        using Field = std::decay_t<decltype(field)>;
        if constexpr (std::is_same_v<Field, Expr>) {
          if (field) n += tree_size(field, buffer, weight, seen);
        } else if constexpr (std::is_same_v<Field, std::vector<Expr>>)
          for (const Expr& x : field) n += tree_size(x, buffer, weight, seen);
      });
    });
  return seen[e.get()] = n;
}
}  // namespace

double tree_size(const Expr& e, const BufferNode* buffer, double weight) {
  std::unordered_map<const ExprNode*, double> seen;
  return tree_size(e, buffer, weight, seen);
}

std::unordered_set<const ExprNode*> free_vars(const Stmt& s) {
  std::unordered_set<const ExprNode*> used, bound;
  for_each_expr(s, [&](const Expr& e) {
    if (e.kind() == NodeKind::kVar) used.insert(e.get());
  });
  for_each_stmt(s, [&](const Stmt& x) {
    if (const auto* l = x.as<Let>()) bound.insert(l->var.get());
    if (const auto* l = x.as<For>()) bound.insert(l->var.get());
    if (const auto* b = x.as<Block>())
      for (const BlockAxis& a : b->axes) bound.insert(a.var.get());
  });
  for (const ExprNode* v : bound) used.erase(v);
  return used;
}

std::vector<Var> free_vars_in_order(const Expr& e) {
  std::vector<Var> vars;
  std::unordered_set<const ExprNode*> seen;
  for_each_expr(e, [&](const Expr& x) {
    if (x.kind() == NodeKind::kVar && seen.insert(x.get()).second) vars.push_back(Var(x));
  });
  return vars;
}

}  // namespace tilewright::ir
