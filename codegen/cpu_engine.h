// What stands between the compiler and the part of it that LLVM belongs to. That part is a library
// of its own, opened when code must first be generated: who only runs compiled models never loads
// LLVM.
#pragma once

#include "codegen/cpu/compile_kernels.h"

namespace tilewright::cpu {

// The functions of compile_kernels.h.
struct CpuEngine {
  decltype(&describe_machine) describe;
  decltype(&compile_kernels) compile;
  decltype(&print_code) print;
  decltype(&load_code) load;
  decltype(&emit_function_table) emit_table;
  decltype(&link_shared_object) link;
};
// What libtilewright_llvm.so exports, by this name.
inline constexpr const char* kCpuEngineSymbol = "tilewright_cpu_engine";
using CpuEngineFunction = const CpuEngine*();

}  // namespace tilewright::cpu
