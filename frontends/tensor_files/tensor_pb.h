// Folders of ONNX values, as the ONNX test suites keep them: input_0.pb, input_1.pb, ... and
// output_0.pb, ..., one message per file, numbered in the order of the graph.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "frontends/tensor_files/host_value.h"
#include "runtime/core/result.h"

namespace tilewright {

// The message in a file. The bytes do not tell: it follows from the type of the graph's value.
enum class PbKind { kTensor, kSequence, kOptional };

// One input or output of a graph, as far as its file is concerned.
struct PbSlot {
  // The value's name in the graph; written into the message.
  std::string name;
  PbKind kind = PbKind::kTensor;
};

// Errors: kIo (cannot read), kInvalid (not such a message, wrong amount of data), kUnsupported
// (strings, sparse tensors, maps, element types outside DType), kLimit (nesting).
Result<HostValue> read_pb(const std::filesystem::path& path, PbKind kind);
Status write_pb(const std::filesystem::path& path, const std::string& name, const HostValue& value,
                PbKind kind);

// STEM_0.pb to STEM_{n-1}.pb for the n slots; stem is "input" or "output". write_pb_folder makes
// the folder where it is missing and wants as many values as slots.
Result<NamedValues> read_pb_folder(const std::filesystem::path& folder, const std::string& stem,
                                   const std::vector<PbSlot>& slots);
Status write_pb_folder(const std::filesystem::path& folder, const std::string& stem,
                       const std::vector<PbSlot>& slots, const std::vector<HostValue>& values);

}  // namespace tilewright
