// A model file again, with other values for some of its initialisers.
#pragma once

#include <filesystem>

#include "runtime/core/host_tensor.h"
#include "runtime/core/result.h"

namespace tilewright {

// Writes `to` as `from` is, byte for byte what its fields say, but with these values for what has their
// names: initialisers of the main graph, constants of its nodes, and copies that its nodes make of
// initialisers, which become such themselves. All constants are in the file, none outside. The file
// appears whole or not at all. Errors: kIo, kInvalid (no model, an initialiser that there is not or of
// another shape or type), kLimit (more than the 2 GiB of a protobuf message).
Status write_with_initializers(const std::filesystem::path& from, const NamedTensors& values,
                               const std::filesystem::path& to);

}  // namespace tilewright
