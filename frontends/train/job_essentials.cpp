#include "frontends/train/job_essentials.h"

#include <nlohmann/json.hpp>
#include <set>

#include "codegen/cache/content_hash.h"
#include "frontends/tensor_files/mapped_file.h"
#include "runtime/core/parse_json.h"

namespace tilewright::train {

namespace {

using Json = nlohmann::ordered_json;

Result<std::string> hash_of_file(const std::filesystem::path& path) {
  if (path.empty()) return std::string();
  TW_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  return cache::ContentHash().add(file->bytes()).hex();
}

// As messages show it: short, and safe to print whatever the file had.
std::string shown(const Json& object, const std::string& key) {
  constexpr size_t kMost = 60;
  if (!object.contains(key)) return "not there";
  const std::string text = object[key].dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() > kMost ? text.substr(0, kMost) + "..." : text;
}

}  // namespace

std::string hash_of(const OnnxModel& model) {
  cache::ContentHash hash;
  for (const OnnxModel::Source& s : model.sources) hash.add(s.bytes);
  return hash.hex();
}

Result<std::string> essentials_of(const Job& job, const std::string& model_hash) {
  const OptimizerJob& o = job.optimizer;
  const ScheduleJob& s = job.schedule;
  TW_ASSIGN(const std::string data, hash_of_file(job.data.file));
  TW_ASSIGN(const std::string order, hash_of_file(job.data.order));
  Json all{{"model", model_hash},
           {"loss", job.loss},
           {"parameters", job.parameters},
           {"statistics", job.statistics},
           {"batch", job.batch},
           {"seed", job.seed},
           {"data.kind", static_cast<int>(job.data.kind)},
           {"data.file", data},
           {"data.inputs", job.data.inputs},
           {"data.targets", job.data.targets},
           {"data.input", job.data.input},
           {"data.length", job.data.length},
           {"data.labels", job.data.labels},
           {"data.order", order},
           {"optimizer.name", o.name},
           {"optimizer.lr", o.lr},
           {"optimizer.momentum", o.momentum},
           {"optimizer.alpha", o.alpha},
           {"optimizer.eps", o.eps},
           {"optimizer.weight_decay", o.weight_decay},
           {"optimizer.no_decay", o.no_decay},
           {"optimizer.betas", {o.betas[0], o.betas[1]}},
           {"optimizer.nesterov", o.nesterov},
           {"optimizer.clip_norm", o.clip_norm},
           {"optimizer.clip_value", o.clip_value},
           {"schedule.kind", static_cast<int>(s.kind)},
           {"schedule.warmup", s.warmup},
           {"schedule.every", s.every},
           {"schedule.gamma", s.gamma},
           {"schedule.least", s.least}};
  if (job.class_axis > 0) all["class_axis"] = job.class_axis;
  if (!job.exclude.empty()) all["exclude"] = job.exclude;
  if (job.parts() > 1) all["accumulate"] = job.parts();
  if (job.distributed.exact) all["distributed.exact"] = true;
  // Only this one knows where the end is: with the others a job may be given more steps.
  if (s.kind == ScheduleKind::kCosine) all["steps"] = job.steps;
  return all.dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::map<std::string, std::string> items_of(const std::string& essentials) {
  std::map<std::string, std::string> items;
  const Json all = parse_json<Json>(essentials);
  for (const auto& [key, value] : all.items()) items[key] = value.dump();
  return items;
}

std::string difference(const std::string& was, const std::string& is) {
  constexpr size_t kMostShown = 3;
  const Json a = parse_json<Json>(was), b = parse_json<Json>(is);
  if (!a.is_object()) return "what it says of its job is no JSON object";
  std::set<std::string> keys;
  for (const Json* o : {&a, &b})
    for (const auto& [key, value] : o->items()) keys.insert(key);
  std::string text;
  size_t differ = 0;
  for (const std::string& key : keys) {
    if (a.contains(key) && b.contains(key) && a[key] == b[key]) continue;
    if (++differ <= kMostShown)
      text +=
          (text.empty() ? "" : ", ") + key + " was " + shown(a, key) + " and is " + shown(b, key);
  }
  if (differ > kMostShown) text += ", and " + std::to_string(differ - kMostShown) + " more";
  return text;
}

}  // namespace tilewright::train
