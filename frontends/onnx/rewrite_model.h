// Changes of a model file that training makes before it writes the model.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "frontends/onnx/model.h"
#include "frontends/onnx/onnx.pb.h"
#include "runtime/core/result.h"

namespace tilewright {

// The data of all tensors, in the model itself: of those, too, that lie in files beside it, in `folder`. Errors: as
// ExternalData has them; kLimit beyond `most` bytes of these data.
Status embed_external(onnx_format::ModelProto& model, const std::filesystem::path& folder,
                      size_t most);

// Dropout and BatchNormalization as inference has them, in all graphs and functions: the operand and the attribute that
// ask for training go, and so do a batch's statistics, of which the running ones take the place where somebody reads
// them. Dropout keeps its ratio operand; dropout that is written out
// (find_dropouts.h) goes with its mask.
void set_inference_mode(onnx_format::ModelProto& model);

// The main graph with these values as its outputs, in that order, and without all that they do not depend on: nodes,
// initialisers, inputs. Their types are those that the file states; `types`, by name, where it states none. Errors
// (kInvalid): the graph has no such value, or one is given twice.
Status choose_outputs(onnx_format::GraphProto& graph, const std::vector<std::string>& names,
                      const std::vector<OnnxValueInfo>& types);

}  // namespace tilewright
