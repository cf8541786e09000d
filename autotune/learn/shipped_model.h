// The cost model that tuning begins with.
#pragma once

#include <memory>
#include <string>

#include "autotune/learn/cost_model.h"

namespace tilewright::autotune {

// With the trees that ship. Where trees cannot be had, or the shipped ones are of other features, tuning
// goes on with less; `unlearned` says why none can be had.
std::shared_ptr<CostModel> shipped_model(uint32_t seed, std::string& unlearned);

}  // namespace tilewright::autotune
