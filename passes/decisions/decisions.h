// The decisions of one run of rules or passes: asked one after the other, answered as somebody wants
// or as usual, and kept.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "passes/decisions/decision.h"
#include "runtime/core/result.h"

namespace tilewright::passes {

class Decisions {
 public:
  // may_contract: code generation may round a product and the sum that takes it at once or not, as
  // unrolling and sharing of expressions have it; then no answer keeps bits for sure.
  explicit Decisions(Answers answers = {}, bool may_contract = false)
      : answers_(std::move(answers)), may_contract_(may_contract) {}

  // The answer to a decision: the one that was given, or the usual one, which is among the values.
  // A name that was there before goes on as "name#2". An answer that is none of the values is
  // refused, and the usual one holds.
  int64_t decide(DecisionName name, std::vector<int64_t> values, int64_t usual, Bits bits,
                 std::vector<double> microseconds = {});
  bool decide_whether(DecisionName name, bool usual, Bits bits) {
    return decide(std::move(name), {0, 1}, usual, bits) != 0;
  }
  // Of alternatives that have names; the number of the one to take.
  size_t decide_which(DecisionName name, std::vector<std::string> labels, size_t usual, Bits bits,
                      std::vector<double> microseconds = {});

  // The answer that was given to a decision, if any.
  std::optional<int64_t> answer(const std::string& name) const;
  const Answers& answers() const { return answers_; }
  // Answers that cannot be followed: check_answers() is this error. The first one counts.
  void refuse(std::string why) {
    if (refusal_.empty()) refusal_ = std::move(why);
  }
  // kInvalid when an answer was refused, or belongs to a decision that never came up. `where` is
  // the place that the error names.
  Status check_answers(const std::string& where) const;

  // All that came up so far, in order.
  const std::vector<Decision>& made() const { return made_; }
  void forget_after(size_t count);  // those made since there were so many

 private:
  std::string fresh(std::string name) const;
  const Answers answers_;
  const bool may_contract_;
  std::vector<Decision> made_;
  std::string refusal_;
};

// "conv3.winograd": what is asked of a value of a graph, in printable ASCII whatever the model calls it.
DecisionName decision_name(const ir::Graph& graph, ir::ValueId v, std::string_view what);

// The same of a node's result.
DecisionName decision_name(const ir::Graph& graph, const ir::Node& n, std::string_view what);

}  // namespace tilewright::passes
