#include "frontends/compiler/kept_executable.h"

#include <nlohmann/json.hpp>

#include "codegen/backend.h"
#include "codegen/cache/build_id.h"
#include "codegen/cache/content_hash.h"
#include "codegen/measure/machine_cache.h"
#include "runtime/core/open_file.h"
#include "runtime/core/parse_json.h"

namespace tilewright {

namespace {

using Json = nlohmann::ordered_json;

// Returns the contents of a file, an empty string if it does not exist, and nothing if it cannot be read: compiling
// reports that.
std::optional<std::string> contents(const std::string& path) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 30;
  if (path.empty() || !is_taken(path)) return "";
  auto text = read_whole(path, kMostBytes);
  return text.ok() ? std::optional(std::move(*text)) : std::nullopt;
}

// Both halves of the compiler: what holds this code, and the backend. Empty: not known.
std::string compiler_version() {
  const auto backend = codegen::open_backend();
  const std::string ours = cache::build_id(reinterpret_cast<const void*>(&compiler_version)),
                    theirs = backend.ok() ? (*backend)->version() : "";
  return ours.empty() || theirs.empty() ? "" : ours + " " + theirs;
}

// The machine that is compiled for: its name, or what this one is and how fast it was measured to be.
std::string machine_of(const CompileOptions& options) {
  if (options.cpu != "native") return options.cpu;
  const std::string measured = measure::cache_file();
  return "native " + measured + " " + contents(measured).value_or("");
}

// Nothing where a file that is needed cannot be read.
std::string name_of(const OnnxModel& model, const Binding& binding, const CompileOptions& options,
                    const std::string& version) {
  cache::ContentHash hash;
  hash.add("executable").add(version).add(machine_of(options));
  if (!options.machine.empty()) {
    const Result<std::string> described = measure::read_figures(options.machine);
    if (!described.ok()) return {};
    hash.add("described").add(*described);
  }
  if (!options.machine_text.empty()) hash.add("described as").add(options.machine_text);
  hash.add(options.schedule_threads).add(options.fuse).add(options.schedule);
  hash.add(name(options.numerics));
  const std::optional<std::string> database = contents(options.database);
  if (!database) return {};
  hash.add(*database);
  hash.add(options.guess);
  for (const auto& [input, shape] : binding.shapes) {
    hash.add(input);
    hash.add(static_cast<int64_t>(shape.size()));
    for (const int64_t extent : shape) hash.add(extent);
  }
  hash.add(";");
  for (const auto& [symbol, extent] : binding.symbols) hash.add(symbol).add(extent);
  hash.add(binding.names_apart);
  for (const std::string& name : binding.overrides) hash.add("override").add(name);
  for (const OnnxModel::Source& s : model.sources) hash.add(s.bytes);
  return hash.hex();
}

// A model may take half of the cache, and must be known by its bytes.
bool is_keepable(const OnnxModel& model, const cache::FileCache* cache) {
  int64_t bytes = 0;
  for (const OnnxModel::Source& s : model.sources) bytes += static_cast<int64_t>(s.bytes.size());
  return cache && bytes > 0 && bytes <= cache->most_bytes() / 2;
}

std::vector<uint8_t> to_bytes(const KeptAbout& about) {
  const std::string text = Json{{"specialised", about.specialised}, {"notes", about.notes}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
  return {text.begin(), text.end()};
}
std::optional<KeptAbout> from_bytes(const std::vector<uint8_t>& bytes) {
  const Json json = parse_json<Json>({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  KeptAbout about;
  for (auto [key, list] : {std::pair{"specialised", &about.specialised}, {"notes", &about.notes}}) {
    if (!json.is_object() || !json.contains(key) || !json[key].is_array()) return std::nullopt;
    for (const Json& text : json[key]) {
      if (!text.is_string()) return std::nullopt;
      list->push_back(text.get<std::string>());
    }
  }
  return about;
}

}  // namespace

KeptExecutable::KeptExecutable(const OnnxModel& model, const Binding& binding,
                               const CompileOptions& options)
    : binding_(binding), cache_(options.cache) {
  if (!is_keepable(model, cache_)) return;
  const std::string version = compiler_version();
  if (!version.empty()) name_ = name_of(model, binding, options, version);
}

std::string KeptExecutable::name_for(const std::vector<std::string>& specialised) const {
  cache::ContentHash hash;
  hash.add(name_);
  for (const std::string& input : specialised) {
    const auto value = binding_.values.find(input);
    if (value == binding_.values.end()) return {};
    hash.add(input).add(std::span(value->second->data, value->second->bytes));
  }
  return hash.hex();
}

// Two steps, since only what was compiled knows which inputs' values had a say in it.
std::shared_ptr<Executable> KeptExecutable::find(KeptAbout& about) const {
  if (name_.empty()) return nullptr;
  const auto bytes = cache_->read(name_);
  auto said = bytes ? from_bytes(*bytes) : std::nullopt;
  const std::string name = said ? name_for(said->specialised) : "";
  const auto path = name.empty() ? std::nullopt : cache_->find(name);
  if (!path) return nullptr;
  auto executable = load_executable(*path, name);
  if (!executable.ok()) return nullptr;
  about = std::move(*said);
  return std::move(*executable);
}

Result<std::shared_ptr<Executable>> KeptExecutable::assemble(
    std::vector<ir::Program> programs, const codegen::AssembleOptions& options,
    const KeptAbout& about) const {
  const std::string name = name_.empty() ? "" : name_for(about.specialised);
  if (name.empty()) return codegen::assemble_in_memory(std::move(programs), options);
  codegen::AssembleOptions sealed = options;
  sealed.seal_label = name;
  const auto path = cache_->keep(name, [&](FileWriter& file) {
    return codegen::assemble_shared_object(programs, sealed, file.path());
  });
  if (path) {
    cache_->write(name_, to_bytes(about));
    auto executable = load_executable(*path, name);
    if (executable.ok()) return executable;
  }
  return codegen::assemble_in_memory(std::move(programs), options);
}

}  // namespace tilewright
