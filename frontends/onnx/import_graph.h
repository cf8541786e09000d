// From a checked ONNX model to the graph IR.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "frontends/onnx/model.h"
#include "ir/graph/graph.h"

namespace tilewright {

// How a model is imported to be trained, whatever mode it was exported for: Dropout drops, each node that
// draws numbers draws others in each step, and BatchNormalization takes the statistics of its batch.
struct TrainingImport {
  bool batch_statistics = true;  // false: the running ones, which stay as they are
  // Written by the import: what running statistics become, by what stands for their initialisers.
  std::map<ir::ValueId, ir::ValueId> updated;
};

// The mode of Dropout and BatchNormalization. kStated follows their operands and attributes; kInference drops
// nothing and uses running statistics in any case; kTraining follows TrainingImport.
enum class ImportMode : uint8_t { kStated, kInference, kTraining };

// Values of the graph that no node or input of the model gives.
struct BoundValues {
  // They stand for initialisers of the main graph, by name, so that these are no constants.
  std::map<std::string, ir::ValueId> initializers;
  // Where the model draws numbers: what from (u32 [2]; kNone: a key of the run), and in training which
  // samples of the data the batch holds (i64 [batch]).
  ir::ValueId key = ir::kNone, samples = ir::kNone;
};

// What the caller knows of the inputs beyond the model; the more, the fewer symbols the graph has.
struct ImportOptions {
  std::map<std::string, Shape> input_shapes;  // by input name: extents that replace its dimensions
  std::map<std::string, int64_t> symbols;     // by symbol name
  std::map<std::string, ir::ConstantRef>
      input_values;  // small integer inputs whose value is fixed (shape operands)
  // Says how to import input extents that broadcast but are not known to be equal. kEqual assumes
  // equality, which the run checks; kOpen lets either be 1.
  enum class Broadcast : uint8_t { kEqual, kOpen } broadcast = Broadcast::kEqual;
  bool* met_in_broadcast = nullptr;  // told whether there were any; null: not asked
  bool names_apart = false;  // every extent of an input is a symbol of its own, whatever its name
  // Initialisers that are inputs of the graph, behind the others (see is_overridable).
  std::set<std::string> overrides;
  // Adds such values to a graph that has the model's inputs; null: there are none. `draws`: does the
  // model draw numbers?
  std::function<BoundValues(ir::Graph&, bool draws)> bind;
  TrainingImport* training = nullptr;         // null: not to be trained
  bool inference = false;                     // ImportMode::kInference; not with `training`
  std::vector<std::string>* notes = nullptr;  // what the user should know of a model that is read
};

// Every operator, attribute and type that is not supported is listed in one error. Its
// `by_inputs` says whether fixing values or extents of inputs helps.
Result<ir::Graph> import_graph(const OnnxModel& model, const ImportOptions& options = {});

}  // namespace tilewright
