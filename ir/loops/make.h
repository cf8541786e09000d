// Making nodes of the loop IR: constants are folded, types checked.
#pragma once

#include "ir/loops/exprs.h"
#include "ir/loops/stmts.h"

namespace tilewright::ir {

// Immediates: integers wrap to the type, floats are rounded to it.
Expr int_imm(int64_t value, DType dtype = DType::kInt64);
Expr float_imm(double value, DType dtype = DType::kFloat32);
Expr bool_imm(bool value);
Expr constant(double value, DType dtype);  // an immediate of any type
// Expressions by node (exprs.h). Operands must have the types that the node asks for (TW_CHECK),
// scalars are not broadcast to vectors; what is known at once (operations on immediates, x + 0, a
// select of a constant) is folded, so the result may be of another kind. `lanes` of ramp: 1 gives
// the base.
Expr cast(DType dtype, Expr value);
Expr bitcast(DType dtype, Expr value);
Expr unary(UnaryOp op, Expr value);
Expr binary(BinaryOp op, Expr a, Expr b);
Expr select(Expr condition, Expr a, Expr b);
Expr load(Buffer buffer, std::vector<Expr> indices, Expr mask = nullptr, int64_t ahead = 0);
Expr load_vector(Buffer buffer, Expr index, Expr mask);  // flat loops
Expr ramp(Expr base, Expr stride, int lanes);
Expr broadcast(Expr value, int lanes);  // the value itself when it has that many lanes already; a
                                        // vector of fewer is repeated
Expr reduce_lanes(BinaryOp op, Expr value);
Expr dot(Expr sum, Expr a, Expr b);
Expr every_lane(Expr value, int64_t first, int64_t step);
Expr interleave(std::vector<Expr> parts);

// Statements by node (stmts.h).
Stmt store(Buffer buffer, std::vector<Expr> indices, Expr value, Expr mask = nullptr,
           StoreKind kind = StoreKind::kCached);
Stmt dot_tile(DotTile fields);
Stmt prefetch_line(Buffer buffer, Expr offset, PrefetchKind kind);
Stmt let(Var var, Expr value, Stmt body);
Stmt for_loop(Var var, Expr extent, Stmt body, LoopKind kind = LoopKind::kSerial);
Stmt while_loop(Expr condition, Stmt body);
Stmt if_then(Expr condition, Stmt then, Stmt otherwise = nullptr);
Stmt seq(std::vector<Stmt> stmts);  // flattens; one statement stays itself
Stmt allocate(Buffer buffer, Stmt body, Expr offset = nullptr);
Stmt block(Block fields);

// For formulas. / on integers rounds towards zero, floordiv towards minus infinity; ceildiv is for
// i64 and positive divisors.
Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator/(Expr a, Expr b);
Expr operator-(Expr a);
Expr operator<(Expr a, Expr b);
Expr operator<=(Expr a, Expr b);
Expr operator>(Expr a, Expr b);
Expr operator>=(Expr a, Expr b);
Expr logical_and(Expr a, Expr b);
Expr logical_or(Expr a, Expr b);
Expr logical_not(Expr a);
Expr eq(Expr a, Expr b);
Expr ne(Expr a, Expr b);
Expr min(Expr a, Expr b);
Expr max(Expr a, Expr b);
Expr floordiv(Expr a, Expr b);
Expr floormod(Expr a, Expr b);
Expr ceildiv(Expr a, Expr b);
Expr clamp(Expr x, Expr low, Expr high);

// The value of an integer immediate.
std::optional<int64_t> as_int(const Expr& e);
// Of integers: an immediate 0, an immediate 1.
bool is_zero(const Expr& e);
bool is_one(const Expr& e);
// Smallest and largest value of a type, and infinities for floats: the neutral elements of max and
// min.
Expr lowest(DType dtype);
Expr highest(DType dtype);

}  // namespace tilewright::ir
