// Element types of tensors and scalars, and the names used for them in text, errors and files.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tilewright {

// The numbers are those of serialised executables and of kDTypes' rows: append, never reorder.
// Floats come first, then signed and unsigned integers, which the predicates below rely on.
enum class DType : uint8_t {
  kFloat32,
  kFloat64,
  kFloat16,
  kBFloat16,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kBool,
};

struct DTypeInfo {
  // The key of the row; kDTypes[i].dtype is i.
  DType dtype;
  std::string_view name;  // as printed in types: "f32"
  int bytes;              // storage of one element
  int onnx_code;          // TensorProto.DataType
};

// One row per element type, in the order of the enumeration.
inline constexpr std::array<DTypeInfo, 13> kDTypes{{
    {DType::kFloat32, "f32", 4, 1},
    {DType::kFloat64, "f64", 8, 11},
    {DType::kFloat16, "f16", 2, 10},
    {DType::kBFloat16, "bf16", 2, 16},
    {DType::kInt8, "i8", 1, 3},
    {DType::kInt16, "i16", 2, 5},
    {DType::kInt32, "i32", 4, 6},
    {DType::kInt64, "i64", 8, 7},
    {DType::kUInt8, "u8", 1, 2},
    {DType::kUInt16, "u16", 2, 4},
    {DType::kUInt32, "u32", 4, 12},
    {DType::kUInt64, "u64", 8, 13},
    {DType::kBool, "bool", 1, 9},
}};

// Look-ups in the table; none fails for a value of the enumeration.
constexpr const DTypeInfo& info(DType t) { return kDTypes[static_cast<size_t>(t)]; }
constexpr std::string_view name(DType t) { return info(t).name; }
constexpr int byte_size(DType t) { return info(t).bytes; }

// Classes of element types. kBool is in none of them.
constexpr bool is_float(DType t) { return t <= DType::kBFloat16; }
constexpr bool is_unsigned(DType t) { return t >= DType::kUInt8 && t <= DType::kUInt64; }
constexpr bool is_signed_integer(DType t) { return t >= DType::kInt8 && t <= DType::kInt64; }
constexpr bool is_integer(DType t) { return is_signed_integer(t) || is_unsigned(t); }

// From the text form ("f32") and from TensorProto.DataType; nothing for a type that Tilewright
// lacks (strings, complex numbers, 8-bit floats, 4-bit integers).
constexpr std::optional<DType> dtype_from_name(std::string_view text) {
  for (const DTypeInfo& i : kDTypes)
    if (i.name == text) return i.dtype;
  return std::nullopt;
}
constexpr std::optional<DType> dtype_from_onnx(int code) {
  for (const DTypeInfo& i : kDTypes)
    if (i.onnx_code == code) return i.dtype;
  return std::nullopt;
}

}  // namespace tilewright
