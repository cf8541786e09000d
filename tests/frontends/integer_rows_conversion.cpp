// Rows of operators that convert between types or resample: see integer_results_test.cpp.
#include "tests/frontends/integer_rules.h"

namespace tilewright {
namespace {

const char *kSaturateCast = "onnx.reference.ops.op_resize: numpy_helper.saturate_cast",
           *kTruncated =
               "NumPy's astype in onnx.reference; beyond the range, where that is undefined, the "
               "nearest number, as `cast` of the graph says";

}  // namespace

void add_resizes(std::vector<Row>& rows) {
  const Shape in{4, 6};
  const auto add = [&](DType t, const Numbers& x, const Shape& out, Resampling r) {
    rows.push_back(
        {"Resize",
         t,
         Rounding::kHalfToEven,
         Beyond::kSaturates,
         kSaturateCast,
         {given(t, in, x), {}, {}, known(DType::kInt64, {2}, {double(out[0]), double(out[1])})},
         resize_rule(in, out, r),
         {{"mode", r.mode},
          {"coordinate_transformation_mode", r.coordinates},
          {"antialias", int64_t{r.antialias}}}});
  };
  for (DType t : kIntegers)
    for (const char* mode : {"linear", "cubic"})
      for (const Shape& out : {Shape{8, 12}, Shape{11, 9}, Shape{2, 3}, Shape{3, 5}})
        for (const char* coordinates : {"half_pixel", "asymmetric", "align_corners"})
          for (bool antialias : {false, true}) {
            if (antialias && coordinates != std::string("half_pixel")) continue;
            add(t, integers(t), out, {mode, coordinates, antialias});
          }
  for (const char* mode : {"linear", "cubic"})  // a constant image stays constant
    for (double value : {100.0, 255.0, 1.0})
      for (const Shape& out : {Shape{7, 13}, Shape{12, 18}, Shape{3, 5}})
        add(DType::kUInt8, {value}, out, {mode, "half_pixel", false});
  for (DType t : {DType::kUInt8, DType::kInt32})
    rows.push_back({"Upsample",
                    t,
                    Rounding::kHalfToEven,
                    Beyond::kSaturates,
                    kSaturateCast,
                    {given(t, in, integers(t)), known(DType::kFloat32, {2}, {2, 3})},
                    resize_rule(in, {8, 18}, {"linear", "asymmetric", false}),
                    {{"mode", std::string("linear")}},
                    9});
}
// A line of x, read at places between elements: -1 is its first element, 1 its last one.
void add_samples(std::vector<Row>& rows) {
  const Numbers places{-1, -0.875, -0.5, -0.125, 0, 0.0625, 0.75, 1};
  for (DType t : {DType::kUInt8, DType::kInt8, DType::kInt32}) {
    Numbers grid;
    for (double p : places) {
      grid.push_back(p);
      grid.push_back(-1);
    }
    rows.push_back(
        {"GridSample",
         t,
         Rounding::kTowardZero,
         Beyond::kSaturates,
         "onnx.reference.ops.op_grid_sample: astype",
         {given(t, {1, 1, 1, 9}, integers(t)), given(DType::kFloat32, {1, 1, 8, 2}, grid)},
         [places](const Operands& x) {
           std::vector<Real> y;
           for (double p : places) {
             const Real at = (Real{p} + 1) / 2 * 8;
             const auto low = std::min<size_t>(static_cast<size_t>(at), 7);
             const Real part = at - Real(low);
             y.push_back((1 - part) * Real{x[0][low]} + part * Real{x[0][low + 1]});
           }
           return y;
         },
         {{"align_corners", int64_t{1}}}});
  }
  // A constant image stays constant at any place.
  Numbers anywhere;
  for (int i = 0; i < 128; ++i) anywhere.push_back(0.99 * std::sin(1.7 * i + 0.3));
  for (const char* mode : {"linear", "cubic"})
    for (const double value : {100.0, 255.0})
      for (const bool corners : {false, true})
        rows.push_back({"GridSample",
                        DType::kUInt8,
                        Rounding::kTowardZero,
                        Beyond::kSaturates,
                        "weights of all elements are 1 together",
                        {given(DType::kUInt8, {1, 1, 4, 5}, Numbers(20, value)),
                         given(DType::kFloat32, {1, 1, 64, 2}, anywhere)},
                        [value](const Operands&) { return std::vector<Real>(64, Real{value}); },
                        {{"mode", std::string(mode)},
                         {"padding_mode", std::string("border")},
                         {"align_corners", int64_t{corners}}}});
}
void add_casts(std::vector<Row>& rows) {
  Numbers all = fractions();
  all.push_back(NAN);
  for (DType t : kIntegers) {
    const auto code = static_cast<int64_t>(info(t).onnx_code);
    for (DType from : {DType::kFloat32, DType::kFloat64})
      rows.push_back({"Cast",
                      t,
                      Rounding::kTowardZero,
                      Beyond::kSaturates,
                      kTruncated,
                      {list(from, all)},
                      each([](Real v) { return v; }),
                      {{"to", code}}});
    rows.push_back({"CastLike",
                    t,
                    Rounding::kTowardZero,
                    Beyond::kSaturates,
                    kTruncated,
                    {list(DType::kFloat32, all), list(t, {1})},
                    [](const Operands& x) { return std::vector<Real>(x[0].begin(), x[0].end()); }});
    rows.push_back({"Cast",
                    t,
                    Rounding::kExact,
                    Beyond::kWraps,
                    kNumpy,
                    {list(DType::kInt32, integers(DType::kInt32))},
                    each([](Real v) { return v; }),
                    {{"to", code}}});
  }
}
void add_quantised(std::vector<Row>& rows) {
  const char* half_even = "QuantizeLinear in the standard: half to even, then the zero point";
  for (DType t : {DType::kInt8, DType::kUInt8, DType::kInt16, DType::kUInt16})
    for (double scale : {1.0, 0.5, 0.25})
      for (double zero : {0.0, 9.0})
        rows.push_back(
            {"QuantizeLinear",
             t,
             Rounding::kExact,
             Beyond::kSaturates,
             half_even,
             {list(DType::kFloat32, fractions()), known(DType::kFloat32, {}, {scale}),
              known(t, {}, {zero})},
             each([=](Real v) { return std::nearbyint(v / Real{scale}) + Real{zero}; })});
  // The range is that of 0 .. 255: a step of 1, and halves.
  rows.push_back({"DynamicQuantizeLinear",
                  DType::kUInt8,
                  Rounding::kHalfToEven,
                  Beyond::kSaturates,
                  "onnx.reference.ops.op_dynamic_quantize_linear: rint",
                  {list(DType::kFloat32, {0, 255, 0.5, 1.5, 2.5, 3.5, 254.5, 253.5, 0.25})},
                  each([](Real v) { return v; })});
}
void add_quantised_products(std::vector<Row>& rows) {
  const auto scalar = [](DType t, double v) { return known(t, {}, {v}); };
  // Sums of 4 products, a quarter of them, and a zero point.
  const Numbers a{1, 2, 3, 4, 0, 5, 9, 250, 7, 7, 7, 7}, b{1, 2, -3, 4, 100, -128};
  const auto product = [](const Operands& x, size_t i, size_t j, size_t columns) {
    Real s = 0;
    for (size_t k = 0; k < 2; ++k) s += Real{x[0][i * 2 + k]} * Real{x[3][k * columns + j]};
    return s;
  };
  for (DType t : {DType::kUInt8, DType::kInt8})
    rows.push_back(
        {"QLinearMatMul",
         t,
         Rounding::kExact,
         Beyond::kSaturates,
         "QLinearMatMul in the standard: half to even, then the zero point",
         {given(DType::kUInt8, {6, 2}, a), scalar(DType::kFloat32, 0.5), scalar(DType::kUInt8, 0),
          given(DType::kInt8, {2, 3}, b), scalar(DType::kFloat32, 0.5), scalar(DType::kInt8, 0),
          scalar(DType::kFloat32, 1), scalar(t, 5)},
         [product](const Operands& x) {
           std::vector<Real> y;
           for (size_t i = 0; i < 6; ++i)
             for (size_t j = 0; j < 3; ++j)
               y.push_back(std::nearbyint(product(x, i, j, 3) / 4) + 5);
           return y;
         }});
  rows.push_back({"QLinearConv",
                  DType::kUInt8,
                  Rounding::kExact,
                  Beyond::kSaturates,
                  "QLinearConv in the standard, as QLinearMatMul",
                  {given(DType::kUInt8, {1, 1, 1, 12}, a), scalar(DType::kFloat32, 0.5),
                   scalar(DType::kUInt8, 3), known(DType::kInt8, {1, 1, 1, 1}, {3}),
                   scalar(DType::kFloat32, 0.5), scalar(DType::kInt8, 0),
                   scalar(DType::kFloat32, 1), scalar(DType::kUInt8, 7)},
                  each([](Real v) { return std::nearbyint((v - 3) * 3 / 4) + 7; })});
  rows.push_back(
      {"MatMulInteger",
       DType::kInt32,
       Rounding::kExact,
       Beyond::kWraps,
       kStandard,
       {given(DType::kUInt8, {6, 2}, a), given(DType::kInt8, {2, 3}, b), scalar(DType::kUInt8, 3)},
       [](const Operands& x) {
         std::vector<Real> y;
         for (size_t i = 0; i < 6; ++i)
           for (size_t j = 0; j < 3; ++j)
             y.push_back((Real{x[0][2 * i]} - 3) * Real{x[1][j]} +
                         (Real{x[0][2 * i + 1]} - 3) * Real{x[1][3 + j]});
         return y;
       }});
  rows.push_back({"ConvInteger",
                  DType::kInt32,
                  Rounding::kExact,
                  Beyond::kWraps,
                  kStandard,
                  {given(DType::kUInt8, {1, 1, 1, 12}, a), given(DType::kInt8, {1, 1, 1, 1}, {-3}),
                   scalar(DType::kUInt8, 2)},
                  each([](Real v) { return (v - 2) * -3; })});
}

}  // namespace tilewright
