// The like of refused_extents_test.cpp for ONNX nodes, of which importers make several operators:
// what a model of known extents is refused for ends the run of one whose extents are open.
#include <set>

#include "tests/frontends/open_extents.h"
#include "tests/frontends/scratch_folder.h"

namespace tilewright {
namespace {

constexpr int kShapes = 60;

struct Input {
  Shape shape;
  DType dtype = DType::kFloat32;
  std::vector<double> values = {};  // over and over; empty: random
  bool known = false;               // when the model is compiled
};
struct Row {
  std::string op;
  std::vector<Input> inputs;
  NodeAttributes attributes = {};
  int outputs = 1;
  int64_t opset = 21;
  std::vector<Place> closed = {};  // extents that must be known
};
void PrintTo(const Row& r, std::ostream* out) { *out << r.op; }

using Ints = std::vector<int64_t>;
Input ints(std::vector<double> values) {
  return {{static_cast<int64_t>(values.size())}, DType::kInt64, values, true};
}
Input indices(Shape shape, std::vector<double> values) {
  return {std::move(shape), DType::kInt64, std::move(values)};
}
const Input kAbsent{{}, DType::kFloat32, {}, true};

bool is_absent(const Input& i) { return i.known && i.values.empty(); }

Shapes shapes_of(const Row& row) {
  Shapes shapes;
  for (const Input& i : row.inputs) shapes.push_back(i.shape);
  return shapes;
}
std::vector<Place> places_of(const Row& row) {
  std::vector<Place> all;
  for (size_t i = 0; i < row.inputs.size(); ++i)
    for (size_t d = 0; !row.inputs[i].known && d < row.inputs[i].shape.size(); ++d)
      if (std::none_of(row.closed.begin(), row.closed.end(),
                       [&](const Place& p) { return p.operand == i && p.dim == d; }))
        all.push_back({i, d});
  return all;
}
NodeModel model_of(const Row& row, const Shapes& shapes, const std::vector<Place>& open,
                   Random& random) {
  NodeModel m(row.opset);
  Names in, out;
  for (size_t i = 0; i < row.inputs.size(); ++i) {
    const Input& x = row.inputs[i];
    if (is_absent(x)) {
      in.push_back("");
      continue;
    }
    in.push_back(m.operand({x.values.empty() ? to_tensor(random_tensor(x.dtype, shapes[i], random))
                                             : tensor_of(x.dtype, shapes[i], x.values),
                            x.known}));
    for (const Place& p : open)
      if (p.operand == i)
        m.proto.mutable_graph()
            ->mutable_input(m.proto.graph().input_size() - 1)
            ->mutable_type()
            ->mutable_tensor_type()
            ->mutable_shape()
            ->mutable_dim(static_cast<int>(p.dim))
            ->set_dim_param("s" + std::to_string(i) + "_" + std::to_string(p.dim));
  }
  for (int k = 0; k < row.outputs; ++k) {
    out.push_back("y" + std::to_string(k));
    m.output(out.back());
  }
  m.node(row.op, in, out, row.attributes);
  return m;
}

// What a model of these shapes gives by itself.
Result<Tensors> run_known(const NodeModel& m) {
  TW_ASSIGN(std::unique_ptr<OnnxModel> model, parse(m.proto));
  TW_ASSIGN(auto executable, compile_in_memory(*model, {}, {}));
  Tensors inputs;
  for (const Tensor& t : m.inputs) inputs.push_back(to_host(t));
  return run(executable, inputs, 1);
}

class RequiredExtents : public testing::TestWithParam<Row> {};

TEST_P(RequiredExtents, AreRequiredAtTheRun) {
  const Row& row = GetParam();
  const ScratchFolder folder;
  Random random(1);
  const std::vector<Place> open = places_of(row);
  const NodeModel opened = model_of(row, shapes_of(row), open, random);
  auto model = parse(opened.proto);
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  const std::string path = (folder / "model.so").string();
  const Status written = compile_to_file(**model, {{}}, {}, path);
  ASSERT_TRUE(written.ok()) << written.error().to_string();
  auto from_file = load_executable(path);
  ASSERT_TRUE(from_file.ok()) << from_file.error().to_string();
  int refused = 0, taken = 0;
  for (int k = 0; k < kShapes; ++k) {
    const Shapes shapes = k == 0 ? shapes_of(row) : changed(shapes_of(row), open, random);
    SCOPED_TRACE("run with " + text_of(shapes));
    const NodeModel known = model_of(row, shapes, {}, random);
    Tensors inputs;
    for (const Tensor& t : known.inputs) inputs.push_back(to_host(t));
    const auto expected = run_known(known), found = run(*from_file, inputs, k % 2 ? 3 : 1);
    if (!expected.ok()) {
      if (expected.error().kind != ErrorKind::kInvalid) continue;
      ++refused;
      ASSERT_FALSE(found.ok()) << "values, although: " << expected.error().to_string();
      EXPECT_EQ(found.error().kind, ErrorKind::kInvalid) << found.error().to_string();
      continue;
    }
    ++taken;
    ASSERT_TRUE(found.ok()) << found.error().to_string();
    for (size_t o = 0; o < found->size(); ++o) {
      const auto d = difference((*found)[o], (*expected)[o]);
      ASSERT_TRUE(d.has_value()) << "output " << o;
      EXPECT_LE(*d, 1e-4) << "output " << o;
    }
  }
  EXPECT_GT(taken, 0);
}

// Changes the type, rank or an extent of one operand at a time: the result is an error that names the node, or a run
// without accesses outside of its buffers.
TEST_P(RequiredExtents, OtherOperandsAreRefusedByName) {
  const Row& row = GetParam();
  Random random(2);
  const auto judge = [&](const Row& other) {
    for (const bool known : {false, true}) {
      Row tried = other;
      for (Input& i : tried.inputs)
        if (known && !is_absent(i))
          i.known = true, i.values = i.values.empty() ? std::vector<double>{1, 0.5} : i.values;
      const auto found = run_known(model_of(tried, shapes_of(tried), {}, random));
      if (found.ok()) continue;
      EXPECT_TRUE(found.error().kind == ErrorKind::kInvalid ||
                  found.error().kind == ErrorKind::kUnsupported)
          << found.error().to_string();
      EXPECT_NE(found.error().to_string().find("node"), std::string::npos)
          << found.error().to_string();
    }
  };
  for (size_t i = 0; i < row.inputs.size(); ++i) {
    if (is_absent(row.inputs[i])) continue;
    Row other = row;
    Input& input = other.inputs[i];
    const auto tried = [&](DType dtype, const Shape& shape) {
      input.dtype = dtype, input.shape = shape;
      SCOPED_TRACE("operand " + std::to_string(i) + " " + std::string(info(dtype).name) +
                   to_string(shape));
      judge(other);
    };
    const Shape& shape = row.inputs[i].shape;
    const DType dtype = row.inputs[i].dtype;
    for (const DTypeInfo& t : kDTypes) tried(t.dtype, shape);
    tried(dtype, {});
    for (const int64_t front : {1, 2}) {
      Shape larger = shape;
      larger.insert(larger.begin(), front);
      tried(dtype, larger);
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      for (const int64_t extent : {int64_t{0}, int64_t{1}, shape[d] - 1, shape[d] + 1}) {
        Shape changed = shape;
        changed[d] = extent;
        tried(dtype, changed);
      }
      Shape smaller = shape;
      smaller.erase(smaller.begin() + static_cast<ptrdiff_t>(d));
      tried(dtype, smaller);
    }
  }
}

const Input x23{{4, 6}}, x234{{2, 4, 6}}, image{{2, 4, 6, 6}};
const std::vector<Row> kRows{
    {"TopK", {x23, ints({4})}, {}, 2},
    {"TopK", {{{6, 3}}, ints({3})}, {{"axis", int64_t{0}}}, 2},
    {"TopK", {x23, {{1}, DType::kInt64, {5}}}, {}, 2, 21, {{1, 0}}},
    {"Split", {x23, ints({1, 3})}, {}, 2},
    {"Split", {x23, ints({2, 4})}, {{"axis", int64_t{1}}}, 2},
    {"DepthToSpace", {image}, {{"blocksize", int64_t{2}}}},
    {"SpaceToDepth", {image}, {{"blocksize", int64_t{3}}}},
    {"Squeeze", {{{4, 1, 3}}, ints({1})}},
    {"Reshape", {x23, ints({2, 12})}},
    {"Reshape", {x234, ints({0, -1, 8})}},
    {"Expand", {x23, ints({3, 4, 6})}},
    {"Tile", {x23, ints({2, 1})}},
    {"Concat", {x23, {{4, 3}}}, {{"axis", int64_t{1}}}},
    {"Einsum", {x23, {{6, 5}}}, {{"equation", std::string("ij,jk->ik")}}},
    {"Einsum", {{{5, 5}}}, {{"equation", std::string("ii->i")}}},
    {"MatMul", {x234, {{6, 3}}}},
    {"Gemm", {x23, {{6, 3}}, {{3}}}},
    {"Conv", {image, {{4, 2, 3, 3}}}, {{"group", int64_t{2}}}, 1, 21, {{1, 2}, {1, 3}}},
    {"Conv", {image, {{6, 4, 5, 3}}, {{6}}}, {}, 1, 21, {{1, 2}, {1, 3}}},
    {"ConvTranspose",
     {image, {{4, 3, 3, 3}}},
     {{"pads", Ints{2, 2, 2, 2}}},
     1,
     21,
     {{1, 2}, {1, 3}}},
    {"MaxPool", {image}, {{"kernel_shape", Ints{5, 3}}}},
    {"AveragePool", {image}, {{"kernel_shape", Ints{4, 4}}, {"pads", Ints{1, 0, 1, 0}}}},
    {"LpPool", {image}, {{"kernel_shape", Ints{5, 5}}}},
    {"MaxUnpool",
     {{{1, 2, 3, 3}}, indices({1, 2, 3, 3}, {0, 3, 5})},
     {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}},
    {"Col2Im", {{{1, 8, 9}}, ints({4, 4}), ints({2, 2})}},
    {"LRN", {image}, {{"size", int64_t{3}}}},
    {"Pad", {x23, ints({-3, 0, 0, -2})}},
    {"Pad", {x23, ints({2, 0, 0, 2})}, {{"mode", std::string("reflect")}}},
    {"Pad", {x23, ints({1, 0, 0, 2})}, {{"mode", std::string("edge")}}},
    {"CenterCropPad", {x23, ints({3, 7})}},
    {"Gather", {x23, indices({2}, {1, 3})}},
    {"GatherElements", {x23, indices({2, 6}, {1, 3, 0})}},
    {"GatherND",
     {x234, indices({2, 3, 1}, {0, 1, 2})},
     {{"batch_dims", int64_t{1}}},
     1,
     21,
     {{1, 2}}},
    {"ScatterElements", {x23, indices({2, 6}, {0}), {{2, 6}}}},
    {"ScatterND", {x234, indices({3, 1}, {0, 1, 0}), {{3, 4, 6}}}, {}, 1, 21, {{1, 1}}},
    {"TensorScatter", {x234, {{2, 3, 6}}}, {}, 1, 24},
    {"ReverseSequence", {x23, indices({6}, {2, 1, 3})}},
    {"OneHot", {indices({3}, {1, 0}), ints({4}), {{2}}}},
    {"Det", {{{2, 4, 4}}}},
    {"NegativeLogLikelihoodLoss",
     {{{4, 3, 5}}, indices({4, 5}, {0, 2, 1}), {{3}}},
     {},
     1,
     21,
     {{0, 1}}},
    {"SoftmaxCrossEntropyLoss", {{{4, 3}}, indices({4}, {0, 2, 1})}, {}, 2, 21, {{0, 1}}},
    {"LayerNormalization", {x234, {{6}}, {{6}}}},
    {"GroupNormalization", {image, {{4}}, {{4}}}, {{"num_groups", int64_t{2}}}},
    {"InstanceNormalization", {image, {{4}}, {{4}}}},
    {"BatchNormalization", {image, {{4}}, {{4}}, {{4}}, {{4}, DType::kFloat32, {0.5, 2}}}},
    {"Resize", {x23, kAbsent, kAbsent, ints({3, 8})}, {{"mode", std::string("linear")}}},
    {"GridSample", {image, {{2, 3, 3, 2}}}},
    {"AffineGrid", {{{2, 2, 3}}, ints({2, 3, 4, 5})}},
    {"RoiAlign",
     {image, {{3, 4}, DType::kFloat32, {0, 1, 4, 5}}, indices({3}, {0, 1})},
     {{"output_height", int64_t{2}}}},
    {"DeformConv",
     {{{1, 4, 4, 4}}, {{2, 2, 2, 2}}, {{1, 16, 3, 3}}},
     {{"group", int64_t{2}}, {"offset_group", int64_t{2}}},
     1,
     21,
     {{1, 2}, {1, 3}}},
    {"NonMaxSuppression",
     {{{1, 5, 4}, DType::kFloat32, {0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 10, 1, 11}},
      {{1, 2, 5}, DType::kFloat32, {0.9, 0.5, 0.7}},
      ints({3})}},
    {"Attention",
     {{{2, 3, 8}}, {{2, 5, 8}}, {{2, 5, 8}}},
     {{"q_num_heads", int64_t{2}}, {"kv_num_heads", int64_t{2}}, {"scale", 0.5}},
     1,
     23},
    {"RotaryEmbedding", {{{2, 3, 4, 6}}, {{2, 4, 3}}, {{2, 4, 3}}}, {}, 1, 23, {{0, 3}}},
    {"RNN",
     {{{3, 2, 4}}, {{1, 5, 4}}, {{1, 5, 5}}, {{1, 10}}, kAbsent, {{1, 2, 5}}},
     {{"hidden_size", int64_t{5}}},
     2,
     21,
     {{1, 0}, {1, 1}, {2, 0}, {2, 1}, {2, 2}}},
    {"LSTM",
     {{{3, 2, 4}},
      {{1, 12, 4}},
      {{1, 12, 3}},
      {{1, 24}},
      {{2}, DType::kInt32, {3, 1}},
      {{1, 2, 3}},
      {{1, 2, 3}},
      {{1, 9}}},
     {{"hidden_size", int64_t{3}}},
     3,
     21,
     {{1, 0}, {1, 1}, {2, 0}, {2, 1}, {2, 2}}},
    {"GRU",
     {{{3, 2, 4}}, {{1, 9, 4}}, {{1, 9, 3}}, {{1, 18}}, {{2}, DType::kInt32, {2, 3}}, {{1, 2, 3}}},
     {{"hidden_size", int64_t{3}}, {"linear_before_reset", int64_t{1}}},
     2,
     21,
     {{1, 0}, {1, 1}, {2, 0}, {2, 1}, {2, 2}}},
    {"MatMulInteger", {{{4, 6}, DType::kUInt8}, {{6, 3}, DType::kInt8}, {{4}, DType::kUInt8}}},
    {"Slice", {x23, ints({1}), ints({3}), ints({0})}},
    {"Compress", {x23, {{4}, DType::kBool, {1, 0, 1}}}, {{"axis", int64_t{0}}}},
};
INSTANTIATE_TEST_SUITE_P(All, RequiredExtents, testing::ValuesIn(kRows), [](const auto& info) {
  return info.param.op + "_" + std::to_string(info.index);
});

}  // namespace
}  // namespace tilewright
