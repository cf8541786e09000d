// Points in time by which calls return.
#pragma once

#include <chrono>

namespace tilewright::distributed {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

}  // namespace tilewright::distributed
