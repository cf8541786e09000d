// Kernels to machine code: LLVM optimisation and code emission, in-memory loading, linking of
// shared objects. What codegen::Backend (backend.h) asks of a CPU.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "codegen/backend.h"
#include "ir/loops/nodes.h"
#include "ir/machine.h"
#include "runtime/core/result.h"

namespace tilewright::cpu {

// The CPU this process runs on, or one by LLVM's name ("x86-64-v3", "skylake-avx512", "znver4").
Result<ir::MachineDescription> describe_machine(const std::string& cpu = "native");

// Are its features among those that generated code may use, and do they have the vectors it names?
// It may do with fewer and narrower ones than they have.
Status check_machine(const ir::MachineDescription& machine);

using codegen::CodeForm;
using codegen::CompiledKernel;
using codegen::LoadedCode;

// See Backend::version: by the build ids of this library and of LLVM's.
std::string compiler_version();

// See Backend::compile, print and load: one module per kernel, so that kernels compile in parallel
// and one's code does not depend on another's. Errors: kInternal for IR that LLVM refuses.
Result<std::vector<CompiledKernel>> compile_kernels(
    const std::vector<const ir::Kernel*>& kernels, const ir::MachineDescription& machine,
    int threads, const std::function<void(size_t done, size_t total)>& progress = nullptr);

// The kernel as LLVM IR after the pipeline, or as assembly with LLVM's comments: for people.
Result<std::string> print_code(const ir::Kernel& kernel, const ir::MachineDescription& machine,
                               CodeForm form);

// Objects of compile_kernels, linked in this process. Errors: kInternal, with LLVM's reason.
Result<std::shared_ptr<LoadedCode>> load_code(const std::vector<std::vector<uint8_t>>& objects);

// A table of functions in read-only data: `name`, an array of pointers to the named functions, and
// `count_name`.
Result<std::vector<uint8_t>> emit_function_table(const std::vector<std::string>& functions,
                                                 const std::string& name,
                                                 const std::string& count_name,
                                                 const ir::MachineDescription& machine);
// Links relocatable ELF files to a shared object that needs nothing; only symbols starting with
// "tilewright_" are visible.
Status link_shared_object(const std::vector<std::string>& object_paths,
                          const std::string& output_path);

}  // namespace tilewright::cpu
