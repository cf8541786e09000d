// What an ONNX graph takes and returns: a tensor, a sequence of values, or an absent optional.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/core/host_tensor.h"

namespace tilewright {

// The three things a value can be. Sequences nest through HostValue, which therefore comes later.
struct HostValue;
using HostSequence = std::vector<HostValue>;
struct HostNone {
  bool operator==(const HostNone&) const = default;
};

// An optional that holds something is that something.
struct HostValue {
  // Owned; a copy copies all elements.
  std::variant<HostTensor, HostSequence, HostNone> data;

  HostValue() = default;
  // Implicit, so that lists of tensors can be written as lists of values.
  HostValue(HostTensor tensor) : data(std::move(tensor)) {}
  HostValue(HostSequence values) : data(std::move(values)) {}
  HostValue(HostNone none) : data(none) {}

  // Null when it is something else.
  const HostTensor* tensor() const { return std::get_if<HostTensor>(&data); }
  const HostSequence* sequence() const { return std::get_if<HostSequence>(&data); }
  bool is_none() const { return std::holds_alternative<HostNone>(data); }
  // Equal types, shapes and bytes: a NaN equals itself, and -0 differs from 0.
  bool operator==(const HostValue&) const;
};

inline bool HostValue::operator==(const HostValue& other) const { return data == other.data; }

using NamedValues = std::vector<std::pair<std::string, HostValue>>;  // in graph order

}  // namespace tilewright
