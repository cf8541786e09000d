// Code calls no function of a library: a compiled model needs none where it is shipped to.
#include <gtest/gtest.h>

#include "codegen/cpu/compile_kernels.h"
#include "ir/loops/nodes.h"

namespace tilewright::cpu {
namespace {

using namespace ir;

class NoLibrary : public testing::TestWithParam<const char*> {
 protected:
  // C[i] = f(A[i], B[i]), as vectors and as scalars.
  template <typename F>
  void expect_no_calls(DType t, const std::string& what, F&& f) {
    for (const int lanes : {1, 8}) {
      const Buffer a = make_buffer("A", t, {Expr(8)}), b = make_buffer("B", t, {Expr(8)});
      const Expr at = lanes == 1 ? Expr(0) : ramp(Expr(0), Expr(1), lanes);
      const Expr value = f(load(a, {at}), load(b, {at}));
      const Buffer c = make_buffer("C", value.dtype(), {Expr(8)});
      auto machine = describe_machine(GetParam());
      ASSERT_TRUE(machine.ok()) << machine.error().to_string();
      auto code = print_code(Kernel{"k", {a, b, c}, {}, store(c, {at}, value)}, *machine,
                             CodeForm::kAssembly);
      ASSERT_TRUE(code.ok()) << code.error().to_string();
      EXPECT_EQ(code->find("@PLT"), std::string::npos)
          << what << " of " << name(t) << ", " << lanes << " lanes";
    }
  }
};

TEST_P(NoLibrary, IsCalledByOperationsOnFloats) {
  for (const DType t : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    for (int number = 0; number <= static_cast<int>(UnaryOp::kIsInf); ++number) {
      const auto op = static_cast<UnaryOp>(number);
      if (op == UnaryOp::kNot) continue;
      const std::string what(name(op));
      expect_no_calls(t, what, [&](const Expr& x, const Expr&) { return unary(op, x); });
      // Its 1 for exponents of 0 is taken to the type that the operation is computed in.
      expect_no_calls(t, what + " of a power", [&](const Expr& x, const Expr& y) {
        const DType wide = byte_size(t) == 2 ? DType::kFloat32 : t;
        return unary(
            op, cast(t, binary(BinaryOp::kPow, cast(wide, x), cast(wide, cast(DType::kInt32, y)))));
      });
    }
    for (const BinaryOp op :
         {BinaryOp::kAdd, BinaryOp::kSub, BinaryOp::kMul, BinaryOp::kDiv, BinaryOp::kFloorDiv,
          BinaryOp::kFloorMod, BinaryOp::kTruncMod, BinaryOp::kPow, BinaryOp::kMin, BinaryOp::kMax,
          BinaryOp::kMaxNumber, BinaryOp::kEq, BinaryOp::kLt})
      expect_no_calls(t, std::string(name(op)),
                      [&](const Expr& x, const Expr& y) { return binary(op, x, y); });
  }
}

TEST_P(NoLibrary, IsCalledByConversions) {
  for (const DTypeInfo& from : kDTypes)
    for (const DTypeInfo& to : kDTypes)
      expect_no_calls(from.dtype, "conversion to " + std::string(name(to.dtype)),
                      [&](const Expr& x, const Expr&) { return cast(to.dtype, x); });
}

TEST_P(NoLibrary, IsCalledByDivisionsOfIntegers) {
  for (const DTypeInfo& t : kDTypes) {
    if (!is_integer(t.dtype)) continue;
    for (const BinaryOp op : {BinaryOp::kMul, BinaryOp::kDiv, BinaryOp::kFloorDiv,
                              BinaryOp::kFloorMod, BinaryOp::kTruncMod, BinaryOp::kPow})
      expect_no_calls(t.dtype, std::string(name(op)),
                      [&](const Expr& x, const Expr& y) { return binary(op, x, y); });
  }
}

INSTANTIATE_TEST_SUITE_P(Cpus, NoLibrary,
                         testing::Values("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4",
                                         "sapphirerapids"),
                         [](const auto& info) {
                           std::string text = info.param;
                           for (char& c : text) c = c == '-' ? '_' : c;
                           return text;
                         });

}  // namespace
}  // namespace tilewright::cpu
