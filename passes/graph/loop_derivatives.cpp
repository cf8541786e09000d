// By the body alone, which is tried on copies: what matters grows until an iteration adds nothing.
#include "passes/graph/loop_derivatives.h"

#include <algorithm>

#include "ir/ops/known_ops.h"
#include "passes/graph/differentiation.h"

namespace tilewright::passes {

using ir::Graph;
using ir::kNone;
using ir::ValueId;

namespace {

class Search {
 public:
  Search(const LoopBody& body, const std::vector<ValueId>& of_outputs,
         const std::vector<bool>& wanted)
      : body_(body), dy_(of_outputs) {
    find_active(wanted);
  }
  Result<LoopDerivatives> run() {
    TW_RETURN_IF_ERROR(find_what_matters());
    return std::move(found_);
  }

 private:
  // All that is read of captured value m, where nothing else is.
  std::vector<Lookup> lookups_of(int m) const {
    const ValueId v = body_.captured_in(m);
    std::vector<Lookup> found;
    int uses = 0;
    for (size_t k = 0; k < body_.graph->nodes.size(); ++k) {
      const ir::Node& n = body_.graph->nodes[k];
      if (n.op == ir::ops::gather() && n.inputs[0] == v) found.push_back({m, k});
      uses += static_cast<int>(std::count(n.inputs.begin(), n.inputs.end(), v));
    }
    uses +=
        static_cast<int>(std::count(body_.graph->outputs.begin(), body_.graph->outputs.end(), v));
    if (uses != static_cast<int>(found.size())) found.clear();
    return found;
  }
  // What depends on what is asked for: captured floats, and carried ones by their initial values or
  // by what an iteration makes of others.
  void find_active(const std::vector<bool>& wanted) {
    for (int m = 0; m < body_.captured; ++m) {
      if (!wanted[at(body_.captured_operand(m))]) continue;
      const std::vector<Lookup> elements = lookups_of(m);
      for (const Lookup& l : elements)
        found_.active.push_back(body_.graph->nodes[l.node].outputs[0]);
      if (elements.empty()) found_.active.push_back(body_.captured_in(m));
      all_lookups_.insert(all_lookups_.end(), elements.begin(), elements.end());
    }
    std::vector<bool> is_active(at(body_.shape.carried));
    for (int k = 0; k < body_.shape.carried; ++k)
      is_active[at(k)] = wanted[at(body_.initial_operand(k))];
    const std::vector<ValueId> of_captured = found_.active;
    for (bool more = true; more;) {
      more = false;
      found_.active = of_captured;
      for (int k = 0; k < body_.shape.carried; ++k)
        if (is_active[at(k)]) found_.active.push_back(body_.carried_in(k));
      const std::vector<bool> depends = depends_on(*body_.graph, found_.active);
      for (int k = 0; k < body_.shape.carried; ++k) {
        if (is_active[at(k)] || !depends[static_cast<size_t>(body_.carried_out(k))]) continue;
        is_active[at(k)] = more = true;
      }
    }
  }
  // Of that, what the loss depends on: by a result, or by what later iterations make of it.
  Status find_what_matters() {
    std::vector<bool> matters(at(body_.shape.carried));
    for (int k = 0; k < body_.shape.carried; ++k) matters[at(k)] = dy_[at(k)] != kNone;
    for (bool more = true; more;) {
      more = false;
      Graph trial = *body_.graph;
      Differentiation d(trial, found_.active);
      const auto seed = [&](ValueId v) -> Status {
        TW_ASSIGN(const ValueId g, filled(trial, body_.type_of(v), 1));
        return d.seed(v, g);
      };
      for (int k = 0; k < body_.shape.carried; ++k)
        if (matters[at(k)]) TW_RETURN_IF_ERROR(seed(body_.carried_out(k)));
      for (int s = 0; s < body_.shape.scans; ++s)
        if (dy_[at(body_.shape.carried + s)] != kNone) TW_RETURN_IF_ERROR(seed(body_.scan_out(s)));
      TW_RETURN_IF_ERROR(d.run());
      found_.lookups.clear();
      for (const Lookup& l : all_lookups_)
        if (d.found(body_.graph->nodes[l.node].outputs[0]) != kNone) found_.lookups.push_back(l);
      found_.captured.clear();
      for (int m = 0; m < body_.captured; ++m)
        if (is_active(body_.captured_in(m)) && d.found(body_.captured_in(m)) != kNone)
          found_.captured.push_back(m);
      for (int k = 0; k < body_.shape.carried; ++k) {
        if (matters[at(k)] || !is_active(body_.carried_in(k)) ||
            d.found(body_.carried_in(k)) == kNone)
          continue;
        matters[at(k)] = more = true;
      }
    }
    for (int k = 0; k < body_.shape.carried; ++k)
      if (matters[at(k)] && is_active(body_.carried_in(k))) found_.carried.push_back(k);
    return {};
  }
  bool is_active(ValueId of_body) const {
    return std::find(found_.active.begin(), found_.active.end(), of_body) != found_.active.end();
  }

  const LoopBody& body_;
  const std::vector<ValueId>& dy_;
  LoopDerivatives found_;
  std::vector<Lookup> all_lookups_;  // of the active ones
};

}  // namespace

bool LoopBody::passes_on(int k) const {
  ValueId v = carried_out(k);
  while (graph->value(v).producer >= 0) {
    const ir::Node& n = graph->nodes[static_cast<size_t>(graph->value(v).producer)];
    if (n.op != ir::ops::identity()) return false;
    v = n.inputs[0];
  }
  return v == carried_in(k);
}

Result<LoopDerivatives> find_loop_derivatives(const LoopBody& body,
                                              const std::vector<ValueId>& of_outputs,
                                              const std::vector<bool>& wanted) {
  return Search(body, of_outputs, wanted).run();
}

}  // namespace tilewright::passes
