// The backend of this folder, and the one symbol of libtilewright_llvm.so.
#include "codegen/backend.h"
#include "codegen/cpu/compile_kernels.h"

namespace tilewright::cpu {

namespace {

class CpuBackend : public codegen::Backend {
 public:
  std::string version() const override { return compiler_version(); }
  Result<ir::MachineDescription> describe(const std::string& machine) const override {
    return describe_machine(machine);
  }
  Status check(const ir::MachineDescription& machine) const override {
    return check_machine(machine);
  }
  Result<std::vector<CompiledKernel>> compile(
      const std::vector<const ir::Kernel*>& kernels, const ir::MachineDescription& machine,
      int threads, const std::function<void(size_t, size_t)>& progress) const override {
    return compile_kernels(kernels, machine, threads, progress);
  }
  Result<std::string> print(const ir::Kernel& kernel, const ir::MachineDescription& machine,
                            CodeForm form) const override {
    return print_code(kernel, machine, form);
  }
  Result<std::shared_ptr<LoadedCode>> load(
      const std::vector<std::vector<uint8_t>>& objects) const override {
    return load_code(objects);
  }
  Result<std::vector<uint8_t>> emit_function_table(
      const std::vector<std::string>& functions, const std::string& name,
      const std::string& count_name, const ir::MachineDescription& machine) const override {
    return cpu::emit_function_table(functions, name, count_name, machine);
  }
  Status link(const std::vector<std::string>& object_paths,
              const std::string& output_path) const override {
    return link_shared_object(object_paths, output_path);
  }
};

}  // namespace

}  // namespace tilewright::cpu

extern "C" __attribute__((visibility("default"))) const tilewright::codegen::Backend*
tilewright_backend() {
  static const tilewright::cpu::CpuBackend backend;
  return &backend;
}
