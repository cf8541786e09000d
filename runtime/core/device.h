// Identity of a device: what kind and which one.
#pragma once

#include <cstdint>

namespace tilewright {

enum class DeviceKind : uint8_t { kCpu, kCuda };

struct DeviceId {
  DeviceKind kind = DeviceKind::kCpu;
  int32_t index = 0;
  bool operator==(const DeviceId&) const = default;
};

}  // namespace tilewright
