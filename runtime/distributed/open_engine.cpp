// Lists the communication engines and loads their libraries.
#include <dlfcn.h>

#include <array>
#include <map>
#include <mutex>

#include "runtime/distributed/transport.h"

namespace tilewright::distributed {

namespace {

// The libraries of both MPIs come from one source, as the two have different binary interfaces. MPI opens plugins
// that look for its own symbols among the global ones.
struct EngineRow {
  const char *name, *library;
  int scope;
};
constexpr std::array kEngines{
    EngineRow{"gloo", "libtilewright_gloo.so", RTLD_LOCAL},
    EngineRow{"openmpi", "libtilewright_openmpi.so", RTLD_GLOBAL},
    EngineRow{"mpich", "libtilewright_mpich.so", RTLD_GLOBAL},
};

Result<const Engine*> open(const EngineRow& row) {
  const std::string what = std::string("engine '") + row.name + "'";
  void* library = dlopen(row.library, RTLD_NOW | row.scope);
  if (!library) return io_error(std::string("cannot be opened: ") + dlerror(), what);
  auto* get = reinterpret_cast<EngineFunction*>(dlsym(library, kEngineSymbol));
  if (!get) return io_error(std::string(row.library) + " is of another version", what);
  return get();
}

}  // namespace

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const EngineRow& row : kEngines) names.emplace_back(row.name);
  return names;
}

Result<const Engine*> open_engine(const std::string& name) {
  static std::mutex lock;
  static std::map<std::string, const Engine*> opened;
  std::lock_guard hold(lock);
  std::string names;
  for (const EngineRow& row : kEngines) {
    names += (names.empty() ? "" : ", ") + std::string(row.name);
    if (row.name != name) continue;
    const Engine*& engine = opened[name];
    if (!engine) { TW_ASSIGN(engine, open(row)); }
    return engine;
  }
  return invalid("no engine is named '" + name + "'; there are: " + names);
}

}  // namespace tilewright::distributed
