// Walking and rebuilding the loop IR, written once over the field lists of nodes.h. Unchanged means
// the same pointer.
#pragma once

#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "ir/loops/nodes.h"

namespace tilewright::ir {

// Calls f(node) with the node's own type, e.g. `dispatch(e, [](const auto& n) { ... })`.
template <typename F>
decltype(auto) dispatch(const Expr& e, F&& f) {
  switch (e.kind()) {
    case NodeKind::kIntImm: return f(*e.as<IntImm>());
    case NodeKind::kFloatImm: return f(*e.as<FloatImm>());
    case NodeKind::kVar: return f(*e.as<VarNode>());
    case NodeKind::kCast: return f(*e.as<Cast>());
    case NodeKind::kBitcast: return f(*e.as<Bitcast>());
    case NodeKind::kUnary: return f(*e.as<Unary>());
    case NodeKind::kBinary: return f(*e.as<Binary>());
    case NodeKind::kSelect: return f(*e.as<Select>());
    case NodeKind::kLoad: return f(*e.as<Load>());
    case NodeKind::kRamp: return f(*e.as<Ramp>());
    case NodeKind::kBroadcast: return f(*e.as<Broadcast>());
    case NodeKind::kReduceLanes: return f(*e.as<ReduceLanes>());
    case NodeKind::kDot: return f(*e.as<Dot>());
    case NodeKind::kEveryLane: return f(*e.as<EveryLane>());
    case NodeKind::kInterleave: return f(*e.as<Interleave>());
    default: break;
  }
  check_failed("an expression kind", __FILE__, __LINE__);
}
template <typename F>
decltype(auto) dispatch(const Stmt& s, F&& f) {
  switch (s.kind()) {
    case NodeKind::kStore: return f(*s.as<Store>());
    case NodeKind::kDotTile: return f(*s.as<DotTile>());
    case NodeKind::kLet: return f(*s.as<Let>());
    case NodeKind::kFor: return f(*s.as<For>());
    case NodeKind::kWhile: return f(*s.as<While>());
    case NodeKind::kIf: return f(*s.as<If>());
    case NodeKind::kSeq: return f(*s.as<Seq>());
    case NodeKind::kAllocate: return f(*s.as<Allocate>());
    case NodeKind::kBlock: return f(*s.as<Block>());
    default: break;
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

using VarMap = std::unordered_map<const ExprNode*, Expr>;
Expr substitute(const Expr& e, const VarMap& values);
Stmt substitute(const Stmt& s, const VarMap& values);
using BufferMap = std::unordered_map<const BufferNode*, Buffer>;
Stmt replace_buffers(const Stmt& s, const BufferMap& buffers);

// A copy in which every bound variable (For, Let, block axis) and allocated buffer is new.
Stmt clone_with_fresh_names(const Stmt& s, const std::string& suffix);

void for_each_expr(const Stmt& s,
                   const std::function<void(const Expr&)>& f);  // each node once, parents first
void for_each_expr(const Expr& e, const std::function<void(const Expr&)>& f);
void for_each_stmt(const Stmt& s, const std::function<void(const Stmt&)>& f);
bool uses_var(const Expr& e, const Var& v);
std::unordered_set<const ExprNode*> free_vars(const Stmt& s);
std::vector<Var> free_vars_in_order(const Expr& e);

}  // namespace tilewright::ir
