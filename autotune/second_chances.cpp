#include "autotune/second_chances.h"

#include <algorithm>
#include <set>

#include "autotune/measure/placements.h"

namespace tilewright::autotune {

namespace {

constexpr double kMadeUpFor = 1.4;  // of that time: what tuning kernels may make up for
constexpr double kShort = 0.02;     // of a run's time: kernels below are left alone
constexpr size_t kMost = 4;

// What would be saved, were its kernels tuned as far as any.
double promise(const GraphTrial& t) { return t.measured.a * kMadeUpFor - t.measured.b; }

// Of an answer that was taken: what there was before.
GraphTrial undone(const GraphTrial& t) {
  GraphTrial u{.alike = t.alike, .answer = "as before", .answers = t.before, .before = t.answers};
  const Comparison& c = t.measured;
  u.measured = {.ratio = 1 / c.ratio, .pairs = c.pairs, .a = c.b, .b = c.a};
  return u;
}

}  // namespace

std::vector<GraphTrial> second_chances(const TunedGraph& tuned, double run_us) {
  std::vector<GraphTrial> near;
  for (const GraphTrial& t : tuned.trials) {
    if (!t.refused.empty() || t.measured.pairs == 0) continue;
    GraphTrial other = t.confirmed ? undone(t) : t;
    if (other.measured.ratio < kMadeUpFor && other.measured.a > kShort * run_us)
      near.push_back(std::move(other));
  }
  std::stable_sort(near.begin(), near.end(), [](const GraphTrial& a, const GraphTrial& b) {
    return promise(a) > promise(b);
  });
  std::set<passes::Answers> seen;
  std::erase_if(near, [&](const GraphTrial& t) { return !seen.insert(t.answers).second; });
  if (near.size() > kMost) near.resize(kMost);
  return near;
}

Result<GraphTrial> try_again(GraphTrial trial, TunedForm best, TunedForm other, InputSets inputs,
                             std::mt19937& random, const RunInTurn& measure) {
  const auto here = differing_nodes(best.graph, other.graph);
  const auto there = differing_nodes(other.graph, best.graph);
  trial.tuned = true;
  trial.confirmed = false;
  TW_ASSIGN(const auto best_session, best.kernels.compile());
  TW_ASSIGN(const auto other_session, other.kernels.compile());
  const PairedOptions once{.seconds = 0.2, .least = 4, .most = 40, .measure = measure};
  TW_ASSIGN(const PairedTimes first,
            run_in_turn(*best_session, *other_session, inputs, once, random));
  trial.measured = first.nodes(here, there);
  if (trial.measured.ratio > kWorthwhile) return trial;
  const PairedOptions pairs{.seconds = 0.15, .least = 4, .most = 40, .measure = measure};
  TW_ASSIGN(const Placements times,
            run_at_placements([&] { return best.kernels.compile(); },
                              [&] { return other.kernels.compile(); }, inputs, pairs, random));
  trial.measured = times.nodes(here, there);
  trial.confirmed =
      trial.measured.b_is_faster() && trial.measured.ratio < kWorthwhile && times.runs().low <= 1;
  return trial;
}

}  // namespace tilewright::autotune
