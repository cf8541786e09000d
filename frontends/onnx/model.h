// An ONNX model as read from its file and checked: plain structs, no protobuf.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/core/dtype.h"
#include "runtime/core/shape.h"

namespace tilewright {

// A constant tensor, usually a part of the mapped model file.
struct TensorView {
  int onnx_code = 0;  // element type; element_type.h of tensor_files names those outside DType
  Shape shape;        // of a constant, always known
  const uint8_t* data = nullptr;  // row-major, little-endian; may be unaligned: copy with memcpy
  size_t bytes = 0;               // of data
  std::shared_ptr<const void> owner;  // keeps data alive
  std::vector<std::string> strings;   // the elements of a string tensor, which has no data

  // Nothing for types that the compiler does not compute with.
  std::optional<DType> dtype() const { return dtype_from_onnx(onnx_code); }
};

// Nothing: unknown. A string: a symbol, equal wherever the name is the same.
using OnnxDimension = std::variant<std::monostate, int64_t, std::string>;
// Its name, as --shape takes it; "" where it has none, or one that says nothing (`?`, `None`).
std::string extent_name(const OnnxDimension& dimension);

// The alternatives of TypeProto; only tensors can be computed with.
enum class OnnxTypeKind { kUnknown, kTensor, kSparseTensor, kSequence, kOptional, kMap, kOpaque };
const char* describe_kind(OnnxTypeKind kind);  // for messages: "a sequence"

// The type of a value as far as the file states it.
struct OnnxType {
  // Which of the members below mean something.
  OnnxTypeKind kind = OnnxTypeKind::kUnknown;
  int onnx_code = 0;  // of tensors the element type, 0 when unknown; of maps the type of the keys
  std::optional<std::vector<OnnxDimension>> shape;  // of tensors; nothing: unknown rank
  std::shared_ptr<const OnnxType> element;          // of sequences and optionals; of maps the value
};

// What a model says of a value of its graph.
struct OnnxValueInfo {
  // The value's name, and its type as far as it is stated.
  std::string name;
  OnnxType type;
};

struct OnnxGraph;

// What an initialiser is in the network that PyTorch exported. kConstant: it is neither a parameter nor a buffer.
enum class ExportedRole : uint8_t { kParameter, kBuffer, kConstant };

// Inside a function body: the attribute has the value of this attribute of the function.
struct OnnxAttributeReference {
  std::string attribute;
};

// The value of an attribute. Its kind is the active alternative; the format's rarely used lists (of
// tensors, graphs and types) are there so that any legal file can be read.
using OnnxAttribute =
    std::variant<int64_t, float, std::string, TensorView, std::shared_ptr<OnnxGraph>, OnnxType,
                 std::vector<int64_t>, std::vector<float>, std::vector<std::string>,
                 std::vector<TensorView>, std::vector<std::shared_ptr<OnnxGraph>>,
                 std::vector<OnnxType>, OnnxAttributeReference>;

// One call of an operator or function; check_model.h has the rules for its names.
struct OnnxNode {
  // What the node computes: the operator, found by (op_type, domain, overload, opset).
  std::string op_type;
  std::string domain;    // "" for the standard operators, never "ai.onnx"
  std::string overload;  // tells functions of one name apart; "" for operators
  int64_t opset = 0;     // version of the domain where the node was written; 0: calls a function
  std::string name;      // may be empty, need not be unique
  std::vector<std::string> inputs;   // "" where an optional input is left out
  std::vector<std::string> outputs;  // "" where an optional output is left out
  // By name; those left out have the defaults of the operator's specification.
  std::map<std::string, OnnxAttribute> attributes;
};

// Nodes are in topological order, each name is defined once in its graph, and every name that is
// used is defined before: in this graph or, for graphs in attributes, in one around it.
struct OnnxGraph {
  std::string name;
  std::vector<OnnxValueInfo> inputs;  // one that is also an initializer has that as its default
  std::vector<OnnxValueInfo>
      outputs;  // in the order in which a run returns them; of the main graph,
                // each name once
  // Types that the file states for values inside; importers infer their own.
  std::vector<OnnxValueInfo> value_info;
  // Constants by the name of the value they define.
  std::map<std::string, TensorView> initializers;
  std::vector<OnnxNode> nodes;
  // Of models that are read to be trained (read_model.h, lift_constants.h), by name: what the exporter says of each
  // initialiser (none: it says nothing of any), and those that the file has as nodes of the operator Constant.
  std::map<std::string, ExportedRole> roles;
  std::set<std::string> constant_nodes;
  // Initialisers of the file that are transposes of others, by name: nodes compute them instead.
  std::map<std::string, std::string> transposed_copies;
};

// A function of the model: an operator that is defined by nodes. Gone after inline_functions.
struct OnnxFunction {
  // The three that tell functions apart; check_model.h has them as one key.
  std::string domain;
  std::string name;
  std::string overload;
  // What the values of the body are called that a call passes in and gets back.
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> attributes;            // names without a default
  std::map<std::string, OnnxAttribute> defaults;  // attributes with one
  std::vector<OnnxNode> nodes;                    // same rules as in OnnxGraph
};

// A file's content. Large constants are views into the file, which they keep mapped.
struct OnnxModel {
  // Of the file format, not of the operators: those have the versions in opset_imports.
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opset_imports;  // by domain, "" for the standard operators
  std::string producer;                          // name and version
  // The main graph, and the functions of the model that it may call.
  OnnxGraph graph;
  std::vector<OnnxFunction> functions;
  // All that it was read from: the file, and those of external data; mapped as long as the model is.
  struct Source {
    std::span<const uint8_t> bytes;
    std::shared_ptr<const void> owner;
  };
  std::vector<Source> sources;
};

// Whether a run may replace the initialiser of this name, whose contents are a default: from IR version
// 4 on, where it is also an input of the main graph. Unless somebody wants to, it is a constant.
bool is_overridable(const OnnxModel& model, const std::string& initializer);

// The name in quotes; long ones are cut, since they come from outside and end in messages.
std::string quote(std::string_view name);

// "node 'fc1' (Gemm)", or "node 12 (Gemm)" by its index where it has no name.
std::string describe_node(const OnnxNode& node, size_t index);

}  // namespace tilewright
