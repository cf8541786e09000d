// Arithmetic at the ends of each type: all pairs of -0, 0, -1, the smallest and largest numbers and
// NaN, compiled for vectors and for scalars, known when the code is made or not. Equal to the
// interpreter bit for bit, but that one NaN is as good as another.
//
// Left out is what is promised only to some units of the last place (exp, log, sine and their kin,
// pow of floats: tests/codegen/test_vector_math.cpp), the sign of a smallest or largest zero, the
// remainder of floats whose quotient has more than 53 bits, any quotient of integers by 0, and
// bf16 below its normal numbers, which the instruction that rounds to bf16 takes for 0.
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/loops/float16.h"
#include "tests/ops/kernel_test.h"

namespace tilewright {
namespace {

template <typename T>
HostTensor of_type(DType dtype, const Shape& shape, const std::vector<T>& values) {
  HostTensor t(dtype, shape);
  for (int64_t i = 0; i < t.size(); ++i)
    t.data<T>()[i] = values[static_cast<size_t>(i) % values.size()];
  return t;
}
// The ends of the type and their neighbours, small numbers of both signs, powers of 2 and one less:
// what shifts, masks and divisions by constants treat apart.
template <typename T>
std::vector<T> edges_of_integer() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> e{0, 1, 2, 3, 7, 8, 31, 100, Limits::min(), Limits::max()};
  for (const T low : {T(1), T(2)}) {
    e.push_back(static_cast<T>(Limits::min() + low));
    e.push_back(static_cast<T>(Limits::max() - low));
  }
  for (const int v : {-1, -2, -3, -7, -8})
    if (Limits::is_signed) e.push_back(static_cast<T>(v));
  if (e.size() % 2 == 0) e.push_back(5);  // an odd number of pairs leaves a tail
  return e;
}
// The largest number, the smallest normal one, the neighbour of 1, halves (ties of rounding),
// infinities, NaN, each with both signs.
std::vector<double> edges_of_float(DType t) {
  const bool is_half = t == DType::kFloat16;
  const double high = is_half                 ? 65504
                      : t == DType::kBFloat16 ? 0x1.fep127
                      : t == DType::kFloat32  ? std::numeric_limits<float>::max()
                                              : std::numeric_limits<double>::max(),
               low = is_half                ? 0x1p-14
                     : t == DType::kFloat64 ? 0x1p-1022
                                            : 0x1p-126;
  std::vector<double> e{NAN};
  for (const double v : {0.0, 1.0, 0.5, 1.5, 2.5, 3.0, 7.25, high, low, 1 + epsilon(t), HUGE_VAL})
    for (const double sign : {1.0, -1.0}) e.push_back(sign * v);
  return e;
}
std::vector<double> doubles(const HostTensor& t) {
  std::vector<double> all;
  for (int64_t i = 0; i < t.size(); ++i) all.push_back(element(t, i));
  return all;
}
// The edges of a type, each once.
HostTensor edges(DType t) {
  const auto integer = [&]<typename T>(T) {
    const std::vector<T> e = edges_of_integer<T>();
    return of_type<T>(t, {static_cast<int64_t>(e.size())}, e);
  };
  switch (t) {
    case DType::kInt8: return integer(int8_t{});
    case DType::kInt16: return integer(int16_t{});
    case DType::kInt32: return integer(int32_t{});
    case DType::kInt64: return integer(int64_t{});
    case DType::kUInt8: return integer(uint8_t{});
    case DType::kUInt16: return integer(uint16_t{});
    case DType::kUInt32: return integer(uint32_t{});
    case DType::kUInt64: return integer(uint64_t{});
    case DType::kBool: return repeated(t, {3}, {0, 1, 1});
    default: break;
  }
  const std::vector<double> e = edges_of_float(t);
  return repeated(t, {static_cast<int64_t>(e.size())}, e);
}
// Element i of the result is element at(i) of t.
template <typename At>
HostTensor picked(const HostTensor& t, int64_t count, At&& at) {
  HostTensor r(t.dtype, {count});
  const int64_t size = byte_size(t.dtype);
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(r.bytes.data() + i * size, t.bytes.data() + at(i) * size,
                static_cast<size_t>(size));
  return r;
}

// Elements of both, one after the other.
HostTensor joined(const HostTensor& a, const HostTensor& b) {
  HostTensor r(a.dtype, {a.size() + b.size()});
  std::copy(a.bytes.begin(), a.bytes.end(), r.bytes.begin());
  std::copy(b.bytes.begin(), b.bytes.end(), r.bytes.begin() + static_cast<long>(a.bytes.size()));
  return r;
}

bool is_division(const std::string& op) { return op == "div" || op == "mod" || op == "fmod"; }
// Has ONNX the operator for this type?
bool is_defined(const std::string& op, DType t) {
  const bool logical = op == "and" || op == "or" || op == "xor";
  if (op == "shift_left" || op == "shift_right") return is_integer(t);
  if (logical) return !is_float(t);
  if (t == DType::kBool)
    return op == "equal" || op == "not_equal" || op == "min" || op == "max" || op == "add" ||
           op == "sub" || op == "mul";
  return op != "pow" || !is_float(t);
}

class EdgeOperands : public testing::TestWithParam<DType> {
 protected:
  using Value = ir::ValueId;

