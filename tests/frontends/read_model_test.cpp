// Reading of models that are right, wrong and hostile. The files are untrusted: nothing may crash,
// read outside the file or take memory without bound, whatever the bytes.
#include "frontends/onnx/read_model.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "frontends/onnx/strip_payloads.h"
#include "tests/frontends/model_builder.h"
#include "tests/frontends/scratch_folder.h"

namespace tilewright {
namespace {

using onnx_format::ModelProto;

// Every field of model.h that a small model can fill.
TEST(ReadModel, GivesTheWholeModel) {
  ModelProto proto = small_model();
  auto* shape = proto.mutable_graph()
                    ->mutable_input(0)
                    ->mutable_type()
                    ->mutable_tensor_type()
                    ->mutable_shape();
  shape->add_dim()->set_dim_value(2);
  shape->add_dim()->set_dim_param("n");
  shape->add_dim();
  auto* sequence = proto.mutable_graph()->add_value_info();
  sequence->set_name("t");
  sequence->mutable_type()
      ->mutable_sequence_type()
      ->mutable_elem_type()
      ->mutable_tensor_type()
      ->set_elem_type(7);
  auto read = parse(proto);
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  const OnnxModel& model = **read;
  EXPECT_EQ(model.ir_version, 10);
  EXPECT_EQ(model.producer, "test 1.0");
  EXPECT_EQ(model.opset_imports, (std::map<std::string, int64_t>{{"", 21}}));
  ASSERT_EQ(model.graph.nodes.size(), 2u);
  const OnnxNode& add = model.graph.nodes[0];
  EXPECT_EQ(add.op_type, "Add");
  EXPECT_EQ(add.opset, 21);
  EXPECT_EQ(add.inputs, (Names{"x", "w"}));
  EXPECT_EQ(add.outputs, (Names{"t"}));
  EXPECT_EQ(describe_node(add, 0), "node 'add' (Add)");
  const OnnxType& x = model.graph.inputs[0].type;
  EXPECT_EQ(x.kind, OnnxTypeKind::kTensor);
  EXPECT_EQ(x.onnx_code, 1);
  EXPECT_EQ(*x.shape, (std::vector<OnnxDimension>{int64_t{2}, std::string("n"), std::monostate{}}));
  EXPECT_FALSE(model.graph.outputs[0].type.shape.has_value());
  const OnnxType& t = model.graph.value_info[0].type;
  EXPECT_EQ(t.kind, OnnxTypeKind::kSequence);
  EXPECT_EQ(t.element->onnx_code, 7);
  const TensorView& w = model.graph.initializers.at("w");
  EXPECT_EQ(w.shape, (Shape{2, 2}));
  float last = 0;
  std::memcpy(&last, w.data + 12, 4);
  EXPECT_EQ(last, 4);
}

// No copy of the weights, and the mapping lives as long as a view of it.
TEST(ReadModel, RawDataAreViewsThatOutliveTheModel) {
  std::string bytes = small_model().SerializeAsString();
  auto owner = std::make_shared<std::string>(bytes);
  auto* begin = reinterpret_cast<const uint8_t*>(owner->data());
  TensorView w;
  {
    auto model = parse_model({begin, owner->size()}, owner, {});
    ASSERT_TRUE(model.ok());
    w = (*model)->graph.initializers.at("w");
  }
  EXPECT_GE(w.data, begin);
  EXPECT_LE(w.data + w.bytes, begin + owner->size());
  EXPECT_EQ(owner.use_count(), 2);
}

// Absent numbers are 0; models of old versions do not write the kind.
TEST(ReadModel, AttributesOfEveryKind) {
  ModelProto proto = small_model();
  auto* node = proto.mutable_graph()->mutable_node(0);
  auto add = [&](const char* name, int type) {
    auto* a = node->add_attribute();
    a->set_name(name);
    a->set_type(type);
    return a;
  };
  add("i", onnx_format::INT)->set_i(-3);
  add("zero", onnx_format::INT);
  add("f", onnx_format::FLOAT)->set_f(0.5f);
  add("s", onnx_format::STRING)->set_s("text");
  add("ints", onnx_format::INTS)->add_ints(7);
  add("floats", onnx_format::FLOATS)->add_floats(1.5f);
  add("strings", onnx_format::STRINGS)->add_strings("a");
  set_floats(add("t", onnx_format::TENSOR_VALUE)->mutable_t(), "", {}, {9});
  add("tp", onnx_format::TYPE_PROTO)->mutable_tp()->mutable_tensor_type()->set_elem_type(6);
  add("untyped", onnx_format::NO_TYPE)->set_i(4);
  auto model = parse(proto);
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  auto& all = (*model)->graph.nodes[0].attributes;
  EXPECT_EQ(std::get<int64_t>(all["i"]), -3);
  EXPECT_EQ(std::get<int64_t>(all["zero"]), 0);
  EXPECT_EQ(std::get<int64_t>(all["untyped"]), 4);
  EXPECT_EQ(std::get<float>(all["f"]), 0.5f);
  EXPECT_EQ(std::get<std::string>(all["s"]), "text");
  EXPECT_EQ(std::get<std::vector<int64_t>>(all["ints"]), (std::vector<int64_t>{7}));
  EXPECT_EQ(std::get<std::vector<float>>(all["floats"]), (std::vector<float>{1.5f}));
  EXPECT_EQ(std::get<std::vector<std::string>>(all["strings"]), (Names{"a"}));
  EXPECT_EQ(std::get<TensorView>(all["t"]).bytes, 4u);
  EXPECT_EQ(std::get<OnnxType>(all["tp"]).onnx_code, 6);
}

TEST(ReadModel, TypedDataAndStringsAreDecoded) {
  ModelProto proto = small_model();
  auto* graph = proto.mutable_graph();
  auto* floats = graph->add_initializer();
  floats->set_name("floats");
  floats->set_data_type(1);
  floats->add_dims(2);
  floats->add_float_data(1.5f);
  floats->add_float_data(-2);
  auto* strings = graph->add_initializer();
  strings->set_name("strings");
  strings->set_data_type(8);
  strings->add_dims(2);
  strings->add_string_data("ab");
  strings->add_string_data("");
  auto* flags = graph->add_initializer();
  flags->set_name("flags");
  flags->set_data_type(9);
  flags->add_dims(2);
  flags->set_raw_data(std::string("\x07\x00", 2));
  auto* empty = graph->add_initializer();
  empty->set_name("empty");
  empty->set_data_type(1);
  empty->add_dims(0);
  auto model = parse(proto);
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  auto& all = (*model)->graph.initializers;
  float values[2];
  ASSERT_EQ(all["floats"].bytes, 8u);
  std::memcpy(values, all["floats"].data, 8);
  EXPECT_EQ(values[0], 1.5f);
  EXPECT_EQ(values[1], -2.f);
  EXPECT_EQ(all["strings"].strings, (Names{"ab", ""}));
  EXPECT_EQ(all["flags"].data[0], 1);
  EXPECT_EQ(all["empty"].bytes, 0u);
}

// Indices may be numbers of elements or tuples.
TEST(ReadModel, SparseTensorsBecomeDense) {
  for (bool linear : {true, false}) {
    ModelProto proto = small_model();
    if (linear)
      add_sparse(proto, {1, 5}, {2});
    else
      add_sparse(proto, {0, 1, 1, 2}, {2, 2});
    auto model = parse(proto);
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    const TensorView& s = (*model)->graph.initializers.at("s");
    EXPECT_EQ(s.shape, (Shape{2, 3}));
    float dense[6];
    ASSERT_EQ(s.bytes, sizeof(dense));
    std::memcpy(dense, s.data, sizeof(dense));
    const float expected[6] = {0, 5, 0, 0, 0, 6};
    EXPECT_EQ(std::memcmp(dense, expected, sizeof(dense)), 0);
  }
}

// `levels` graphs, each in an If of the one around it.
ModelProto nested_model(int levels) {
  ModelProto proto = small_model();
  auto* graph = proto.mutable_graph();
  for (int i = 0; i < levels; ++i) {
    auto* node = add_node(graph->mutable_node(), "If", {"x"}, {"if" + std::to_string(i)});
    auto* branch = node->add_attribute();
    branch->set_name("then_branch");
    branch->set_type(onnx_format::GRAPH);
    graph = branch->mutable_g();
    set_floats(graph->add_initializer(), "inner", {1}, {1});
    add_value(graph->mutable_output(), i % 2 ? "inner" : "t");
  }
  return proto;
}

TEST(ReadModel, InnerGraphsSeeOuterValuesToALimitedDepth) {
  auto deepest = parse(nested_model(kMaxGraphDepth - 1));
  EXPECT_TRUE(deepest.ok()) << deepest.error().to_string();
  auto deeper = parse(nested_model(kMaxGraphDepth));
  ASSERT_FALSE(deeper.ok());
  EXPECT_EQ(deeper.error().kind, ErrorKind::kLimit);
  ModelProto bad = nested_model(1);
  bad.mutable_graph()
      ->mutable_node(2)
      ->mutable_attribute(0)
      ->mutable_g()
      ->mutable_output(0)
      ->set_name("z");
  EXPECT_EQ(parse(bad).error().to_string(),
            "node 2 (If), graph 'then_branch': graph output 'z' is not defined");
}

// Protobuf's wire format by hand, for messages that its library would not write.
std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
std::string field(int number, const std::string& bytes) {
  return varint(static_cast<uint64_t>(number) << 3 | 2) + varint(bytes.size()) + bytes;
}

// Recursion would overflow the stack, and messages of two bytes take far more in memory.
TEST(ReadModel, BoundsNestingAndAmountsThatProtobufWouldNot) {
  std::string graph;
  for (int i = 0; i < 2000; ++i) graph = field(1, field(5, field(6, graph)));
  EXPECT_EQ(parse(field(7, graph)).error().kind, ErrorKind::kLimit);
  std::string nodes;
  for (size_t i = 0; i <= kMaxNodes; ++i) nodes += std::string("\x0A\x00", 2);
  EXPECT_EQ(parse(field(7, nodes)).error().kind, ErrorKind::kLimit);
  std::string inputs;
  for (size_t i = 0; i <= kMaxMessages; ++i) inputs += std::string("\x0A\x00", 2);
  EXPECT_EQ(parse(field(7, field(1, inputs))).error().kind, ErrorKind::kLimit);
  std::string type;
  for (int i = 0; i < 2000; ++i) type = field(4, field(1, type));
  std::string deep_type = small_model().SerializeAsString() + field(7, field(11, field(2, type)));
  EXPECT_EQ(parse(deep_type).error().kind, ErrorKind::kInvalid);
}

TEST(ReadModel, SkipsUnknownFieldsAndRefusesGarbage) {
  std::string bytes = small_model().SerializeAsString();
  EXPECT_TRUE(parse(field(1000, "new") + bytes + field(6, "documentation")).ok());
  EXPECT_FALSE(parse(std::string()).ok());
  EXPECT_FALSE(parse(std::string("PK\x03\x04 not a model")).ok());
  EXPECT_FALSE(parse(bytes + "\x0B").ok());  // a group
  EXPECT_FALSE(parse(bytes + std::string("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 11)).ok());
}

// Calls whatever reads all bytes, so that sanitizers see views that point outside.
size_t touch(const OnnxModel& model) {
  size_t sum = 0;
  for (const auto& [name, tensor] : model.graph.initializers)
    for (size_t i = 0; i < tensor.bytes; ++i) sum += tensor.data[i];
  return sum;
}

// At each byte.
TEST(ReadModel, EveryTruncationIsRefused) {
  ModelProto proto = nested_model(3);
  add_sparse(proto, {0, 1, 1, 2}, {2, 2});
  std::string bytes = proto.SerializeAsString();
  // The graph stands before the imports, so that no prefix is a model of its own.
  ASSERT_TRUE(parse(bytes).ok());
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(parse(bytes.substr(0, n)).ok()) << n;
}

// Each bit alone: an exhaustive fuzzer of distance one, which sanitizers watch.
TEST(ReadModel, EveryFlippedByteIsReadOrRefused) {
  ModelProto proto = nested_model(3);
  add_sparse(proto, {0, 1, 1, 2}, {2, 2});
  std::string bytes = proto.SerializeAsString();
  size_t refused = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      auto model = parse(changed);
      if (model.ok()) touch(**model);
      refused += !model.ok();
    }
  }
  EXPECT_GT(refused, bytes.size());
}

// Files that real exporters wrote, where this machine has them.
TEST(ReadModel, ReadsTheSharedModels) {
  const char* variable = std::getenv("TILEWRIGHT_SHARED");
  std::filesystem::path shared = variable ? variable : TILEWRIGHT_SOURCE_DIR "/../shared";
  if (!std::filesystem::is_directory(shared / "models"))
    GTEST_SKIP() << "skipped: no folder " << (shared / "models").string();
  size_t read = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(shared / "models")) {
    if (entry.path().extension() != ".onnx") continue;
    auto model = read_model(entry.path());
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    EXPECT_FALSE((*model)->graph.nodes.empty()) << entry.path();
    touch(**model);
    ++read;
  }
  EXPECT_GT(read, 0u);
}

}  // namespace
}  // namespace tilewright
