// What graphs of a job share: the model's inputs for a batch, its parameters in flat buffers, targets.
#pragma once

#include <string>
#include <vector>

#include "frontends/onnx/import_graph.h"
#include "frontends/train/data.h"
#include "frontends/train/parameters.h"
#include "ir/formula/formula.h"

namespace tilewright::train {

// Thrown by formulas, and caught where they are called.
struct StepFailure {
  Error error;
};

// Nodes that are none of the model's. label: what they are, for messages and profiles.
class StepNodes final : public ir::NodeBuilder {
 public:
  StepNodes(ir::Graph& graph, std::string label) : graph_(graph), label_(std::move(label)) {}
  ir::Graph& graph() override { return graph_; }
  const ir::Graph& graph() const override { return graph_; }
  std::vector<ir::ValueId> ops(std::string_view name, std::vector<ir::ValueId> inputs,
                               ir::Attributes attributes, int outputs) override;
  [[noreturn]] void fail(const std::string& message) const override;
  // One more input of the graph, behind those that it has.
  ir::ValueId input(const std::string& name, ir::TensorType type);

 private:
  ir::Graph& graph_;
  const std::string label_;
};

// f32 [p.elements].
ir::TensorType flat_type(const Parameters& p);

// A member's piece of a flat value, in its own shape.
ir::ValueId piece_of(StepNodes& n, ir::ValueId flat, const Parameter& p);
// Each member's piece of a flat value, in their order; they stand for the model's initialisers.
std::vector<ir::ValueId> add_pieces(StepNodes& n, ir::ValueId flat, const Parameters& members,
                                    BoundValues& bound);

// Gives the inputs of the model their extents: job.part() samples in dimension 0, and what the model leaves
// open of a sample as the data has it. Errors: an input is made for another number, or has extents that
// neither says.
Status bind_batches(const OnnxModel& model, const Job& job, ImportOptions& options);

// The type of one sample of a value: without dimension 0.
SampleInfo sample_of(const ir::Graph& graph, ir::ValueId v);

// What the job's loss compares: the model's output as f32, and the targets, which become an input of the
// graph and are noted in `wanted`. Without targets: the output twice. Fails where the output has not
// job.part() samples.
struct Compared {
  ir::V output, targets;
};
Compared add_targets(StepNodes& n, ir::ValueId output, const Job& job, Wanted& wanted);

}  // namespace tilewright::train
