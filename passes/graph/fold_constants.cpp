// Constant folding by compiling and running: a chain of operators over weights is a graph without
// inputs, which the driver compiles like any other, so that folding needs no second implementation
// of operators. A budget bounds what a small file can blow up to.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "ir/graph/op.h"
#include "ir/ops/known_ops.h"
#include "passes/graph/graph_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Weights of 8 bits still become floats.
constexpr int64_t kGrowth = 4;
constexpr int64_t kMostBytes = int64_t{1} << 58;

// The constant that known elements make up; null when one is no immediate.
ConstantRef from_known(const Value& v) {
  auto shape = constant_shape(v.type);
  if (!shape || !v.known) return nullptr;
  const auto size = static_cast<size_t>(byte_size(v.type.dtype));
  std::vector<uint8_t> bytes(v.known->size() * size);
  for (size_t i = 0; i < v.known->size(); ++i) {
    const Expr& e = (*v.known)[i];
    uint8_t* at = bytes.data() + i * size;
    if (const auto* f = e.as<FloatImm>()) {
      const auto single = static_cast<float>(f->value);
      if (v.type.dtype == DType::kFloat32)
        std::memcpy(at, &single, 4);
      else if (v.type.dtype == DType::kFloat64)
        std::memcpy(at, &f->value, 8);
      else
        return nullptr;
    } else if (auto n = as_int(e)) {
      std::memcpy(at, &*n, size);
    } else {
      return nullptr;
    }
  }
  return make_constant(v.type.dtype, *shape, std::move(bytes));
}

int64_t bytes_of(const Graph& graph, ValueId v) {
  if (v == kNone) return 0;
  const TensorType& type = graph.value(v).type;
  const auto shape = constant_shape(type);
  const auto n = shape ? tilewright::element_count(*shape) : std::nullopt;
  return n && *n <= kMostBytes ? *n * byte_size(type.dtype) : kMostBytes;
}

// Bytes of results that still wait for a consumer to be folded; what is never consumed so becomes a
// constant of the model.
class FoldingBudget {
 public:
  FoldingBudget(const Graph& graph, int64_t free_bytes)
      : graph_(graph), waiting_(graph.use_counts()) {
    std::set<const uint8_t*> seen;
    int64_t own = 0;
    for (const Value& v : graph.values)
      if (v.constant && seen.insert(v.constant->data).second)
        own += static_cast<int64_t>(v.constant->bytes);
    limit_ = free_bytes + kGrowth * own;
  }
  // Whether the node's results fit beside those that wait; if so they are counted.
  bool take(const Node& n) {
    int64_t more = 0;
    for (ValueId v : n.outputs) more = std::min(more + bytes_of(graph_, v), kMostBytes);
    if (held_bytes_ + more > limit_) return false;
    for (ValueId v : n.outputs) {
      if (v == kNone) continue;
      held_[v] = bytes_of(graph_, v);
      held_bytes_ += held_[v];
    }
    for (ValueId v : n.inputs) {
      if (v == kNone || --waiting_[static_cast<size_t>(v)] > 0) continue;
      const auto it = held_.find(v);
      if (it == held_.end()) continue;
      held_bytes_ -= it->second;
      held_.erase(it);
    }
    return true;
  }

 private:
  const Graph& graph_;
  std::vector<int> waiting_;  // uses of each value that are not folded, the graph's outputs too
  std::map<ValueId, int64_t> held_;
  int64_t held_bytes_ = 0, limit_ = 0;
};

// What repeats a few elements costs nothing where it is read, but memory and room in a file as a constant; it is
// folded where its readers are alone.
void keep_repeated(const Graph& graph, std::vector<bool>& folded) {
  constexpr int64_t kMostCopied = 64 << 10;  // bytes
  std::vector<bool> for_folded(graph.values.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (ValueId v : graph.nodes[i].inputs)
      if (v != kNone && folded[i]) for_folded[static_cast<size_t>(v)] = true;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& n = graph.nodes[i];
    if (!folded[i] || n.op != ops::expand() || for_folded[static_cast<size_t>(n.outputs[0])])
      continue;
    const int64_t bytes = bytes_of(graph, n.outputs[0]);
    if (bytes > kMostCopied && bytes > kGrowth * bytes_of(graph, n.inputs[0])) folded[i] = false;
  }
}

