// What the parts of a step give, added up: on this rank, and over all ranks while the last part still runs.
#pragma once

#include <string>
#include <vector>

#include "frontends/train/job.h"
#include "frontends/train/parameters.h"
#include "passes/plan_program.h"
#include "runtime/collectives.h"
#include "runtime/distributed/comm.h"
#include "runtime/executable.h"
#include "runtime/tensor.h"

namespace tilewright::train {

// One flat f32 buffer that each part gives: the name of the program's result, and where the sum ends up.
struct SummedBuffer {
  std::string name;
  Tensor sum;
};

// Ranges of a flat buffer that are summed over all ranks on their own: about equally large, of whole members, and, but
// for the last one, of at least `least` bytes each. least 0: as the size of the buffer makes sense.
std::vector<passes::ResultRange> ranges_to_sum(const std::string& name, const Parameters& members,
                                               int64_t least);

// Those of all buffers that a part of the job's step gives; none where there are no ranks.
std::vector<passes::ResultRange> ranges_of_part(const Job& job, const Trained& trained);

// Sums of several buffers, each on its own. `exact`: by the tree of runtime/distributed/part_tree.h, where
// each part is given buffers of its own. Otherwise parts add to the sums themselves, one after the other.
class PartSums final : public Collectives {
 public:
  // sums: the buffers of the first part, too. starts: of the program of a part, in the order in which it starts ranges,
  // all of them together all of the buffers.
  PartSums(std::vector<SummedBuffer> sums, bool exact,
           const std::vector<passes::ResultRange>& starts);

  // A step of so many parts, of which this rank makes `run`, begins. comm null: there is one rank.
  // Errors: kLimit for memory.
  Status begin_step(distributed::PartRange run, int parts, distributed::Comm* comm);
  // The buffers that the next part writes to. Errors: kLimit for memory.
  Result<std::vector<Tensor>> begin_part();
  // Told of ranges by the part that was begun; null: it is not the last one.
  Collectives* collectives();
  // The part's buffers are written.
  void end_part();
  // Starts what no part has started: all of a rank without parts, or the rest after a failure, whatever values these
  // ranges have. Buffers must stay until Comm::finish().
  void start_rest();

  void start(int32_t number, std::byte* data, int64_t bytes) override;

 private:
  struct Add {
    size_t into, from;  // levels
  };
  struct Start {
    size_t buffer;
    int64_t begin, end;  // elements
    std::string name;
  };
  float* values(size_t level, size_t buffer) const;
  Status add_level();
  void complete_part(std::vector<Add>& adds);
  void start_sum(const Start& start);

  const bool exact_;
  distributed::Comm* comm_ = nullptr;  // of the step
  std::vector<Start> starts_;          // by number
  // Buffers of subtrees whose sums are complete, in the order of parts; one set more where a part is being made.
  std::vector<std::vector<Tensor>> levels_;
  std::vector<distributed::PartRange> complete_;
  distributed::PartRange run_;
  int parts_ = 1, next_ = 0;
  std::vector<Add> last_adds_;  // what the last part's end leaves to add, by range
  size_t started_ = 0;
};

// What exact sums cost beside the engine's all-reduce: the buffers that the rank with the most needs, the one for the
// sum included, and bytes that ranks send, as a ratio; that is 1 for one rank.
struct ExactPrice {
  int buffers = 1;
  double traffic = 1;
};
ExactPrice price_of_exact(int parts, int ranks);

// The ranges that the executable starts, in order.
std::vector<passes::ResultRange> starts_of(const Executable& executable);

}  // namespace tilewright::train
