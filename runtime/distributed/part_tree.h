// The order in which the parts of a step are added up: one balanced binary tree over them, whatever ranks make them.
// Sums by this tree have the same bits on any number of ranks.
#pragma once

#include <utility>
#include <vector>

namespace tilewright::distributed {

// Parts [begin, end) of a step.
struct PartRange {
  int begin = 0, end = 0;
  int count() const { return end - begin; }
  bool operator==(const PartRange&) const = default;
};

// The parts that a rank makes: contiguous, and as many as the others' or one more. Ranks may be without any.
PartRange parts_of_rank(int rank, int ranks, int parts);

// The children of an inner node of the tree, count() > 1: the left one has the largest power of two below count().
std::pair<PartRange, PartRange> children_of(PartRange node);

// The largest whole subtrees of the tree over [0, parts) that lie in the run, in order: what a rank can add up alone.
std::vector<PartRange> subtrees_of(PartRange run, int parts);

}  // namespace tilewright::distributed
