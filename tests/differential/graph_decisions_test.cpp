// Random answers to the decisions of graph passes: each is followed or refused; results are those of
// the interpreter, and of the usual bits where no answer may change any. TILEWRIGHT_ANSWERS=n tries
// n sets of answers a layer and n random graphs, TILEWRIGHT_SEED=n one seed alone.
#include <gtest/gtest.h>

#include "passes/decisions/decisions.h"
#include "tests/differential/random_answers.h"

namespace tilewright {
namespace {

void ask(const ir::Graph& graph, CompiledForm& form, RandomAnswers& answers) {
  form.answers = answers.graph(graph, form);
}
CompiledForm folded() {
  CompiledForm form{true, true, true};
  form.numerics = Numerics::kStandard;
  return form;
}

// Each with the kinds of decisions that come up for it.
struct LayerCase {
  const char *name, *lines;
  std::set<std::string> kinds;
};
const LayerCase kLayers[] = {
    {"attention",
     R"(
  input q: f32[2, 37, 24]
  input k: f32[2, 151, 24]
  input v: f32[2, 151, 40]
  input bias: f32[151]
  p: f32[2, 37, 151] = matmul(q, k) {trans_b = 1}
  s: f32[2, 37, 151] = add(p, bias)
  w: f32[2, 37, 151] = softmax(s) {axis = -1}
  y: f32[2, 37, 40] = matmul(w, v)
)",
     {"fused"}},
    {"convolutions",
     R"(
  input x: f32[1, 3, 20, 27]
  const w0: f32[24, 3, 3, 3] = #0
  const w1: f32[33, 24, 3, 3] = #1
  const w2: f32[33, 1, 5, 5] = #2
  const w3: f32[17, 33, 1, 1] = #3
  c0: f32[1, 24, 20, 27] = conv(x, w0) {pads = [1, 1, 1, 1]}
  r0: f32[1, 24, 20, 27] = relu(c0)
  c1: f32[1, 33, 20, 27] = conv(r0, w1) {pads = [1, 1, 1, 1]}
  r1: f32[1, 33, 20, 27] = relu(c1)
  c2: f32[1, 33, 20, 27] = conv(r1, w2) {pads = [2, 2, 2, 2], group = 33}
  s: f32[1, 33, 20, 27] = add(c2, r1)
  y: f32[1, 17, 20, 27] = conv(s, w3)
)",
     {"winograd", "amid_padding", "layout"}},
    {"few_channels",
     R"(
  input x: f32[2, 5, 30, 9]
  const w0: f32[7, 5, 3, 3] = #0
  const w1: f32[6, 7, 4, 3] = #1
  c0: f32[2, 7, 15, 9] = conv(x, w0) {strides = [2, 1], pads = [1, 1, 1, 1]}
  e: f32[2, 7, 15, 9] = exp(c0)
  c1: f32[2, 6, 14, 9] = conv(e, w1) {pads = [1, 1, 1, 1]}
  y: f32[2, 14, 9, 6] = transpose(c1) {perm = [0, 2, 3, 1]}
)",
     {"amid_padding", "layout"}},
    {"transposed_convolution",
     R"(
  input x: f32[1, 9, 13, 10]
  const w: f32[9, 20, 4, 3] = #0
  t: f32[1, 20, 26, 20] = conv_transpose(x, w) {pads = [1, 1, 1, 0], strides = [2, 2]}
  y: f32[1, 20, 26, 20] = relu(t)
)",
     {"separate_phases", "layout"}},
    {"weights_known_at_the_run",
     R"(
  input x: f32[2, 24, 20, 27]
  input w: f32[33, 24, 3, 3]
  r: f32[2, 24, 20, 27] = relu(x)
  c: f32[2, 33, 20, 27] = conv(r, w) {pads = [1, 1, 1, 1]}
  y: f32[2, 33, 20, 27] = relu(c)
)",
     {"winograd", "layout", "operand1"}},
    {"gradient_of_weights",
     R"(
  input a: f32[2, 33, 20, 27]
  input b: f32[2, 24, 20, 27]
  dy: f32[2, 33, 20, 27] = relu(a)
  x: f32[2, 24, 20, 27] = relu(b)
  y: f32[33, 24, 3, 3] = conv_weights_gradient(dy, x) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}
)",
     {"winograd", "layout"}},
    {"transposed_product",
     R"(
  input a: f32[37, 64]
  input b: f32[51, 64]
  y: f32[37, 51] = matmul(a, b) {trans_b = 1}
)",
     {"operand1"}},
    {"few_rows",
     R"(
  input a: f32[3, 64]
  input b: f32[51, 64]
  y: f32[3, 51] = matmul(a, b) {trans_b = 1}
)",
     {"operand1"}},
    {"bytes",
     R"(
  input a: u8[29, 64]
  input b: i8[45, 64]
  y: i32[29, 45] = matmul(a, b) {out_dtype = "i32", trans_b = 1}
)",
     {"operand1"}},
    {"summed_over_letters",
     R"(
  input a: f32[3, 20, 31]
  input b: f32[3, 43, 31]
  y: f32[3, 20, 43] = einsum(a, b) {equation = "bid,bjd->bij"}
)",
     {"operand1"}},
};

class LayerAnswers : public testing::TestWithParam<LayerCase> {};

TEST_P(LayerAnswers, AreFollowedOrRefused) {
  std::set<std::string> kinds;
  const auto usual = graph_decisions(layer_of(GetParam().lines).graph, folded());
  ASSERT_TRUE(usual.ok()) << usual.error().to_string();
  for (const passes::Decision& d : *usual) kinds.insert(d.name.substr(d.name.rfind('.') + 1));
  for (const std::string& kind : GetParam().kinds)
    EXPECT_TRUE(kinds.count(kind)) << kind << " is not decided: " << passes::to_string(*usual);
  // Refused are those that leave an answer given before without its decision.
  const AnswerCount found = check_layer(GetParam().lines, 12, true, ask);
  EXPECT_GT(found.followed, found.refused);
}
INSTANTIATE_TEST_SUITE_P(All, LayerAnswers, testing::ValuesIn(kLayers),
                         [](const auto& info) { return std::string(info.param.name); });

constexpr int kParts = 4;
class GraphAnswers : public testing::TestWithParam<int> {};
TEST_P(GraphAnswers, AreFollowedOrRefused) {
  check_random_graphs(static_cast<uint64_t>(GetParam()), kParts, 40, ask);
}
INSTANTIATE_TEST_SUITE_P(Part, GraphAnswers, testing::Range(0, kParts));

TEST(GraphDecisions, AnswersThatCannotBeFollowedAreErrors) {
  const Layer layer = layer_of(kLayers[1].lines);
  const std::pair<passes::Answers, const char*> cases[] = {
      {{{"c1.winograds", 4}}, "no decision 'c1.winograds' comes up"},
      {{{"c1.winograd", 3}}, "decision 'c1.winograd' has no value 3"},
      {{{"c1.winograd", 4}, {"c1.operand0", 0}}, "no decision 'c1.operand0' comes up"},
  };
  for (const auto& [answers, phrase] : cases) {
    CompiledForm form = folded();
    form.answers = answers;
    const auto program = lower_graph_for(layer.graph, form);
    ASSERT_FALSE(program.ok()) << phrase;
    EXPECT_EQ(program.error().kind, ErrorKind::kInvalid);
    EXPECT_NE(program.error().to_string().find(phrase), std::string::npos)
        << program.error().to_string();
  }
}

}  // namespace
}  // namespace tilewright
