// Extents as the runtime evaluates them: each operation as the interpreter has it.
#include <gtest/gtest.h>

#include "codegen/flatten_program.h"
#include "ir/interpreter/evaluate.h"
#include "runtime/size_expr.h"

namespace tilewright::codegen {
namespace {

using ir::BinaryOp;
using ir::Expr;

TEST(FlattenSize, ComputesAsTheInterpreter) {
  const ir::Var x("x"), y("y");
  std::vector<Expr> extents{x, ir::select(ir::logical_not(x < y), x, y),
                            ir::cast(DType::kInt64, ir::cast(DType::kInt32, x)) + y};
  for (const BinaryOp op : {BinaryOp::kAdd, BinaryOp::kSub, BinaryOp::kMul, BinaryOp::kFloorDiv,
                            BinaryOp::kFloorMod, BinaryOp::kMin, BinaryOp::kMax})
    extents.push_back(ir::binary(op, x, y));
  for (const BinaryOp op :
       {BinaryOp::kEq, BinaryOp::kNe, BinaryOp::kLt, BinaryOp::kLe, BinaryOp::kGt, BinaryOp::kGe}) {
    const Expr holds = ir::binary(op, x, y), small = y < Expr(5);
    extents.push_back(ir::select(holds, Expr(3), Expr(5)));
    extents.push_back(ir::select(ir::logical_and(holds, small), Expr(3), Expr(5)));
    extents.push_back(ir::select(ir::logical_or(holds, small), Expr(3), Expr(5)));
  }
  for (const Expr& e : extents) {
    const auto flat = flatten_size(e, {x, y});
    ASSERT_TRUE(flat.ok()) << flat.error().to_string();
    for (const int64_t a : {-7, -1, 0, 2, 5, 6})
      for (const int64_t b : {-3, 1, 2, 5, 6}) {
        const std::vector<int64_t> symbols{a, b};
        EXPECT_EQ(evaluate(*flat, symbols), ir::evaluate_int(e, {{x.get(), a}, {y.get(), b}}))
            << to_string(*flat, {"x", "y"}) << " of " << a << " and " << b;
      }
  }
}

}  // namespace
}  // namespace tilewright::codegen
