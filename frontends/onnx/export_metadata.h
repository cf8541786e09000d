// What PyTorch's exporter (torch.onnx.export, dynamo=True) writes beside a graph: which of its initialisers are
// parameters of the network, and which are buffers.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "frontends/onnx/model.h"
#include "frontends/onnx/onnx.pb.h"

namespace tilewright {

// By the metadata of the graph and its values, for all of its initialisers; empty where they have none. What the
// exporter folded from parameters is one.
std::map<std::string, ExportedRole> exported_roles(const onnx_format::GraphProto& graph);

// What the exporter computed values of the main graph from, by their names: those of other values. `file`: of the
// model. Values that it says nothing of are not there.
std::map<std::string, std::vector<std::string>> folded_sources(std::span<const uint8_t> file);

// The exporter merges initialisers that are equal, as scales and biases of a fresh network are (optimize=True). Where
// the metadata say of a node that it read another parameter or buffer, this gets an initialiser of its own again,
// under its own name, of the same elements. The names that were added.
std::vector<std::string> separate_merged(onnx_format::GraphProto& graph);

}  // namespace tilewright
