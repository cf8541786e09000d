#include "runtime/distributed/part_tree.h"

#include <bit>
#include <cstdint>

namespace tilewright::distributed {

PartRange parts_of_rank(int rank, int ranks, int parts) {
  const auto border = [&](int64_t r) { return static_cast<int>(r * parts / ranks); };
  return {border(rank), border(rank + 1)};
}

std::pair<PartRange, PartRange> children_of(PartRange node) {
  const int left = static_cast<int>(std::bit_floor(static_cast<unsigned>(node.count() - 1)));
  return {{node.begin, node.begin + left}, {node.begin + left, node.end}};
}

static void add_subtrees(PartRange node, PartRange run, std::vector<PartRange>& found) {
  if (node.end <= run.begin || run.end <= node.begin) return;
  if (run.begin <= node.begin && node.end <= run.end) return found.push_back(node);
  const auto [left, right] = children_of(node);
  add_subtrees(left, run, found);
  add_subtrees(right, run, found);
}

std::vector<PartRange> subtrees_of(PartRange run, int parts) {
  std::vector<PartRange> found;
  if (run.count() > 0) add_subtrees({0, parts}, run, found);
  return found;
}

}  // namespace tilewright::distributed