  // Outputs of the compiled graph are those of the interpreter, unless `left_out`(output, element).
  template <typename LeftOut>
  void expect_equal(const GraphCall& call, LeftOut&& left_out,
                    const std::vector<const char*>& cpus = {"native", "x86-64-v3", "x86-64"}) {
    auto oracle = interpret_graph(call.graph, call.inputs);
    ASSERT_TRUE(oracle.ok()) << oracle.error().to_string();
    for (const char* cpu : cpus) {
      if (!runs_here(cpu)) continue;
      for (const bool schedule : {true, false}) {
        SCOPED_TRACE(std::string(cpu) + (schedule ? ", scheduled" : ", plain loops"));
        auto runs = run_compiled(call.graph, call.inputs, {schedule, schedule, false, cpu}, {1});
        ASSERT_TRUE(runs.ok()) << runs.error().to_string();
        for (size_t k = 0; k < oracle->outputs.size(); ++k)
          for (int64_t i = 0; i < oracle->outputs[k].size(); ++i)
            if (!left_out(k, i) && failures_ < kMostFailures)
              expect_same((*runs)[0][k], oracle->outputs[k], k, i);
      }
    }
  }
  void expect_same(const HostTensor& found, const HostTensor& expected, size_t k, int64_t i) {
    const auto size = static_cast<size_t>(byte_size(expected.dtype));
    const size_t at = static_cast<size_t>(i) * size;
    if (std::memcmp(found.bytes.data() + at, expected.bytes.data() + at, size) == 0) return;
    const double x = element(found, i), y = element(expected, i);
    if (std::isnan(x) && std::isnan(y)) return;
    if (expected.dtype == DType::kBFloat16 && x == 0 && std::abs(y) < 0x1p-126) return;
    ++failures_;
    ADD_FAILURE() << what_[k] << " of operands " << i << ": " << operands(k, i) << ": found " << x
                  << ", expected " << y;
  }
  std::string operands(size_t k, int64_t i) const {
    return k < shown_.size() && shown_[k] ? shown_[k](i) : "";
  }

