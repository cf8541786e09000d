// What the small runtime sees of distributed training: ranges of results that others may have while the run goes on.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilewright {

// Given to a session, it is told of each range of a result that has its values (Op::kStart), in the order of the
// program. The caller of the run waits for what was started.
class Collectives {
 public:
  virtual ~Collectives() = default;
  // Queues what is to be done with the range and returns; the run goes on meanwhile, and neither reads nor writes it.
  virtual void start(int32_t number, std::byte* data, int64_t bytes) = 0;
};

}  // namespace tilewright
