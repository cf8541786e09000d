// Loops that append to a sequence, as exporters write list.append and bags of embeddings.
#include <algorithm>
#include <limits>

#include "frontends/onnx/control_flow.h"
#include "frontends/onnx/graph_import.h"
#include "frontends/onnx/importers.h"

namespace tilewright::onnx {
namespace {

using ir::ValueId;
using Values = std::vector<ValueId>;

constexpr int64_t kMostIterations = 512;  // each has nodes of its own

class LoopOfSequences {
 public:
  explicit LoopOfSequences(NodeImport& n) : n_(n) {
    const OnnxGraph* body = n.graph_attr("body");
    if (!body) n.fail("attribute 'body' is missing");
    const auto carried = static_cast<size_t>(std::max(n.num_inputs() - 2, 0));
    if (body->inputs.size() != carried + 2 || body->outputs.size() < carried + 1)
      n.fail("the body has " + std::to_string(body->inputs.size()) + " inputs and " +
             std::to_string(body->outputs.size()) + " outputs for " + std::to_string(carried) +
             " carried values");
    body_ = body;
    for (size_t k = 0; k < carried; ++k) state_.push_back(operand(static_cast<int>(k) + 2));
    scans_.resize(body->outputs.size() - 1 - carried);
  }
  void run() {
    const int64_t trips =
        n_.has(0) ? known(n_.in(0), "number of iterations") : std::numeric_limits<int64_t>::max();
    bool goes_on = !n_.has(1) || known(n_.in(1), "condition") != 0;
    for (int64_t i = 0; goes_on && i < trips; ++i) {
      if (i == kMostIterations)
        n_.unsupported("a sequence carried through more than " + std::to_string(kMostIterations) +
                       " iterations");
      const std::optional<ValueId> condition = iteration(i);
      if (!condition) return;  // something in the body is unsupported, as was reported
      goes_on = known(*condition, "condition") != 0;
    }
    give();
  }

 private:
  // A tensor, or the elements of a sequence.
  struct State {
    ValueId tensor = kNone;
    Values elements;
  };
  State operand(int i) {
    return n_.is_sequence(i) ? State{kNone, n_.sequence(i)} : State{n_.required(i), {}};
  }
  int64_t known(ValueId v, const char* what) {
    const std::vector<int64_t> found = n_.must_know_ints(v, what);
    if (found.size() != 1) n_.fail(std::string(what) + " is " + to_string(n_.type(v)));
    return found[0];
  }
  // Its condition to go on; nothing: a result is not defined.
  std::optional<ValueId> iteration(int64_t i) {
    ImportScope scope;
    scope.parent = n_.owner().scope();
    const auto& inputs = body_->inputs;
    const ValueId number = n_.scalar(static_cast<double>(i), DType::kInt64),
                  runs = n_.constant(ir::make_constant(DType::kBool, {}, {1}));
    scope.values[inputs[0].name] = as_declared(n_, number, inputs[0]);
    scope.values[inputs[1].name] = as_declared(n_, runs, inputs[1]);
    for (size_t k = 0; k < state_.size(); ++k)
      if (state_[k].tensor == kNone)
        scope.sequences[inputs[k + 2].name] = state_[k].elements;
      else
        scope.values[inputs[k + 2].name] = state_[k].tensor;
    if (n_.owner().draws(*body_)) scope.values[kLoopPlace] = loop_place(n_, *scope.parent, number);
    // Sequences are asked for by name.
    const Values outputs = n_.owner().import_body(*body_, scope, [&](size_t k) {
      return k == 0 || k > state_.size() || state_[k - 1].tensor != kNone;
    });
    if (std::find(outputs.begin(), outputs.end(), kNone) != outputs.end()) return std::nullopt;
    size_t next = 1;
    for (size_t k = 0; k < state_.size(); ++k) {
      if (state_[k].tensor != kNone) {
        state_[k].tensor = outputs[next++];
        continue;
      }
      auto elements = scope.find_sequence(body_->outputs[k + 1].name);
      if (!elements) n_.fail("carried value " + std::to_string(k) + " is no sequence any more");
      state_[k].elements = std::move(*elements);
    }
    for (Values& s : scans_) s.push_back(outputs[next++]);
    return outputs[0];
  }
  void give() {
    size_t i = 0;
    for (State& s : state_) {
      if (s.tensor != kNone)
        n_.out(static_cast<int>(i), s.tensor);
      else if (n_.wants(static_cast<int>(i)))
        n_.owner().scope()->sequences[n_.node.outputs[i]] = std::move(s.elements);
      ++i;
    }
    for (const Values& s : scans_) n_.out(static_cast<int>(i++), stacked(s));
  }
  ValueId stacked(const Values& elements) {
    if (elements.empty()) n_.unsupported("scan outputs of a loop that does not run");
    Values rows;
    for (const ValueId v : elements) {
      std::vector<ir::Expr> dims = n_.type(v).dims;
      dims.insert(dims.begin(), ir::Expr(1));
      rows.push_back(n_.reshape(v, dims));
    }
    return rows.size() == 1 ? rows[0] : n_.op("concat", rows, {{"axis", int64_t{0}}});
  }

  NodeImport& n_;
  const OnnxGraph* body_;
  std::vector<State> state_;
  std::vector<Values> scans_;
};

}  // namespace

bool carries_sequence(const NodeImport& n) {
  for (int i = 2; i < n.num_inputs(); ++i)
    if (n.is_sequence(i)) return true;
  return false;
}
void import_loop_of_sequences(NodeImport& n) { LoopOfSequences(n).run(); }

}  // namespace tilewright::onnx
