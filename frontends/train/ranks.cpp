#include "frontends/train/ranks.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "codegen/measure/machine_file.h"

namespace tilewright::train {

using Json = nlohmann::ordered_json;

// As messages show it: short, and safe to print whatever the other rank sent.
static std::string shown(const Json& value) {
  constexpr size_t kMost = 60;
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  return text.size() > kMost ? text.substr(0, kMost) + "..." : text;
}

Status Ranks::agree(const Status& mine, const std::string& of) const {
  if (!comm_) return mine;
  double failed = mine.ok() ? 0 : 1;
  TW_RETURN_IF_ERROR(comm_->all_reduce(distributed::ReduceOp::kSum,
                                       {DType::kFloat64, &failed, 1}, of));
  if (failed == 0) return {};
  TW_ASSIGN(const auto texts,
            comm_->gather_texts(mine.ok() ? "" : mine.error().to_string(), of));
  // A rank's own error has its kind.
  if (!mine.ok()) return mine;
  for (size_t r = 0; r < texts.size(); ++r)
    if (!texts[r].empty()) return invalid("rank " + std::to_string(r) + " ended: " + texts[r]);
  return internal_error("a rank failed without an error", of);
}

Status Ranks::compare(const std::map<std::string, std::string>& items) const {
  if (!comm_) return {};
  const std::string mine = Json(items).dump(-1, ' ', true, Json::error_handler_t::replace);
  TW_ASSIGN(const auto texts, comm_->gather_texts(mine, "what ranks must have in common"));
  const Json first = Json::parse(texts[0], nullptr, false);
  for (size_t r = 1; r < texts.size(); ++r) {
    const Json other = Json::parse(texts[r], nullptr, false);
    if (first == other) continue;
    for (const auto& [key, value] : first.items())
      if (const auto theirs = other.find(key); theirs == other.end() || *theirs != value)
        return invalid("rank " + std::to_string(r) + " has " + key + " " +
                       (theirs == other.end() ? "not at all" : shown(*theirs)) + ", rank 0 has " +
                       shown(value));
    return invalid("rank " + std::to_string(r) + " has more that must be equal than rank 0");
  }
  return {};
}

Status Ranks::share_machine(CompileOptions& options) const {
  if (!comm_) return {};
  std::string text;
  Status status;
  if (is_first()) {
    const auto lower = lower_options(options);
    if (lower.ok())
      text = std::to_string(options.schedule_threads) + " " + measure::to_json(lower->machine);
    else
      status = lower.error();
  }
  TW_RETURN_IF_ERROR(agree(status, "the machine to compile for"));
  TW_ASSIGN(text, comm_->broadcast_text(text, 0, "the machine to compile for"));
  const size_t space = std::min(text.find(' '), text.size());
  options.schedule_threads = std::atoi(text.substr(0, space).c_str());
  options.machine_text = text.substr(space);
  return {};
}

Status Ranks::merge(std::span<double> values, const std::string& of) const {
  if (!comm_) return {};
  return comm_->all_reduce(
      distributed::ReduceOp::kSum,
      {DType::kFloat64, values.data(), static_cast<int64_t>(values.size())}, of);
}

Result<Job> for_ranks(Job job, const Ranks& ranks) {
  if (!ranks.any()) return job;
  job.has_ranks = true;
  if (job.accumulate > 0) return job;
  job.accumulate = ranks.size();
  if (job.batch % job.accumulate != 0)
    return invalid("batch is " + std::to_string(job.batch) + ", which the " +
                       std::to_string(ranks.size()) +
                       " ranks do not divide into equal parts; `accumulate` may say how many parts "
                       "there are",
                   job.file.string());
  return job;
}

}  // namespace tilewright::train
