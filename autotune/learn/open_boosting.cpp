#include <dlfcn.h>

#include <mutex>
#include <string>

#include "autotune/learn/boosting.h"

namespace tilewright::autotune {

namespace {

constexpr const char* kLibrary = "libtilewright_xgboost.so";

Result<const Boosting*> open() {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library) return Error{ErrorKind::kIo, std::string("cannot learn costs: ") + dlerror()};
  auto* get = reinterpret_cast<BoostingFunction*>(dlsym(library, kBoostingSymbol));
  if (!get)
    return Error{ErrorKind::kIo,
                 std::string("cannot learn costs: ") + kLibrary + " is of another version"};
  return get();
}

}  // namespace

Result<const Boosting*> open_boosting() {
  static std::mutex lock;
  static const Boosting* opened = nullptr;
  std::lock_guard hold(lock);
  if (!opened) { TW_ASSIGN(opened, open()); }
  return opened;
}

}  // namespace tilewright::autotune
