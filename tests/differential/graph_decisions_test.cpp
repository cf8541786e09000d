// Random answers to the decisions of graph passes: each is followed or refused; results are those of
// the interpreter, and of the usual bits where no answer may change any. TILEWRIGHT_ANSWERS=n tries
// n sets of answers a layer and n random graphs, TILEWRIGHT_SEED=n one seed alone.
#include <gtest/gtest.h>

#include "passes/decisions/decisions.h"
#include "tests/differential/random_answers.h"
#include "tests/differential/random_graph.h"

namespace tilewright {
namespace {

CompiledForm form_for(uint64_t seed) {
  CompiledForm form{true, true};
  form.fold = true;
  form.numerics = seed % 4 == 0 ? Numerics::kExact : Numerics::kStandard;
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
     {"fused", "row_block", "key_block"}},
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
  const uint64_t count = from_environment("TILEWRIGHT_ANSWERS", 12);
  const uint64_t only = from_environment("TILEWRIGHT_SEED", ~uint64_t{0});
  const Layer layer = layer_of(GetParam().lines);
  std::map<Numerics, Reference> references;
  std::set<std::string> kinds;
  const auto usual = graph_decisions(layer.graph, form_for(1));
  ASSERT_TRUE(usual.ok()) << usual.error().to_string();
  for (const passes::Decision& d : *usual) kinds.insert(d.name.substr(d.name.rfind('.') + 1));
  for (const std::string& kind : GetParam().kinds)
    EXPECT_TRUE(kinds.count(kind)) << kind << " is not decided: " << passes::to_string(*usual);
  size_t followed = 0, refused = 0;  // where an answer leaves one given before without its decision
  for (uint64_t seed = 0; seed < count && !HasFailure(); ++seed) {
    if (only != ~uint64_t{0} && seed != only) continue;
    SCOPED_TRACE("TILEWRIGHT_SEED=" + std::to_string(seed));
    CompiledForm form = form_for(seed);
    if (!references.count(form.numerics))
      references.emplace(form.numerics, reference_of(layer.graph, layer.inputs, form));
    RandomAnswers answers(machine_for(form), seed);
    form.answers = answers.graph(layer.graph, form);
    check_form(layer.graph, layer.inputs, references.at(form.numerics), form, answers);
    followed += answers.followed;
    refused += answers.refused;
  }
  RecordProperty("followed", static_cast<int>(followed));
  RecordProperty("refused", static_cast<int>(refused));
  EXPECT_GT(followed, refused);
}
INSTANTIATE_TEST_SUITE_P(All, LayerAnswers, testing::ValuesIn(kLayers),
                         [](const auto& info) { return std::string(info.param.name); });

constexpr int kParts = 4;
class GraphAnswers : public testing::TestWithParam<int> {};
TEST_P(GraphAnswers, AreFollowedOrRefused) {
  const uint64_t count = from_environment("TILEWRIGHT_ANSWERS", 40);
  const uint64_t only = from_environment("TILEWRIGHT_SEED", ~uint64_t{0});
  for (auto seed = static_cast<uint64_t>(GetParam()); seed < count && !HasFailure();
       seed += kParts) {
    if (only != ~uint64_t{0} && seed != only) continue;
    const RandomGraph r = make_random_graph(seed);
    SCOPED_TRACE("TILEWRIGHT_SEED=" + std::to_string(seed) + "\n" + describe_graph(r.graph));
    CompiledForm form = form_for(seed);
    form.fold = false;
    RandomAnswers answers(machine_for(form), seed);
    const Reference reference = reference_of(r.graph, r.inputs, form);
    form.answers = answers.graph(r.graph, form);
    if (!form.answers.empty()) check_form(r.graph, r.inputs, reference, form, answers);
  }
}
INSTANTIATE_TEST_SUITE_P(Part, GraphAnswers, testing::Range(0, kParts));

TEST(GraphDecisions, AnswersThatCannotBeFollowedAreErrors) {
  const Layer layer = layer_of(kLayers[0].lines);
  const std::pair<passes::Answers, const char*> cases[] = {
      {{{"y.rowblock", 4}}, "no decision 'y.rowblock' comes up"},
      {{{"y.row_block", 99}}, "decision 'y.row_block' has no value 99"},
      {{{"y.fused", 0}, {"y.row_block", 4}}, "no decision 'y.row_block' comes up"},
  };
  for (const auto& [answers, phrase] : cases) {
    CompiledForm form = form_for(1);
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
