// Graphs and kernels in files of text (.ir): what `tilewright lower --emit graph`, `typed` and `loops`
// print, or somebody wrote.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontends/compiler/compiler.h"
#include "runtime/tensor.h"

namespace tilewright {

struct TextModel {
  std::string name;
  // One of both. A kernel has blocks; parameters named in the file's line `# constants: in1, in2` have
  // contents that are known at compile time.
  std::optional<ir::Graph> graph;
  std::optional<ir::Kernel> kernel;
  std::map<std::string, ir::ConstantRef> constants;
  bool made_up = false;  // contents of constants, which the text does not hold
};

bool is_text_model(const std::string& path);  // by its name: .ir
// Untrusted. Constants whose contents the file does not hold get random ones of their type, the same each
// time. Errors: kIo, kLimit for a file of over 64 MiB or constants of over 1 GiB, kInvalid with
// "line:column" or the rule that is broken.
Result<TextModel> read_text_model(const std::string& path);

// A kernel's usual form, called in a process of its own on `inputs`. Errors: kInvalid where that ends
// badly.
Status check_usual(const TextModel& model, std::span<const Tensor> inputs,
                   const passes::LowerOptions& lower, const codegen::AssembleOptions& assemble);
// A kernel is checked so first.
Result<std::shared_ptr<Executable>> compile_in_memory(const TextModel& model,
                                                      std::span<const Tensor> inputs,
                                                      const CompileOptions& options);

}  // namespace tilewright
