#include "passes/build_loops.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/graph/compute.h"
#include "ir/graph/infer.h"
#include "ir/graph/op.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "passes/close_accesses.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// From a group of graph operators to one kernel: each operator's `compute` appends its blocks to
// one builder, intermediate values become workspace buffers, and values that lie in another
// (aliases) are accessed there. What is fused by this is memory only; loops fuse when schedules
// inline and move blocks.
// Loads of one-element constants become immediates.
class InlineScalars : public Rewriter {
 public:
  explicit InlineScalars(const std::map<const BufferNode*, Expr>& scalars) : scalars_(scalars) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    if (const auto* l = e.as<Load>())
      if (auto it = scalars_.find(l->buffer.get()); it != scalars_.end()) return it->second;
    Expr inside = Rewriter::rewrite(e);
    // Without a zero point nothing is added: integers have no sign of zero that it would change.
    const auto* c = inside.as<Cast>();
    const auto* sum = c && !is_float(c->type.dtype) ? c->value.as<Binary>() : nullptr;
    const auto* zero = sum && sum->op == BinaryOp::kAdd ? sum->b.as<FloatImm>() : nullptr;
    return zero && zero->value == 0 ? cast(c->type.dtype, sum->a) : inside;
  }

 private:
  const std::map<const BufferNode*, Expr>& scalars_;
};

// What reads and writes a value that lies in another reads and writes the other.
struct Placed {
  Buffer whole;
  const Placement* place;
};
class OpenAliases : public Rewriter {
 public:
  explicit OpenAliases(const std::map<const BufferNode*, Placed>& placed) : placed_(placed) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    Expr inside = Rewriter::rewrite(e);
    const auto* l = inside.as<Load>();
    const auto it = l ? placed_.find(l->buffer.get()) : placed_.end();
    return it == placed_.end() ? inside : load(it->second.whole, at(it->second, l->indices));
  }
  Stmt rewrite(const Stmt& s) override {
    Stmt inside = Rewriter::rewrite(s);
    const auto* st = inside.as<Store>();
    const auto it = st ? placed_.find(st->buffer.get()) : placed_.end();
    return it == placed_.end() ? inside
                               : store(it->second.whole, at(it->second, st->indices), st->value);
  }

 private:
  static std::vector<Expr> at(const Placed& p, const std::vector<Expr>& indices) {
    std::vector<Expr> moved = p.place->indices(indices);
    for (Expr& e : moved) e = simplify(e);
    return moved;
  }
  const std::map<const BufferNode*, Placed>& placed_;
};

Expr scalar_constant(const Value& v) {
  if (!v.constant || tilewright::element_count(v.constant->shape) != 1) return nullptr;
  if (v.type.dtype == DType::kUInt64) return nullptr;
  return is_float(v.type.dtype) ? float_imm(number_at(*v.constant, 0), v.type.dtype)
                                : int_imm(integer_at(*v.constant, 0), v.type.dtype);
}

// Scalars of the kernel: every variable that is named and not bound.
std::vector<Var> kernel_scalars(const Kernel& k) {
  std::vector<Var> scalars;
  const auto free = free_vars(k.body);
  std::set<const ExprNode*> seen;
  auto add = [&](const Expr& e) {
    for (const Var& v : free_vars_in_order(e))
      if (seen.insert(v.get()).second) scalars.push_back(v);
  };
  for_each_expr(k.body, [&](const Expr& e) {
    if (e.kind() == NodeKind::kVar && free.count(e.get())) add(e);
    if (const auto* l = e.as<Load>())
      for (const Expr& d : l->buffer->shape) add(d);
  });
  for_each_stmt(k.body, [&](const Stmt& s) {
    if (const auto* a = s.as<Allocate>())
      for (const Expr& d : a->buffer->shape) add(d);
    if (const auto* st = s.as<Store>())
      for (const Expr& d : st->buffer->shape) add(d);
  });
  for (const Buffer& b : k.params)
    for (const Expr& d : b->shape) add(d);
  return scalars;
}

class GroupBuilder {
 public:
  GroupBuilder(const Graph& graph, const std::vector<size_t>& nodes, const std::vector<int>& uses,
               const Aliases& aliases, const std::set<ValueId>& apart = {})
      : graph_(graph), nodes_(nodes), uses_(uses), aliases_(aliases), apart_(apart) {}

  GroupKernel build() {
    count_inner_uses();
    LoopsBuilder& builder = builder_;
    for (size_t n : nodes_) add_node(graph_.nodes[n], builder);
    return finish(builder);
  }

