// Walking and rebuilding the loop IR, written once over the field lists of nodes.h. Unchanged means
// the same pointer.
#pragma once

#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "ir/loops/nodes.h"

namespace tilewright::ir {

// Calls f(node) with the node's own type, e.g. `dispatch(e, [](const auto& n) { ... })`. The cases
// are those of nodes.def: an f that cannot take a node does not compile.
template <typename F>
decltype(auto) dispatch(const Expr& e, F&& f) {
  using Var = VarNode;  // the struct of each kind has its name, but that `Var` is the handle
  switch (e.kind()) {
#define TW_EXPR(Kind) \
  case NodeKind::k##Kind: return f(*e.as<Kind>());
#define TW_STMT(Kind) \
  case NodeKind::k##Kind: break;
#include "ir/loops/nodes.def"
  }
  check_failed("an expression kind", __FILE__, __LINE__);
}
template <typename F>
decltype(auto) dispatch(const Stmt& s, F&& f) {
  switch (s.kind()) {
#define TW_EXPR(Kind) \
  case NodeKind::k##Kind: break;
#define TW_STMT(Kind) \
  case NodeKind::k##Kind: return f(*s.as<Kind>());
#include "ir/loops/nodes.def"
  }
  check_failed("a statement kind", __FILE__, __LINE__);
}

// The fields of a node without changing it: f(name, value).
template <typename Node, typename F>
void const_fields(const Node& node, F&& f) {
  const_cast<Node&>(node).fields([&](const char* field, const auto& value) { f(field, value); });
}

// Visits every node below; override a `visit` and call the base to go on downwards.
class Visitor {
 public:
  virtual ~Visitor() = default;
  // Children first to last, depth first; shared expressions are visited each time.
  virtual void visit(const Expr& e);
  virtual void visit(const Stmt& s);

 protected:
  virtual void visit(const Buffer&) {}
};

// Rebuilds nodes whose children change; override a `rewrite` and call the base to go on downwards.
// Expressions shared within one statement are rewritten once.
class Rewriter {
 public:
  virtual ~Rewriter() = default;
  // Post-order where not overridden: children first, then a new node if one of them is new.
  virtual Expr rewrite(const Expr& e);
  virtual Stmt rewrite(const Stmt& s);

 protected:
  virtual Buffer rewrite(const Buffer& b) { return b; }
  virtual Var define(const Var& v) { return v; }  // the variable of a For, Let or block axis
  void forget() { memo_.clear(); }

 private:
  template <typename Node>
  bool rewrite_fields(Node& copy);
  std::unordered_map<const ExprNode*, std::pair<Expr, Expr>> memo_;
};

// By variable: what stands in its place, of the same type. Definitions stay: a variable that is
// bound inside is not to be listed.
using VarMap = std::unordered_map<const ExprNode*, Expr>;
Expr substitute(const Expr& e, const VarMap& values);
Stmt substitute(const Stmt& s, const VarMap& values);
// By buffer: the one to access instead, with as many dimensions.
using BufferMap = std::unordered_map<const BufferNode*, Buffer>;
Stmt replace_buffers(const Stmt& s, const BufferMap& buffers);

// A copy in which every bound variable (For, Let, block axis) and allocated buffer is new.
Stmt clone_with_fresh_names(const Stmt& s, const std::string& suffix);

// Walks over all nodes below, and facts that follow from one walk.
void for_each_expr(const Stmt& s,
                   const std::function<void(const Expr&)>& f);  // each node once, parents first
void for_each_expr(const Expr& e, const std::function<void(const Expr&)>& f);
void for_each_stmt(const Stmt& s, const std::function<void(const Stmt&)>& f);
bool uses_var(const Expr& e, const Var& v);
// Nodes of the expression written out, where shared ones count each time and a load of `buffer` (may
// be null) counts as `weight`.
double tree_size(const Expr& e, const BufferNode* buffer = nullptr, double weight = 0);
std::unordered_set<const ExprNode*> free_vars(const Stmt& s);
std::vector<Var> free_vars_in_order(const Expr& e);

}  // namespace tilewright::ir
