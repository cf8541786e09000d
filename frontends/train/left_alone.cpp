// Each property of values is found for all of them in one pass over the nodes, whose order is topological.
#include "frontends/train/left_alone.h"

#include <algorithm>
#include <set>
#include <vector>

#include "frontends/train/constant_values.h"
#include "frontends/train/initializer_uses.h"

namespace tilewright::train {

namespace {

using Names = std::set<std::string>;

constexpr std::string_view kBuffers = "buffers", kConstants = "constants",
                           kSettings = "settings of nodes", kShapes = "what shapes depend on",
                           kNoGradient = "what no gradient reaches", kMasks = "masks",
                           kTables = "tables", kScalars = "scalars",
                           kOfInputs = "what inputs are normalised by";

// These operators take weights as operands.
constexpr std::string_view kOfWeights[] = {"Conv",
                                           "ConvTranspose",
                                           "Gemm",
                                           "MatMul",
                                           "Einsum",
                                           "LSTM",
                                           "GRU",
                                           "RNN",
                                           "PRelu",
                                           "BatchNormalization",
                                           "GroupNormalization",
                                           "InstanceNormalization",
                                           "LayerNormalization",
                                           "RMSNormalization",
                                           "DeformConv"};
// These operators only move elements or change the shape.
constexpr std::string_view kMoving[] = {"Transpose", "Reshape",  "Unsqueeze", "Squeeze", "Identity",
                                        "Flatten",   "Slice",    "Concat",    "Split",   "Expand",
                                        "Cast",      "CastLike", "Tile"};
// These operators pass no gradient.
constexpr std::string_view kSteps[] = {"Shape",
                                       "Size",
                                       "NonZero",
                                       "ArgMax",
                                       "ArgMin",
                                       "Equal",
                                       "Greater",
                                       "GreaterOrEqual",
                                       "Less",
                                       "LessOrEqual",
                                       "Not",
                                       "And",
                                       "Or",
                                       "Xor",
                                       "IsNaN",
                                       "IsInf",
                                       "Sign",
                                       "Floor",
                                       "Ceil",
                                       "Round",
                                       "ConstantOfShape",
                                       "RandomNormalLike",
                                       "RandomUniformLike",
                                       "NonMaxSuppression",
                                       "OneHot"};
// These operands, from `first` to `last`, determine extents of results.
constexpr struct {
  std::string_view op;
  size_t first, last;
} kOfShapes[] = {{"Reshape", 1, 1},       {"Expand", 1, 1},    {"Tile", 1, 2},
                 {"Pad", 1, 1},           {"Slice", 1, 4},     {"Resize", 1, 3},
                 {"Upsample", 1, 1},      {"Range", 0, 2},     {"TopK", 1, 1},
                 {"Split", 1, 1},         {"OneHot", 1, 1},    {"ConstantOfShape", 0, 0},
                 {"CenterCropPad", 1, 1}, {"MaxUnpool", 2, 2}, {"AffineGrid", 1, 1}};

template <size_t n>
bool is_one_of(const std::string_view (&names)[n], const OnnxNode& node) {
  return node.domain.empty() && std::find(names, names + n, node.op_type) != names + n;
}
bool makes_shape(const OnnxNode& node, size_t operand) {
  return node.domain.empty() &&
         std::any_of(std::begin(kOfShapes), std::end(kOfShapes), [&](const auto& s) {
           return s.op == node.op_type && operand >= s.first && operand <= s.last;
         });
}
bool has_bodies(const OnnxNode& node) {
  return std::any_of(node.attributes.begin(), node.attributes.end(), [](const auto& a) {
    return std::holds_alternative<std::shared_ptr<OnnxGraph>>(a.second) ||
           std::holds_alternative<std::vector<std::shared_ptr<OnnxGraph>>>(a.second);
  });
}
// All names that the graph reads, also those of graphs inside.
void add_names(const OnnxGraph& graph, Names& names) {
  for (const OnnxValueInfo& o : graph.outputs) names.insert(o.name);
  for (const OnnxNode& node : graph.nodes) {
    names.insert(node.inputs.begin(), node.inputs.end());
    for (const auto& [key, value] : node.attributes) {
      if (const auto* g = std::get_if<std::shared_ptr<OnnxGraph>>(&value)) add_names(**g, names);
      if (const auto* all = std::get_if<std::vector<std::shared_ptr<OnnxGraph>>>(&value))
        for (const auto& g : *all) add_names(*g, names);
    }
  }
}

class Search {
 public:
  explicit Search(const OnnxModel& model) : model_(model), graph_(model.graph) {
    for (const OnnxNode& node : graph_.nodes) {
      for (const std::string& in : node.inputs) readers_[in].push_back(&node);
      if (has_bodies(node))
        for (const auto& [key, value] : node.attributes) add_bodies(value);
    }
    for (const OnnxValueInfo& o : graph_.outputs) taken_.insert(o.name);
    for (const OnnxNode& node : graph_.nodes) find_constant(node);
    find_of_shapes();
    find_graded();
    find_weights();
    find_normalisations();
    // Of PyTorch's numbers, those that are no nodes are parameters, also as exponents.
    settings_ = InitializerUses(graph_).settings(!is_of_pytorch());
  }

