// The engine `local`: ranks are threads of one process. For tests, and to run them under sanitizers.
#pragma once

#include "runtime/distributed/transport.h"

namespace tilewright::distributed {

// What the ranks of one job share. Messages are copied.
class LocalWorld {
 public:
  static std::shared_ptr<LocalWorld> create(int size);
  virtual ~LocalWorld() = default;
  // One for each rank.
  virtual std::unique_ptr<Transport> connect(int rank) = 0;
};

}  // namespace tilewright::distributed