  static constexpr int kMostFailures = 40;
  int failures_ = 0;
  std::vector<std::string> what_;  // by output
  std::vector<std::function<std::string(int64_t)>> shown_;
};

constexpr const char* kBinary[] = {"add",     "sub",           "mul",        "div",
                                   "mod",     "fmod",          "pow",        "min",
                                   "max",     "and",           "or",         "xor",
                                   "equal",   "not_equal",     "less",       "less_equal",
                                   "greater", "greater_equal", "shift_left", "shift_right"};

// Whether a result is exempt, by the list at the top.
bool is_left_open(const std::string& op, DType t, double a, double b) {
  if (!is_float(t)) return false;
  if (op == "min" || op == "max") return a == 0 && b == 0;
  if (op == "mod") return true;  // ONNX has none of floats
  return op == "fmod" && std::isfinite(a) && std::isfinite(b) && std::abs(a / b) >= 0x1p53;
}

// All pairs as two long tensors, so that vectors and tails meet each of them. Divisors leave 0 out.
TEST_P(EdgeOperands, OfTwo) {
  const DType t = GetParam();
  const HostTensor e = edges(t);
  const int64_t n = e.size();
  std::vector<int64_t> divisors;  // elements of e that are not 0
  for (int64_t i = 0; i < n; ++i)
    if (is_float(t) || element(e, i) != 0) divisors.push_back(i);
  const auto m = static_cast<int64_t>(divisors.size());
  const HostTensor a = picked(e, n * n, [&](int64_t i) { return i / n; }),
                   b = picked(e, n * n, [&](int64_t i) { return i % n; }),
                   c = picked(e, n * m, [&](int64_t i) { return i / m; }),
                   d = picked(e, n * m,
                              [&](int64_t i) { return divisors[static_cast<size_t>(i % m)]; });
  GraphCall call;
  const Value va = call.input(a), vb = call.input(b), vc = call.input(c), vd = call.input(d);
  for (const std::string op : kBinary)
    if (is_defined(op, t)) {
      what_.push_back(op);
      call.output(is_division(op) ? call.op(op, {vc, vd}) : call.op(op, {va, vb}));
    }
  const auto left = [&](size_t k, int64_t i) { return element(is_division(what_[k]) ? c : a, i); };
  const auto right = [&](size_t k, int64_t i) { return element(is_division(what_[k]) ? d : b, i); };
  for (size_t k = 0; k < what_.size(); ++k)
    shown_.push_back([&, k](int64_t i) {
      return std::to_string(left(k, i)) + " and " + std::to_string(right(k, i));
    });
  expect_equal(call, [&](size_t k, int64_t i) {
    return is_left_open(what_[k], t, left(k, i), right(k, i));
  });
}

// One operand is a number in the code: of each kind of type, and of the one that indices have.
class EdgeOperandsInCode : public EdgeOperands {};
TEST_P(EdgeOperandsInCode, OfAKnownOperand) {
  const DType t = GetParam();
  const HostTensor e = edges(t);
  GraphCall call;
  const Value x = call.input(e);
  std::vector<double> known;
  std::vector<bool> is_left;
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < e.size(); ++i) {
    const double v = element(e, i);
    if (std::isnan(v) || std::abs(v) <= 2 || v < -100 || std::isinf(v)) chosen.push_back(i);
  }
  for (const std::string op : kBinary)
    for (const int64_t i : is_defined(op, t) ? chosen : std::vector<int64_t>{})
      for (const bool left : {false, true}) {
        HostTensor one = picked(e, 1, [&](int64_t) { return i; });
        one.shape = {};
        if (is_division(op) && !is_float(t) && (left || element(one, 0) == 0)) continue;
        const Value number = call.constant(one);
        call.output(left ? call.op(op, {number, x}) : call.op(op, {x, number}));
        what_.push_back(op);
        known.push_back(element(one, 0));
        is_left.push_back(left);
      }
  for (size_t k = 0; k < what_.size(); ++k)
    shown_.push_back([&, k](int64_t i) {
      return std::to_string(element(e, i)) + (is_left[k] ? " behind " : " before ") +
             std::to_string(known[k]);
    });
  expect_equal(call,
               [&](size_t k, int64_t i) {
                 const double v = element(e, i);
                 return is_left[k] ? is_left_open(what_[k], t, known[k], v)
                                   : is_left_open(what_[k], t, v, known[k]);
               },
               {"native"});
}

