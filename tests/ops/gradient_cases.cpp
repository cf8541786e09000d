#include "tests/ops/gradient_cases.h"

#include <map>

namespace tilewright {
namespace {

using ir::Expr;
using ir::TensorType;
using Ints = std::vector<int64_t>;

TensorType f(std::vector<Expr> dims) { return {DType::kFloat64, std::move(dims)}; }
TensorType i64(std::vector<Expr> dims) { return {DType::kInt64, std::move(dims)}; }

struct Range {
  double low, high;
};
// Where an operator is defined and smooth.
Range range_of(const std::string& op) {
  static const std::map<std::string, Range> kRanges{
      {"sqrt", {0.5, 2}},    {"log", {0.5, 2}},      {"acosh", {1.5, 3}},  {"asin", {-0.8, 0.8}},
      {"acos", {-0.8, 0.8}}, {"atanh", {-0.8, 0.8}}, {"log1p", {-0.5, 1}}, {"div", {0.5, 2}},
      {"pow", {0.5, 2}},     {"mod", {1.1, 1.9}},    {"fmod", {1.1, 1.9}}};
  const auto it = kRanges.find(op);
  return it == kRanges.end() ? Range{-1, 1} : it->second;
}

// Those that are results; what is there for gradients alone has none.
int outputs_of(const ir::OpDef& op) {
  static const std::map<std::string_view, int> kFewer{
      {"layer_norm", 1}, {"rnn_steps", 2}, {"gru_steps", 2}, {"lstm_steps", 3}};
  const auto it = kFewer.find(op.name);
  return it == kFewer.end() ? op.example.outputs : it->second;
}

GradientCase example(const ir::OpDef& op) {
  const std::string name(op.name);
  const auto [low, high] = range_of(name);
  ir::Attributes attributes = op.example.attributes;
  std::vector<std::vector<double>> values = op.example.values;
  // What lies between two numbers of elements.
  std::vector<TensorType> inputs = op.example.inputs;
  if (name == "range") inputs.assign(3, f({})), values = {{0.3}, {2.6}, {0.5}};
  if (name == "cast") attributes["to"] = std::string("f64");
  return {.op = name,
          .label = "",
          .inputs = std::move(inputs),
          .attributes = std::move(attributes),
          .values = std::move(values),
          .low = low,
          .high = high,
          .outputs = outputs_of(op),
          .const_floats = name == "resize" || name == "roi_align"};
}

// Of 2 sequences of 4 steps, all operands and results there, forwards and backwards.
std::vector<GradientCase> recurrent() {
  using S = std::vector<std::string>;
  std::vector<GradientCase> cases;
  const auto add = [&](const char* op, const char* label, int64_t gates, const S& activations,
                       std::vector<TensorType> more, ir::Attributes attributes, int outputs) {
    GradientCase c{op, label, {f({4, 2, gates * 3}), f({3, gates * 3}), f({2, 3}), i64({2})}};
    for (TensorType& t : more) c.inputs.push_back(std::move(t));
    c.values = {{}, {}, {}, {4, 2}};
    c.attributes = std::move(attributes);
    c.attributes["activations"] = activations;
    c.attributes["alpha"] = std::vector<double>(activations.size(), 0.7);
    c.attributes["beta"] = std::vector<double>(activations.size(), 0.4);
    c.outputs = outputs;
    cases.push_back(std::move(c));
  };
  const ir::Attributes reverse{{"reverse", int64_t{1}}}, clip{{"clip", 0.6}};
  add("rnn_steps", "lengths", 1, {"tanh"}, {}, {}, 2);
  add("rnn_steps", "reverse", 1, {"softsign"}, {}, reverse, 2);
  add("rnn_steps", "clip", 1, {"elu"}, {}, clip, 2);
  for (const char* a : {"relu", "affine", "leakyrelu", "thresholdedrelu", "scaledtanh",
                        "hardsigmoid", "softplus", "sigmoid"})
    add("rnn_steps", a, 1, {a}, {}, {}, 2);
  const ir::Attributes after{{"linear_before_reset", int64_t{1}}};
  add("gru_steps", "lengths", 3, {"sigmoid", "tanh"}, {}, {}, 2);
  add("gru_steps", "reverse", 3, {"sigmoid", "tanh"}, {}, reverse, 2);
  add("gru_steps", "after", 3, {"sigmoid", "tanh"}, {f({3})}, after, 2);
  const std::vector<TensorType> all{f({2, 3}), f({9})};
  const ir::Attributes coupled{{"input_forget", int64_t{1}}};
  add("lstm_steps", "peepholes", 4, {"sigmoid", "tanh", "tanh"}, all, {}, 3);
  add("lstm_steps", "reverse", 4, {"sigmoid", "tanh", "softsign"}, all, reverse, 3);
  add("lstm_steps", "coupled", 4, {"sigmoid", "tanh", "tanh"}, all, coupled, 3);
  add("lstm_steps", "clip", 4, {"sigmoid", "tanh", "tanh"}, all, clip, 3);
  return cases;
}

std::vector<GradientCase> pointwise() {
  return {
      // Broadcast both ways, and extents of 1.
      {"mul", "broadcast", {f({3, 1, 5}), f({7, 1})}},
      {"div", "broadcast", {f({1, 5}), f({3, 1, 1})}, {}, {}, 0.5, 2},
      {"sub", "scalar", {f({}), f({3, 2})}},
      {"max", "broadcast", {f({3, 5}), f({5})}},
      {"max", "equal", {f({4}), f({4})}, {}, {{1, 2, 3, 4}, {0, 3, 1, 9}}},
      {"where", "broadcast", {{DType::kBool, {3, 1}}, f({1, 5}), f({3, 5})}, {}, {{1, 0, 1}}},
      {"clip", "low", {f({5, 7}), f({})}, {}, {{}, {-0.3}}},
  };
}
std::vector<GradientCase> products() {
  return {
      // Products: vectors, transposes, batches that are broadcast.
      {"matmul", "vectors", {f({7}), f({7})}},
      {"matmul", "row", {f({7}), f({7, 5})}},
      {"matmul", "column", {f({3, 5, 7}), f({7})}},
      {"matmul", "row_of_batch", {f({7}), f({2, 7, 5})}},
      {"matmul", "tn", {f({7, 5}), f({7, 3})}, {{"trans_a", int64_t{1}}}},
      {"matmul", "nt", {f({2, 5, 7}), f({3, 7})}, {{"trans_b", int64_t{1}}}},
      {"matmul",
       "tt",
       {f({2, 7, 5}), f({3, 7})},
       {{"trans_a", int64_t{1}}, {"trans_b", int64_t{1}}}},
      {"matmul", "batches", {f({3, 1, 5, 7}), f({2, 7, 1})}},
      {"matmul", "one_matrix", {f({5, 7}), f({3, 7, 2})}},
      {"einsum", "diagonal", {f({5, 5}), f({5, 3})}, {{"equation", std::string("ii,ij->j")}}},
      {"einsum", "broadcast", {f({1, 5}), f({3, 5})}, {{"equation", std::string("ab,ab->a")}}},
  };
}
std::vector<GradientCase> windows() {
  return {
      // Convolutions: strides that leave elements over, dilations, groups, other ranks.
      {"conv", "rest", {f({1, 2, 8, 7}), f({3, 2, 3, 2})}, {{"strides", Ints{3, 2}}}},
      {"conv", "apart", {f({2, 3, 5, 7}), f({2, 3, 1, 1})}, {{"strides", Ints{2, 3}}}},
      {"conv", "one_row", {f({2, 3, 5, 7}), f({2, 3, 1, 1})}, {{"strides", Ints{1, 2}}}},
      {"conv",
       "groups",
       {f({2, 6, 5, 5}), f({4, 3, 3, 3})},
       {{"group", int64_t{2}}, {"pads", Ints{1, 0, 2, 1}}, {"dilations", Ints{1, 2}}}},
      {"conv",
       "depthwise",
       {f({1, 3, 7, 5}), f({3, 1, 3, 3})},
       {{"group", int64_t{3}}, {"pads", Ints{1, 1, 1, 1}}}},
      {"conv", "multiplier", {f({1, 3, 5}), f({6, 1, 3})}, {{"group", int64_t{3}}}},
      {"conv", "point", {f({3, 5, 1, 1}), f({2, 5, 1, 1})}},
      {"conv",
       "volume",
       {f({1, 2, 3, 4, 5}), f({2, 2, 2, 2, 2})},
       {{"pads", Ints{1, 0, 0, 0, 1, 0}}}},
      {"conv_transpose",
       "stride",
       {f({1, 3, 4, 5}), f({3, 2, 3, 2})},
       {{"strides", Ints{2, 3}}, {"pads", Ints{1, 0, 0, 1}}}},
      {"conv_transpose",
       "more",
       {f({1, 2, 4}), f({2, 2, 3})},
       {{"strides", Ints{2}}, {"pads", Ints{0, -1}}}},
      {"conv_transpose",
       "groups",
       {f({2, 4, 4, 3}), f({4, 3, 2, 3})},
       {{"group", int64_t{2}}, {"dilations", Ints{2, 1}}, {"pads", Ints{1, 0, 0, 1}}}},
      {"average_pool",
       "counted",
       {f({1, 2, 7})},
       {{"kernel_shape", Ints{3}},
        {"strides", Ints{2}},
        {"pads", Ints{1, 1}},
        {"count_include_pad", int64_t{1}}}},
      {"max_pool",
       "overlap",
       {f({1, 2, 7, 5})},
       {{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 0, 1}}}},
      {"max_pool", "dilated", {f({1, 1, 9})}, {{"kernel_shape", Ints{3}}, {"dilations", Ints{2}}}},
      {"max_pool",
       "dilated_strides",
       {f({1, 2, 11, 8})},
       {{"kernel_shape", Ints{3, 2}}, {"dilations", Ints{2, 1}}, {"strides", Ints{2, 3}}}},
      {"max_pool",
       "apart",
       {f({2, 1, 7, 9})},
       {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 3}}, {"pads", Ints{1, 1, 0, 0}}}},
      {"max_pool",
       "many_overlap",
       {f({1, 1, 13, 6})},
       {{"kernel_shape", Ints{5, 5}}, {"strides", Ints{2, 1}}, {"pads", Ints{2, 0, 2, 4}}}},
  };
}
std::vector<GradientCase> reductions() {
  const ir::Attributes along_ends{{"axes", Ints{0, 2}}, {"keepdims", int64_t{0}}};
  return {
      // Reductions: zeros in products, all dimensions, some.
      {"reduce_prod", "zero", {f({3, 3})}, {{"axes", Ints{1}}}, {{0.5, 2, 3, 0, 2, 3, 1, 0.5, -1}}},
      {"reduce_sum", "ends", {f({3, 1, 5})}, along_ends},
      {"reduce_mean", "all", {f({3, 7})}},
      {"reduce_max", "ends", {f({3, 2, 5})}, along_ends},
      {"softmax", "middle", {f({2, 5, 3})}, {{"axis", int64_t{1}}}},
      {"layer_norm", "rms", {f({3, 7}), f({7})}, {{"rms", int64_t{1}}}},
      {"layer_norm", "axes", {f({2, 3, 5}), f({3, 5}), f({3, 5})}, {{"axis", int64_t{1}}}},
      {"layer_norm", "plain", {f({2, 3, 1, 5})}, {{"axis", int64_t{2}}}},
  };
}
std::vector<GradientCase> movements() {
  return {
      {"slice",
       "backwards",
       {f({7, 5}), i64({2}), i64({2}), i64({2}), i64({2})},
       {},
       {{}, {6, 0}, {0, 4}, {0, 1}, {-2, 1}}},
      {"pad", "zeros", {f({3, 5}), i64({4}), f({})}, {}, {{}, {1, -1, 0, 2}, {0.5}}},
      {"pad", "wrap", {f({3, 5}), i64({4})}, {{"mode", std::string("wrap")}}, {{}, {1, 2, 2, 0}}},
      {"pad", "edge", {f({3, 5}), i64({4})}, {{"mode", std::string("edge")}}, {{}, {1, 2, 2, 0}}},
      {"concat",
       "interleaved",
       {f({2, 3}), f({2, 3})},
       {{"axis", int64_t{1}}, {"interleave", int64_t{1}}}},
      {"gather", "middle", {f({2, 5, 3}), i64({4})}, {{"axis", int64_t{1}}}, {{}, {0, 3, -1, 0}}},
      {"gather_nd",
       "batch",
       {f({2, 4, 3}), i64({2, 1, 1})},
       {{"batch_dims", int64_t{1}}},
       {{}, {3, 1}}},
      {"cumulative_sum",
       "exclusive",
       {f({3, 5}), i64({1})},
       {{"exclusive", int64_t{1}}, {"reverse", int64_t{1}}},
       {{}, {1}}},
  };
}

