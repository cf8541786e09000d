#include "autotune/learn/cost_model.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/core/fnv.h"
#include "runtime/profiler.h"

namespace tilewright::autotune {

namespace {

constexpr double kUnknown = 0.35;  // analytic costs are good to a factor of about 1.4
constexpr size_t kLeast = 4;       // measurements; trees of fewer say nothing
constexpr size_t kMembers = 6;
// Measurements that came in since the last fit, of those that were in it: fits get rarer as they
// take longer.
constexpr double kFresh = 0.15;

uint64_t hash_of_names() {
  std::string all;
  for (const std::string& name : feature_names()) all += name + "\n";
  return fnv1a(all);
}

}  // namespace

Features relative_features(const Features& form, const Features& usual) {
  Features row = form;
  for (size_t i = 0; i < form.size(); ++i) row.push_back(form[i] - usual[i]);
  return row;
}

void CostModel::learn(std::span<const float> features, double log_ratio) {
  if (!boosting_ || !std::isfinite(log_ratio)) return;
  columns_ = features.size();
  values_.insert(values_.end(), features.begin(), features.end());
  targets_.push_back(static_cast<float>(log_ratio));
}

Status CostModel::refit() {
  const size_t n = targets_.size();
  if (!boosting_ || n < kLeast ||
      static_cast<double>(n - fitted_) < std::max(1.0, kFresh * static_cast<double>(fitted_)))
    return {};
  const Rows rows{values_, columns_};
  if (base_ && starts_.size() < n) {
    const size_t old = starts_.size();
    const Rows fresh{std::span(values_).subspan(old * columns_), columns_};
    TW_ASSIGN(const std::vector<Outlook> outlooks, base_->predict(fresh));
    for (const Outlook& o : outlooks) starts_.push_back(static_cast<float>(o.mean));
  }
  TW_ASSIGN(online_, fit_ensemble(*boosting_, rows, targets_, starts_, {.seed = seed_}, kMembers));
  fitted_ = n;
  ++version_;
  return {};
}

Result<size_t> CostModel::version() {
  const int64_t start = now_nanoseconds();
  TW_RETURN_IF_ERROR(refit());
  nanoseconds_ += now_nanoseconds() - start;
  return version_;
}

Result<std::vector<Outlook>> CostModel::predict(const Rows& rows) {
  if (const auto current = version(); !current.ok()) return current.error();
  const int64_t start = now_nanoseconds();
  auto all = outlooks(rows);
  nanoseconds_ += now_nanoseconds() - start;
  return all;
}

Result<std::vector<Outlook>> CostModel::outlooks(const Rows& rows) {
  std::vector<Outlook> all(rows.count(), Outlook{.mean = 0, .deviation = kUnknown});
  if (base_) { TW_ASSIGN(all, base_->predict(rows)); }
  if (online_.members.empty()) return all;
  TW_ASSIGN(const std::vector<Outlook> online, online_.predict(rows));
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = {.mean = (base_ ? all[i].mean : 0) + online[i].mean, .deviation = online[i].deviation};
  return all;
}

Result<std::vector<uint8_t>> save(const Ensemble& base) {
  nlohmann::json file{
      {"features", hash_of_names()}, {"scale", base.scale}, {"members", nlohmann::json::array()}};
  for (const auto& member : base.members) {
    TW_ASSIGN(std::vector<uint8_t> bytes, member->save());
    file["members"].push_back(nlohmann::json::binary(std::move(bytes)));
  }
  return nlohmann::json::to_cbor(file);
}

Result<Ensemble> load_base_model(const Boosting& boosting, std::span<const uint8_t> bytes) {
  const nlohmann::json file = nlohmann::json::from_cbor(bytes, true, false);
  if (!file.is_object() || !file.contains("features") || !file.contains("scale") ||
      !file.contains("members") || !file["scale"].is_number() || !file["members"].is_array())
    return invalid("the base model is none");
  if (file["features"] != hash_of_names())
    return invalid("the base model is of other features than this program's");
  Ensemble base;
  base.scale = file["scale"].get<double>();
  for (const nlohmann::json& member : file["members"]) {
    if (!member.is_binary()) return invalid("the base model is none");
    TW_ASSIGN(std::unique_ptr<Trees> trees,
              boosting.load(member.get_binary(), 2 * feature_names().size()));
    base.members.push_back(std::move(trees));
  }
  return base;
}

}  // namespace tilewright::autotune
