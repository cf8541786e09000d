#include "autotune/database/record.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/core/fnv.h"
#include "runtime/core/parse_json.h"

namespace tilewright::autotune {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 3, kFirstVersion = 1;
constexpr std::string_view kStates[] = {"confirmed", "provisional", "withdrawn"};

std::string checksum(const Json& fields) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(fnv1a(fields.dump())));
  return text;
}

Result<double> positive(const Json& value, const char* what) {
  const double n = value.is_number() ? value.get<double>() : 0;
  if (!(n > 0) || !std::isfinite(n)) return invalid(std::string("'") + what + "' is no time");
  return n;
}

}  // namespace

std::string_view name(Record::State state) { return kStates[static_cast<size_t>(state)]; }

std::string to_line(const Record& r) {
  Json answers = Json::object();
  for (const auto& [name, value] : r.answers) answers[name] = value;
  Json fields{{"version", kVersion},
              {"task", r.task},
              {"device", r.device},
              {"family", r.family},
              {"answers", std::move(answers)},
              {"schedule", passes::to_string(r.schedule)},
              {"usual_us", r.usual_us},
              {"tuned_us", r.tuned_us},
              {"ratio", {r.low, r.high}},
              {"state", name(r.state)}};
  fields["checksum"] = checksum(fields);
  return fields.dump() + "\n";
}

Result<Record> parse_line(const std::string& line) {
  Json fields = parse_json<Json>(line);
  if (!fields.is_object()) return invalid("no JSON object");
  const auto sum = fields.find("checksum");
  if (sum == fields.end() || !sum->is_string()) return invalid("there is no checksum");
  const std::string given = sum->get<std::string>();
  fields.erase("checksum");
  if (given != checksum(fields)) return invalid("the checksum is wrong");
  const Json version = fields.value("version", Json());
  if (!version.is_number_integer() || version < kFirstVersion || version > kVersion)
    return invalid("of another version");
  const Json task = fields.value("task", Json()), device = fields.value("device", Json()),
             answers = fields.value("answers", Json()), steps = fields.value("schedule", Json()),
             ratio = fields.value("ratio", Json());
  if (!task.is_string() || !device.is_string() || !answers.is_object() || !steps.is_string() ||
      !ratio.is_array() || ratio.size() != 2)
    return invalid("a field is missing, or of another type");
  const Json family = fields.value("family", Json());
  if (!family.is_string() && version >= 2) return invalid("'family' is missing, or no text");
  Record r{.task = task.get<std::string>(),
           .device = device.get<std::string>(),
           .family = family.is_string() ? family.get<std::string>() : ""};
  for (const auto& [name, value] : answers.items()) {
    if (!value.is_number_integer()) return invalid("answer '" + name + "' is no integer");
    r.answers[name] = value.get<int64_t>();
  }
  TW_ASSIGN(r.schedule, passes::parse_trace(steps.get<std::string>()));
  TW_ASSIGN(r.usual_us, positive(fields.value("usual_us", Json()), "usual_us"));
  TW_ASSIGN(r.tuned_us, positive(fields.value("tuned_us", Json()), "tuned_us"));
  TW_ASSIGN(r.low, positive(ratio[0], "ratio"));
  TW_ASSIGN(r.high, positive(ratio[1], "ratio"));
  if (version < 3) return r;
  const Json state = fields.value("state", Json());
  for (size_t i = 0; i < std::size(kStates); ++i)
    if (state == kStates[i]) return r.state = static_cast<Record::State>(i), r;
  return invalid("'state' is missing, or none that is known");
}

}  // namespace tilewright::autotune