// Operators whose operands meet in one element, in each of their reductions.
std::vector<GradientCase> scatters() {
  std::vector<GradientCase> cases;
  for (const char* how : {"none", "add", "mul", "max", "min"}) {
    const ir::Attributes reduction{{"reduction", std::string(how)}};
    ir::Attributes along = reduction;
    along["axis"] = int64_t{1};
    const std::string name(how);
    // Equal indices; extents of 1; slices, one of them written twice.
    cases.push_back({"scatter_elements", name, {f({3, 5}), i64({2, 7}), f({2, 7})}, along});
    cases.back().values = {{}, {0, 4, -1, 2, 0, 0, 1}};
    cases.push_back(
        {"scatter_elements", name + "_one", {f({1, 7}), i64({1, 1}), f({1, 1})}, along});
    cases.back().values = {{}, {-1}};
    cases.push_back({"scatter_nd", name, {f({3, 5}), i64({3, 1}), f({3, 5})}, reduction});
    cases.back().values = {{}, {2, 0, -1}};
    cases.push_back({"scatter_nd", name + "_elements", {f({3, 5}), i64({2, 2, 2}), f({2, 2})}});
    cases.back().attributes = reduction;
    cases.back().values = {{}, {2, 1, 0, 3, -1, 1, 1, 1}};
  }
  const ir::Attributes mul{{"reduction", std::string("mul")}};
  cases.push_back({"scatter_elements", "zeros", {f({5}), i64({6}), f({6})}, mul});
  cases.back().values = {{0, 2, 3, 0.5, 0}, {0, 1, 2, 2, 3, 3}, {3, 0, 0, 2, 0, 0}};
  return cases;
}
// Those that say where their results come from: chosen, placed, or made from all before.
std::vector<GradientCase> choices() {
  const TensorType chosen{DType::kBool, {5}};
  const ir::Attributes one{{"axis", int64_t{1}}};
  const ir::Attributes exclusive{{"exclusive", int64_t{1}}}, reverse{{"reverse", int64_t{1}}};
  return {
      {"tensor_scatter",
       "circular",
       {f({2, 3, 5}), f({2, 2, 5}), i64({2})},
       {{"mode", std::string("circular")}},
       {{}, {}, {2, 1}}},
      {"tensor_scatter", "plain", {f({1, 7, 1}), f({1, 3, 1})}},
      {"top_k",
       "smallest",
       {f({7, 3}), i64({1})},
       {{"axis", int64_t{0}}, {"largest", int64_t{0}}},
       {{}, {2}},
       -1,
       1,
       2},
      // Conditions that say more than there is, or less.
      {"compress", "flat", {f({3, 2}), chosen}, {}, {{}, {0, 1, 1, 0, 1}}},
      {"compress", "longer", {f({2, 3, 1}), chosen}, one, {{}, {1, 0, 1, 1, 1}}},
      {"compress", "shorter", {f({2, 7}), chosen}, one, {{}, {1, 0, 0, 1, 1}}},
      // Places written twice, places outside, and a result that is smaller than what indices count in.
      {"max_unpool",
       "twice",
       {f({1, 2, 5}), i64({1, 2, 5}), i64({3}), i64({3})},
       {},
       {{}, {0, 3, 3, 6, 2, 7, 12, 9, 0, 0}, {1, 2, 7}, {1, 2, 7}}},
      {"max_unpool",
       "cropped",
       {f({1, 1, 3}), i64({1, 1, 3}), i64({3}), i64({3})},
       {},
       {{}, {0, 4, 3}, {1, 1, 4}, {1, 1, 5}}},
      {"max_pool_indices",
       "columns",
       {f({1, 2, 5, 3})},
       {{"kernel_shape", Ints{2, 2}}, {"storage_order", int64_t{1}}},
       {},
       -1,
       1,
       2},
      // Zeros: the first of a line matters, those behind it do not.
      {"cumulative_product",
       "zero",
       {f({2, 5}), i64({1})},
       {},
       {{2, 3, 0, 0.5, 2, 1, 0, 2, 0, 3}, {1}}},
      {"cumulative_product", "exclusive", {f({3, 1, 5}), i64({1})}, exclusive, {{}, {2}}},
      {"cumulative_product",
       "reverse",
       {f({2, 5}), i64({1})},
       reverse,
       {{2, 3, 0, 0.5, 2, 1, 0, 2, 0, 3}, {1}}},
      {"range", "vectors", {f({1}), f({1}), f({1})}, {}, {{1.3}, {-1}, {-0.4}}},
  };
}
// All that may happen beyond the borders of x: for each mode, by positions, too.
std::vector<GradientCase> samples() {
  std::vector<GradientCase> cases;
  const TensorType x = f({2, 3, 5, 7}), line = f({1, 1, 7});
  for (const char* mode : {"linear", "nearest", "cubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (int64_t corners : {0, 1}) {
        const std::string name = std::string(mode) + "_" + padding + (corners ? "_corners" : "");
        // Some points lie outside.
        cases.push_back({"grid_sample", name, {x, f({2, 3, 1, 2})}});
        cases.back().attributes = {{"mode", std::string(mode)},
                                   {"padding_mode", std::string(padding)},
                                   {"align_corners", corners}};
        cases.back().low = -1.7, cases.back().high = 1.6;
      }
  cases.push_back({"grid_sample", "line", {line, f({1, 5, 1})}});
  cases.push_back({"grid_sample", "volume", {f({1, 2, 3, 1, 5}), f({1, 1, 2, 3, 3})}});
  const ir::Attributes window{{"kernel_shape", Ints{2, 3}},
                              {"strides", Ints{2, 1}},
                              {"pads", Ints{1, 0, 0, 1}},
                              {"dilations", Ints{1, 2}},
                              {"offset_group", int64_t{3}}};
  cases.push_back(
      {"deform_columns", "mask", {f({1, 3, 5, 7}), f({1, 36, 2, 3}), f({1, 18, 2, 3})}});
  cases.back().attributes = window;
  const ir::Attributes bins{
      {"output_height", int64_t{3}}, {"output_width", int64_t{1}}, {"spatial_scale", 0.5}};
  cases.push_back({"roi_align", "many", {x, f({3, 4}), i64({3})}, bins});
  cases.back().values = {{}, {0.5, 1, 4, 9, -3, 2, 9, 8, 3, 0, 13, 4}, {1, 0, 1}};
  cases.back().const_floats = true;
  cases.push_back({"max_roi_pool", "many", {x, f({3, 5})}, {{"pooled_shape", Ints{3, 2}}}});
  cases.back().values = {{}, {1.3, 0, 1, 4, 3, 0.3, 2, 2, 9, 9, 1.3, 8, 8, 9, 9}};
  return cases;
}
// Singular matrices have cofactors, too: of rank n - 1, and of less.
std::vector<GradientCase> matrices() {
  return {
      {"determinant", "one", {f({2, 1, 1})}},
      {"determinant", "seven", {f({7, 7})}},
      {"determinant", "singular", {f({3, 3})}, {}, {{1, 2, 3, 2, 4, 6, 0, 1, -1}}},
      {"determinant", "zero", {f({3, 3})}, {}, {{0}}},
      {"attention", "plain", {f({3, 5}), f({5, 7}), f({7, 2})}, {{"scale", 0.7}}},
      {"attention", "one_key", {f({2, 1, 3}), f({2, 3, 1}), f({2, 1, 5})}},
  };
}

}  // namespace

bool is_straight_through(std::string_view op) { return op == "quantize"; }

std::vector<GradientCase> gradient_cases() {
  std::vector<GradientCase> cases;
  for (const ir::OpDef* op : ir::all_ops())
    if (op->gradient && !is_straight_through(op->name)) cases.push_back(example(*op));
  for (auto* more : {pointwise, products, windows, reductions, movements, recurrent, scatters,
                     choices, samples, matrices})
    for (GradientCase& c : more()) cases.push_back(std::move(c));
  return cases;
}

}  // namespace tilewright
