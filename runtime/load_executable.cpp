// Loads a model compiled to a shared object. The order matters: the file is checked before the
// system opens it, the ABI, the metadata and the CPU before a kernel can run.
#include <dlfcn.h>
#include <link.h>

#include <cstring>

#include "runtime/arena.h"
#include "runtime/device_cpu.h"
#include "runtime/elf_file.h"
#include "runtime/executable.h"

namespace tilewright {
namespace {

// Whether [data, data + bytes) lies in one loaded segment of the library that defines `data`.
struct Range {
  uintptr_t begin, bytes;
  bool found = false;
};
int find_range(dl_phdr_info* info, size_t, void* data) {
  auto* range = static_cast<Range*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) & p = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + p.p_vaddr;
    if (p.p_type != PT_LOAD || range->begin < begin || range->begin - begin > p.p_memsz) continue;
    range->found |= range->bytes <= p.p_memsz - (range->begin - begin);
  }
  return range->found;
}

class Library {
 public:
  static Result<Library> open(const std::string& path) {
    TW_RETURN_IF_ERROR(check_passive_object(
        path, {"tilewright_abi", "tilewright_metadata", "tilewright_metadata_size",
               "tilewright_constants", "tilewright_constants_size", "tilewright_kernels",
               "tilewright_kernel_count"}));
    // A name without a slash would be searched for in the system's folders.
    const std::string full = path.find('/') == std::string::npos ? "./" + path : path;
    void* handle = dlopen(full.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char* why = dlerror();
      return io_error(std::string("cannot be loaded: ") + (why ? why : "unknown reason"), path);
    }
    Library library;
    library.path_ = path;
    library.handle_ = std::shared_ptr<void>(handle, [](void* h) { dlclose(h); });
    return library;
  }

  // The exported object `name` of `bytes` bytes.
  Result<const uint8_t*> find(const char* name, uint64_t bytes) const {
    void* symbol = dlsym(handle_.get(), name);
    if (!symbol)
      return invalid(std::string("not a tilewright model: it does not export ") + name, path_);
    Range range{reinterpret_cast<uintptr_t>(symbol), bytes};
    dl_iterate_phdr(find_range, &range);
    if (!range.found)
      return invalid(std::string("damaged: ") + name + " exceeds its segment", path_);
    return static_cast<const uint8_t*>(symbol);
  }

  template <typename T>
  Result<T> read(const char* name) const {
    TW_ASSIGN(const uint8_t* data, find(name, sizeof(T)));
    T value;
    std::memcpy(&value, data, sizeof value);
    return value;
  }

  const std::shared_ptr<void>& handle() const { return handle_; }

 private:
  std::string path_;
  std::shared_ptr<void> handle_;
};

Result<Executable> read_metadata(const Library& library) {
  TW_ASSIGN(const uint32_t abi, library.read<uint32_t>("tilewright_abi"));
  if (abi != kExecutableAbi)
    return unsupported("compiled for runtime ABI " + std::to_string(abi) +
                       ", this runtime has ABI " + std::to_string(kExecutableAbi));
  TW_ASSIGN(const uint64_t bytes, library.read<uint64_t>("tilewright_metadata_size"));
  TW_ASSIGN(const uint8_t* data, library.find("tilewright_metadata", bytes));
  TW_ASSIGN(Executable executable, deserialize_executable(data, bytes));
  TW_RETURN_IF_ERROR(check_cpu_features(executable.cpu_features));
  return executable;
}

Status attach_constants(const Library& library, Executable& executable) {
  TW_ASSIGN(const uint64_t bytes, library.read<uint64_t>("tilewright_constants_size"));
  if (bytes != static_cast<uint64_t>(executable.constants_bytes))
    return invalid("damaged: " + std::to_string(bytes) + " bytes of constants, expected " +
                   std::to_string(executable.constants_bytes));
  TW_ASSIGN(executable.constants, library.find("tilewright_constants", bytes));
  if (reinterpret_cast<uintptr_t>(executable.constants) % kAlignment != 0)
    return invalid("damaged: the constants are not aligned");
  return {};
}

Status attach_kernels(const Library& library, Executable& executable) {
  TW_ASSIGN(const uint64_t count, library.read<uint64_t>("tilewright_kernel_count"));
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
      if (!k.function) return invalid("damaged: kernel '" + k.name + "' is missing");
    }
  return {};
}

Result<Executable> read_model(const Library& library) {
  TW_ASSIGN(Executable executable, read_metadata(library));
  TW_RETURN_IF_ERROR(attach_constants(library, executable));
  TW_RETURN_IF_ERROR(attach_kernels(library, executable));
  executable.owner = library.handle();
  return executable;
}

}  // namespace

Result<std::shared_ptr<Executable>> load_executable(const std::string& path) {
  TW_ASSIGN(const Library library, Library::open(path));
  Result<Executable> executable = read_model(library);
  if (!executable.ok()) {
    if (executable.error().location.empty()) executable.error().location = path;
    return std::move(executable.error());
  }
  return std::make_shared<Executable>(std::move(*executable));
}

}  // namespace tilewright
