// Loads a model compiled to a shared object. The order matters: the file is checked before the
// system opens it, the ABI, the metadata and the CPU before a kernel can run.
#include <cstring>

#include "runtime/arena.h"
#include "runtime/device_cpu.h"
#include "runtime/executable.h"
#include "runtime/model_library.h"

namespace tilewright {
namespace {

template <typename T>
Result<T> read(const ModelLibrary& library, const char* name) {
  TW_ASSIGN(const uint8_t* data, library.find(name, sizeof(T)));
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

Result<Executable> read_metadata(const ModelLibrary& library) {
  TW_ASSIGN(const uint32_t abi, read<uint32_t>(library, "tilewright_abi"));
  if (abi != kExecutableAbi)
    return unsupported("compiled for runtime ABI " + std::to_string(abi) +
                       ", this runtime has ABI " + std::to_string(kExecutableAbi));
  TW_ASSIGN(const uint64_t bytes, read<uint64_t>(library, "tilewright_metadata_size"));
  TW_ASSIGN(const uint8_t* data, library.find("tilewright_metadata", bytes));
  TW_ASSIGN(Executable executable, deserialize_executable(data, bytes));
  TW_RETURN_IF_ERROR(check_cpu_features(executable.cpu_features));
  return executable;
}

Status attach_constants(const ModelLibrary& library, Executable& executable) {
  TW_ASSIGN(const uint64_t bytes, read<uint64_t>(library, "tilewright_constants_size"));
  if (bytes != static_cast<uint64_t>(executable.constants_bytes))
    return invalid("damaged: " + std::to_string(bytes) + " bytes of constants, expected " +
                   std::to_string(executable.constants_bytes));
  TW_ASSIGN(executable.constants, library.find("tilewright_constants", bytes));
  if (reinterpret_cast<uintptr_t>(executable.constants) % kAlignment != 0)
    return invalid("damaged: the constants are not aligned");
  return {};
}

Status attach_kernels(const ModelLibrary& library, Executable& executable) {
  TW_ASSIGN(const uint64_t count, read<uint64_t>(library, "tilewright_kernel_count"));
  uint64_t expected = 0;
  for (const Variant& v : executable.variants) expected += v.kernels.size();
  if (count != expected)
    return invalid("damaged: " + std::to_string(count) + " kernels, expected " +
                   std::to_string(expected));
  TW_ASSIGN(const uint8_t* table, library.find("tilewright_kernels", count * sizeof(TwKernel)));
  for (Variant& v : executable.variants)
    for (KernelDesc& k : v.kernels) {
      std::memcpy(&k.function, table, sizeof k.function);
      table += sizeof k.function;
      if (!library.is_code(reinterpret_cast<const void*>(k.function)))
        return invalid("damaged: kernel '" + k.name + "' is missing");
    }
  return {};
}

Result<Executable> read_model(const std::shared_ptr<const ModelLibrary>& library) {
  TW_ASSIGN(Executable executable, read_metadata(*library));
  TW_RETURN_IF_ERROR(attach_constants(*library, executable));
  TW_RETURN_IF_ERROR(attach_kernels(*library, executable));
  executable.owner = std::const_pointer_cast<ModelLibrary>(library);
  return executable;
}

}  // namespace

Result<std::shared_ptr<Executable>> load_executable(const std::string& path,
                                                    std::string_view label) {
  const auto load = [&]() -> Result<Executable> {
    TW_ASSIGN(const std::shared_ptr<const ModelLibrary> library, open_model_library(path, label));
    return read_model(library);
  };
  Result<Executable> executable = load();
  if (!executable.ok()) {
    if (executable.error().location.empty()) executable.error().location = path;
    return std::move(executable.error());
  }
  return std::make_shared<Executable>(std::move(*executable));
}

}  // namespace tilewright
