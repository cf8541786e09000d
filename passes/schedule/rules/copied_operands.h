// Which operands of a product known at the run alone are copied before it, and how the copies lie.
#pragma once

#include <string>
#include <vector>

#include "passes/schedule/rules/schedule_state.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

// A copy of an operand: [dim / width, the others, width].
struct Panels {
  std::string buffer;
  bool is_made_here = false;  // a temporary, which needs no copy
  bool of_columns = false;    // of the product, not rows
  bool transposes = false;    // the operand has another dimension innermost
  int dim = 1;                // that lies innermost, and
  std::vector<int> across;    // the others, outermost first
  int64_t width = 1;          // elements side by side
  int64_t lanes = 1;          // of a vector of them
  int64_t streams = 1;        // vectors of a row that a copy takes at a time
  int64_t rows = 1;           // rows that it takes from one vector to the next
  std::string copy() const { return is_made_here ? buffer : buffer + "_packed"; }
  std::string block() const { return copy() + "_copy"; }  // that makes it
};

// [dim / width, the others, width].
std::vector<int64_t> layout_of(const Panels& p);
// Of a sum of products of [k, i] and [k, j] or [i, k], over k, of which the latter stay as they are; k may be
// several axes, as the pixels of images.
std::vector<Panels> copied_operands(const ScheduleState& s, const BlockPlace& place);
// A copy as a nest of its own, before the product.
[[nodiscard]] bool schedule_copy(ScheduleState& s, const Panels& p);
// What is in panels is copied in the iterations of `around`, a loop of the product, that read it.
[[nodiscard]] bool stage_copy(ScheduleState& s, const Panels& p, const std::string& around);

}  // namespace tilewright::passes
