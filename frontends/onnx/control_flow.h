// What the importers of If, Loop and Scan share.
#pragma once

#include <array>

#include "frontends/onnx/graph_import.h"

namespace tilewright::onnx {

using Region = GraphImport::Region;
using Values = std::vector<ir::ValueId>;

// The graph in an attribute of the node, which must be there.
const OnnxGraph& body_of(NodeImport& n, const char* attribute);
bool all_defined(const Values& values);
// The one element of a value, where it is known at compile time.
std::optional<bool> known_bool(const ir::Graph& graph, ir::ValueId v);
// Outputs of the node; those that hang on something unsupported (reported already), or that nothing
// reads, are kNone and stay undefined.
void give(NodeImport& n, const Values& values);
// Converts the iteration number or the condition, a scalar, to the type that the body declares for it:
// bodies also declare tensors of one element and other integer types.
ir::ValueId as_declared(NodeImport& n, ir::ValueId scalar, const OnnxValueInfo& declared);

// Results of two branches that one type fits: of equal element type, and of equal rank or both of one
// element.
bool fit_one_type(const ir::TensorType& a, const ir::TensorType& b);
// Stands for a branch that breaks a rule for the operands it would get: it may never be taken, so
// only a run that takes it fails. Its results are of the types that the other branch gives; kNone
// stays so.
Region failing_branch(const Error& error, const ir::Graph& other);
// Adds an If node of two branches and returns its results. A result for which `is_read` is false is kNone,
// and may be kNone in the branches. A result that has one element in both branches but different ranks
// gets one rank: that of the first branch where `leads` is set, otherwise the one RankOfEither selects.
Values either(NodeImport& n, ir::ValueId condition, std::array<Region, 2> branches,
              const std::function<bool(int)>& is_read, bool leads = false);

void import_loop(NodeImport& n);

}  // namespace tilewright::onnx
