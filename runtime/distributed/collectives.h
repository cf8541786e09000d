// Collectives over any Transport. Every rank makes the same calls in the same order with the same sizes. Memory of
// different arguments must not overlap. Errors are those of the transport; buffers then hold anything.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "runtime/distributed/part_tree.h"
#include "runtime/distributed/transport.h"

namespace tilewright::distributed {

// One call: whom it goes over, the number that tells its messages from those of other calls, and when it fails.
struct Round {
  Transport& transport;
  uint64_t number;
  Deadline deadline;
};

// The number of consecutive tags that a call may use, from `number * kTagsOfCall` on.
inline constexpr uint64_t kTagsOfCall = 5;

// f32, f64, i32 or i64, side by side.
struct Elements {
  DType dtype;
  void* data;
  int64_t count;
  Elements part(int64_t begin, int64_t end) const;
  std::span<std::byte> bytes() const;
};

// Elements [begin, end) of `count` that belong to a rank where all ranks have about equally many.
struct ElementRange {
  int64_t begin = 0, end = 0;
};
ElementRange range_of_rank(int64_t count, int rank, int ranks);

// into[i] = into[i] op from[i]
void combine(ReduceOp op, Elements into, const void* from);

// In place. All ranks get the same bits.
Status all_reduce(const Round& round, ReduceOp op, Elements elements);
// In place: only the rank's own range (range_of_rank) is defined afterwards.
Status reduce_scatter(const Round& round, ReduceOp op, Elements elements);
// Each rank gives its own range of `all`, and gets the others'.
Status all_gather(const Round& round, Elements all);
// Piece k of `from` goes to rank k; piece k of `to` comes from rank k. Equal pieces.
Status all_to_all(const Round& round, std::span<const std::byte> from, std::span<std::byte> to);
Status broadcast(const Round& round, std::span<std::byte> data, int root);
Status barrier(const Round& round);

// The sum of f32 values over the parts of a step, by the tree of part_tree.h: equal bits on any number of ranks.
// `subtrees` are sums of this rank's parts, in the order of subtrees_of; `sum` may be one of them.
Status exact_sum(const Round& round, std::span<const float* const> subtrees, std::span<float> sum,
                 int parts);
// Calls add(into, from) for inner nodes of the tree over [0, parts), children first, until the sum of all leaves lies
// where the first one lay. Leaves, in order, are the given subtrees; arguments count them.
void add_by_tree(const std::vector<PartRange>& leaves, int parts,
                 const std::function<void(size_t into, size_t from)>& add);

}  // namespace tilewright::distributed
