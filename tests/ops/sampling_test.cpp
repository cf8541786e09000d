// Operators that sample, choose or copy: resizes, grids, regions, boxes, padding, repeated
// elements. Compiled against interpreted, for any number of threads, over sizes that leave tails.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ir/graph/infer.h"
#include "tests/ops/kernel_test.h"

namespace tilewright {
namespace {

class Sampling : public KernelTest {
 protected:
  ir::ValueId numbers(GraphCall& call, DType t, const std::vector<double>& values) {
    return call.constant(repeated(t, {static_cast<int64_t>(values.size())}, values));
  }
};

// Places from a little outside x to a little outside on the other side.
std::vector<double> places(int n) {
  std::vector<double> p;
  for (int i = 0; i < n; ++i) p.push_back(std::fmod(i * 0.7311, 2.6) - 1.3);
  return p;
}

// Each mode with each padding, in one to three dimensions.
TEST_P(Sampling, Grids) {
  for (const char* mode : {"linear", "nearest", "cubic"}) {
    GraphCall call;
    for (const char* padding : {"zeros", "border", "reflection"})
      for (const auto& [x, grid] : {std::pair{Shape{1, 5, 13, 17}, Shape{1, 7, 19, 2}},
                                    {{2, 1, 1, 7}, {2, 3, 33, 2}},
                                    {{1, 3, 11}, {1, 67, 1}},
                                    {{1, 2, 3, 5, 7}, {1, 2, 3, 17, 3}}}) {
        if (x.size() == 5 && std::string(mode) == "cubic") continue;  // 64 taps
        call.output(call.op("grid_sample",
                            {call.input(random(DType::kFloat32, x)),
                             call.input(repeated(DType::kFloat32, grid, places(211)))},
                            {{"mode", std::string(mode)}, {"padding_mode", std::string(padding)}}));
      }
    SCOPED_TRACE(mode);
    expect_equal(call, 200);
  }
}

TEST_P(Sampling, GridsLeaveInfinitiesOutside) {
  GraphCall call;
  const auto x = call.input(repeated(DType::kFloat32, {1, 2, 4, 4}, {HUGE_VAL}));
  call.output(call.op("grid_sample",
                      {x, call.input(repeated(DType::kFloat32, {1, 3, 19, 2}, {-3, 0.1, 3}))},
                      {{"padding_mode", std::string("zeros")}}));
  expect_equal(call, 0);
}

// More dimensions are outside than offsets of 32 bits could add up at their full range.
TEST_P(Sampling, GridsOfFiveDimensions) {
  GraphCall call;
  for (const char* padding : {"zeros", "border"})
    call.output(
        call.op("grid_sample",
                {call.input(random(DType::kFloat32, {1, 1, 2, 3, 2, 2, 3})),
                 call.input(repeated(DType::kFloat32, {1, 1, 1, 2, 3, 5, 5},
                                     {-9, -9, -9, -9, -9, 0.1, -0.2, 0.3, 9, 0.5, 0.7, 0.2, NAN}))},
                {{"mode", std::string("nearest")}, {"padding_mode", std::string(padding)}}));
  expect_equal(call, 0);
}

// Boxes that are no numbers, or without an end, read nothing outside x.
TEST_P(Sampling, RegionsThatAreNoNumbers) {
  for (const char* mode : {"avg", "max"})
    for (const int64_t ratio : {0, 2}) {
      GraphCall call;
      const auto x = call.input(random(DType::kFloat32, {2, 3, 5, 7})),
                 rois = call.input(repeated(
                     DType::kFloat32, {5, 4},
                     {NAN, 1, 2, 3, 0, NAN, 4, HUGE_VAL, -HUGE_VAL, 0, HUGE_VAL, 2, 1, 1, -3})),
                 batch = call.input(repeated(DType::kInt64, {5}, {0, 1, 1, 0, 1}));
      call.output(call.op("roi_align", {x, rois, batch},
                          {{"mode", std::string(mode)},
                           {"sampling_ratio", ratio},
                           {"output_height", int64_t{2}},
                           {"output_width", int64_t{3}}}));
      auto runs = run_compiled(call.graph, call.inputs, {.cpu = GetParam()}, {1, 3});
      ASSERT_TRUE(runs.ok()) << runs.error().to_string();
      EXPECT_EQ((*runs)[0][0].bytes, (*runs)[1][0].bytes);
    }
}

TEST(SamplingTypes, ScalesBeyondReasonAreRefused) {
  for (const auto& [scale, phrase] : {std::pair{1e30, "too large"}, {1e-9, "less than"}}) {
    GraphCall call;
    const auto x = call.input(repeated(DType::kFloat32, {1, 1, 40, 3}, {1})),
               scales = call.constant(repeated(DType::kFloat32, {4}, {1, 1, scale, 1}));
    auto made = ir::add_node(call.graph, "resize", {x, ir::kNone, scales},
                             {{"mode", std::string("linear")}, {"antialias", int64_t{1}}}, 1, "r",
                             {"test"});
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.error().to_string().find(phrase), std::string::npos) << made.error().to_string();
  }
}

TEST_P(Sampling, Resizes) {
  for (const char* mode : {"linear", "nearest", "cubic"}) {
    const bool exact = std::string(mode) == "nearest";
    GraphCall call;
    for (const std::vector<double>& sizes : {std::vector<double>{2, 3, 13, 34},
                                             {2, 3, 26, 17},
                                             {2, 3, 13, 41},
                                             {2, 3, 5, 1},
                                             {3, 5, 7, 37}})
      for (const DType t : {DType::kFloat32, exact ? DType::kUInt8 : DType::kFloat64})
        call.output(call.op("resize",
                            {call.input(random(t, {2, 3, 13, 17})), ir::kNone, ir::kNone,
                             numbers(call, DType::kInt64, sizes)},
                            {{"mode", std::string(mode)}}));
    SCOPED_TRACE(mode);
    expect_equal(call, 400);
  }
}

TEST_P(Sampling, StretchedResizes) {
  GraphCall call;
  for (const char* mode : {"linear", "cubic"})
    for (const int64_t antialias : {0, 1})
      call.output(call.op("resize",
                          {call.input(random(DType::kFloat32, {1, 3, 47, 67})), ir::kNone,
                           ir::kNone, numbers(call, DType::kInt64, {1, 3, 17, 31})},
                          {{"mode", std::string(mode)},
                           {"antialias", antialias},
                           {"exclude_outside", int64_t{1}}}));
  expect_equal(call, 400);
}

TEST_P(Sampling, Padding) {
  for (const char* mode : {"edge", "reflect", "wrap"}) {
    GraphCall call;
    for (const int64_t width : {5, 16, 56, 131})
      for (const std::vector<double>& pads :
           {std::vector<double>{0, 1, 1, 0, 1, 1}, {0, 0, 4, 0, 2, 3}, {0, -1, -2, 0, 1, 4}})
        for (const DType t : {DType::kFloat32, DType::kInt8, DType::kInt64})
          call.output(call.op(
              "pad", {call.input(random(t, {2, 7, width})), numbers(call, DType::kInt64, pads)},
              {{"mode", std::string(mode)}}));
    SCOPED_TRACE(mode);
    expect_equal(call, 0);
  }
}

TEST_P(Sampling, Regions) {
  for (const char* mode : {"avg", "max"}) {
    GraphCall call;
    for (const int64_t ratio : {0, 1, 3})
      for (const int64_t half_pixel : {0, 1})
        for (const Shape& x : {Shape{2, 3, 13, 37}, Shape{1, 2, 1, 1}, Shape{2, 1, 40, 16}})
          call.output(call.op("roi_align",
                              {call.input(random(DType::kFloat32, x)),
                               // Small, large, empty, partly and wholly outside.
                               call.input(repeated(DType::kFloat32, {5, 4},
                                                   {1.2, 2, 5,  7.7, -3, -2, 60, 70, 3,  3,
                                                    3,   3, 30, 5,   39, 12, 90, 90, 95, 99})),
                               call.input(repeated(DType::kInt64, {5}, {0, -1}))},
                              {{"output_height", int64_t{7}},
                               {"output_width", int64_t{5}},
                               {"sampling_ratio", ratio},
                               {"half_pixel", half_pixel},
                               {"mode", std::string(mode)}}));
    SCOPED_TRACE(mode);
    expect_equal(call, 200);
  }
}

TEST_P(Sampling, RegionsWithoutAnEnd) {
  GraphCall call;
  call.output(call.op(
      "roi_align",
      {call.input(random(DType::kFloat32, {1, 2, 4, 5})),
       call.input(repeated(DType::kFloat32, {2, 4}, {0, 0, 1e30, 1e38, -INFINITY, 0, INFINITY, 3})),
       call.input(repeated(DType::kInt64, {2}, {0}))},
      {{"output_height", int64_t{2}}, {"output_width", int64_t{1}}}));
  expect_equal(call, 200);
}

TEST_P(Sampling, Boxes) {
  GraphCall call;
  for (const int64_t n : {1, 17, 67, 1100})
    for (const DType t : {DType::kFloat32, DType::kFloat64})
      for (const int64_t centred : {0, 1}) {
        std::vector<double> corners, scores{-0.0, 0.0, NAN, -HUGE_VAL, HUGE_VAL};
        for (int i = 0; i < 4 * 311; ++i) corners.push_back(std::fmod(i * 7.311, 29));
        for (int i = 0; i < 307; ++i) scores.push_back(std::fmod(i * 0.37, 1.5) - 0.5);
        const auto chosen =
            call.op("choose_boxes",
                    {call.input(repeated(t, {2, n, 4}, corners)),
                     call.input(repeated(t, {2, 3, n}, scores)), numbers(call, DType::kInt64, {60}),
                     numbers(call, t, {0.3}), centred ? ir::kNone : numbers(call, t, {0.1})},
                    {{"center_point_box", centred}});
        call.output(chosen);
        call.output(call.op("list_boxes", {chosen}));
      }
  expect_equal(call, 0);
}

// Whole factors, which the importer makes of a nearest resize.
TEST_P(Sampling, RepeatedElements) {
  GraphCall call;
  for (const int64_t factor : {2, 3, 4, 8})
    for (const int64_t width : {1, 5, 16, 67})
      for (const DType t : {DType::kFloat32, DType::kInt8, DType::kInt64, DType::kBool})
        call.output(call.op("repeat", {call.input(random(t, {3, 7, width}))},
                            {{"factors", std::vector<int64_t>{1, 2, factor}}}));
  expect_equal(call, 0);
}

TEST_P(Sampling, EveryOtherElement) {
  GraphCall call;
  for (const double step : {2, 3, 5})
    for (const int64_t width : {7, 64, 131})
      for (const DType t : {DType::kFloat32, DType::kInt8, DType::kFloat64}) {
        const auto x = call.input(random(t, {3, width}));
        const auto slice = call.op(
            "slice",
            {x, numbers(call, DType::kInt64, {1}), numbers(call, DType::kInt64, {double(width)}),
             numbers(call, DType::kInt64, {1}), numbers(call, DType::kInt64, {step})});
        call.output(t == DType::kInt8 ? slice : call.op("neg", {slice}));
      }
  expect_equal(call, 0);
}

INSTANTIATE_TEST_SUITE_P(Cpus, Sampling, testing::Values("native", "x86-64-v4", "x86-64-v3"),
                         [](const auto& info) { return as_test_name(info.param); });

}  // namespace
}  // namespace tilewright
