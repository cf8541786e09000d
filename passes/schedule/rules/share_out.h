// Which loops become tasks for threads, and steps that rules share.
#pragma once

#include <string>
#include <vector>

#include "passes/cost/fork_cost.h"
#include "passes/schedule/rules/schedule_state.h"

namespace tilewright::passes {

// What one thread has to do for a block.
SerialWork work_of(const ScheduleState& s, const std::string& block);
// With extents of 1 where the run alone knows them: steps fork each time, be they small.
SerialWork least_work_of(const ScheduleState& s, const std::string& block);
// Is a parallel loop over this work, or over the block's, worth its fork and join? Asked as decision
// "block.fork".
bool forks(ScheduleState& s, const std::string& block, const SerialWork& work);
bool forks(ScheduleState& s, const std::string& block, const ForkCost& cost);
bool forks(ScheduleState& s, const std::string& block);
// Makes tasks of the loops of a block that stand around each other, the outermost first: of as few
// of them as give enough tasks.
void share_out(ScheduleState& s, const std::string& block, const std::vector<std::string>& loops);
// Joins loops that stand around each other, from the outermost on, as far as that is legal:
// the name of what is joined. `name`: of the loop up to number n.
template <typename Name>
std::string collapse_loops(ScheduleState& s, const std::vector<std::string>& loops, Name&& name) {
  std::string fused = loops[0];
  for (size_t i = 1; i < loops.size(); ++i) {
    if (!s.apply("collapse", {fused, loops[i], name(i)})) break;
    fused = name(i);
  }
  return fused;
}
// How many of the loops around a block are steps that run one after the other: of ordered axes of blocks
// around it, as a recurrent layer's. What is inside may be shared out in each of them.
size_t loops_of_steps(const ScheduleState& s, const std::string& block);
// How a loop is to run; loops that earlier steps left out (of one iteration) need nothing.
[[nodiscard]] bool annotate(ScheduleState& s, const char* primitive, const std::string& loop);

}  // namespace tilewright::passes
