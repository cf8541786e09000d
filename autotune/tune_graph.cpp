#include "autotune/tune_graph.h"

#include <algorithm>
#include <deque>
#include <iterator>

#include "autotune/graph_candidates.h"
#include "autotune/measure/placements.h"

namespace tilewright::autotune {

using passes::Answers;
using passes::Decision;

namespace {

constexpr size_t kAtOnce = 6;  // candidates in one compiled model

bool have_common(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& n) { return b.count(n) != 0; });
}

// Each round compiles one form of the graph with several answers in it, and runs it in turn with the
// best form. An answer changes some kernels and leaves all others; those of two answers are disjoint,
// so that the time of an answer's own kernels, before and after, says what it alone is worth. That is
// a difference of some percent of these kernels and would drown in the noise of whole runs.
class GraphTuner {
 public:
  GraphTuner(const ir::Graph& graph, const ModelCompiler& compiler, InputSets inputs,
             const GraphTuneOptions& options, std::mt19937& random)
      : graph_(graph), compiler_(compiler), inputs_(inputs), options_(options), random_(random) {}

  Result<TunedGraph> run() {
    TW_ASSIGN(usual_, form({}));
    best_ = usual_;
    if (auto known = form(known_answers()); known.ok()) best_ = std::move(*known);
    TW_ASSIGN(best_session_, compile(best_));
    waiting_ = graph_candidates(best_, options_.same_bits);
    while (!waiting_.empty() && !(options_.stop && options_.stop())) TW_RETURN_IF_ERROR(round());
    return finish();
  }

 private:
  Result<GraphForm> form(Answers answers) const {
    return graph_form(graph_, compiler_.lower(), std::move(answers), options_.known);
  }
  Result<std::unique_ptr<Session>> compile(const GraphForm& f) const {
    return compiler_.compile(plan_of(f.graph), f.schedules);
  }
  Answers known_answers() const {
    Answers known;
    for (const Decision& d : usual_.decisions)
      if (const auto it = options_.from.answers.find(d.name); it != options_.from.answers.end())
        known.insert(*it);
    return known;
  }

  // Where the candidate and the best form differ; false: nowhere, or the candidate is no form.
  bool locate(GraphCandidate& c) const {
    if (c.of_best == accepted_) return true;
    const auto alone = form(merged(best_.answers, c.answers));
    if (!alone.ok()) return false;
    c.here = differing_nodes(best_, *alone);
    c.there = differing_nodes(*alone, best_);
    c.of_best = accepted_;
    return !c.here.empty() && !c.there.empty();
  }

  // Candidates that change other kernels each.
  std::vector<GraphCandidate> gather() {
    std::vector<GraphCandidate> together;
    std::deque<GraphCandidate> later;
    std::set<std::string> taken;
    const auto is_full = [&] {
      return together.size() == kAtOnce || (!together.empty() && together[0].alone) ||
             (options_.stop && options_.stop());
    };
    while (!waiting_.empty() && !is_full()) {
      GraphCandidate c = std::move(waiting_.front());
      waiting_.pop_front();
      if (!locate(c)) continue;
      if ((c.alone && !together.empty()) || have_common(c.here, taken)) {
        later.push_back(std::move(c));
        continue;
      }
      taken.insert(c.here.begin(), c.here.end());
      together.push_back(std::move(c));
    }
    waiting_.insert(waiting_.begin(), std::make_move_iterator(later.begin()),
                    std::make_move_iterator(later.end()));
    return together;
  }

  Status round() {
    std::vector<GraphCandidate> together = gather();
    if (together.empty()) return {};
    Answers answers = best_.answers;
    for (const GraphCandidate& c : together) answers = merged(std::move(answers), c.answers);
    const auto all = form(std::move(answers));
    const auto session = all.ok() ? compile(*all) : Result<std::unique_ptr<Session>>(all.error());
    const PairedOptions pairs{
        .seconds = 0.4, .least = 8, .most = 40, .stop = options_.stop, .measure = options_.measure};
    const auto times = session.ok()
                           ? run_in_turn(*best_session_, **session, inputs_, pairs, random_)
                           : Result<PairedTimes>(session.error());
    Answers accepted = best_.answers;
    for (GraphCandidate& c : together) {
      trials_.push_back(
          {.alike = c.alike, .answer = c.answer, .answers = c.answers, .before = c.before});
      GraphTrial& trial = trials_.back();
      if (!times.ok()) {  // one of them is to blame
        trial.refused = times.error().to_string();
        c.alone = true;
        if (together.size() > 1) waiting_.push_back(std::move(c));
        continue;
      }
      trial.measured = times->nodes(c.here, c.there);
      if (!trial.measured.b_is_faster() || trial.measured.ratio > kWorthwhile) continue;
      if (c.confirms) {
        trial.confirmed = true;
        accepted = merged(std::move(accepted), c.answers);
      } else {
        c.confirms = true;
        waiting_.push_front(std::move(c));
      }
    }
    if (options_.progress) options_.progress(trials_.size());
    if (accepted == best_.answers) return {};
    TW_ASSIGN(best_, form(std::move(accepted)));
    TW_ASSIGN(best_session_, compile(best_));
    ++accepted_;
    return {};
  }

  // What is not faster in the end is given up, all of it; what was confirmed here before, where it is
  // not faster at all.
  Result<TunedGraph> finish() {
    TunedGraph tuned;
    if (!best_.answers.empty()) {
      const PairedOptions pairs{
          .seconds = 0.15, .least = 4, .most = 40, .measure = options_.measure};
      const auto of = [&](const GraphForm& f) { return [this, &f] { return compile(f); }; };
      TW_ASSIGN(const Placements times,
                run_at_placements(of(usual_), of(best_), inputs_, pairs, random_));
      tuned.gain = times.nodes(differing_nodes(usual_, best_), differing_nodes(best_, usual_));
      const bool held = options_.from.recorded && tuned.gain.ratio < 1;
      if (!(tuned.gain.b_is_faster() || held) || times.runs().low > 1) best_ = usual_;
    }
    tuned.recorded = options_.from.recorded;
    tuned.trials = std::move(trials_);
    tuned.form = std::move(best_);
    return tuned;
  }

  const ir::Graph& graph_;
  const ModelCompiler& compiler_;
  const InputSets inputs_;
  const GraphTuneOptions& options_;
  std::mt19937& random_;
  GraphForm usual_, best_;
  std::unique_ptr<Session> best_session_;
  std::deque<GraphCandidate> waiting_;
  std::vector<GraphTrial> trials_;
  size_t accepted_ = 1;
};

}  // namespace

Result<TunedGraph> tune_graph(const ir::Graph& graph, const ModelCompiler& compiler,
                              InputSets inputs, const GraphTuneOptions& options,
                              std::mt19937& random) {
  return GraphTuner(graph, compiler, inputs, options, random).run();
}

}  // namespace tilewright::autotune
