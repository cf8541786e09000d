// What the parts of a step give, added up: on this rank, and over all ranks.
#pragma once

#include <string>
#include <vector>

#include "runtime/distributed/comm.h"
#include "runtime/tensor.h"

namespace tilewright::train {

// Sums of several flat f32 buffers, each on its own. `exact`: by the tree of runtime/distributed/part_tree.h, where
// each part is given a buffer of its own. Otherwise parts add to the sum themselves, one after the other.
class PartSums {
 public:
  // sums: where they end up. They are the buffers of the first part, too. Used as long as the object lives.
  PartSums(std::vector<Tensor> sums, bool exact) : exact_(exact), levels_{std::move(sums)} {}

  // A step of so many parts, of which this rank makes `run`, begins.
  void begin_step(distributed::PartRange run, int parts);
  // The buffers that the next part writes to. Errors: kLimit for memory.
  Result<std::vector<Tensor>> begin_part();
  // They are written.
  void end_part();
  // After the last part: starts the sums over all ranks; comm null: there is one. Buffers must stay until
  // Comm::finish().
  void start(distributed::Comm* comm);

  // Bytes of all buffers but the sums.
  int64_t extra_bytes() const;

 private:
  std::span<float> values(size_t level, size_t buffer) const;
  void add(size_t into, size_t from);
  void start_sum(distributed::Comm& comm, size_t buffer);

  const bool exact_;
  // Buffers of subtrees whose sums are complete, in the order of parts; one set more where a part is being made.
  std::vector<std::vector<Tensor>> levels_;
  std::vector<distributed::PartRange> complete_;
  distributed::PartRange run_;
  int parts_ = 1, next_ = 0;
};

}  // namespace tilewright::train