  // "" for a parameter, as far as anybody can tell.
  std::string_view what(const std::string& name, const TensorView& t, bool nodes_too) const {
    if (graph_.constant_nodes.count(name) && (!nodes_too || t.shape.empty())) return kConstants;
    if (of_shapes_.count(name)) return kShapes;
    if (settings_.count(name)) return kSettings;
    if (!graded_.count(name)) return kNoGradient;
    if (of_inputs_.count(name)) return kOfInputs;
    if (t.shape.empty()) return is_scalar_constant(name) ? kScalars : std::string_view();
    if (weights_.count(name)) return {};
    const std::vector<float> values = floats_of(t);
    if (values.empty()) return {};
    return is_mask(values) ? kMasks : is_table(t.shape, values) ? kTables : std::string_view();
  }
  bool may_be_angles(const std::string& name) const {
    return !graph_.constant_nodes.count(name) && !weights_.count(name);
  }

 private:
  bool is_of_pytorch() const { return model_.producer.starts_with("pytorch"); }
  // Exporters from other frameworks write each number of a program as an initialiser; PyTorch's writes them as
  // nodes, or by such a name where it computed them.
  bool is_scalar_constant(const std::string& name) const {
    return is_of_pytorch() ? name.starts_with("onnx::") : !model_.producer.empty();
  }
  void add_bodies(const OnnxAttribute& value) {
    if (const auto* g = std::get_if<std::shared_ptr<OnnxGraph>>(&value)) add_names(**g, taken_);
    if (const auto* all = std::get_if<std::vector<std::shared_ptr<OnnxGraph>>>(&value))
      for (const auto& g : *all) add_names(*g, taken_);
  }
  bool is_constant(const std::string& name) const {
    return name.empty() || constants_.count(name) || graph_.initializers.count(name);
  }
  void find_constant(const OnnxNode& node) {
    const bool known = node.op_type == "Shape" || node.op_type == "Size" ||
                       (!has_bodies(node) && !node.op_type.starts_with("Random") &&
                        std::all_of(node.inputs.begin(), node.inputs.end(),
                                    [&](const std::string& in) { return is_constant(in); }));
    if (known) constants_.insert(node.outputs.begin(), node.outputs.end());
  }
  // Calls visit(node, is_wanted) for each node, the last one first; is_wanted: an output of it is in `names`, which
  // visit may extend by the node's operands.
  template <typename Visit>
  void go_back(const Names& names, Visit visit) const {
    for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node)
      visit(*node, std::any_of(node->outputs.begin(), node->outputs.end(),
                               [&](const std::string& o) { return !o.empty() && names.count(o); }));
  }
  // An extent is all that these results depend on.
  static bool is_extent(const OnnxNode& node) {
    return node.op_type == "Shape" || node.op_type == "Size";
  }
  // What is computed from constants alone is followed to all of them, what is moved to where it came from.
  void find_of_shapes() {
    go_back(of_shapes_, [this](const OnnxNode& node, bool is_wanted) {
      const bool is_followed = is_wanted && !is_extent(node);
      for (size_t k = 0; k < node.inputs.size(); ++k)
        if (makes_shape(node, k) ||
            (is_followed && (is_one_of(kMoving, node) || is_constant(node.inputs[k]))))
          of_shapes_.insert(node.inputs[k]);
    });
  }
  // A gradient goes to these values, if the outputs and what bodies read get one.
  void find_graded() {
    graded_ = taken_;
    go_back(graded_, [this](const OnnxNode& node, bool is_wanted) {
      if (!is_wanted || is_one_of(kSteps, node) || casts_to_integer(node)) return;
      for (size_t k = 0; k < node.inputs.size(); ++k)
        if (!makes_shape(node, k) && (node.op_type != "Where" || k != 0))
          graded_.insert(node.inputs[k]);
    });
  }
  // Operands of kOfWeights, and what these are moved from.
  void find_weights() {
    go_back(weights_, [this](const OnnxNode& node, bool is_wanted) {
      if (is_one_of(kOfWeights, node) || (is_wanted && is_one_of(kMoving, node)))
        weights_.insert(node.inputs.begin(), node.inputs.end());
    });
  }
  static bool casts_to_integer(const OnnxNode& node) {
    const auto to = node.attributes.find("to");
    if (node.op_type != "Cast" || to == node.attributes.end()) return false;
    const auto* code = std::get_if<int64_t>(&to->second);
    const auto dtype = code ? dtype_from_onnx(static_cast<int>(*code)) : std::nullopt;
    return dtype && !is_float(*dtype);
  }
  // Values that are an input of the model, but for constant factors and where elements lie.
  Names scaled_inputs() const {
    Names found;
    for (const OnnxValueInfo& input : graph_.inputs)
      if (!graph_.initializers.count(input.name)) found.insert(input.name);
    for (const OnnxNode& node : graph_.nodes)
      if (!node.inputs.empty() &&
          (is_one_of(kMoving, node) || node.op_type == "Div" || node.op_type == "Mul") &&
          found.count(node.inputs[0]) && (node.inputs.size() < 2 || is_constant(node.inputs[1])))
        found.insert(node.outputs.begin(), node.outputs.end());
    return found;
  }
  // (x - mean) / std, of an input of the model.
  void find_normalisations() {
    const Names of_input = scaled_inputs();
    for (const OnnxNode& sub : graph_.nodes) {
      if (sub.op_type != "Sub" || sub.inputs.size() != 2 || !of_input.count(sub.inputs[0]) ||
          !is_constant(sub.inputs[1]))
        continue;
      const auto reading = readers_.find(sub.outputs[0]);
      if (reading == readers_.end() || reading->second.size() != 1) continue;
      const OnnxNode& scaled = *reading->second[0];
      if ((scaled.op_type != "Div" && scaled.op_type != "Mul") || scaled.inputs.size() != 2 ||
          !is_constant(scaled.inputs[1]))
        continue;
      of_inputs_.insert({sub.inputs[1], scaled.inputs[1]});
    }
    go_back(of_inputs_, [this](const OnnxNode& node, bool is_wanted) {
      if (is_wanted && !is_extent(node)) of_inputs_.insert(node.inputs.begin(), node.inputs.end());
    });
  }

