// Winograd convolutions: a task takes a block of tiles through all steps while they are in cache.
#include "passes/schedule/rules/winograd_rule.h"

#include "ir/ops/winograd.h"

namespace tilewright::passes {

using namespace ir;

bool WinogradRule::run() {
  for (const char* name :
       {kWinogradRows, kWinogradInput, kWinogradProduct, kWinogradColumns, kWinogradOutput})
    if (!s_.has_block(name)) return false;
  return s_.all_or_nothing([&] {
    inline_producers(s_, {kWinogradRows, kWinogradInput, kWinogradColumns, kWinogradOutput});
    if (!find_results() || !find_sizes()) return false;
    decide();
    return write();
  });
}

bool WinogradRule::find_results() {
  y_ = kWinogradOutput;
  const Buffer y = s_.place(y_).block->body.as<Store>()->buffer;
  if (y->scope != Scope::kParam)
    for (const BlockPlace& p : all_blocks(s_.kernel().body)) {
      if (!touched(p.stmt).reads.count(y.get())) continue;
      if (y_ != kWinogradOutput || !p.block->body.as<Store>() || p.block->init) return false;
      y_ = p.block->name;
    }
  const Block& results = *s_.place(y_).block;
  for (size_t i = 0; i < results.axes.size(); ++i)
    if (loop_of_axis(results, i).empty()) return false;
  return results.axes.size() == 4;
}

bool WinogradRule::align_tiles() {
  return !any_size_ || (s_.apply("align_bounds", {kWinogradColumns}, {3, plan_.down}) &&
                        s_.apply("align_bounds", {kWinogradColumns}, {4, plan_.across}));
}

bool WinogradRule::write() {
  if (!align_tiles()) return false;
  if (!s_.apply("cache_write", {kWinogradProduct, "sums", kSums})) return false;
  if (!pack_weights() || !tile_results() || !tile_columns() || !place_products() || !share_out() ||
      !stage_input() || !tile_products())
    return false;
  std::vector<std::string> rest;  // names: steps replace the blocks
  for (const BlockPlace& p : all_blocks(s_.kernel().body))
    if (p.loops.empty() || p.loops[0]->var.name() != task_) rest.push_back(p.block->name);
  for (const std::string& b : rest) schedule_pointwise(b);
  return true;
}

void WinogradRule::schedule_pointwise(const std::string& block) {
  for (const Rule& r : rules())
    if (r.to == Applies::kPointwise && r.take != take_resampled_rows && r.take(s_, {block, ""}))
      return;
}

std::optional<Taken> take_winograd(ScheduleState& s, const Work&) {
  return WinogradRule(s).run() ? std::optional(Taken{.all = true}) : std::nullopt;
}

}  // namespace tilewright::passes
