// The seam between the compiler and what makes machine code. A backend is a class of its own in a
// library of its own, opened when code must first be made: who only runs compiled models never
// loads LLVM. A second one is another such class and another row in open_backend.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/loops/nodes.h"
#include "ir/machine.h"
#include "runtime/core/result.h"

namespace tilewright::codegen {

struct CompiledKernel {
  std::vector<uint8_t> object;        // the backend's own form; of a CPU, relocatable ELF
  std::vector<std::string> features;  // of the machine's, those that the code may use
};

// `print`'s forms: what the backend writes kernels in, and what that becomes.
enum class CodeForm { kLlvm, kAssembly };

// Code in memory of this process; alive as long as the object.
class LoadedCode {
 public:
  virtual ~LoadedCode() = default;
  virtual void* find(const std::string& symbol) = 0;  // a TwKernel (kernel_abi.h); null: not there
};

// Kernels are those that loop passes leave (Stage::kPlanned); their names are the symbols.
class Backend {
 public:
  virtual ~Backend() = default;

  // Changes whenever code that it makes might: what is kept of it is good for this version alone.
  // Empty: not known.
  virtual std::string version() const = 0;

  // A machine that it makes code for: "native", that of this process, or one of its names.
  virtual Result<ir::MachineDescription> describe(const std::string& machine) const = 0;
  // Can code be made for a machine that somebody described? Errors: kInvalid, which name the field.
  virtual Status check(const ir::MachineDescription& machine) const = 0;

  // In the order of the kernels. `threads`: how many compile at once; the result depends on neither
  // their number nor their timing. `progress` (may be null) is told of every kernel, from any of
  // these threads.
  virtual Result<std::vector<CompiledKernel>> compile(
      const std::vector<const ir::Kernel*>& kernels, const ir::MachineDescription& machine,
      int threads, const std::function<void(size_t done, size_t total)>& progress) const = 0;

  // Code for people to read.
  virtual Result<std::string> print(const ir::Kernel& kernel, const ir::MachineDescription& machine,
                                    CodeForm form) const = 0;

  // Makes what compile() returned callable in this process; symbols of all objects are found
  // together.
  virtual Result<std::shared_ptr<LoadedCode>> load(
      const std::vector<std::vector<uint8_t>>& objects) const = 0;

  // An object with a table in read-only data: `name`, an array of pointers to the functions, and
  // `count_name`, their number.
  virtual Result<std::vector<uint8_t>> emit_function_table(
      const std::vector<std::string>& functions, const std::string& name,
      const std::string& count_name, const ir::MachineDescription& machine) const = 0;

  // Links objects, its own and relocatable ELF, to a shared object that needs nothing; only symbols
  // starting with "tilewright_" are visible.
  virtual Status link(const std::vector<std::string>& object_paths,
                      const std::string& output_path) const = 0;
};

// Opens it on first use. It stays open: its code may run until the process ends.
Result<const Backend*> open_backend(std::string_view name = "cpu");

// What a backend's library exports, under this name.
inline constexpr const char* kBackendSymbol = "tilewright_backend";
using BackendFunction = const Backend*();

}  // namespace tilewright::codegen
