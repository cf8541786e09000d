// Dropout that an exporter wrote out as arithmetic.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontends/onnx/model.h"
#include "frontends/onnx/onnx.pb.h"

namespace tilewright::onnx {

// Finds each product of a value x and a random mask, and maps its name to that of x, which replaces the
// product in inference mode. The mask is Cast(RandomUniformLike() < p) / p, of any shape (torch.nn.Dropout2d drops
// whole channels), as PyTorch's exporter writes dropout in place. Constants are found in this graph alone.
std::map<std::string, std::string> find_dropouts(const OnnxGraph& graph);
// The same for nodes of a file and the initialisers beside them.
std::map<std::string, std::string> find_dropouts(
    const google::protobuf::RepeatedPtrField<onnx_format::NodeProto>& nodes,
    const google::protobuf::RepeatedPtrField<onnx_format::TensorProto>& initializers);

}  // namespace tilewright::onnx
