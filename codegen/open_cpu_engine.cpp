// compile_kernels.h for all who do not link LLVM: opens the library that does, on first use.
#include <dlfcn.h>

#include "codegen/cpu_engine.h"

namespace tilewright::cpu {

namespace {

constexpr const char* kLibrary = "libtilewright_llvm.so";

Result<const CpuEngine*> open_engine() {
  // Stays open: code that it loaded may run until the end.
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library) return Error{ErrorKind::kIo, std::string("cannot generate code: ") + dlerror()};
  auto* get = reinterpret_cast<CpuEngineFunction*>(dlsym(library, kCpuEngineSymbol));
  if (!get)
    return Error{ErrorKind::kIo,
                 std::string("cannot generate code: ") + kLibrary + " is of another version"};
  return get();
}
const Result<const CpuEngine*>& engine() {
  static const Result<const CpuEngine*> opened = open_engine();
  return opened;
}

}  // namespace

Result<ir::MachineDescription> describe_machine(const std::string& cpu) {
  TW_ASSIGN(const CpuEngine* e, engine());
  return e->describe(cpu);
}
Result<CompiledKernels> compile_kernels(const std::vector<const ir::Kernel*>& kernels,
                                        const ir::MachineDescription& machine, int threads,
                                        const std::function<void(size_t, size_t)>& progress) {
  TW_ASSIGN(const CpuEngine* e, engine());
  return e->compile(kernels, machine, threads, progress);
}
Result<std::string> print_code(const ir::Kernel& kernel, const ir::MachineDescription& machine,
                               CodeForm form) {
  TW_ASSIGN(const CpuEngine* e, engine());
  return e->print(kernel, machine, form);
}
Result<std::shared_ptr<LoadedCode>> load_code(const std::vector<std::vector<uint8_t>>& objects) {
  TW_ASSIGN(const CpuEngine* e, engine());
  return e->load(objects);
}
Result<std::vector<uint8_t>> emit_function_table(const std::vector<std::string>& functions,
                                                 const std::string& name,
                                                 const std::string& count_name,
                                                 const ir::MachineDescription& machine) {
  TW_ASSIGN(const CpuEngine* e, engine());
  return e->emit_table(functions, name, count_name, machine);
}
Status link_shared_object(const std::vector<std::string>& object_paths,
                          const std::string& output_path) {
  TW_ASSIGN(const CpuEngine* e, engine());
  return e->link(object_paths, output_path);
}

}  // namespace tilewright::cpu
