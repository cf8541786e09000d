// Programs and machine code to an executable: in memory, or as a shared object.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codegen/backend.h"
#include "codegen/cache/file_cache.h"
#include "ir/machine.h"
#include "ir/program/program.h"
#include "runtime/core/result.h"
#include "runtime/executable.h"

namespace tilewright::codegen {

struct AssembleOptions {
  // The CPU whose instructions may be used (a CPU that lacks them refuses the file), and the caches
  // and threads that schedules were chosen for.
  ir::MachineDescription machine;
  int compile_threads = 1;  // that compile kernels at once; no influence on the bytes
  std::string model_name;   // what tw_model_name and `info` print
  std::function<void(size_t done, size_t total)> progress;  // kernels compiled; from any thread
  // Told of each kernel: content_symbol and object_code. Null: nobody wants to know.
  std::function<void(const std::string& symbol, const std::string& code)> on_code;
  const Backend* backend = nullptr;   // null: the CPU's
  cache::FileCache* cache = nullptr;  // of compiled kernels; null: none
  std::string seal_label = {};        // that load_executable must be given for the file
  // Inputs that a caller may leave out, by name, and what they are then: of the input's type and rank.
  std::map<std::string, ir::ConstantRef> defaults = {};
};

// One variant per program, in the order in which a session tries them.
Result<std::shared_ptr<Executable>> assemble_in_memory(std::vector<ir::Program> programs,
                                                       const AssembleOptions& options);

// Writes a shared object that the runtime's load_executable opens. Equal programs and options give
// equal bytes.
Status assemble_shared_object(std::vector<ir::Program> programs, const AssembleOptions& options,
                              const std::string& path);

}  // namespace tilewright::codegen
