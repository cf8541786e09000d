// A model file again, with other values for some of its initialisers, as it is used.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "frontends/onnx/model.h"
#include "runtime/core/host_tensor.h"
#include "runtime/core/result.h"

namespace tilewright {

// What a written model has for outputs: values of the file's main graph, in that order, with types for those of which
// the file states none. Empty names: the file's own outputs, and nothing is removed.
struct WrittenOutputs {
  std::vector<std::string> names;
  std::vector<OnnxValueInfo> types;
};

// Writes `to` as `from` is, but in inference mode (rewrite_model.h) and with these values for what has their names:
// initialisers of the main graph, those that the exporter merged (export_metadata.h), constants of its nodes, and
// copies that its nodes make of initialisers, which become such themselves. All constants are in the file, none
// outside. The file appears whole or not at all. Errors: kIo, kInvalid (no model, an initialiser that there is not or
// of another shape or type, an output that there is not), kLimit (more than the 2 GiB of a protobuf message).
Status write_trained(const std::filesystem::path& from, const NamedTensors& values,
                     const WrittenOutputs& outputs, const std::filesystem::path& to);

// Can the model have these outputs? Errors: as above.
Status check_outputs(const std::filesystem::path& from, const WrittenOutputs& outputs);

}  // namespace tilewright
