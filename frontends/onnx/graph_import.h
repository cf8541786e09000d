// The state of one import: the graph being built and the names in scope.
#pragma once

#include <unordered_set>

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

// Which rank a value has that is one element in both branches of an If, but of different ranks.
enum class RankOfEither : uint8_t { kLarger, kSmaller };

// One attempt at importing a model. Nested graphs (If, Loop, Scan) are imported recursively with
// the same object; unsupported operators are collected, so that one error names them all.
class GraphImport {
 public:
  // The model, the options and the names must outlive the object. `smaller` lists If nodes by their
  // position in the order of import: those whose result has the smaller rank of both branches (RankOfEither::kSmaller).
  GraphImport(const OnnxModel& model, const ImportOptions& options, ExtentNames& extents,
              std::set<int> smaller = {})
      : model_(model), options_(options), extents_(extents), smaller_(std::move(smaller)) {}
  // The whole model; once per object.
  Result<ir::Graph> run();

  // Imports nodes of a graph into the current graph under a new scope; the values of its outputs, or
  // of those that the predicate `is_tensor` takes.
  std::vector<ir::ValueId> import_body(
      const OnnxGraph& graph, ImportScope& scope,
      const std::function<bool(size_t output)>& is_tensor = [](size_t) { return true; });
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
  // Nodes that `build` makes go into this graph.
  void in_graph(ir::Graph& graph, const std::function<void()>& build);
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
  // Returns whether to assume that two extents are equal that otherwise broadcast only if one of them is
  // 1 in the run.
  bool takes_for_equal(const ir::Expr& a, const ir::Expr& b);
  bool is_main_graph() const { return current_ == &graph_; }
  // Whether anything in the graph of the model that is being imported reads the value.
  bool reads(const std::string& value);
  // Returns the rank to use where a value may have one of two, and counts the choice.
  RankOfEither rank_of_either() {
    return smaller_.count(rank_choices_++) ? RankOfEither::kSmaller : RankOfEither::kLarger;
  }
  int rank_choices() const { return rank_choices_; }
  uint32_t next_stream() { return streams_++; }  // a number for each node that draws numbers

 private:
  void begin(ImportScope& scope);
  bool hangs_on_unsupported(const OnnxNode& node, ImportScope& scope) const;
  void name_unmapped(const OnnxNode& node, const std::string& where);
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
  const OnnxGraph* body_ = nullptr;  // of the model: the one whose nodes are imported
  std::map<const OnnxGraph*, std::unordered_set<std::string>> read_in_;  // filled by reads()
  std::vector<std::string> sources_;
  std::vector<Error> unsupported_;
  uint32_t streams_ = 0;
  std::set<int> smaller_;
  int rank_choices_ = 0;
};

}  // namespace tilewright::onnx
