#include "passes/graph/node_groups.h"

#include <algorithm>
#include <cstdlib>

namespace tilewright::passes {

using namespace ir;

NodeGroups::NodeGroups(const Graph& graph)
    : graph_(graph), group_of_(graph.nodes.size(), -1), spans_(graph.nodes.size(), 0) {}

int NodeGroups::producer_of(ValueId v) const {
  if (v == kNone || graph_.value(v).producer < 0) return -1;
  return group_of_[static_cast<size_t>(graph_.value(v).producer)];
}

void NodeGroups::span(const Group& group, int change) {
  for (size_t i = group.first + 1; i <= group.last; ++i) spans_[i] += change;
}

int NodeGroups::merge(size_t node, const std::set<int>& groups) {
  Group merged;
  merged.first = merged.last = node;
  for (int g : groups) {
    Group& old = groups_[static_cast<size_t>(g)];
    span(old, -1);
    merged.nodes.insert(merged.nodes.end(), old.nodes.begin(), old.nodes.end());
    merged.first = std::min(merged.first, old.first);
    merged.last = std::max(merged.last, old.last);
    old = {};
  }
  merged.nodes.push_back(node);
  span(merged, 1);
  groups_.push_back(std::move(merged));
  const int number = static_cast<int>(groups_.size()) - 1;
  for (size_t n : groups_.back().nodes) group_of_[n] = number;
  return number;
}

// Backwards from what the nodes read. Where no group reaches across a place in the graph's order, nothing
// before it depends on anything behind it: the search ends at the last such place before all of them.
bool NodeGroups::makes_cycle(size_t node, const std::set<int>& groups) const {
  seen_.resize(groups_.size(), 0);
  ++search_;
  size_t end = node;
  for (int g : groups) {
    seen_[static_cast<size_t>(g)] = -search_;
    end = std::min(end, groups_[static_cast<size_t>(g)].first);
  }
  while (spans_[end] > 0) --end;
  std::vector<int> stack;
  // Puts the groups before a node on the stack; true: one of them is inside.
  const auto push = [&](const Node& n) {
    bool inside = false;
    for (ValueId v : n.inputs) {
      const int g = producer_of(v);
      if (g < 0) continue;
      int64_t& seen = seen_[static_cast<size_t>(g)];
      inside |= seen == -search_;
      if (std::abs(seen) == search_) continue;
      seen = search_;
      if (groups_[static_cast<size_t>(g)].last >= end) stack.push_back(g);
    }
    return inside;
  };
  push(graph_.nodes[node]);
  for (int g : groups)
    for (size_t n : nodes(g)) push(graph_.nodes[n]);
  while (!stack.empty()) {
    const int g = stack.back();
    stack.pop_back();
    for (size_t n : nodes(g))
      if (push(graph_.nodes[n])) return true;
  }
  return false;
}

bool NodeGroups::depends_from_outside(const Node& reader, const std::vector<size_t>& nodes,
                                      int group) const {
  const size_t first = groups_[static_cast<size_t>(group)].first;
  const auto inside = [&](size_t n) {
    return group_of_[n] == group || std::find(nodes.begin(), nodes.end(), n) != nodes.end();
  };
  std::vector<size_t> stack;
  std::set<size_t> seen;
  const auto push = [&](const Node& n, bool& found) {
    for (ValueId v : n.inputs) {
      if (v == kNone || graph_.value(v).producer < 0) continue;
      const auto p = static_cast<size_t>(graph_.value(v).producer);
      if (inside(p))
        found = true;
      else if (p > first && seen.insert(p).second)
        stack.push_back(p);
    }
  };
  bool directly = false, found = false;
  push(reader, directly);
  while (!stack.empty() && !found) {
    const size_t p = stack.back();
    stack.pop_back();
    push(graph_.nodes[p], found);
  }
  return found;
}

}  // namespace tilewright::passes
