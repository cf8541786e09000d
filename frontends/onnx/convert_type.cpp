#include "frontends/onnx/convert_type.h"

namespace tilewright {
namespace {

using onnx_format::TypeProto;

OnnxDimension convert_dimension(const onnx_format::TensorShapeProto::Dimension& dim) {
  // Some exporters write -1 or an empty symbol where they mean unknown.
  if (dim.has_dim_value() && dim.dim_value() >= 0) return dim.dim_value();
  if (dim.has_dim_param() && !dim.dim_param().empty()) return dim.dim_param();
  return std::monostate{};
}

OnnxType convert_tensor_type(OnnxTypeKind kind, const TypeProto::Tensor& proto) {
  OnnxType type{kind, proto.elem_type()};
  if (!proto.has_shape()) return type;
  type.shape.emplace();
  for (const auto& dim : proto.shape().dim()) type.shape->push_back(convert_dimension(dim));
  return type;
}

// Recursion ends: protobuf bounds the nesting of the messages it parses.
OnnxType container(OnnxTypeKind kind, const TypeProto& element) {
  OnnxType type{kind};
  type.element = std::make_shared<OnnxType>(convert_type(element));
  return type;
}

}  // namespace

OnnxType convert_type(const TypeProto& proto) {
  switch (proto.value_case()) {
    case TypeProto::kTensorType:
      return convert_tensor_type(OnnxTypeKind::kTensor, proto.tensor_type());
    case TypeProto::kSparseTensorType:
      return convert_tensor_type(OnnxTypeKind::kSparseTensor, proto.sparse_tensor_type());
    case TypeProto::kSequenceType:
      return container(OnnxTypeKind::kSequence, proto.sequence_type().elem_type());
    case TypeProto::kOptionalType:
      return container(OnnxTypeKind::kOptional, proto.optional_type().elem_type());
    case TypeProto::kMapType: {
      OnnxType type = container(OnnxTypeKind::kMap, proto.map_type().value_type());
      type.onnx_code = proto.map_type().key_type();
      return type;
    }
    case TypeProto::kOpaqueType: return {OnnxTypeKind::kOpaque};
    case TypeProto::VALUE_NOT_SET: return {};
  }
  return {};
}

}  // namespace tilewright
