// The system's loader knows libraries by name first: it would give the library of an earlier file
// for a path that leads to another one since. So it is given the path of an open descriptor, which
// stays open as long as the library is loaded: a name for this file alone. Debuggers, profilers and
// unwinding see an ordinary library, and its constants are mapped, not copied.
#include "runtime/model_library.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "runtime/elf_file.h"
#include "runtime/model_file.h"
#include "runtime/seal.h"

namespace tilewright {
namespace {

constexpr int kMostNames = 16;  // that a library is tried to be loaded by

class LoadedModel : public ModelLibrary {
 public:
  LoadedModel(ModelFile file, const Seal& seal, PassiveObject object)
      : file_(std::move(file)), seal_(seal), object_(std::move(object)) {}
  ~LoadedModel() override {
    if (handle_) dlclose(handle_);  // before the file's number is free for another one
  }

  Result<const uint8_t*> find(const char* name, uint64_t bytes) const override {
    const uint64_t address = object_.symbols.at(name);
    const Elf64_Phdr* segment = object_.segments.find(address, bytes);
    if (!segment) return invalid(std::string("damaged: ") + name + " exceeds its segment");
    // What relocations do not change is used from the pages that were checked, which the process
    // has.
    return segment->p_flags & PF_W ? reinterpret_cast<const uint8_t*>(base_ + address)
                                   : file_.bytes().data() + object_.segments.offset_of(address);
  }
  bool is_code(const void* address) const override {
    return object_.segments.is_loaded(reinterpret_cast<uintptr_t>(address) - base_, 1, PF_X);
  }

  const ModelFile& file() const { return file_; }
  const Seal& seal() const { return seal_; }
  // A name is taken where a program closed the descriptor of a library that is loaded, or loaded
  // the file by itself: the loader then gives what it has by that name, and the next number is
  // tried.
  Status load(const std::vector<std::unique_ptr<LoadedModel>>& others) {
    for (int i = 0; i < kMostNames; ++i) {
      const std::string path = file_.path();
      if (path.empty())
        return io_error("cannot be loaded: the file was replaced, and /proc is not mounted");
      void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (!handle) {
        const char* why = dlerror();
        return io_error(std::string("cannot be loaded: ") + (why ? why : "unknown reason"));
      }
      link_map* map = nullptr;
      const bool is_known = std::any_of(others.begin(), others.end(),
                                        [&](const auto& o) { return o->handle_ == handle; });
      if (!is_known && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && path == map->l_name &&
          file_.leads_here(path)) {
        handle_ = handle;
        base_ = map->l_addr;
        return {};
      }
      dlclose(handle);
      if (!file_.renumber()) return io_error("cannot be loaded: too many files are open");
    }
    return io_error("cannot be loaded: the program has a library open by the same name");
  }

  int users = 0;

 private:
  ModelFile file_;
  const Seal seal_;
  const PassiveObject object_;
  void* handle_ = nullptr;
  uintptr_t base_ = 0;
};

// All libraries that are loaded. Never destroyed, as models may be freed while the program ends.
class Registry {
 public:
  static Registry& get() {
    static Registry& registry = *new Registry;
    return registry;
  }

  Result<std::shared_ptr<const ModelLibrary>> load(std::unique_ptr<LoadedModel> model) {
    TW_ASSIGN(const LoadedModel* loaded, use(std::move(model)));
    return std::shared_ptr<const ModelLibrary>(loaded,
                                               [](const ModelLibrary* m) { get().release(m); });
  }

 private:
  // A fork waits until no thread is loading, so that the child finds the list whole and the lock
  // free.
  Registry() {
    pthread_atfork([] { get().lock_.lock(); }, [] { get().lock_.unlock(); },
                   [] { get().lock_.unlock(); });
  }
  // The model's library, or the one that is there for the same file, with one user more.
  Result<const LoadedModel*> use(std::unique_ptr<LoadedModel> model) {
    const std::lock_guard hold(lock_);
    for (const auto& m : loaded_) {
      if (!m->file().is_same(model->file())) continue;
      if (m->seal() != model->seal())
        return invalid(
            "was rewritten while the model that it held before is in use: write models beside "
            "their place and rename them");
      ++m->users;
      return m.get();
    }
    TW_RETURN_IF_ERROR(model->load(loaded_));
    loaded_.push_back(std::move(model));
    ++loaded_.back()->users;
    return loaded_.back().get();
  }
  void release(const ModelLibrary* model) {
    const std::lock_guard hold(lock_);
    const auto at = std::find_if(loaded_.begin(), loaded_.end(),
                                 [&](const auto& m) { return m.get() == model; });
    if (--(*at)->users == 0) loaded_.erase(at);
  }

  std::mutex lock_;
  std::vector<std::unique_ptr<LoadedModel>> loaded_;
};

}  // namespace

Result<std::shared_ptr<const ModelLibrary>> open_model_library(const std::string& path,
                                                               std::string_view label) {
  TW_ASSIGN(ModelFile file, ModelFile::open(path));
  const std::optional<Seal> seal = read_seal(file.bytes());
  if (seal) TW_RETURN_IF_ERROR(check_seal(file.bytes(), *seal, label));
  TW_ASSIGN(
      PassiveObject object,
      check_passive_object(seal ? file.bytes().first(seal->bytes) : file.bytes(),
                           {"tilewright_abi", "tilewright_metadata", "tilewright_metadata_size",
                            "tilewright_constants", "tilewright_constants_size",
                            "tilewright_kernels", "tilewright_kernel_count"}));
  if (!seal)
    return invalid(
        "has no seal at its end, as it was cut off, stripped, or compiled by an earlier version: "
        "compile "
        "the model again");
  return Registry::get().load(
      std::make_unique<LoadedModel>(std::move(file), *seal, std::move(object)));
}

}  // namespace tilewright
