// The one symbol of libtilewright_llvm.so.
#include "codegen/cpu_engine.h"

extern "C" __attribute__((visibility("default"))) const tilewright::cpu::CpuEngine*
tilewright_cpu_engine() {
  using namespace tilewright::cpu;
  static constexpr CpuEngine engine{describe_machine, compile_kernels,     print_code,
                                    load_code,        emit_function_table, link_shared_object};
  return &engine;
}
