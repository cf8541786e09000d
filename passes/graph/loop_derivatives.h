// What of a loop there are derivatives by.
#pragma once

#include <memory>
#include <vector>

#include "ir/ops/control_flow.h"
#include "runtime/core/result.h"

namespace tilewright::passes {

inline size_t at(int i) { return static_cast<size_t>(i); }

// The body of a loop, whose captured values are counted from 0.
struct LoopBody {
  // Requires a loop that passed the verifier.
  explicit LoopBody(const ir::Node& loop)
      : graph(loop.regions[0]),
        shape(ir::loop_shape(loop)),
        captured(static_cast<int>(loop.inputs.size()) - shape.first_initial() - shape.carried) {}

  // Operands of the loop.
  int initial_operand(int k) const { return shape.first_initial() + k; }
  int captured_operand(int m) const { return shape.first_initial() + shape.carried + m; }
  // Values of the body: how carried value k enters an iteration and leaves it, captured value m, and
  // the element of scan s.
  ir::ValueId carried_in(int k) const { return input(1 + k); }
  ir::ValueId captured_in(int m) const { return input(1 + shape.carried + m); }
  ir::ValueId carried_out(int k) const { return output(shape.first_carried_result() + k); }
  ir::ValueId scan_out(int s) const { return output(shape.first_scan_result() + s); }
  ir::TensorType type_of(ir::ValueId v) const { return graph->value(v).type; }
  // Does each iteration pass the carried value on as it is, perhaps by copies?
  bool passes_on(int k) const;

  std::shared_ptr<const ir::Graph> graph;
  ir::LoopShape shape;
  int captured;  // how many

 private:
  ir::ValueId input(int k) const { return graph->inputs[static_cast<size_t>(k)]; }
  ir::ValueId output(int k) const { return graph->outputs[static_cast<size_t>(k)]; }
};

// An element of a captured value that the body reads, by a gather, which is one of its nodes.
struct Lookup {
  int captured;
  size_t node;
};

// What is asked for and matters to the loss.
struct LoopDerivatives {
  // By carried values, by captured ones, and by elements of captured ones that nothing else is read of.
  std::vector<int> carried, captured;
  std::vector<Lookup> lookups;
  // Values of the body that all these depend on: more than matter.
  std::vector<ir::ValueId> active;
};
// of_outputs: derivatives by all results of the loop, kNone where there is none; wanted: by operand.
// Errors (kUnsupported): what stands in the way within the body.
Result<LoopDerivatives> find_loop_derivatives(const LoopBody& body,
                                              const std::vector<ir::ValueId>& of_outputs,
                                              const std::vector<bool>& wanted);

}  // namespace tilewright::passes