  GroupKernel build_symbols() {
    LoopsBuilder& builder = builder_;
    const Node& node = graph_.nodes[nodes_[0]];
    Buffer out = make_buffer(builder.unique("symbols"), DType::kInt64,
                             {Expr(static_cast<int64_t>(node.defined_symbols.size()))});
    std::vector<Buffer> in;
    for (ValueId v : node.inputs) in.push_back(v == kNone ? nullptr : buffer_for(v));
    ComputeContext context(graph_, node, in, {out}, builder);
    node.op->compute_symbols(context);
    GroupKernel g = finish(builder);
    g.kernel.params.push_back(out);
    g.params.push_back(kNone);
    g.kernel.name += "_symbols";
    return g;
  }

 private:
  void count_inner_uses() {
    for (size_t n : nodes_) {
      for (ValueId v : graph_.nodes[n].inputs)
        if (v != kNone) ++inner_uses_[v];
      for (ValueId v : graph_.nodes[n].outputs) made_here_.insert(v);
    }
  }
  bool escapes(ValueId v) const {
    auto it = inner_uses_.find(v);
    return uses_[static_cast<size_t>(v)] > (it == inner_uses_.end() ? 0 : it->second);
  }
  Buffer buffer_for(ValueId v) {
    auto it = buffers_.find(v);
    if (it != buffers_.end()) return it->second;
    const Value& value = graph_.value(v);
    Buffer b = make_buffer(value.name, value.type.dtype, value.type.dims, Scope::kParam,
                           value.layout);  // named by rename_params
    buffers_[v] = b;
    if (Expr s = scalar_constant(value); s && !apart_.count(v)) scalars_[b.get()] = s;
    if (const auto it = aliases_.find(v); it != aliases_.end() && !it->second.offset) {
      const Value& whole = graph_.value(it->second.in);
      placed_[b.get()] = {
          make_buffer(b->name, whole.type.dtype, whole.type.dims, Scope::kParam, whole.layout),
          &it->second};
    }
    return b;
  }
  // Is v stored as a part of the node's result?
  bool lies_in_place(ValueId v, const Node& n) const {
    const auto it = aliases_.find(v);
    return it != aliases_.end() && it->second.joined == n.outputs[0];
  }
  // Reductions have results of their own shape; the copy into another value is their epilogue.
  bool through_epilogue(const Node& n, ValueId v) const {
    const auto it = aliases_.find(v);
    return it != aliases_.end() && it->second.joined != kNone && !it->second.offset &&
           has_reduction(n.op->fusion);
  }
  void add_node(const Node& node, LoopsBuilder& builder) {
    std::vector<Buffer> in, out;
    for (ValueId v : node.inputs)
      in.push_back(v == kNone || lies_in_place(v, node) ? nullptr : buffer_for(v));
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      ValueId v = node.outputs[k];
      if (v == kNone) {
        out.push_back(nullptr);
        continue;
      }
      if (escapes(v) && !through_epilogue(node, v))
        out.push_back(buffer_for(v));
      else
        out.push_back(buffers_[v] =
                          builder.temp(std::string(node.op->name), graph_.value(v).type.dtype,
                                       graph_.value(v).type.dims, graph_.value(v).layout));
    }
    ComputeContext context(graph_, node, in, out, builder);
    node.op->compute(context);
    for (ValueId v : node.outputs)
      if (v != kNone && escapes(v) && through_epilogue(node, v)) {
        const Buffer result = buffers_[v];
        buffers_.erase(v);
        builder.compute(buffer_for(v), [&](const Axes& i) { return load(result, i); }, "place");
      }
    for (const std::string& s : node.sources)
      if (std::find(sources_.begin(), sources_.end(), s) == sources_.end()) sources_.push_back(s);
  }
  GroupKernel finish(LoopsBuilder& builder) {
    GroupKernel g;
    g.kernel.body = InlineScalars(scalars_).rewrite(builder.finish());
    g.kernel.name = kernel_name();
    g.sources = sources_;
    std::set<const BufferNode*> read, written;
    for_each_expr(g.kernel.body, [&](const Expr& e) {
      if (const auto* l = e.as<Load>()) read.insert(l->buffer.get());
    });
    for_each_stmt(g.kernel.body, [&](const Stmt& s) {
      if (const auto* st = s.as<Store>()) written.insert(st->buffer.get());
    });
    for (size_t n : nodes_)
      for (ValueId v : graph_.nodes[n].inputs)
        add_param(g, v,
                  [&](const Buffer& b) { return read.count(b.get()) && !made_here_.count(v); });
    g.num_inputs = g.params.size();
    for (size_t n : nodes_)
      for (ValueId v : graph_.nodes[n].outputs)
        add_param(g, v, [&](const Buffer& b) {
          // What lies in another value may be written elsewhere; of an empty result nothing is.
          return b->scope == Scope::kParam && (written.count(b.get()) || !aliases_.count(v));
        });
    g.kernel.body = OpenAliases(placed_).rewrite(g.kernel.body);
    for (Buffer& b : g.kernel.params)
      if (const auto it = placed_.find(b.get()); it != placed_.end()) b = it->second.whole;
    rename_params(g);
    close_accesses(g);
    g.kernel.scalars = kernel_scalars(g.kernel);
    return g;
  }
  // What the model calls its values has no say in a kernel's schedule, nor in whether two kernels
  // are one.
  static void rename_params(GroupKernel& g) {
    BufferMap named;
    for (size_t p = 0; p < g.kernel.params.size(); ++p) {
      BufferNode b = *g.kernel.params[p];
      b.name =
          p < g.num_inputs ? "in" + std::to_string(p) : "out" + std::to_string(p - g.num_inputs);
      const BufferNode* before = g.kernel.params[p].get();
      named[before] = g.kernel.params[p] = std::make_shared<const BufferNode>(std::move(b));
    }
    g.kernel.body = replace_buffers(g.kernel.body, named);
  }
  // "resize 'y': dimension 0 of 'roi'": the node that takes the operand, or that gives the result.
  std::string name_of(const GroupKernel& g, const OpenAccess& a) const {
    const auto p = std::find(g.kernel.params.begin(), g.kernel.params.end(), a.buffer);
    const auto k = static_cast<size_t>(p - g.kernel.params.begin());
    const ValueId v = k < g.params.size() ? g.params[k] : kNone;
    size_t node = nodes_.back();
    for (size_t n : nodes_) {
      const Node& candidate = graph_.nodes[n];
      const auto& values = k < g.num_inputs ? candidate.inputs : candidate.outputs;
      if (v == kNone || std::find(values.begin(), values.end(), v) == values.end()) continue;
      node = n;
      break;
    }
    return describe(graph_.nodes[node]) + ": dimension " + std::to_string(a.dim) + " of '" +
           (v == kNone ? a.buffer->name : graph_.value(v).name) + "'";
  }
  // No access of a parameter is left that may lie outside of it.
  void close_accesses(GroupKernel& g) const {
    std::vector<CheckedElements> checked;
    for (size_t n : nodes_) {
      const Node& node = graph_.nodes[n];
      for (Requirement& r : requirements_of(graph_, node)) g.requirements.push_back(std::move(r));
      const auto k = static_cast<size_t>(node.op->index_operand);
      if (!node.op->indexed_dims || k >= node.inputs.size() || node.inputs[k] == kNone) continue;
      const auto p = std::find(g.params.begin(), g.params.end(), node.inputs[k]);
      std::vector<IndexedDim> dims = node.op->indexed_dims(NodeView(graph_, node));
      if (p != g.params.end() && !dims.empty())
        checked.push_back(
            {g.kernel.params[static_cast<size_t>(p - g.params.begin())], std::move(dims)});
    }
    std::vector<Requirement> known = g.requirements;
    known.insert(known.end(), graph_.requirements.begin(), graph_.requirements.end());
    ClosedKernel closed = passes::close_accesses(
        g.kernel, checked, known, [&](const OpenAccess& a) { return name_of(g, a); });
    g.kernel.body = std::move(closed.body);
    g.guards = closed.guards;
    std::move(closed.requirements.begin(), closed.requirements.end(),
              std::back_inserter(g.requirements));
  }
  template <typename Wanted>
  void add_param(GroupKernel& g, ValueId v, Wanted wanted) {
    if (v == kNone || !buffers_.count(v) || !wanted(buffers_[v])) return;
    if (std::find(g.params.begin(), g.params.end(), v) != g.params.end()) return;
    g.params.push_back(v);
    g.kernel.params.push_back(buffers_[v]);
  }
  std::string kernel_name() const {
    std::string name;
    size_t shown = 0;
    for (size_t n : nodes_) {
      if (++shown > 4) {
        name += "_etc";
        break;
      }
      name += (name.empty() ? "" : "_") + std::string(graph_.nodes[n].op->name);
    }
    return name;
  }

  const Graph& graph_;
  const std::vector<size_t>& nodes_;
  const std::vector<int>& uses_;
  const Aliases& aliases_;
  const std::set<ValueId> apart_;
  LoopsBuilder builder_;
  std::map<ValueId, int> inner_uses_;
  std::set<ValueId> made_here_;
  std::map<ValueId, Buffer> buffers_;
  std::map<const BufferNode*, Expr> scalars_;
  std::map<const BufferNode*, Placed> placed_;
  std::vector<std::string> sources_;
};

}  // namespace

GroupKernel build_group_kernel(const Graph& graph, const std::vector<size_t>& nodes,
                               const std::vector<int>& uses, const Aliases& aliases,
                               const std::set<ValueId>& apart) {
  return GroupBuilder(graph, nodes, uses, aliases, apart).build();
}
GroupKernel build_symbol_kernel(const Graph& graph, size_t node, const Aliases& aliases) {
  const std::vector<size_t> nodes{node};
  const std::vector<int> uses;
  return GroupBuilder(graph, nodes, uses, aliases).build_symbols();
}

}  // namespace tilewright::passes
