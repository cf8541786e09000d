// Attention in blocks of rows and keys against its definition by single operators: sizes that leave
// tails, masks, rows without any weight; compiled for wide and narrow vectors, and interpreted.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "passes/schedule/rules/choose_trace.h"
#include "tests/ops/kernel_test.h"

namespace tilewright {
namespace {

struct Size {
  int64_t batch, rows, keys, width, values;
};
struct Blocks {
  int64_t rows, keys;
};
enum Mask { kNone, kCondition, kBias, kBoth };

class AttentionOp : public KernelTest {
 protected:
  using KernelTest::expect_equal;
  HostTensor floats(const Shape& shape) { return random_tensor(DType::kFloat32, shape, random_); }
  ir::ValueId number(GraphCall& call, double v) {
    return call.constant(repeated(DType::kFloat32, {}, {v}));
  }

  // Both ways to compute it from the same operands: attention, and one operator after the other.
  std::pair<GraphCall, GraphCall> both(const Size& s, Mask mask) {
    const HostTensor q = floats({s.batch, s.rows, s.width}), k = floats({s.batch, s.width, s.keys}),
                     v = floats({s.batch, s.keys, s.values}), bias = floats({s.batch, 1, s.keys}),
                     choice = repeated(DType::kBool, {1, s.rows, s.keys}, {1, 0, 1, 1, 0, 1, 1});
    GraphCall fused, plain;
    const bool chosen = mask == kCondition || mask == kBoth,
               biased = mask == kBias || mask == kBoth;
    std::vector<ir::ValueId> in{fused.input(q), fused.input(k), fused.input(v)};
    in.push_back(chosen ? fused.input(choice) : ir::kNone);
    in.push_back(biased ? fused.input(bias) : ir::kNone);
    fused.output(fused.op("attention", in, {{"scale", 0.75}, {"fill", -50.0}}));
    const ir::ValueId a = plain.input(q), b = plain.input(k), c = plain.input(v);
    ir::ValueId scores = plain.op("mul", {plain.op("matmul", {a, b}), number(plain, 0.75)});
    if (chosen) scores = plain.op("where", {plain.input(choice), scores, number(plain, -50)});
    if (biased) scores = plain.op("add", {scores, plain.input(bias)});
    plain.output(plain.op("matmul", {plain.op("softmax", {scores}, {{"axis", int64_t{-1}}}), c}));
    return {fused, plain};
  }
  // Tiled into these blocks, and then scheduled as rules have it.
  static CompiledForm in_blocks(const Blocks& blocks) {
    CompiledForm form;
    form.cpu = GetParam();
    form.find_schedule =
        [blocks, machine = machine_for(form)](
            const ir::Kernel& k,
            const std::set<std::string>& constants) -> std::optional<passes::Trace> {
      passes::Trace trace{{"tile_attention", {"weights"}, {blocks.rows, blocks.keys}}};
      auto tiled = passes::apply_trace(k, trace);
      if (!tiled.ok()) {
        ADD_FAILURE() << tiled.error().to_string();
        return std::nullopt;
      }
      auto rest = passes::choose_trace(*tiled, {.machine = &machine, .constants = constants});
      EXPECT_TRUE(rest.ok()) << rest.error().to_string();
      trace.insert(trace.end(), rest->trace.begin(), rest->trace.end());
      return trace;
    };
    return form;
  }
  void expect_equal(const Size& s, const Blocks& blocks, Mask mask) {
    SCOPED_TRACE(testing::Message() << s.rows << " rows of " << s.width << ", " << s.keys
                                    << " keys, blocks of " << blocks.rows << " by " << blocks.keys);
    const auto [fused, plain] = both(s, mask);
    auto expected = interpret_graph(plain.graph, plain.inputs);
    ASSERT_TRUE(expected.ok()) << expected.error().to_string();
    auto interpreted = interpret_graph(fused.graph, fused.inputs);
    ASSERT_TRUE(interpreted.ok()) << interpreted.error().to_string();
    auto runs = run_compiled(fused.graph, fused.inputs, in_blocks(blocks), {1, 3});
    ASSERT_TRUE(runs.ok()) << runs.error().to_string();
    // Scores are sums of width + 1 roundings, values of keys + 1; exp is right to 2 ULP; a weight's
    // error is that of its score, times the weight; all elements are at most 1.
    const double eps = 0x1p-24,
                 bound = eps * (static_cast<double>(s.width) * (static_cast<double>(s.width) + 4) +
                                static_cast<double>(s.keys) + 16);
    EXPECT_LE(difference(interpreted->outputs[0], expected->outputs[0]), bound);
    for (const Tensors& run : *runs) EXPECT_LE(difference(run[0], expected->outputs[0]), bound);
    EXPECT_EQ(difference((*runs)[0][0], (*runs)[1][0]), 0.0) << "threads";
  }
};

TEST_P(AttentionOp, AllKeysAtOnce) {
  for (const Size& s :
       {Size{2, 1, 1, 1, 1}, {2, 17, 19, 5, 7}, {3, 13, 64, 32, 16}, {1, 1, 37, 64, 64}})
    for (const Blocks& b : {Blocks{16, 64}, {4, 64}}) expect_equal(s, b, kNone);
}

TEST_P(AttentionOp, BlocksOfKeys) {
  for (const Size& s : {Size{2, 17, 19, 5, 7}, {1, 16, 64, 16, 16}, {1, 3, 131, 8, 33}})
    for (const Blocks& b : {Blocks{16, 16}, {5, 7}, {1, 1}}) expect_equal(s, b, kNone);
}

TEST_P(AttentionOp, Masks) {
  for (const Mask m : {kCondition, kBias, kBoth})
    for (const Blocks& b : {Blocks{16, 32}, {4, 16}}) expect_equal({2, 9, 23, 6, 17}, b, m);
}

// Rows whose scores are all -inf, from the first block on or later.
TEST_P(AttentionOp, RowsWithoutWeight) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const Blocks& b : {Blocks{4, 8}, {4, 3}})
    for (const bool zero : {false, true}) {
      GraphCall call;
      const ir::ValueId bias = call.input(
          repeated(DType::kFloat32, {3, 8},
                   {-inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf,
                    0,    1,    0,    1,    0,    1,    0,    1,    -inf, -inf, -inf, -inf}));
      call.output(call.op("attention",
                          {call.input(floats({1, 3, 4})), call.input(floats({1, 4, 8})),
                           call.input(floats({1, 8, 5})), ir::kNone, bias},
                          {{"zero_masked", int64_t{zero}}}));
      auto runs = run_compiled(call.graph, call.inputs, in_blocks(b), {1});
      ASSERT_TRUE(runs.ok()) << runs.error().to_string();
      for (int64_t i = 0; i < 15; ++i) {
        const double y = element((*runs)[0][0], i);
        if (i >= 5)
          EXPECT_TRUE(std::isfinite(y)) << i;
        else if (zero)
          EXPECT_EQ(y, 0) << i;
        else
          EXPECT_TRUE(std::isnan(y)) << i;
      }
    }
}

// Results that are a part of another value, and rows and keys that only the run knows.
TEST_P(AttentionOp, PartOfAConcatOfAnySize) {
  for (const bool symbols : {false, true}) {
    GraphCall call;
    const ir::ValueId q = call.input(floats({3, 9, 4})), k = call.input(floats({3, 4, 21})),
                      v = call.input(floats({3, 21, 5})), other = call.input(floats({3, 2, 5}));
    if (symbols) {
      const ir::Var rows("rows"), keys("keys");
      call.graph.value(q).type.dims[1] = rows;
      call.graph.value(k).type.dims[2] = call.graph.value(v).type.dims[1] = keys;
    }
    const ir::ValueId y = call.op("attention", {q, k, v, ir::kNone, ir::kNone}, {{"scale", 0.5}});
    call.output(call.op("concat", {other, y, other}, {{"axis", int64_t{1}}}));
    expect_equal(call, 4 * (4 + 2) + 21 + 16, {{true, true}, {true, false}});
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, AttentionOp, testing::Values("native", "x86-64-v4", "x86-64-v3"),
                         [](const auto& info) { return as_test_name(info.param); });

}  // namespace
}  // namespace tilewright
