// Sums of very many terms to LLVM IR.
#include <llvm/IR/IRBuilder.h>

#include <algorithm>

#include "codegen/cpu/emit_arithmetic.h"
#include "codegen/cpu/emit_values.h"
#include "ir/loops/rewrite.h"

namespace tilewright::cpu {

using namespace ir;
using llvm::Value;

// A sum of many symbols, as extents of joined values are, frozen: LLVM's analysis of addresses in loops
// then takes it for one value, where it would compare all terms of each sum with those of others.
// Null for other expressions, and for sums of what loops of this function vary.
Value* ValueEmitter::long_fixed_sum(const Expr& e) {
  constexpr size_t kLong = 16;
  std::vector<const Binary*> sums;
  for (const Binary* b = e.as<Binary>();
       b && b->type == ScalarType{} && (b->op == BinaryOp::kAdd || b->op == BinaryOp::kSub);
       b = b->a.as<Binary>())
    sums.push_back(b);
  if (sums.size() < kLong) return nullptr;
  const auto is_fixed = [&](const Expr& part) {
    bool fixed = true;
    for_each_expr(part, [&](const Expr& x) {
      const auto v = x.kind() == NodeKind::kVar ? f_.vars.find(x.get()) : f_.vars.end();
      fixed &= x.kind() != NodeKind::kLoad &&
               (v == f_.vars.end() || !llvm::isa<llvm::PHINode>(v->second));
    });
    return fixed;
  };
  if (!is_fixed(sums.back()->a) ||
      !std::all_of(sums.begin(), sums.end(), [&](const Binary* b) { return is_fixed(b->b); }))
    return nullptr;
  Value* total = value(sums.back()->a);
  for (size_t k = sums.size(); k-- > 0;)
    total = emit_binary(b_, machine_, *sums[k], total, value(sums[k]->b));
  return b_.CreateFreeze(total);
}

}  // namespace tilewright::cpu
