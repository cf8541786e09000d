// Draws a model with control flow; control_flow_draw.h is what tests see.
#pragma once

#include <optional>

#include "tests/differential/programs/control_flow_draw.h"

namespace tilewright {

// Values stay within [-1, 1], or are integers from 0 to 15, however often a loop runs: what differs
// between a model and its unrolled form is a fault then, or the rounding of f64.
class ControlFlowDrawing : public ModelDraw {
 public:
  ControlFlowDrawing(uint64_t seed, Steadiness steadiness)
      : ModelDraw(seed), steady_(steadiness == Steadiness::kSteady) {}
  ControlFlowModel run();  // once

 private:
  static constexpr int kDeepest = 3;        // regions within regions
  static constexpr size_t kMostNodes = 60;  // of all graphs
  static constexpr int64_t kMostElements = 200;

  // One of the values for which a condition holds; later ones more often.
  template <typename Condition>
  std::optional<Drawn> find(const Scope& s, const Condition& holds) {
    std::vector<Drawn> all;
    for (const Drawn& v : s.live)
      if (holds(v)) all.push_back(v);
    if (all.empty()) return std::nullopt;
    const auto n = static_cast<int64_t>(all.size());
    return all[static_cast<size_t>(chance(0.5) ? n - 1 - below(std::min<int64_t>(n, 4))
                                               : below(n))];
  }
  std::optional<Drawn> find_like(const Scope& s, const Drawn& like) {
    return find(s, [&](const Drawn& v) { return v.same_type(like); });
  }
  Drawn scalar_of(Scope& s, DType dtype);

  // Operators (control_flow_operators.cpp): each adds a value, or nothing where none fits.
  void operation(Scope& s);
  void pointwise(Scope& s);
  void combine(Scope& s);
  void integer(Scope& s);
  void truth(Scope& s);
  void reduce(Scope& s);
  void move(Scope& s);
  void join(Scope& s);
  void product(Scope& s);
  void look_up(Scope& s);
  void select(Scope& s);
  void bounded(Scope& s, const std::string& op, const std::vector<Drawn>& operands,
               const Shape& shape);

  // Nodes with regions (control_flow_drawing.cpp).
  void statements(Scope& s, int depth, int64_t count);
  void branch(Scope& s, int depth);
  void loop(Scope& s, int depth);
  void scan(Scope& s, int depth);
  Drawn condition(Scope& s);
  Drawn passes(Scope& s, int depth, std::optional<int64_t>& known);
  std::vector<Drawn> states(Scope& s);
  void give_states(Scope& body, const std::vector<Drawn>& taken);
  Drawn with_sum_of_rows(Scope& body, const Drawn& state);
  std::vector<Drawn> give_rows(Scope& body, int64_t most);
  void result_or_none(Scope& s, onnx_format::NodeProto* node, const Drawn& like);

  const bool steady_;
  size_t nodes_ = 0;
  int64_t open_ = 0;  // extents that the run alone knows, so far
};

}  // namespace tilewright
