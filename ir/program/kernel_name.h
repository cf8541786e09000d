// Kernels are called "k12_conv_add": their number in the program, and the operators they are of.
#pragma once

#include <string>

namespace tilewright::ir {

inline std::string numbered_name(int32_t number, const std::string& operators) {
  return "k" + std::to_string(number) + "_" + operators;
}
// "conv_add" of "k12_conv_add"; any other name stays.
inline std::string unnumbered_name(const std::string& name) {
  if (!name.starts_with("k")) return name;
  const size_t end = name.find_first_not_of("0123456789", 1);
  return end != std::string::npos && end > 1 && name[end] == '_' ? name.substr(end + 1) : name;
}

}  // namespace tilewright::ir
