#include "passes/graph/readers.h"

#include <algorithm>

#include "ir/graph/op.h"
#include "runtime/core/dtype.h"

namespace tilewright::passes {

using namespace ir;

int64_t known_elements(const TensorType& type) {
  int64_t n = 1;
  for (const Expr& e : type.dims)
    n = std::min<int64_t>(n * as_int(e).value_or(0), int64_t{1} << 40);
  return n;
}

bool is_large(const TensorType& type) {
  constexpr int64_t kLarge = int64_t{256} << 10;
  return known_elements(type) * byte_size(type.dtype) >= kLarge;
}

Readers::Readers(const std::vector<Node>& nodes, const Graph& graph)
    : readers_(graph.values.size()),
      is_output_(graph.values.size()),
      is_input_(graph.values.size()) {
  for (const Node& n : nodes)
    for (ValueId v : n.inputs) {
      if (v == kNone) continue;
      auto& reading = readers_[static_cast<size_t>(v)];
      if (reading.empty() || reading.back() != &n) reading.push_back(&n);
    }
  for (ValueId v : graph.outputs) is_output_[static_cast<size_t>(v)] = true;
  for (ValueId v : graph.inputs) is_input_[static_cast<size_t>(v)] = true;
}

bool Readers::lies_in_memory(ValueId v, const Node& n) const {
  if (is_output_[static_cast<size_t>(v)] || is_input_[static_cast<size_t>(v)]) return true;
  const auto& reading = of(v);
  return std::any_of(reading.begin(), reading.end(), [&](const Node* r) {
    return r != &n && r->op->fusion != FusionKind::kPointwise &&
           r->op->fusion != FusionKind::kInjective;
  });
}

}  // namespace tilewright::passes
