#include "passes/plan_program.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/graph/op.h"
#include "ir/loops/compare.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "passes/graph/graph_passes.h"
#include "passes/loops/loop_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kMostDynamicElements = int64_t{1} << 40;

struct Step {
  enum Kind { kKernel, kView, kSymbols } kind = kKernel;
  size_t node = 0;  // the last of its group
  GroupKernel group;
};

class Planner {
 public:
  Planner(const Graph& graph, const LowerKernel& lower) : graph_(graph), lower_(lower), uses_(graph.use_counts()) {}

  Result<Program> run() {
    program_.name = graph_.name;
    collect_steps();
    drop_unused_steps();
    declare_inputs();
    program_.blocks.emplace_back();
    for (Step& s : steps_) TW_RETURN_IF_ERROR(emit(s));
    TW_RETURN_IF_ERROR(declare_outputs());
    set_lifetimes();
    return std::move(program_);
  }

 private:
  void collect_steps() {
    std::map<int32_t, std::vector<size_t>> groups;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) groups[graph_.nodes[i].group].push_back(i);
    for (auto& [id, nodes] : groups) {
      Step s;
      s.node = nodes.back();
      const Node& last = graph_.nodes[s.node];
      if (nodes.size() == 1 && is_view(graph_, last)) {
        s.kind = Step::kView;
        s.group.params = {last.inputs[0], last.outputs[0]};
        s.group.num_inputs = 1;
      } else {
        s.group = build_group_kernel(graph_, nodes, uses_);
      }
      steps_.push_back(std::move(s));
      for (size_t n : nodes) {
        if (graph_.nodes[n].defined_symbols.empty()) continue;
        Step symbols;
        symbols.kind = Step::kSymbols;
        symbols.node = n;
        symbols.group = build_symbol_kernel(graph_, n);
        steps_.insert(steps_.end() - 1, std::move(symbols));
      }
    }
    order_steps();
  }
  // By the graph's order of last nodes, but each step after those whose results or symbols it needs: another group may
  // read the first result of a group that goes on below it.
  void order_steps() {
    std::map<ValueId, size_t> producer;
    std::map<const ExprNode*, size_t> definer;
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& s = steps_[i];
      if (s.kind == Step::kSymbols)
        for (const Var& v : graph_.nodes[s.node].defined_symbols) definer[v.get()] = i;
      else
        for (size_t p = s.group.num_inputs; p < s.group.params.size(); ++p) producer[s.group.params[p]] = i;
    }
    std::vector<std::set<size_t>> needs(steps_.size());
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& s = steps_[i];
      for (size_t p = 0; p < s.group.params.size(); ++p) {
        if (auto it = producer.find(s.group.params[p]); p < s.group.num_inputs && it != producer.end()) needs[i].insert(it->second);
        if (s.group.params[p] == kNone) continue;
        for (const Expr& d : graph_.value(s.group.params[p]).type.dims)
          for (const Var& v : free_vars_in_order(d))
            if (auto it = definer.find(v.get()); it != definer.end()) needs[i].insert(it->second);
      }
    }
    std::vector<Step> ordered;
    auto before = [&](size_t a, size_t b) { return std::pair(steps_[a].node, a) < std::pair(steps_[b].node, b); };
    std::vector<std::vector<size_t>> users(steps_.size());
    std::set<size_t, decltype(before)> ready(before);
    for (size_t i = 0; i < steps_.size(); ++i) {
      needs[i].erase(i);
      for (size_t d : needs[i]) users[d].push_back(i);
      if (needs[i].empty()) ready.insert(i);
    }
    while (!ready.empty()) {
      const size_t i = *ready.begin();
      ready.erase(ready.begin());
      for (size_t u : users[i]) {
        needs[u].erase(i);
        if (needs[u].empty()) ready.insert(u);
      }
      ordered.push_back(std::move(steps_[i]));
    }
    TW_CHECK(ordered.size() == steps_.size());
    steps_ = std::move(ordered);
  }
  // What is read only to infer shapes is not computed.
  void drop_unused_steps() {
    std::set<ValueId> needed(graph_.outputs.begin(), graph_.outputs.end());
    std::set<size_t> needed_nodes;
    std::vector<Step> kept;
    for (size_t i = steps_.size(); i-- > 0;) {
      Step& s = steps_[i];
      bool wanted = s.kind == Step::kSymbols && needed_nodes.count(s.node);
      for (size_t p = s.group.num_inputs; p < s.group.params.size(); ++p) wanted |= needed.count(s.group.params[p]) != 0;
      if (!wanted) continue;
      needed_nodes.insert(s.node);
      for (size_t p = 0; p < s.group.num_inputs; ++p) needed.insert(s.group.params[p]);
      kept.push_back(std::move(s));
    }
    std::reverse(kept.begin(), kept.end());
    steps_ = std::move(kept);
  }

  void declare_inputs() {
    for (ValueId v : graph_.inputs) {
      const int32_t b = buffer(v);
      program_.buffers[static_cast<size_t>(b)].kind = StorageKind::kInput;
      program_.inputs.push_back(b);
      for (const Expr& d : graph_.value(v).type.dims)
        for (const Var& s : free_vars_in_order(d)) add_symbol(s);
    }
  }
  void add_symbol(const Var& s) {
    for (const Var& known : program_.symbols)
      if (known.same_as(s)) return;
    program_.symbols.push_back(s);
  }
  int32_t buffer(ValueId v) { return buffer(v, graph_.value(v).layout); }
  // A constant that kernels want in several layouts is kept in each of them.
  int32_t buffer(ValueId v, const Layout& layout) {
    auto& made = buffers_[v];
    for (int32_t b : made)
      if (program_.buffers[static_cast<size_t>(b)].layout == layout) return b;
    const Value& value = graph_.value(v);
    ProgramBuffer b;
    b.name = value.name.empty() ? "v" + std::to_string(v) : value.name;
    b.type = value.type;
    b.layout = layout;
    b.elements = simplify(storage_elements(BufferNode{b.name, b.type.dtype, b.type.dims, b.layout, Scope::kParam}));
    if (value.constant) {
      b.kind = StorageKind::kConstant;
      b.constant = value.constant;
    }
    for (const Var& s : free_vars_in_order(b.elements)) b.dynamic |= run_symbols_.count(s.get()) != 0;
    const auto id = static_cast<int32_t>(program_.buffers.size());
    program_.buffers.push_back(std::move(b));
    made.push_back(id);
    return id;
  }

  Status emit(Step& s) {
    if (s.kind == Step::kView) {
      const int32_t from = buffer(s.group.params[0]), to = buffer(s.group.params[1]);
      program_.buffers[static_cast<size_t>(to)].alias_of = from;
      program_.buffers[static_cast<size_t>(to)].dynamic = false;
      return {};
    }
    if (s.kind == Step::kSymbols) return emit_symbols(s);
    CallInstruction call;
    TW_RETURN_IF_ERROR(add_call(s, call));
    for (size_t p = 0; p < s.group.params.size(); ++p) {
      const ValueId v = s.group.params[p];
      const Layout& layout = program_.kernels[static_cast<size_t>(call.kernel)].params[p]->layout;
      const int32_t b = graph_.value(v).constant ? buffer(v, layout) : buffer(v);
      if (p >= s.group.num_inputs && program_.buffers[static_cast<size_t>(b)].dynamic) main().push_back(AllocateInstruction{b});
      call.buffers.push_back(b);
    }
    main().push_back(std::move(call));
    return {};
  }
  Status emit_symbols(Step& s) {
    CallInstruction call;
    TW_RETURN_IF_ERROR(add_call(s, call));
    for (size_t p = 0; p < s.group.num_inputs; ++p) call.buffers.push_back(buffer(s.group.params[p]));
    const auto& symbols = graph_.nodes[s.node].defined_symbols;
    ProgramBuffer b;
    b.name = "symbols";
    b.type = {DType::kInt64, {Expr(static_cast<int64_t>(symbols.size()))}};
    b.elements = b.type.dims[0];
    const auto id = static_cast<int32_t>(program_.buffers.size());
    program_.buffers.push_back(b);
    call.buffers.push_back(id);
    main().push_back(std::move(call));
    for (size_t k = 0; k < symbols.size(); ++k) {
      add_symbol(symbols[k]);
      run_symbols_.insert(symbols[k].get());
      main().push_back(DefineSymbolInstruction{symbols[k], id, static_cast<int64_t>(k), kMostDynamicElements});
    }
    return {};
  }
  std::vector<ProgramInstruction>& main() { return program_.blocks[0]; }

  // Kernels that are equal up to names are lowered and compiled once.
  Status add_call(Step& s, CallInstruction& call) {
    GroupKernel& g = s.group;
    for (const Var& v : g.kernel.scalars) call.scalars.push_back(v);
    std::set<std::string> constants;
    std::vector<bool> is_constant;
    for (size_t p = 0; p < g.kernel.params.size(); ++p) {
      const bool known = p < g.params.size() && g.params[p] != kNone && graph_.value(g.params[p]).constant;
      is_constant.push_back(known);
      if (known) constants.insert(g.kernel.params[p]->name);
    }
    const uint64_t hash = structural_hash(g.kernel);
    for (auto [it, end] = by_hash_.equal_range(hash); it != end; ++it) {
      const auto& [source, source_constant] = sources_[static_cast<size_t>(it->second)];
      if (source_constant != is_constant || !structurally_equal(source, g.kernel)) continue;
      call.kernel = it->second;
      add_profile(g, call);
      return {};
    }
    call.kernel = static_cast<int32_t>(program_.kernels.size());
    by_hash_.emplace(hash, call.kernel);
    sources_.emplace_back(g.kernel, is_constant);
    Kernel k = g.kernel;
    k.name = "k" + std::to_string(call.kernel) + "_" + k.name;
    TW_ASSIGN(k, lower_(std::move(k), constants));
    program_.kernels.push_back(std::move(k));
    add_profile(g, call);
    return {};
  }
  void add_profile(const GroupKernel& g, CallInstruction& call) {
    call.profile = static_cast<int32_t>(program_.profile.size());
    Expr bytes = 0;
    for (const Buffer& b : g.kernel.params) {
      Expr n = byte_size(b->dtype);
      for (const Expr& d : b->shape) n = n * d;
      bytes = bytes + n;
    }
    program_.profile.push_back({g.sources, program_.kernels[static_cast<size_t>(call.kernel)].name, count_flops(g.kernel), simplify(bytes)});
  }
  static Expr count_flops(const Kernel& k);

  Status declare_outputs() {
    for (ValueId v : graph_.outputs) {
      const int32_t b = buffer(v);
      ProgramBuffer& p = program_.buffers[static_cast<size_t>(b)];
      if (p.kind == StorageKind::kTemporary && p.alias_of < 0) p.kind = StorageKind::kOutput;
      program_.outputs.push_back(b);
    }
    return {};
  }
  void set_lifetimes() {
    auto root = [&](int32_t b) {
      while (program_.buffers[static_cast<size_t>(b)].alias_of >= 0) b = program_.buffers[static_cast<size_t>(b)].alias_of;
      return static_cast<size_t>(b);
    };
    const auto last = static_cast<int32_t>(main().size());
    std::vector<bool> seen(program_.buffers.size());
    auto touch = [&](int32_t buffer_id, int32_t at) {
      ProgramBuffer& b = program_.buffers[root(buffer_id)];
      if (!seen[root(buffer_id)]) b.first_use = at;
      seen[root(buffer_id)] = true;
      b.last_use = std::max(b.last_use, at);
    };
    for (int32_t i = 0; i < last; ++i) {
      const ProgramInstruction& ins = main()[static_cast<size_t>(i)];
      if (const auto* c = std::get_if<CallInstruction>(&ins)) for (int32_t b : c->buffers) touch(b, i);
      if (const auto* d = std::get_if<DefineSymbolInstruction>(&ins)) touch(d->buffer, i);
      if (const auto* a = std::get_if<AllocateInstruction>(&ins)) touch(a->buffer, i);
    }
    for (int32_t b : program_.outputs) touch(b, last > 0 ? last - 1 : 0);
    for (ProgramBuffer& b : program_.buffers)
      if (b.alias_of >= 0) {
        const ProgramBuffer& r = program_.buffers[root(b.alias_of)];
        b.first_use = r.first_use;
        b.last_use = r.last_use;
      }
  }

  const Graph& graph_;
  const LowerKernel& lower_;
  std::vector<int> uses_;
  Program program_;
  std::vector<Step> steps_;
  std::map<ValueId, std::vector<int32_t>> buffers_;
  std::set<const ExprNode*> run_symbols_;
  std::multimap<uint64_t, int32_t> by_hash_;
  std::vector<std::pair<Kernel, std::vector<bool>>> sources_;  // of each kernel, before lowering, and its constant parameters
};

// Arithmetic operations of all block instances; a fused multiply-add counts twice.
Expr Planner::count_flops(const Kernel& k) {
  Expr total = 0;
  for_each_stmt(k.body, [&](const Stmt& s) {
    const auto* b = s.as<Block>();
    if (!b) return;
    int64_t ops = 0;
    for_each_expr(b->body, [&](const Expr& e) {
      const bool arithmetic = e.kind() == NodeKind::kBinary || e.kind() == NodeKind::kUnary;
      if (arithmetic && is_float(e.dtype())) ++ops;
    });
    Expr n = ops;
    for (const BlockAxis& a : b->axes) n = n * a.extent;
    total = total + n;
  });
  return simplify(total);
}

}  // namespace

Result<Program> plan_program(const Graph& graph, const LowerKernel& lower_kernel) { return Planner(graph, lower_kernel).run(); }

}  // namespace tilewright::passes
