// Affine access functions: the flattened address of each access, split into one coefficient
// (stride) per axis of the block. Rules read off them which axis is contiguous, which operand is
// broadcast along an axis (stride 0), and which axes can be fused because one runs on from the
// other.
#include "passes/analysis/accesses.h"

#include "ir/loops/linear.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "passes/loops/loop_passes.h"

namespace tilewright::passes {

using namespace ir;

std::vector<BlockAccess> block_accesses(const Block& block) {
  std::vector<BlockAccess> result;
  Ranges ranges;
  for (const BlockAxis& a : block.axes) ranges.set(a.var, a.extent);
  auto add = [&](const Buffer& buffer, const std::vector<Expr>& indices, bool write) {
    BlockAccess access{buffer, write, indices, {}};
    Linear address = to_linear(simplify(flat_index(*buffer, indices), ranges));
    for (const BlockAxis& a : block.axes) {
      auto c = address.coefficient_of(a.var);
      bool moves_with_axes = false;
      if (c)
        for (const LinearTerm& t : c->terms)
          for (const Expr& f : t.factors)
            for (const BlockAxis& other : block.axes) moves_with_axes |= uses_var(f, other.var);
      access.strides.push_back(c && !moves_with_axes ? to_expr(*c) : Expr());
    }
    result.push_back(std::move(access));
  };
  for_each_expr(block.body, [&](const Expr& e) {
    if (const auto* l = e.as<Load>()) add(l->buffer, l->indices, false);
  });
  for_each_stmt(block.body, [&](const Stmt& s) {
    if (const auto* st = s.as<Store>()) add(st->buffer, st->indices, true);
  });
  return result;
}

std::string loop_of_axis(const Block& block, size_t axis) {
  const auto* v = block.bindings[axis].as<VarNode>();
  return v ? v->name : "";
}

// stride(outer) = stride(inner) * extent(inner), in every access.
bool runs_on(const std::vector<BlockAccess>& accesses, size_t outer, size_t inner,
             const Expr& inner_extent) {
  for (const BlockAccess& a : accesses) {
    if (!a.strides[outer] || !a.strides[inner]) return false;
    if (!can_prove_equal(a.strides[outer], a.strides[inner] * inner_extent)) return false;
  }
  return true;
}

int64_t stride_or_far(const BlockAccess& access, size_t axis) {
  constexpr int64_t kUnknown = int64_t{1} << 40, kNotLinear = int64_t{1} << 50;
  const Expr& stride = access.strides[axis];
  return stride ? as_int(stride).value_or(kUnknown) : kNotLinear;
}

}  // namespace tilewright::passes
