#include "passes/graph/readers.h"

#include <algorithm>
#include <set>
#include <utility>

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

static bool is_by_element(const Node& n) {
  return n.op->fusion == FusionKind::kPointwise || n.op->fusion == FusionKind::kInjective;
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
  return std::any_of(reading.begin(), reading.end(),
                     [&](const Node* r) { return r != &n && !is_by_element(*r); }) ||
         comes_back(v, n);
}

bool Readers::comes_back(ValueId v, const Node& n) const {
  const auto [known, is_new] = coming_back_.try_emplace(v);
  if (is_new) known->second = find_coming_back(v);
  return std::any_of(known->second.begin(), known->second.end(),
                     [&](const Node* r) { return r != &n; });
}

std::vector<const Node*> Readers::find_coming_back(ValueId v) const {
  struct Step {
    ValueId value;
    bool left;  // the kernel of v
  };
  std::vector<const Node*> found;
  const auto& reading = of(v);
  if (reading.size() < 2) return found;
  const Node* last = reading.back();  // nodes behind it lead to no reader
  std::vector<Step> steps{{v, false}};
  std::set<std::pair<const Node*, bool>> seen;
  while (!steps.empty()) {
    const Step s = steps.back();
    steps.pop_back();
    for (const Node* r : of(s.value)) {
      if (r > last) continue;
      if (s.left && std::find(reading.begin(), reading.end(), r) != reading.end())
        found.push_back(r);
      const bool left = s.left || !is_by_element(*r);
      if (!seen.insert({r, left}).second) continue;
      for (ValueId y : r->outputs)
        if (y != kNone && static_cast<size_t>(y) < readers_.size()) steps.push_back({y, left});
    }
  }
  return found;
}

}  // namespace tilewright::passes
