// A kernel that updates_by_element() accepts computes the same in place as out of place. It accepts tiles with tails of
// rows and columns, written as branches, loops or masks.
#include <gtest/gtest.h>

#include <random>

#include "ir/interpreter/interpreter.h"
#include "ir/loops/make.h"
#include "ir/loops/nodes.h"
#include "ir/loops/rewrite.h"
#include "ir/text/printer_loops.h"
#include "passes/update_in_place.h"

namespace tilewright::passes {
namespace {

using namespace ir;

enum class Slip { kNone, kElementBefore, kStoredAgain, kRowAgain, kNoMask };
constexpr Slip kSlips[] = {Slip::kNone, Slip::kElementBefore, Slip::kStoredAgain, Slip::kRowAgain,
                           Slip::kNoMask};

// A kernel that computes out[i, j] = 2 * in[i, j] + 1 for [rows, columns], in tiles of `tile` rows by `lanes` columns.
struct Case {
  int64_t rows, columns, tile, lanes;
  bool masked;  // else the last columns are stored one by one
  Slip slip;

  Kernel make() const {
    const Buffer in = parameter("in"), out = parameter("out");
    const Var io("io", {}), jo("jo", {}), r("r", {});
    const auto row = [&](const Expr& i) {
      const Expr column = ramp(Expr(jo) * int_imm(lanes), Expr(1), l());
      const Expr mask =
          masked && columns % lanes != 0 ? column < broadcast(int_imm(columns), l()) : nullptr;
      const Expr first = i * int_imm(columns) + Expr(jo) * int_imm(lanes);
      const int64_t vectors = masked ? (columns + lanes - 1) / lanes : columns / lanes;
      const Stmt whole =
          for_loop(jo, int_imm(vectors), update(in, out, ramp(first, Expr(1), l()), mask, l()));
      if (masked || columns % lanes == 0) return whole;
      const Expr at = i * int_imm(columns) + int_imm(columns / lanes * lanes) + Expr(jo);
      return seq({whole, for_loop(jo, int_imm(columns % lanes), update(in, out, at, nullptr, 1))});
    };
    const auto rows_of = [&](int64_t count) {
      return for_loop(r, int_imm(count), row(Expr(io) * int_imm(tile) + Expr(r)));
    };
    Stmt body = rows % tile == 0
                    ? rows_of(tile)
                    : if_then(Expr(io) < int_imm(rows / tile), rows_of(tile), rows_of(rows % tile));
    if (slip == Slip::kRowAgain) body = seq({body, if_then(Expr(io) < int_imm(1), rows_of(1))});
    Kernel k;
    k.name = "update";
    k.params = {in, out};
    k.body = for_loop(io, int_imm((rows + tile - 1) / tile), body);
    if (slip == Slip::kStoredAgain)
      k.body = seq({k.body, store(out, {int_imm(0)}, load(in, {int_imm(rows * columns - 1)}))});
    return k;
  }

 private:
  int l() const { return static_cast<int>(lanes); }
  Buffer parameter(const std::string& name) const {
    return make_buffer(name, DType::kFloat32, {int_imm(rows * columns)}, Scope::kParam);
  }
  Stmt update(const Buffer& in, const Buffer& out, const Expr& at, const Expr& mask, int l) const {
    const Expr from =
        slip == Slip::kElementBefore
            ? binary(BinaryOp::kMax, at - broadcast(int_imm(1), l), broadcast(int_imm(0), l))
            : at;
    const auto number = [&](double x) { return broadcast(float_imm(x), l); };
    const Expr value = binary(BinaryOp::kAdd, load(in, {from}, mask) * number(2), number(1));
    return store(out, {at}, value, slip == Slip::kNoMask ? nullptr : mask);
  }
};

std::vector<float> run(const Kernel& kernel, std::vector<float> in, bool in_place) {
  std::vector<float> out(in.size() + 8);
  in.resize(out.size());
  float* const result = in_place ? in.data() : out.data();
  const Status done = interpret(kernel, {in.data(), result}, {});
  return done.ok() ? std::vector<float>(result, result + out.size() - 8) : std::vector<float>{};
}

TEST(UpdatesByElement, WhatIsAcceptedGivesTheSameInPlace) {
  std::mt19937 random(17);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int n = 0; n < 3000; ++n)
    for (const Slip slip : kSlips) {
      const int64_t lanes = int64_t{1} << pick(1, 4);
      const Case c{pick(1, 20), pick(1, 40), pick(1, 6), lanes, pick(0, 1) == 1, slip};
      const Kernel kernel = c.make();
      const bool accepted = updates_by_element(kernel, kernel.params[0], kernel.params[1]);
      EXPECT_TRUE(accepted || slip != Slip::kNone) << to_text(kernel);
      if (!accepted) continue;
      std::vector<float> in(static_cast<size_t>(c.rows * c.columns));
      for (float& x : in) x = static_cast<float>(pick(-100, 100));
      ASSERT_EQ(run(kernel, in, true), run(kernel, in, false)) << to_text(kernel);
    }
}

}  // namespace
}  // namespace tilewright::passes
