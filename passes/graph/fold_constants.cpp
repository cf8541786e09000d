#include <cstring>

#include "ir/graph/op.h"
#include "passes/graph/graph_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

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

}  // namespace

Result<Graph> fold_constants(Graph graph, const RunConstants& run, bool keep_quantized) {
  for (Value& v : graph.values)
    if (!v.constant && v.producer >= 0) v.constant = from_known(v);

  // A reshape shares the bytes; what else hangs on constants alone is collected and run once.
  std::vector<bool> folded(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& n = graph.nodes[i];
    bool all = n.op->compute != nullptr && n.defined_symbols.empty() &&
               !(keep_quantized && n.op->name == "dequantize"),
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
    folded[i] = all;
    if (all && ready && n.op->name == "reshape" && !graph.value(n.outputs[0]).constant) {
      Constant view = *graph.value(n.inputs[0]).constant;
      view.shape = *constant_shape(graph.value(n.outputs[0]).type);
      graph.value(n.outputs[0]).constant = std::make_shared<const Constant>(std::move(view));
    }
  }

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
    for (size_t v = 0; v < constants.values.size(); ++v)
      if (constants.values[v].constant) constants.values[v].producer = -1;
    std::erase_if(constants.nodes, [&](const Node& n) {
      for (ValueId v : n.outputs)
        if (v != kNone && !constants.value(v).constant) return false;
      return true;
    });
    TW_ASSIGN(std::vector<ConstantRef> values, run(eliminate_dead_nodes(std::move(constants))));
    for (size_t k = 0; k < ids.size(); ++k) graph.value(ids[k]).constant = values[k];
  }
  std::erase_if(graph.nodes, [&](const Node& n) {
    for (ValueId v : n.outputs)
      if (v != kNone && !graph.value(v).constant) return false;
    return true;
  });
  return eliminate_dead_nodes(std::move(graph));
}

}  // namespace tilewright::passes
