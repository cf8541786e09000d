// Halves go to the even neighbour wherever something is rounded: against numbers written down, not
// against the interpreter, which rounds by the same loops.
#include <cmath>

#include "ir/graph/infer.h"
#include "ir/loops/simplify.h"
#include "tests/ops/kernel_test.h"

namespace tilewright {
namespace {

const std::vector<double> kHalves{-3.5, -2.5, -1.5,   -0.5,    0.5,  1.5,
                                  2.5,  3.5,  2.4999, -2.5001, 126.5};
const std::vector<double> kRounded{-4, -2, -2, -0.0, 0, 2, 2, 4, 2, -3, 126};

class Rounding : public KernelTest {
 protected:
  // Whole vectors and a tail of halves, each `times` as large.
  HostTensor halves(DType t, double times = 1) {
    std::vector<double> values = kHalves;
    for (double& v : values) v *= times;
    return repeated(t, {75}, values);
  }
  // The only output's elements, in order, over and over.
  void expect_output(GraphCall& call, ir::ValueId v, const std::vector<double>& expected) {
    call.output(v);
    for (const bool schedule : {true, false}) {
      auto runs =
          run_compiled(call.graph, call.inputs, {schedule, schedule, schedule, GetParam()}, {1});
      ASSERT_TRUE(runs.ok()) << runs.error().to_string();
      const HostTensor& found = (*runs)[0][0];
      for (int64_t i = 0; i < found.size(); ++i) {
        const double e = expected[static_cast<size_t>(i) % expected.size()], f = element(found, i);
        ASSERT_EQ(f, e) << "element " << i;
        if (!is_float(found.dtype)) continue;
        ASSERT_EQ(std::signbit(f), std::signbit(e)) << "element " << i;
      }
    }
  }
};

TEST_P(Rounding, Round) {
  for (const DType t : {DType::kFloat32, DType::kFloat64}) {
    GraphCall call;
    expect_output(call, call.op("round", {call.input(halves(t))}), kRounded);
  }
}

TEST_P(Rounding, Quantize) {
  for (const DType t : {DType::kInt8, DType::kUInt8, DType::kInt16, DType::kUInt16})
    for (const double scale : {1.0, 0.25, 3.0})  // exact, whether divided by or multiplied with
      for (const bool known : {true, false}) {
        SCOPED_TRACE(testing::Message() << name(t) << ", scale " << scale);
        if (scale == 3 && t == DType::kInt16) continue;
        GraphCall call;
        const double zero = is_unsigned(t) ? 9 : -1;
        const HostTensor s = repeated(DType::kFloat32, {}, {scale}), z = repeated(t, {}, {zero});
        std::vector<double> expected = kRounded;
        for (double& v : expected) v += zero;
        expect_output(call,
                      call.op("quantize",
                              {call.input(halves(DType::kFloat32, scale)),
                               known ? call.constant(s) : call.input(s),
                               known ? call.constant(z) : call.input(z)},
                              {{"to", std::string(name(t))}}),
                      expected);
      }
}

// Limits are of the sum with the zero point.
TEST_P(Rounding, QuantizeToTheEnds) {
  GraphCall call;
  const auto x = call.input(
                 repeated(DType::kFloat32, {70}, {-129, -128, -127, 126, 127, 128, 1e9})),
             one = call.constant(repeated(DType::kFloat32, {}, {1}));
  expect_output(call,
                call.op("quantize", {x, one, call.constant(repeated(DType::kInt8, {}, {1}))},
                        {{"to", std::string("i8")}}),
                {-128, -127, -126, 127, 127, 127, 127});
}

// The largest element of a row has all levels.
TEST_P(Rounding, RowsToShorts) {
  GraphCall call;
  const auto x =
      call.input(repeated(DType::kFloat32, {2, 8}, {8, -8, 2.5, -2.5, 3.5, 0.5, -0.5, 1}));
  auto made =
      ir::add_node(call.graph, "round_rows", {x}, {{"levels", int64_t{8}}}, 2, "r", {"test"});
  ASSERT_TRUE(made.ok());
  expect_output(call, made->at(0), {8, -8, 2, -2, 4, 0, 0, 1});
}

// Extents that a model computes with floats are known before the run.
TEST(KnownRounding, OfFloatsInShapes) {
  const std::vector<std::pair<const char*, std::vector<double>>> cases{
      {"round", kRounded},
      {"floor", {-4, -3, -2, -1, 0, 1, 2, 3, 2, -3, 126}},
      {"ceil", {-3, -2, -1, 0, 1, 2, 3, 4, 3, -2, 127}},
      {"trunc", {-3, -2, -1, 0, 0, 1, 2, 3, 2, -2, 126}},
      {"identity", {-3, -2, -1, 0, 0, 1, 2, 3, 2, -2, 126}}};  // a cast to integers truncates
  for (const auto& [op, expected] : cases)
    for (size_t i = 0; i < kHalves.size(); ++i) {
      GraphCall call;
      const auto x = call.constant(repeated(DType::kFloat32, {}, {kHalves[i]})),
                 n = call.op("cast", {call.op(op, {x})}, {{"to", std::string("i64")}});
      const auto& known = call.graph.value(n).known;
      ASSERT_TRUE(known.has_value()) << op;
      EXPECT_EQ(ir::as_int((*known)[0]), static_cast<int64_t>(expected[i]))
          << op << " of " << kHalves[i];
    }
}

TEST(KnownComparisons, OfFloats) {
  for (const auto& [op, of_less, of_equal, of_more] : {std::tuple{"less", true, false, false},
                                                       {"less_equal", true, true, false},
                                                       {"greater", false, false, true},
                                                       {"greater_equal", false, true, true},
                                                       {"equal", false, true, false},
                                                       {"not_equal", true, false, true}})
    for (const auto& [left, expected] :
         {std::pair{1.5, of_less}, {2.5, of_equal}, {3.5, of_more}}) {
      GraphCall call;
      const auto a = call.constant(repeated(DType::kFloat32, {}, {left})),
                 b = call.constant(repeated(DType::kFloat32, {}, {2.5}));
      const auto& known = call.graph.value(call.op(op, {a, b})).known;
      ASSERT_TRUE(known.has_value()) << op;
      EXPECT_EQ(ir::as_int((*known)[0]), expected) << left << " " << op << " 2.5";
    }
}

INSTANTIATE_TEST_SUITE_P(Cpus, Rounding,
                         testing::Values("native", "x86-64-v4", "x86-64-v3", "x86-64"),
                         [](const auto& info) { return as_test_name(info.param); });

}  // namespace
}  // namespace tilewright