// The nodes that hang on constants alone, as far as the budget goes. A reshape of a constant is
// folded here: it shares the bytes.
std::vector<bool> nodes_to_fold(Graph& graph, int64_t free_bytes, bool keep_quantized) {
  std::vector<bool> folded(graph.nodes.size());
  FoldingBudget budget(graph, free_bytes);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& n = graph.nodes[i];
    bool all = n.op->compute != nullptr && n.op->fold && n.defined_symbols.empty() &&
               !(keep_quantized && n.op == ops::dequantize()),
         ready = true;
    for (ValueId v : n.inputs) {
      if (v == kNone || graph.value(v).constant) continue;
      ready = false;
      const int32_t p = graph.value(v).producer;
      all &= p >= 0 && folded[static_cast<size_t>(p)];
    }
    for (const auto& [name, value] : n.attributes)
      if (const auto* e = std::get_if<Extents>(&value))
        for (const Expr& d : e->dims) all &= as_int(d).has_value();
    for (ValueId v : n.outputs)
      all &= v == kNone || constant_shape(graph.value(v).type).has_value();
    if (!all) continue;
    if (ready && n.op == ops::reshape()) {
      folded[i] = true;
      if (graph.value(n.outputs[0]).constant) continue;
      Constant view = *graph.value(n.inputs[0]).constant;
      view.shape = *constant_shape(graph.value(n.outputs[0]).type);
      graph.value(n.outputs[0]).constant = std::make_shared<const Constant>(std::move(view));
      continue;
    }
    folded[i] = budget.take(n);
  }
  keep_repeated(graph, folded);
  return folded;
}

// A node that stays computes all its results, those that were known beforehand, too.
void forget_known_results(Graph& graph) {
  for (const Node& n : graph.nodes)
    for (ValueId v : n.outputs)
      if (v != kNone) graph.value(v).constant = nullptr;
}

}  // namespace

Result<Graph> fold_constants(Graph graph, const RunConstants& run, int64_t free_bytes,
                             bool keep_quantized) {
  for (Value& v : graph.values)
    if (!v.constant && v.producer >= 0) v.constant = from_known(v);
  const std::vector<bool> folded = nodes_to_fold(graph, free_bytes, keep_quantized);

  Graph constants;
  constants.name = "constants";
  constants.values = graph.values;
  std::vector<bool> wanted(graph.values.size());
  auto want = [&](ValueId v) {
    if (v == kNone || graph.value(v).constant || wanted[static_cast<size_t>(v)]) return;
    const int32_t p = graph.value(v).producer;
    if (p < 0 || !folded[static_cast<size_t>(p)]) return;
    wanted[static_cast<size_t>(v)] = true;
    constants.outputs.push_back(v);
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (folded[i]) {
      constants.nodes.push_back(graph.nodes[i]);
      continue;
    }
    for (ValueId v : graph.nodes[i].inputs) want(v);
  }
  for (ValueId v : graph.outputs) want(v);
  std::vector<ValueId> ids = constants.outputs;
  if (!ids.empty()) {
    for (ValueId v : ids) constants.output_names.push_back(graph.value(v).name);
    std::erase_if(constants.nodes, [&](const Node& n) {
      for (ValueId v : n.outputs)
        if (v != kNone && !constants.value(v).constant) return false;
      return true;
    });
    forget_known_results(constants);
    for (Value& v : constants.values)
      if (v.constant) v.producer = -1;
    TW_ASSIGN(std::vector<ConstantRef> values, run(eliminate_dead_nodes(std::move(constants))));
    for (size_t k = 0; k < ids.size(); ++k) graph.value(ids[k]).constant = values[k];
  }
  // A folded node goes even when a result has no value: all that read it are folded as well.
  std::vector<Node> kept;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Node& n = graph.nodes[i];
    const bool known = std::all_of(n.outputs.begin(), n.outputs.end(), [&](ValueId v) {
      return v == kNone || graph.value(v).constant;
    });
    if (!folded[i] && !known) kept.push_back(std::move(n));
  }
  graph.nodes = std::move(kept);
  forget_known_results(graph);
  return eliminate_dead_nodes(std::move(graph));
}

}  // namespace tilewright::passes