  const OnnxModel& model_;
  const OnnxGraph& graph_;
  std::map<std::string, std::vector<const OnnxNode*>> readers_;
  Names constants_;  // results of nodes that no input of the model changes
  Names taken_;      // outputs, and what bodies read
  Names of_shapes_, graded_, weights_, of_inputs_;
  Names settings_;  // initialisers
};

// Tables of sines and cosines that lie apart.
void find_angles(const OnnxModel& model, const Search& search,
                 std::map<std::string, std::string_view>& found) {
  std::map<Shape, std::vector<std::pair<std::string, std::vector<float>>>> open;
  for (const auto& [name, t] : model.graph.initializers) {
    if (found.count(name) || t.shape.empty() || !search.may_be_angles(name)) continue;
    std::vector<float> values = floats_of(t);
    if (values.empty() ||
        std::any_of(values.begin(), values.end(), [](float x) { return !(x >= -1 && x <= 1); }))
      continue;
    auto& alike = open[t.shape];
    for (const auto& [other, others] : alike)
      if (are_sines_and_cosines(values, others)) found[name] = found[other] = kTables;
    alike.emplace_back(name, std::move(values));
  }
}

}  // namespace

std::map<std::string, std::string_view> left_alone(const OnnxModel& model) {
  std::map<std::string, std::string_view> found;
  const OnnxGraph& graph = model.graph;
  if (!graph.roles.empty()) {
    for (const auto& [name, t] : graph.initializers) {
      const auto role = graph.roles.find(name);
      if (role == graph.roles.end() || role->second == ExportedRole::kConstant)
        found[name] = kConstants;
      else if (role->second == ExportedRole::kBuffer)
        found[name] = kBuffers;
    }
    return found;
  }
  const Search search(model);
  const std::set<std::string> statistics = InitializerUses(graph).statistics();
  // Some exporters write all weights as nodes.
  for (const bool nodes_too : {false, true}) {
    bool any = false;
    found.clear();
    for (const auto& [name, t] : graph.initializers) {
      const auto dtype = t.dtype();
      if (!dtype || !is_float(*dtype) || statistics.count(name)) continue;
      const std::string_view what = search.what(name, t, nodes_too);
      if (what.empty())
        any = true;
      else
        found[name] = what;
    }
    if (any) break;
  }
  find_angles(model, search, found);
  return found;
}

}  // namespace tilewright::train
