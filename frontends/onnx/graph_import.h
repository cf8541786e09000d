// The state of one import: the graph being built and the names in scope.
#pragma once

#include "frontends/onnx/extent_names.h"
#include "frontends/onnx/node_import.h"

namespace tilewright::onnx {

// Names in scope that no model uses: what random numbers are drawn from.
inline constexpr const char* kRunKey = "\x01run_key";        // of the run, in the outermost scope
inline constexpr const char* kLoopPlace = "\x01loop_place";  // of the iteration, inside of loops
inline constexpr const char* kSamples = "\x01samples";       // in training: which the batch holds
// Are random numbers drawn in this graph, or in one inside of it? In training Dropout draws, in inference it does not.
bool draws_numbers(const OnnxGraph& graph, ImportMode mode);
// The value of kLoopPlace for an iteration of a loop that stands in `around`.
ir::ValueId loop_place(NodeImport& n, ImportScope& around, ir::ValueId iteration);

// One attempt at importing a model. Nested graphs (If, Loop, Scan) are imported recursively with
// the same object; unsupported operators are collected, so that one error names them all.
class GraphImport {
 public:
  // The three must outlive the object.
  GraphImport(const OnnxModel& model, const ImportOptions& options, ExtentNames& extents)
      : model_(model), options_(options), extents_(extents) {}
  // The whole model; once per object.
  Result<ir::Graph> run();

  // Imports nodes of a graph into the current graph under a new scope; the values of its outputs.
  std::vector<ir::ValueId> import_body(const OnnxGraph& graph, ImportScope& scope);
  // Builds a graph of its own, whose first inputs are like `inputs` (constants stay constants).
  // What it names of the graph around, or brings in by scope.capture, becomes further inputs;
  // `captured` are those values, in that order.
  struct Region {
    std::shared_ptr<ir::Graph> graph;
    std::vector<ir::ValueId> captured;
  };
  using BuildRegion = std::function<std::vector<ir::ValueId>(
      ImportScope& scope, const std::vector<ir::ValueId>& inputs)>;
  Region import_region(const std::string& name, const std::vector<ir::Value>& inputs,
                       const BuildRegion& build);
  ir::Graph& graph() { return *current_; }
  ImportScope* scope() { return scope_; }
  std::vector<std::string>& sources() { return sources_; }
  TrainingImport* training() { return options_.training; }  // null: not to be trained
  ImportMode mode() const {
    return options_.training    ? ImportMode::kTraining
           : options_.inference ? ImportMode::kInference
                                : ImportMode::kStated;
  }
  bool draws(const OnnxGraph& graph) const { return draws_numbers(graph, mode()); }
  bool is_main_graph() const { return current_ == &graph_; }
  uint32_t next_stream() { return streams_++; }  // a number for each node that draws numbers

 private:
  void begin(ImportScope& scope);
  void import_inputs(const OnnxGraph& graph, ImportScope& scope);
  void import_initializers(const OnnxGraph& graph, ImportScope& scope);
  void import_node(const OnnxNode& node, size_t index, ImportScope& scope);
  ir::TensorType input_type(const OnnxValueInfo& info);

  const OnnxModel& model_;
  const ImportOptions& options_;
  ExtentNames& extents_;
  ir::Graph graph_;
  ir::Graph* current_ = &graph_;  // graph_, or the region that is being imported
  ImportScope* scope_ = nullptr;
  std::vector<std::string> sources_;
  std::vector<Error> unsupported_;
  uint32_t streams_ = 0;
};

}  // namespace tilewright::onnx
