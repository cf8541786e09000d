// The Winograd rule: how large the blocks of tiles are, and what the direct form would cost.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "ir/ops/winograd.h"
#include "passes/schedule/rules/winograd_rule.h"

namespace tilewright::passes {

using namespace ir;

bool WinogradRule::find_sizes() {
  const Block &product = *s_.place(kWinogradProduct).block, &y = *s_.place(y_).block;
  for (size_t i = 1; i < 4; ++i)
    if (as_int(y.axes[i].extent).value_or(i == 1 ? 0 : 1) < 1) return false;
  sizes_ = {.images = std::max<int64_t>(as_int(y.axes[0].extent).value_or(1), 1),
            .in_channels = as_int(product.axes.back().extent).value_or(0),
            .out_channels = *as_int(y.axes[1].extent),
            .height = as_int(y.axes[2].extent).value_or(0),
            .width = as_int(y.axes[3].extent).value_or(0)};
  if (sizes_.in_channels < 1) return false;
  m_ = as_int(product.axes[0].extent).value_or(6) - 2;
  any_size_ = !as_int(y.axes[2].extent) || !as_int(y.axes[3].extent);
  assumed_ = assume(sizes_, y.axes[2].extent, y.axes[3].extent);
  return true;
}

void WinogradRule::decide() {
  plan_ =
      any_size_ ? plan_blocks(s_.machine(), assumed_, m_) : plan_winograd(s_.machine(), sizes_, m_);
  if (any_size_) sizes_ = assumed_.usual;
  const std::string product = kWinogradProduct;
  const auto ask = [&](const char* what, int64_t most, int64_t usual) {
    return s_.decide(name(product, what), with(powers_of_two(1, std::max(most, usual)), usual),
                     usual, Bits::kKept);
  };
  if (!any_size_) plan_.images = decide_images();
  plan_.down = ask("down", sizes_.tiles_down(m_), plan_.down);
  plan_.across = ask("across", sizes_.tiles_across(m_), plan_.across);
  plan_.tile.best.vectors = ask("vectors", 4, plan_.tile.best.vectors);
  plan_.tile.best.rows = ask("rows", 8, plan_.tile.best.rows);
  width_ = plan_.tile.best.vectors * plan_.lanes;
  plan_.panels = ask("panels", (sizes_.out_channels + width_ - 1) / width_, plan_.panels);
  note_plan();
}

int64_t WinogradRule::decide_images() {
  std::vector<int64_t> values;
  for (int64_t n = 1; n <= std::min(sizes_.images, WinogradPlan::kMostImages); ++n)
    if (sizes_.images % n == 0) values.push_back(n);
  return s_.decide(name(kWinogradProduct, "images"), values, plan_.images, Bits::kKept);
}

void WinogradRule::note_plan() {
  WindowedProduct one = sizes_;
  one.images = 1;
  const std::string block = std::string(kWinogradProduct) + ": ";
  s_.note(block + "Winograd's form: " + explain(s_.machine(), one));
  s_.note(block + "a task takes " +
          (plan_.images > 1 ? std::to_string(plan_.images) + " images of " : "") +
          std::to_string(plan_.down) + " x " + std::to_string(plan_.across) + " tiles of " +
          std::to_string(m_) + " x " + std::to_string(m_) + " results through all steps, and " +
          std::to_string(plan_.panels) + " panels of channels");
  s_.note(block + explain(plan_.tile, plan_.lanes, s_.machine().vector_registers));
}

void note_direct_form(ScheduleState& s, const std::string& block) {
  const Block& b = *s.place(block).block;
  // Results [n, o, h, w], sums over c and a window of 3x3 that moves by one.
  if (b.axes.size() != 7 || b.body.as<Store>()->buffer->dtype != DType::kFloat32) return;
  int64_t extents[7];
  for (size_t i = 0; i < 7; ++i) {
    if ((b.axes[i].kind == AxisKind::kReduce) != (i >= 4)) return;
    extents[i] = as_int(b.axes[i].extent).value_or(i == 0 ? 1 : 0);
    if (extents[i] < 1) return;
  }
  if (extents[5] != 3 || extents[6] != 3) return;
  const Buffer& y = b.body.as<Store>()->buffer;
  for (const BlockAccess& a : block_accesses(b)) {
    if (a.write || a.buffer == y || s.is_constant(a.buffer)) continue;
    for (size_t i : {size_t{2}, size_t{3}})
      if (!a.strides[i] || !a.strides[i + 3] || !can_prove_equal(a.strides[i], a.strides[i + 3]))
        return;
  }
  s.note(block + ": the direct form: " +
         explain(s.machine(), {.in_channels = extents[4],
                               .out_channels = extents[1],
                               .height = extents[2],
                               .width = extents[3]}));
}

}  // namespace tilewright::passes
