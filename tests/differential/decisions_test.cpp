// Random answers to the decisions of schedule rules: each is followed or refused; results are those
// of the interpreter; where no answer may change bits, those of the usual schedule bit by bit. Over
// layers that every rule applies to, and random graphs. TILEWRIGHT_ANSWERS=n tries n sets of
// answers a layer and n graphs, TILEWRIGHT_SEED=n one seed alone. Each schedule is replayed from its
// text by another process, too.
#include <gtest/gtest.h>

#include "tests/differential/random_answers.h"
#include "tests/differential/replay.h"

namespace tilewright {
namespace {

// Random answers for each kernel, whose schedules are kept.
Ask ask(std::vector<ReplayCase>& schedules) {
  return [&](const ir::Graph&, CompiledForm& form, RandomAnswers& answers) {
    form.find_schedule = [&](const ir::Kernel& k, const std::set<std::string>& constants) {
      passes::Trace trace = answers.schedule(k, constants);
      schedules.push_back(replay_case(k, trace));
      return std::optional(std::move(trace));
    };
  };
}

const std::pair<const char*, const char*> kLayers[] = {
    {"product", R"(
  input x: f32[37, 131]
  const w: f32[131, 67] = #0
  const b: f32[67] = #1
  p: f32[37, 67] = matmul(x, w)
  s: f32[37, 67] = add(p, b)
  y: f32[37, 67] = relu(s)
)"},
    {"conv", R"(
  input x: f32[2, 9, 23, 19]
  const w: f32[33, 9, 3, 3] = #0
  c: f32[2, 33, 12, 10] = conv(x, w) {strides = [2, 2], pads = [1, 1, 1, 1]}
  y: f32[2, 33, 12, 10] = sigmoid(c)
)"},
    {"depthwise", R"(
  input x: f32[1, 37, 30, 17]
  const w: f32[37, 1, 3, 3] = #0
  y: f32[1, 37, 28, 15] = conv(x, w) {group = 37}
)"},
    {"long_terms", R"(
  input x: f32[40, 9000]
  const w: f32[9000, 70] = #0
  y: f32[40, 70] = matmul(x, w)
)"},
    {"bytes", R"(
  input x: u8[29, 132]
  input w: i8[132, 75]
  y: i32[29, 75] = matmul(x, w) {out_dtype = "i32"}
)"},
    {"bytes_by_constant", R"(
  input x: u8[29, 132]
  const w: i8[132, 75] = #0
  y: i32[29, 75] = matmul(x, w) {out_dtype = "i32"}
)"},
    {"winograd", R"(
  input x: f32[2, 17, 13, 22]
  const w: f32[6, 6, 17, 35] = #0
  c: f32[2, 35, 13, 22] = winograd_conv(x, w) {pads = [1, 1, 1, 1]}
  y: f32[2, 35, 13, 22] = relu(c)
)"},
    {"attention", R"(
  input q: f32[2, 37, 24]
  input k: f32[2, 24, 151]
  input v: f32[2, 151, 40]
  input bias: f32[151]
  y: f32[2, 37, 40] = attention(q, k, v, _, bias) {scale = 0.5}
)"},
    {"softmax", R"(
  input x: f32[67, 301]
  y: f32[67, 301] = softmax(x) {axis = -1}
)"},
    {"short_rows", R"(
  input x: f32[515, 5]
  y: f32[515, 5] = softmax(x) {axis = -1}
)"},
    {"sum_of_rows", R"(
  input x: f32[83, 517]
  y: f32[83] = reduce_sum(x) {axes = [1], keepdims = 0}
)"},
    {"sum_of_columns", R"(
  input x: f32[517, 83]
  y: f32[83] = reduce_sum(x) {axes = [0], keepdims = 0}
)"},
    {"few_sums", R"(
  input x: f32[3000, 101]
  y: f32[101] = reduce_sum(x) {axes = [0], keepdims = 0}
)"},
    {"few_results", R"(
  input x: f32[3, 16384]
  const w: f32[16384, 17] = #0
  y: f32[3, 17] = matmul(x, w)
)"},
    {"largest", R"(
  input x: f32[300, 67]
  y: f32[67] = reduce_max(x) {axes = [0], keepdims = 0}
)"},
    {"places", R"(
  input x: f32[50, 67]
  y: i64[67] = arg_max(x) {axis = 0, keepdims = 0}
)"},
    {"elementwise", R"(
  input x: f32[131, 257]
  input b: f32[257]
  s: f32[131, 257] = mul(x, b)
  t: f32[131, 257] = exp(s)
  y: f32[131, 257] = add(t, x)
)"},
    {"transpose", R"(
  input x: f32[131, 67]
  y: f32[67, 131] = transpose(x) {perm = [1, 0]}
)"},
    {"planes", R"(
  input x: u8[1, 3, 41, 67]
  y: u8[1, 41, 67, 3] = transpose(x) {perm = [0, 2, 3, 1]}
)"},
    {"resize", R"(
  input x: f32[1, 5, 20, 30]
  const n: i64[4] = #0
  y: f32[1, 5, 45, 71] = resize(x, _, _, n) {mode = "linear"}
)"},
};

class LayerAnswers : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(LayerAnswers, AreFollowedOrRefused) {
  std::vector<ReplayCase> schedules;
  const AnswerCount found = check_layer(GetParam().second, 12, false, ask(schedules));
  EXPECT_GT(found.followed, found.refused / 4) << found.refused << " answers were refused";
  expect_replayed(schedules);
}
INSTANTIATE_TEST_SUITE_P(All, LayerAnswers, testing::ValuesIn(kLayers),
                         [](const auto& info) { return std::string(info.param.first); });

constexpr int kParts = 4;
class GraphAnswers : public testing::TestWithParam<int> {};
TEST_P(GraphAnswers, AreFollowedOrRefused) {
  std::vector<ReplayCase> schedules;
  check_random_graphs(static_cast<uint64_t>(GetParam()), kParts, 40, ask(schedules));
  expect_replayed(schedules);
}
INSTANTIATE_TEST_SUITE_P(Part, GraphAnswers, testing::Range(0, kParts));

}  // namespace
}  // namespace tilewright
