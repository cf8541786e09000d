// Nodes into topological order.
#pragma once

#include "frontends/onnx/model.h"

namespace tilewright {

// The format demands the order, but exporters and converters do not all keep it. Nodes move only as
// far as they must; what lies on a cycle stays where it is, for check_model to report. Graphs
// inside attributes are sorted too.
void sort_nodes(OnnxGraph& graph);

}  // namespace tilewright
