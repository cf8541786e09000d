#include "frontends/train/ranks.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "codegen/measure/machine_file.h"
#include "runtime/core/parse_json.h"

namespace tilewright::train {

using Json = nlohmann::ordered_json;

// As messages show it: short, and safe to print whatever the other rank sent.
static std::string shown(const Json& value) {
  constexpr size_t kMost = 60;
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  return text.size() > kMost ? text.substr(0, kMost) + "..." : text;
}

Status Ranks::agree(const Status& mine, const std::string& of) const {
  if (!comm()) return mine;
  double failed = mine.ok() ? 0 : 1;
  TW_RETURN_IF_ERROR(
      comm()->all_reduce(distributed::ReduceOp::kSum, {DType::kFloat64, &failed, 1}, of));
  if (failed == 0) return {};
  TW_ASSIGN(const auto texts, comm()->gather_texts(mine.ok() ? "" : mine.error().to_string(), of));
  // A rank's own error has its kind.
  if (!mine.ok()) return mine;
  for (size_t r = 0; r < texts.size(); ++r)
    if (!texts[r].empty()) return invalid("rank " + std::to_string(r) + " ended: " + texts[r]);
  return internal_error("a rank failed without an error", of);
}

// Nobody waits for one that differs: it ends, and is missing where ranks connect.
Status Ranks::compare(const std::map<std::string, std::string>& items) const {
  if (!group_) return {};
  const std::string mine = Json(items).dump(-1, ' ', true, Json::error_handler_t::replace);
  TW_ASSIGN(const std::string text,
            group_->share("essentials", [&]() -> Result<std::string> { return mine; }));
  const Json theirs = parse_json<Json>(text);
  for (const auto& [key, value] : items) {
    const auto there = theirs.find(key);
    if (there == theirs.end() || *there != value)
      return invalid("this rank has " + key + " " + shown(value) + ", others have " +
                     (there == theirs.end() ? "none" : shown(*there)));
  }
  if (theirs.size() != items.size())
    return invalid("other ranks have more that must be equal than this one");
  return {};
}

Status Ranks::share_machine(CompileOptions& options) const {
  if (!group_) return {};
  TW_ASSIGN(const std::string text,
            group_->share("the machine to compile for", [&]() -> Result<std::string> {
              TW_ASSIGN(const passes::LowerOptions lower, lower_options(options));
              return std::to_string(options.schedule_threads) + " " +
                     measure::to_json(lower.machine);
            }));
  const size_t space = std::min(text.find(' '), text.size());
  options.schedule_threads = std::atoi(text.substr(0, space).c_str());
  options.machine_text = text.substr(space);
  return {};
}

Status Ranks::verify(const std::vector<std::string>& items,
                     const std::vector<int64_t>& hashes) const {
  if (!comm()) return {};
  // The largest of each hash, and of its complement: that of the smallest.
  std::vector<int64_t> most = hashes;
  for (const int64_t h : hashes) most.push_back(~h);
  TW_RETURN_IF_ERROR(comm()->all_reduce(
      distributed::ReduceOp::kMax, {DType::kInt64, most.data(), static_cast<int64_t>(most.size())},
      "hashes of the state"));
  size_t first = 0;
  while (first < items.size() && most[first] == ~most[items.size() + first]) ++first;
  if (first == items.size()) return {};
  TW_ASSIGN(const auto all,
            comm()->gather_texts(std::to_string(hashes[first]), "hashes of the state"));
  std::string ranks;
  for (size_t r = 1; r < all.size(); ++r)
    if (all[r] != all[0]) ranks += (ranks.empty() ? "" : ", ") + std::to_string(r);
  return invalid(items[first] + " is not the same on all ranks: rank 0 has it otherwise than " +
                 ranks);
}

Status Ranks::merge(std::span<double> values, const std::string& of) const {
  if (!comm()) return {};
  return comm()->all_reduce(distributed::ReduceOp::kSum,
                            {DType::kFloat64, values.data(), static_cast<int64_t>(values.size())},
                            of);
}

Result<Job> for_ranks(Job job, const Ranks& ranks) {
  if (!ranks.any()) return job;
  return for_ranks(std::move(job), ranks.group()->most());
}

Result<Job> for_ranks(Job job, int most) {
  job.has_ranks = true;
  if (job.accumulate > 0) return job;
  job.accumulate = most;
  if (job.batch % job.accumulate != 0)
    return invalid("batch is " + std::to_string(job.batch) + ", which the " +
                       std::to_string(job.accumulate) +
                       " ranks do not divide into equal parts; `accumulate` may say how many parts "
                       "there are",
                   job.file.string());
  return job;
}

}  // namespace tilewright::train
