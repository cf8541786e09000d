// From a checked ONNX model to the graph IR.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "frontends/onnx/model.h"
#include "ir/graph/graph.h"

namespace tilewright {

// What the caller knows of the inputs beyond the model; the more, the fewer symbols the graph has.
struct ImportOptions {
  std::map<std::string, Shape> input_shapes;  // by input name: extents that replace its dimensions
  std::map<std::string, int64_t> symbols;     // by symbol name
  std::map<std::string, ir::ConstantRef>
      input_values;          // small integer inputs whose value is fixed (shape operands)
  bool names_apart = false;  // every extent of an input is a symbol of its own, whatever its name
  // Values that stand for initialisers of the main graph, by name, so that these are no constants: added
  // to a graph that has the model's inputs. Null: there are none.
  std::function<std::map<std::string, ir::ValueId>(ir::Graph&)> bind_initializers;
  std::vector<std::string>* notes = nullptr;  // what the user should know of a model that is read
};

// Every operator, attribute and type that is not supported is listed in one error. Its
// `by_inputs` says whether fixing values or extents of inputs helps.
Result<ir::Graph> import_graph(const OnnxModel& model, const ImportOptions& options = {});

}  // namespace tilewright
