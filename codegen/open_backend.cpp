// The table of backends, and the libraries that hold them.
#include <dlfcn.h>

#include <array>
#include <mutex>

#include "codegen/backend.h"

namespace tilewright::codegen {

namespace {

// A backend's name on the command line and the library found by the system's loader.
struct BackendRow {
  std::string_view name;
  const char* library;
};
constexpr std::array kBackends{
    BackendRow{"cpu", "libtilewright_llvm.so"},
};

Result<const Backend*> open(const BackendRow& row) {
  void* library = dlopen(row.library, RTLD_NOW | RTLD_LOCAL);
  if (!library) return Error{ErrorKind::kIo, std::string("cannot generate code: ") + dlerror()};
  auto* get = reinterpret_cast<BackendFunction*>(dlsym(library, kBackendSymbol));
  if (!get)
    return Error{ErrorKind::kIo,
                 std::string("cannot generate code: ") + row.library + " is of another version"};
  return get();
}

}  // namespace

Result<const Backend*> open_backend(std::string_view name) {
  static std::mutex lock;
  static std::array<const Backend*, kBackends.size()> opened{};
  std::lock_guard hold(lock);
  std::string names;
  for (size_t i = 0; i < kBackends.size(); ++i) {
    if (kBackends[i].name != name) {
      names += (names.empty() ? "" : ", ") + std::string(kBackends[i].name);
      continue;
    }
    if (!opened[i]) { TW_ASSIGN(opened[i], open(kBackends[i])); }
    return opened[i];
  }
  return invalid("no backend is named '" + std::string(name) + "'; there are: " + names);
}

}  // namespace tilewright::codegen
