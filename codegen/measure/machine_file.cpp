#include "codegen/measure/machine_file.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "codegen/measure/machine_cache.h"
#include "runtime/core/parse_json.h"

namespace tilewright::measure {

namespace {

using Json = nlohmann::ordered_json;
using Machine = ir::MachineDescription;

constexpr int64_t kLeastCache = 4096, kLargestCache = int64_t{1} << 40;

struct CacheField {
  const char* name;
  int64_t Machine::* value;
};
constexpr std::array<CacheField, 3> kCaches{{{"l1_bytes", &Machine::l1_bytes},
                                             {"l2_bytes", &Machine::l2_bytes},
                                             {"l3_bytes", &Machine::l3_bytes}}};
struct VectorField {
  const char* name;
  int Machine::* value;
  std::array<int, 3> values;
  const char* rule;
};
constexpr std::array<VectorField, 2> kVectors{
    {{"vector_bytes", &Machine::vector_bytes, {16, 32, 64}, "16, 32 or 64"},
     {"vector_registers", &Machine::vector_registers, {16, 32, 32}, "16 or 32"}}};
struct Flag {
  const char* name;
  bool Machine::* value;
};
constexpr std::array<Flag, 2> kFlags{
    {{"has_masks", &Machine::has_masks}, {"has_fma", &Machine::has_fma}}};

// Every figure of a speed under its name.
template <typename Visit>
Status each_speed(Visit&& visit) {
  for (const Term& t : terms()) {
    TW_RETURN_IF_ERROR(visit(std::string(t.name), t.value));
    if (t.of_all) TW_RETURN_IF_ERROR(visit(std::string(t.name) + kAll, t.of_all));
  }
  return {};
}

Error expected(const std::string& name, const Json& found, const std::string& rule) {
  constexpr size_t kMost = 60;
  std::string text = found.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return invalid("'" + name + "' is " + text + ", expected " + rule);
}

// JSON itself lets a key come twice, and readers take either.
Result<Json> parse_once_each(const std::string& text) {
  if (!is_shallow_json(text))
    return invalid("nested deeper than " + std::to_string(kMostJsonDepth));
  std::vector<std::set<std::string>> open;
  std::string twice;
  const auto look = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second)
      twice = parsed.get<std::string>();
    return true;
  };
  try {
    Json json = Json::parse(text, look);
    if (!twice.empty()) return invalid("'" + twice + "' is there twice");
    if (!json.is_object()) return invalid("not a JSON object");
    return json;
  } catch (const Json::parse_error& e) {
    return invalid("not JSON: wrong at byte " + std::to_string(e.byte));
  }
}

Status check_names(const Json& object, const std::set<std::string>& known, const char* what) {
  for (const auto& [name, value] : object.items())
    if (!known.count(name)) {
      std::string all;
      for (const std::string& k : known) all += (all.empty() ? "" : ", ") + k;
      return invalid("'" + name + "' is no " + what + "; there are " + all);
    }
  return {};
}

Status read_features(const Json& json, std::vector<std::string>& features) {
  const char* rule = "LLVM's names of CPU features, each once";
  if (!json.is_array()) return expected("features", json, rule);
  std::set<std::string> once;
  for (const Json& f : json)
    if (!f.is_string() || !once.insert(f.get<std::string>()).second)
      return expected("features", f, rule);
  features = json.get<std::vector<std::string>>();
  return {};
}

Status read_speed_terms(const Json& json, ir::MachineSpeed& speed) {
  if (!json.is_object()) return expected("speed", json, "an object of figures");
  std::set<std::string> known;
  TW_RETURN_IF_ERROR(each_speed([&](const std::string& name, double ir::MachineSpeed::* value) {
    known.insert(name);
    const auto found = json.find(name);
    // The usual figures are of a CPU of its own: no mixture of them with others is one.
    if (found == json.end())
      return Status(invalid("'speed' has no '" + name + "': a file gives all figures or none"));
    const double n = found->is_number() ? found->get<double>() : 0;
    if (!(n > 0) || n > kLargestTerm)
      return Status(expected("speed." + name, *found, "a number above 0, of at most 1e9"));
    speed.*value = n;
    return Status();
  }));
  speed.measured = speed.given = true;
  return check_names(json, known, "figure of a speed");
}

