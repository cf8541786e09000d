#include <algorithm>
#include <thread>

#include "runtime/distributed/store.h"

namespace tilewright::distributed {

Result<std::string> wait_for_key(Store& store, const std::string& key, Deadline deadline) {
  std::chrono::milliseconds pause{1};
  for (;;) {
    TW_ASSIGN(std::optional<std::string> value, store.get(key));
    if (value) return std::move(*value);
    if (Clock::now() >= deadline)
      return io_error("key '" + key + "' was not set by the time limit");
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(50));
  }
}

}  // namespace tilewright::distributed
