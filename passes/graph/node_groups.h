// Nodes in groups that grow as a pass goes over a graph, and what depends on them.
#pragma once

#include <set>
#include <vector>

#include "ir/graph/graph.h"

namespace tilewright::passes {

class NodeGroups {
 public:
  // Borrows the graph. No node has a group yet; add() them in the graph's order.
  explicit NodeGroups(const ir::Graph& graph);

  // -1 for nodes without a group.
  int of(size_t node) const { return group_of_[node]; }
  int producer_of(ir::ValueId v) const;
  const std::vector<size_t>& nodes(int group) const {
    return groups_[static_cast<size_t>(group)].nodes;
  }
  // The number of a new group, of these groups' nodes and one more; the old ones are empty from now on.
  int merge(size_t node, const std::set<int>& groups);

  // Would that group depend on itself through one outside?
  bool makes_cycle(size_t node, const std::set<int>& groups) const;
  // Does `reader` depend on the group, to which `nodes` may belong, through a node outside?
  bool depends_from_outside(const ir::Node& reader, const std::vector<size_t>& nodes,
                            int group) const;

 private:
  struct Group {
    std::vector<size_t> nodes;
    size_t first = 0, last = 0;  // of them
  };
  void span(const Group& group, int change);

  const ir::Graph& graph_;
  std::vector<int> group_of_;
  std::vector<Group> groups_;
  std::vector<int> spans_;  // by node: groups with nodes before it, and with it or nodes behind it
  // By group, in the search of that number: positive if it was reached, negative if it is inside.
  mutable std::vector<int64_t> seen_;
  mutable int64_t search_ = 0;
};

}  // namespace tilewright::passes
