// What measurements say that the analytic cost does not: trees that learn log(measured / expected)
// of forms, online, with an interval. They are fitted again and again as measurements come in, on
// top of a base model where there is one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "autotune/learn/boosting.h"
#include "autotune/learn/features.h"

namespace tilewright::autotune {

// A number that is about normally distributed: logarithms of ratios of times.
struct Outlook {
  double mean = 0, deviation = 0;
};

// Several fits to the same measurements, each weighing them otherwise (bootstrap: Efron, 1979): where
// they differ, measurements say little.
struct Ensemble {
  std::vector<std::unique_ptr<Trees>> members;
  // Of the members' own deviation, so that 90 % of what is measured lies in 90 % intervals.
  double scale = 1;
  // The mean and deviation of the members' predictions.
  Result<std::vector<Outlook>> predict(const Rows& rows) const;
};

// As a file: CBOR. Read from where the program was installed. Errors: of the trees; kInvalid for a
// file that is none, or of other features.
Result<std::vector<uint8_t>> save(const Ensemble& base);
Result<Ensemble> load_base_model(const Boosting& boosting, std::span<const uint8_t> bytes);

// What a row has of a form: its features, and their differences to those of the usual form of the
// same kernel, whose ratio of times is known to be 1.
Features relative_features(const Features& form, const Features& usual);

class CostModel {
 public:
  // boosting (outlives the model; null: nothing is ever learned); base: null for none.
  explicit CostModel(const Boosting* boosting, std::shared_ptr<const Ensemble> base = nullptr,
                     uint32_t seed = 1)
      : boosting_(boosting), base_(std::move(base)), seed_(seed) {}

  // A measurement: log(measured / expected), both as ratios to the usual form.
  void learn(std::span<const float> features, double log_ratio);
  // Fitted anew where enough came in since the last time. Errors: of the library.
  Result<std::vector<Outlook>> predict(const Rows& rows);
  // Grows with each fit: predictions made before are out of date.
  Result<size_t> version();
  bool learns() const { return boosting_ != nullptr; }
  double seconds() const { return static_cast<double>(nanoseconds_) * 1e-9; }  // that all this took

 private:
  Status refit();
  Result<std::vector<Outlook>> outlooks(const Rows& rows);

  const Boosting* boosting_;
  std::shared_ptr<const Ensemble> base_;
  const uint32_t seed_;
  std::vector<float> values_, targets_, starts_;
  size_t columns_ = 0, fitted_ = 0, version_ = 0;
  Ensemble online_;
  int64_t nanoseconds_ = 0;
};

// Fits an ensemble; starts: see Boosting::fit. With no members of one row left out by chance, the
// scale is as it would be for a fit to nothing.
Result<Ensemble> fit_ensemble(const Boosting& boosting, const Rows& rows,
                              std::span<const float> targets, std::span<const float> starts,
                              const BoostingOptions& options, size_t members);

}  // namespace tilewright::autotune