Status read_numbers(const Json& json, Machine& m) {
  for (const VectorField& f : kVectors) {
    const auto found = json.find(f.name);
    if (found == json.end()) continue;
    const auto* value = std::find(f.values.begin(), f.values.end(),
                                  found->is_number_integer() ? found->get<int64_t>() : 0);
    if (value == f.values.end()) return expected(f.name, *found, f.rule);
    m.*f.value = *value;
  }
  for (const Flag& f : kFlags) {
    const auto found = json.find(f.name);
    if (found == json.end()) continue;
    if (!found->is_boolean()) return expected(f.name, *found, "true or false");
    m.*f.value = found->get<bool>();
  }
  int64_t least = kLeastCache;  // each level holds the one before
  for (const CacheField& f : kCaches) {
    const auto found = json.find(f.name);
    if (found != json.end()) {
      if (!found->is_number_integer()) return expected(f.name, *found, "a number of bytes");
      m.*f.value = found->is_number_unsigned() && found->get<uint64_t>() > INT64_MAX
                       ? INT64_MAX
                       : found->get<int64_t>();
    }
    if (m.*f.value < least || m.*f.value > kLargestCache)
      return expected(f.name, m.*f.value,
                      "a number of bytes from " + std::to_string(least) +
                          (least > kLeastCache ? " (the level before)" : "") + " to " +
                          std::to_string(kLargestCache));
    least = m.*f.value;
  }
  return {};
}

Result<Machine> parse(const std::string& text, const std::string& cpu,
                      const DescribeCpu& describe) {
  TW_ASSIGN(const Json json, parse_once_each(text));
  std::set<std::string> known{"cpu", "features", "speed"};
  for (const auto& f : kVectors) known.insert(f.name);
  for (const auto& f : kFlags) known.insert(f.name);
  for (const auto& f : kCaches) known.insert(f.name);
  TW_RETURN_IF_ERROR(check_names(json, known, "field of a machine"));
  std::string of = cpu;
  if (const auto named = json.find("cpu"); named != json.end()) {
    if (!named->is_string()) return expected("cpu", *named, "LLVM's name of a CPU");
    of = named->get<std::string>();
    if (cpu != "native" && cpu != of)
      return expected("cpu", *named, "'" + cpu + "', as the command line says");
  }
  TW_ASSIGN(Machine m, describe(of));
  if (const auto f = json.find("features"); f != json.end())
    TW_RETURN_IF_ERROR(read_features(*f, m.features));
  TW_RETURN_IF_ERROR(read_numbers(json, m));
  if (const auto s = json.find("speed"); s != json.end())
    TW_RETURN_IF_ERROR(read_speed_terms(*s, m.speed));
  return m;
}

}  // namespace

std::string to_json(const Machine& m) {
  Json json{{"cpu", m.cpu}, {"features", m.features}};
  for (const VectorField& f : kVectors) json[f.name] = m.*f.value;
  for (const Flag& f : kFlags) json[f.name] = m.*f.value;
  for (const CacheField& f : kCaches) json[f.name] = m.*f.value;
  if (m.speed.measured) {
    Json& speed = json["speed"];
    const Status told =
        each_speed([&](const std::string& name, double ir::MachineSpeed::* value) -> Status {
          speed[name] = m.speed.*value;
          return {};
        });
    TW_CHECK(told.ok());
  }
  return json.dump(2) + "\n";
}

Result<Machine> parse_machine(const std::string& text, const std::string& cpu,
                              const DescribeCpu& describe) {
  return parse(text, cpu, describe);
}

Result<Machine> read_machine(const std::string& file, const std::string& cpu,
                             const DescribeCpu& describe) {
  TW_ASSIGN(const std::string text, read_figures(file));
  Result<Machine> machine = parse(text, cpu, describe);
  if (!machine.ok() && machine.error().location.empty()) machine.error().location = file;
  return machine;
}

}  // namespace tilewright::measure
