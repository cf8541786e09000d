#include "ir/loops/simplify.h"
#include "passes/schedule/rules/rule.h"
#include "passes/schedule/rules/share_out.h"

namespace tilewright::passes {

using namespace ir;

std::vector<size_t> BlockRule::with_outer(size_t inner, std::vector<bool>& used,
                                          const std::vector<BlockAccess>& accesses) const {
  std::vector<size_t> axes{inner};
  Expr joined = block_.axes[inner].extent;
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < block_.axes.size() && !more; ++i) {
      if (used[i] || is_one(block_.axes[i].extent) || !runs_on(accesses, i, inner, joined))
        continue;
      joined = simplify(joined * block_.axes[i].extent);
      axes.push_back(i);
      used[i] = more = true;
    }
  }
  return axes;
}

std::string BlockRule::fuse(const std::vector<size_t>& axes, const char* label) {
  std::string inner = loop_of_axis(block_, axes[0]);
  for (size_t k = 1; k < axes.size(); ++k) {
    const std::string name = loop(label) + std::to_string(k);
    if (!s_.apply("collapse", {loop_of_axis(block_, axes[k]), inner, name})) return "";
    inner = name;
  }
  return inner;
}

void BlockRule::share_out(const std::vector<std::string>& loops) {
  if (forks(s_, name_)) passes::share_out(s_, name_, loops);
}

}  // namespace tilewright::passes
