// tilewright ops: the operator reference as Markdown, printed from the operator table.
#include <iostream>
#include <set>

#include "frontends/cli/cli.h"
#include "frontends/onnx/node_import.h"
#include "ir/graph/op.h"

namespace tilewright::cli {

namespace {

std::string_view word(ir::AttributeKind kind) {
  switch (kind) {
    case ir::AttributeKind::kInt: return "int";
    case ir::AttributeKind::kFloat: return "float";
    case ir::AttributeKind::kString: return "string";
    case ir::AttributeKind::kInts: return "ints";
    case ir::AttributeKind::kFloats: return "floats";
    case ir::AttributeKind::kStrings: return "strings";
    case ir::AttributeKind::kTensor: return "tensor";
    case ir::AttributeKind::kExtents: return "extents";
  }
  return "";
}
std::string_view word(ir::FusionKind kind) {
  switch (kind) {
    case ir::FusionKind::kPointwise: return "pointwise";
    case ir::FusionKind::kInjective: return "injective";
    case ir::FusionKind::kReduction: return "reduction";
    case ir::FusionKind::kContraction: return "contraction";
    case ir::FusionKind::kOpaque: return "opaque (never fused)";
  }
  return "";
}
std::string signature(const ir::OpDef& op) {
  std::string text;
  for (const ir::OperandDef& o : op.operands) {
    text += (text.empty() ? "" : ", ") + std::string(o.name);
    if (o.kind == ir::OperandDef::kOptional) text += "?";
    if (o.kind == ir::OperandDef::kVariadic) text += "...";
  }
  return std::string(op.outputs) + " = " + std::string(op.name) + "(" + text + ")";
}

void print(const ir::OpDef& op) {
  std::cout << "### " << op.name << "\n\n`" << signature(op) << "`\n\n"
            << op.summary << ". Fusion: " << word(op.fusion) << ".\n\n";
  for (const ir::AttributeDef& a : op.attributes)
    std::cout << "- `" << a.name << "` (" << word(a.kind) << "): " << a.doc << "\n";
  if (!op.attributes.empty()) std::cout << "\n";
  if (!op.example.inputs.empty()) {
    std::cout << "Example operands:";
    for (const ir::TensorType& t : op.example.inputs) std::cout << " `" << ir::to_string(t) << "`";
    std::cout << "\n\n";
  }
  std::cout << "Source: <" << op.source << ">\n\n";
}

}  // namespace

int ops_command() {
  std::cout << "# Operators\n\nThe graph operators that every model is compiled from; `?` marks an "
               "optional operand, `...` any number.\n\n";
  for (const ir::OpDef* op : ir::all_ops()) print(*op);
  const std::vector<std::string> rows = onnx::mapped_ops();  // one per range of opsets
  const std::set<std::string> mapped(rows.begin(), rows.end());
  std::cout << "# ONNX operators\n\n" << mapped.size() << " operators of ONNX models are read:\n\n";
  for (const std::string& name : mapped) std::cout << "- " << name << "\n";
  return kOk;
}

}  // namespace tilewright::cli
