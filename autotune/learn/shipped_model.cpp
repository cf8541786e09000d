#include "autotune/learn/shipped_model.h"

namespace tilewright::autotune {

std::shared_ptr<CostModel> shipped_model(uint32_t seed, std::string& unlearned) {
  const auto boosting = open_boosting();
  std::shared_ptr<const Ensemble> base;
  if (boosting.ok()) {
    auto shipped = load_base_model(**boosting, (*boosting)->base_model());
    if (shipped.ok()) base = std::make_shared<const Ensemble>(std::move(*shipped));
  } else {
    unlearned = boosting.error().to_string();
  }
  return std::make_shared<CostModel>(boosting.ok() ? *boosting : nullptr, std::move(base), seed);
}

}  // namespace tilewright::autotune
