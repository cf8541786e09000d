// The element types of the ONNX format: those of DType and those that only files and casts know.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/dtype.h"

namespace tilewright {

// Which repeated field of a TensorProto holds the elements when raw_data does not.
enum class TypedField : uint8_t { kFloat, kDouble, kInt32, kInt64, kUInt64, kString };

// One row per value of TensorProto.DataType, whether or not the compiler computes with it.
struct OnnxElementType {
  int code;  // TensorProto.DataType
  // As DType writes it; of the others as ONNX does, in lower case.
  std::string_view name;
  int bits;  // storage of one element; types below 8 bits are packed, low bits first; 0: strings
  TypedField field;  // where elements stand without raw_data
};

// In the order of the codes, which start at 1 (0 is UNDEFINED).
inline constexpr std::array<OnnxElementType, 26> kOnnxElementTypes{{
    {1, "f32", 32, TypedField::kFloat},
    {2, "u8", 8, TypedField::kInt32},
    {3, "i8", 8, TypedField::kInt32},
    {4, "u16", 16, TypedField::kInt32},
    {5, "i16", 16, TypedField::kInt32},
    {6, "i32", 32, TypedField::kInt32},
    {7, "i64", 64, TypedField::kInt64},
    {8, "string", 0, TypedField::kString},
    {9, "bool", 8, TypedField::kInt32},
    {10, "f16", 16, TypedField::kInt32},
    {11, "f64", 64, TypedField::kDouble},
    {12, "u32", 32, TypedField::kUInt64},
    {13, "u64", 64, TypedField::kUInt64},
    {14, "complex64", 64, TypedField::kFloat},
    {15, "complex128", 128, TypedField::kDouble},
    {16, "bf16", 16, TypedField::kInt32},
    {17, "float8e4m3fn", 8, TypedField::kInt32},
    {18, "float8e4m3fnuz", 8, TypedField::kInt32},
    {19, "float8e5m2", 8, TypedField::kInt32},
    {20, "float8e5m2fnuz", 8, TypedField::kInt32},
    {21, "uint4", 4, TypedField::kInt32},
    {22, "int4", 4, TypedField::kInt32},
    {23, "float4e2m1", 4, TypedField::kInt32},
    {24, "float8e8m0", 8, TypedField::kInt32},
    {25, "uint2", 2, TypedField::kInt32},
    {26, "int2", 2, TypedField::kInt32},
}};

// Nothing for codes that the format does not define, and for the 6-bit floats (27, 28).
constexpr std::optional<OnnxElementType> onnx_element_type(int code) {
  for (const OnnxElementType& t : kOnnxElementTypes)
    if (t.code == code) return t;
  return std::nullopt;
}

// For messages, behind "element type": the name of any code, defined or not.
inline std::string onnx_element_name(int64_t code) {
  for (const OnnxElementType& t : kOnnxElementTypes)
    if (t.code == code) return std::string(t.name);
  if (code == 27) return "float6e2m3";
  if (code == 28) return "float6e3m2";
  return code == 0 ? "undefined" : std::to_string(code);
}

}  // namespace tilewright
