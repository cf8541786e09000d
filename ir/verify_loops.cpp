// Runs the rules over a kernel and puts together what was found. Verifiers after every pass make
// the pass that broke a rule the one that is named.
#include "ir/verify_loops.h"

#include "ir/loops_verifier.h"

namespace tilewright::ir {

namespace {
constexpr size_t kMostViolations = 50;
}

void LoopsVerifier::report(std::string text) {
  ++found_;
  if (violations_.size() >= kMostViolations) return;
  std::string where;
  for (const std::string& p : place_) where += (where.empty() ? "" : ", ") + p;
  violations_.push_back(where.empty() ? std::move(text) : text + " (in " + where + ")");
}
std::string LoopsVerifier::text(const Expr& e) {
  std::string s = to_text(e, names_);
  return s.size() <= 80 ? s : s.substr(0, 77) + "...";
}

Status LoopsVerifier::run() {
  for (const Var& v : kernel_.scalars) define(v, {Origin::kScalar, 0, false, AxisKind::kParallel});
  for (const Buffer& b : kernel_.params) {
    if (!TW_REQUIRE(b != nullptr, "a parameter is missing")) continue;
    TW_REQUIRE(b->scope == Scope::kParam,
               "parameter '" + names_.of(b) + "' has scope " + std::string(name(b->scope)));
    TW_REQUIRE(live_.emplace(b.get(), 0).second,
               "parameter '" + names_.of(b) + "' occurs more than once");
    buffer_shape(b);
  }
  workspace();
  for (const Buffer& b : kernel_.params) allocated_.insert(b.get());
  stmt(kernel_.body);
  if (violations_.empty()) return {};
  static constexpr const char* kStages[] = {"blocks", "scheduled", "flat", "planned"};
  Error e = internal_error("the loops break " + std::to_string(found_) +
                               (found_ == 1 ? " rule" : " rules") + " of stage " +
                               kStages[static_cast<size_t>(stage_)],
                           "kernel '" + kernel_.name + "'");
  e.notes = std::move(violations_);
  return e;
}

Status verify(const Kernel& kernel, Stage stage) { return LoopsVerifier(kernel, stage).run(); }

}  // namespace tilewright::ir
