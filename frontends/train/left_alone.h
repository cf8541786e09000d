// Which initialisers of a model are no parameters of the network, as far as the model tells.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "frontends/onnx/model.h"

namespace tilewright::train {

// By name: what the float initialiser is instead, in the plural ("buffers", "constants", "masks" ...). Not there:
// what may be a parameter. By what the exporter says of each (OnnxGraph::roles); where it says nothing, by how they
// are used and by their elements: constants of nodes, settings, what shapes depend on, what no gradient reaches,
// masks, and tables that follow a formula, as positions and grids do. Where all weights are constants of nodes, these
// are judged as initialisers are.
std::map<std::string, std::string_view> left_alone(const OnnxModel& model);

}  // namespace tilewright::train