// The same for operators of one operand, and for the two of three (where, clip).
TEST_P(EdgeOperands, OfOne) {
  const DType t = GetParam();
  GraphCall call;
  const HostTensor e = edges(t);
  const Value x = call.input(e),
              condition = call.input(repeated(DType::kBool, {e.size()}, {1, 0, 0}));
  for (const std::string op : {"neg", "abs", "sqrt", "floor", "ceil", "round", "trunc", "is_nan",
                               "is_inf", "relu", "not", "identity"}) {
    const bool floats = op == "sqrt" || op.starts_with("is_");
    if (op == "not" ? is_float(t) : (floats ? !is_float(t) : t == DType::kBool)) continue;
    call.output(call.op(op, {x}));
    what_.push_back(op);
  }
  call.output(call.op("where", {condition, x, call.input(picked(e, e.size(), [&](int64_t i) {
                                  return e.size() - 1 - i;
                                }))}));
  what_.push_back("where");
  if (t != DType::kBool) {
    const auto end = [&](int64_t i) {
      HostTensor one = picked(e, 1, [&](int64_t) { return i; });
      one.shape = {};
      return call.input(one);
    };
    call.output(call.op("clip", {x, end(1), end(4)}));
    what_.push_back("clip");
  }
  for (size_t k = 0; k < what_.size(); ++k)
    shown_.push_back([&](int64_t i) { return std::to_string(element(e, i)); });
  expect_equal(call, [](size_t, int64_t) { return false; });
}

// From each type to each, with numbers beyond the target's range, for which the result is defined
// by the interpreter (saturation or wrapping) rather than by C++.
TEST_P(EdgeOperands, Conversions) {
  const DType from = GetParam();
  GraphCall call;
  // Beside ties of bf16 and f16, which rounding to f32 on the way would make of these.
  std::vector<double> near;
  for (const double tie : {1 + 0x1p-8, 1 + 0x3p-8, 1 + 0x1p-11, 1 + 0x3p-11, 0x1p-25, 0x3p-25})
    for (const double by : {-0x1p-40, 0x1p-40})
      for (const double sign : {1.0, -1.0}) near.push_back(sign * (tie + tie * by));
  const bool is_wide = from == DType::kFloat64;
  const HostTensor ends = edges(from), beside = repeated(from, {is_wide ? 24 : 0}, near),
                   e = joined(ends, beside);
  const Value x = call.input(e);
  for (const DType to : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
                         DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kUInt8,
                         DType::kUInt16, DType::kUInt32, DType::kUInt64, DType::kBool}) {
    call.output(call.op("cast", {x}, {{"to", std::string(name(to))}}));
    what_.push_back("cast to " + std::string(name(to)));
    shown_.push_back([&](int64_t i) { return std::to_string(element(e, i)); });
  }
  expect_equal(call, [](size_t, int64_t) { return false; });
}

// Nothing traps: by 0, a quotient is what is divided and a remainder 0.
class EdgeOperandsOfIntegers : public EdgeOperands {};
TEST_P(EdgeOperandsOfIntegers, DivisionByZeroIsByOne) {
  const DType t = GetParam();
  const HostTensor e = edges(t);
  for (const bool known : {true, false}) {
    GraphCall call;
    const HostTensor zero = repeated(t, {}, {0});
    const Value x = call.input(e), by = known ? call.constant(zero) : call.input(zero);
    for (const char* op : {"div", "mod", "fmod"}) call.output(call.op(op, {x, by}));
    for (const bool schedule : {true, false}) {
      auto runs = run_compiled(call.graph, call.inputs, {schedule, schedule}, {1});
      ASSERT_TRUE(runs.ok()) << runs.error().to_string();
      EXPECT_EQ(doubles((*runs)[0][0]), doubles(e));
      for (const size_t k : {1, 2}) EXPECT_EQ((*runs)[0][k].bytes, repeated(t, e.shape, {0}).bytes);
    }
  }
}

std::vector<DType> types_where(bool (*wanted)(DType)) {
  std::vector<DType> types;
  for (const DTypeInfo& t : kDTypes)
    if (wanted(t.dtype)) types.push_back(t.dtype);
  return types;
}
constexpr auto kTypeName = [](const auto& info) { return std::string(name(info.param)); };
INSTANTIATE_TEST_SUITE_P(All, EdgeOperands,
                         testing::ValuesIn(types_where([](DType) { return true; })), kTypeName);
INSTANTIATE_TEST_SUITE_P(All, EdgeOperandsInCode,
                         testing::Values(DType::kFloat32, DType::kInt8, DType::kInt64,
                                         DType::kUInt8),
                         kTypeName);
INSTANTIATE_TEST_SUITE_P(All, EdgeOperandsOfIntegers, testing::ValuesIn(types_where(is_integer)),
                         kTypeName);

}  // namespace
}  // namespace tilewright
