// What the importer makes of ConvTranspose's ways to say how large its result is, and what it refuses.
#include "ir/module_text/printer_graph.h"
#include "tests/frontends/run_model.h"

namespace tilewright {
namespace {

using Ints = std::vector<int64_t>;

// The graph of one node over x: f32[1, 2, 5], w: f32[2, 3, 4], or why there is none.
std::string imported(const NodeAttributes& attributes, bool symbolic = false, bool biased = false,
                     DType t = DType::kFloat32) {
  NodeModel m;
  Names in{m.operand({tensor_of(t, {1, 2, 5}, {1})}), m.operand({tensor_of(t, {2, 3, 4}, {1})})};
  if (biased) in.push_back(m.operand({tensor_of(t, {3}, {1})}));
  if (symbolic) {
    auto* type = m.proto.mutable_graph()->mutable_input(0)->mutable_type();
    type->mutable_tensor_type()->mutable_shape()->mutable_dim(2)->set_dim_param("h");
  }
  m.node("ConvTranspose", in, {"y"}, attributes);
  m.output("y");
  auto model = parse(m.proto);
  if (!model.ok()) return model.error().to_string();
  auto graph = build_graph(**model, {});
  return graph.ok() ? ir::to_text(*graph) : graph.error().to_string();
}

struct Extent {
  NodeAttributes attributes;
  std::string pads, result;  // as the text form has them
  bool symbolic = false;
};
// With strides of 2 the full result is of 12 elements, from h elements 2 h + 2.
const Extent kExtents[] = {
    {{}, "[0, 0]", "12"},
    {{{"pads", Ints{1, 2}}}, "[1, 2]", "9"},
    {{{"pads", Ints{1, 2}}, {"output_padding", Ints{1}}}, "[1, 1]", "10"},
    {{{"output_padding", Ints{1}}}, "[0, -1]", "13"},
    {{{"auto_pad", std::string("VALID")}, {"pads", Ints{1, 1}}}, "[0, 0]", "12"},
    {{{"auto_pad", std::string("SAME_UPPER")}}, "[1, 1]", "10"},
    {{{"auto_pad", std::string("SAME_UPPER")}, {"output_padding", Ints{1}}}, "[1, 1]", "10"},
    {{{"auto_pad", std::string("SAME_LOWER")}, {"output_padding", Ints{1}}}, "[2, 0]", "10"},
    {{{"output_shape", Ints{9}}}, "[2, 1]", "9"},
    {{{"output_shape", Ints{9}}, {"auto_pad", std::string("SAME_UPPER")}}, "[1, 2]", "9"},
    {{{"output_shape", Ints{1, 3, 9}}, {"pads", Ints{7, 7}}}, "[2, 1]", "9"},
    {{{"output_shape", Ints{14}}}, "[0, -2]", "14"},
    {{{"pads", Ints{1, 2}}}, "[1, 2]", "h * 2 - 1", true},
    {{{"auto_pad", std::string("SAME_LOWER")}}, "[1, 1]", "h * 2", true},
};

TEST(ConvTransposeImport, EveryExtentIsAMatterOfPads) {
  for (const Extent& e : kExtents) {
    NodeAttributes attributes = e.attributes;
    attributes["strides"] = Ints{2};
    const std::string text = imported(attributes, e.symbolic),
                      line = "y: f32[1, 3, " + e.result +
                             "] = conv_transpose(x0, x1) {group = 1, pads = " + e.pads +
                             ", strides = [2]}";
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

// How much is cut off only the run knows, but not how much is left.
TEST(ConvTransposeImport, ExtentsThatAreAskedForStay) {
  const std::string text = imported({{"strides", Ints{2}}, {"output_shape", Ints{9}}}, true);
  EXPECT_NE(text.find("y: f32[1, 3, 9] = conv_transpose(x0, x1)"), std::string::npos) << text;
}

TEST(ConvTransposeImport, BiasesAreAddedToSumsOfTheirType) {
  const std::string text = imported({{"dilations", Ints{2}}}, false, true),
                    half = imported({{"dilations", Ints{2}}}, false, true, DType::kFloat16);
  EXPECT_NE(text.find("conv_transpose(x0, x1) {dilations = [2], group = 1, pads = [0, 0]}"),
            std::string::npos)
      << text;
  EXPECT_NE(half.find("f32[1, 3, 11] = conv_transpose(x0, x1) {dilations = [2], group = 1, "
                      "out_dtype = \"f32\", pads = [0, 0]}"),
            std::string::npos)
      << half;
  EXPECT_NE(half.find("f16[1, 3, 11] = cast("), std::string::npos) << half;
}

TEST(ConvTransposeImport, ErrorsNameTheNodeAndTheRule) {
  const std::pair<NodeAttributes, std::string> wrong[] = {
      {{{"pads", Ints{1}}}, "pads, output_padding or output_shape do not fit 1 spatial dimensions"},
      {{{"output_padding", Ints{1, 1}}}, "do not fit 1 spatial dimensions"},
      {{{"strides", Ints{1, 1}}}, "do not fit 1 spatial dimensions"},
      {{{"dilations", Ints{1, 1}}}, "do not fit 1 spatial dimensions"},
      {{{"strides", Ints{0}}},
       "takes integers from 1 to 2147483648 as attribute 'strides', found 0"},
      {{{"pads", Ints{5, 4}}}, "extent -1"},
      {{{"output_shape", Ints{-3}}}, "extent -3"},
      {{{"group", int64_t{4}}},
       "channels do not fit: x is f32[1, 2, 5], w is f32[2, 3, 4], group is 4"},
      {{{"kernel_shape", Ints{3}}}, "kernel_shape does not fit w, which is f32[2, 3, 4]"},
      {{{"auto_pad", std::string("SAME")}}, "auto_pad 'SAME'"},
      {{{"strides", Ints{INT64_MAX}}, {"output_padding", Ints{INT64_MIN}}},
       "as attribute 'output_padding', found -9223372036854775808"},
  };
  for (const auto& [attributes, phrase] : wrong) {
    const std::string text = imported(attributes);
    EXPECT_NE(text.find(phrase), std::string::npos) << phrase << "\n" << text;
    EXPECT_NE(text.find("'node'"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tilewright
