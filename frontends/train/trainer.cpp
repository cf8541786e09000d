// State lies in tensors that each step updates in place: no parameter is copied.
#include "frontends/train/trainer.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <numeric>
#include <set>
#include <span>
#include <string_view>

#include "codegen/cache/content_hash.h"
#include "frontends/train/job_essentials.h"
#include "frontends/train/schedule.h"
#include "runtime/trace_events.h"

namespace tilewright::train {

// Places in Trainer::record_, behind the losses.
enum Flag { kStop, kFailed, kSuspect, kRegroup, kFlags };

Result<std::unique_ptr<Trainer>> Trainer::create(const Job& job, const CompileOptions& compile,
                                                 int threads, Ranks ranks) {
  TW_ASSIGN(Job cut, for_ranks(job, ranks));
  std::unique_ptr<Trainer> trainer(new Trainer(std::move(cut), ranks));
  CompileOptions options = compile;
  TW_RETURN_IF_ERROR(ranks.share_machine(options));
  TW_RETURN_IF_ERROR(ranks.agree(trainer->prepare(options, threads), "the start"));
  TW_RETURN_IF_ERROR(ranks.agree(trainer->compare_ranks(options), "what ranks have in common"));
  return trainer;
}

Status Trainer::prepare(const CompileOptions& compile, int threads) {
  TW_ASSIGN(const std::unique_ptr<OnnxModel> model,
            open_model(job_.model.string(), ModelUse::kTraining));
  model_hash_ = hash_of(*model);
  TW_ASSIGN(outputs_, written_outputs(*model, job_));
  TW_RETURN_IF_ERROR(check_outputs(job_.model, outputs_));
  TW_ASSIGN(trained_, find_trained(*model, job_));
  TW_ASSIGN(StepGraph step, build_step(*model, trained_, job_));
  TW_ASSIGN(data_, open_dataset(job_.data, step.wanted));
  TW_ASSIGN(Order order, Order::create(job_, data_->size()));
  TW_ASSIGN(batches_, Batches::create(*data_, std::move(order), job_.part()));
  states_ = std::move(step.states);
  transposed_copies_ = model->graph.transposed_copies;
  keep_unchanged_copies(*model);
  TW_ASSIGN(tensors_, step_tensors(*model, job_, trained_, states_));
  const int64_t since = now_nanoseconds();
  record_.resize(static_cast<size_t>(job_.parts()) + kFlags);
  TW_RETURN_IF_ERROR(job_.is_cut() ? add_parts(std::move(step.graph), compile, threads)
                                   : add_program(std::move(step.graph), data_->columns().size(),
                                                 compile, threads));
  if (step.update) TW_RETURN_IF_ERROR(add_program(std::move(*step.update), 0, compile, threads));
  compile_seconds_ = static_cast<double>(now_nanoseconds() - since) * 1e-9;
  return job_.evaluation.data.file.empty() ? Status()
                                           : add_evaluator(*model, step.wanted, compile, threads);
}

Status Trainer::add_program(ir::Graph graph, size_t columns, const CompileOptions& compile,
                            int threads) {
  Program p;
  p.inputs = tensors_of(graph, columns, tensors_);
  for (size_t k = 0; k < graph.outputs.size() - graph.updates.size(); ++k)
    p.outputs.push_back(tensor(graph.output_names[k]));
  TW_ASSIGN(const std::shared_ptr<Executable> executable,
            compile_in_memory(std::move(graph), compile));
  TW_ASSIGN(p.session, Session::create(executable, {.threads = threads}));
  programs_.push_back(std::move(p));
  return {};
}

// Copies are views of the same memory.
void Trainer::keep_unchanged_copies(const OnnxModel& model) {
  const auto& initializers = model.graph.initializers;
  std::set<std::string> changed;
  std::set<const uint8_t*> data;
  for (const State& s : states_)
    if (s.name == kParameters || s.name == kStatistics)
      for (const Parameter& p : s.members->members)
        changed.insert(p.name), data.insert(initializers.at(p.name).data);
  for (const auto& [name, t] : initializers) {
    if (t.bytes == 0 || changed.count(name) || !data.count(t.data) || !t.dtype()) continue;
    HostTensor value(*t.dtype(), t.shape);
    std::memcpy(value.bytes.data(), t.data, t.bytes);
    unchanged_copies_.emplace_back(name, std::move(value));
  }
}

// It reads the tensors that steps write.
Status Trainer::add_evaluator(const OnnxModel& model, const Wanted& wanted,
                              const CompileOptions& compile, int threads) {
  std::vector<const Parameters*> members;
  std::vector<Tensor> flats;
  for (const State& s : states_)
    if (s.name == kParameters || s.name == kStatistics)
      members.push_back(s.members), flats.push_back(tensor(s.name));
  TW_ASSIGN(evaluator_, Evaluator::create(model, members, flats, job_, wanted, compile, threads));
  return {};
}

// What parts give, for their sums; the ranges of these, where there are ranks.
Status Trainer::add_parts(ir::Graph graph, const CompileOptions& compile, int threads) {
  std::vector<SummedBuffer> sums{{kGradients, tensor(kGradients)}};
  CompileOptions options = compile;
  options.starts = ranges_of_part(job_, trained_);
  if (job_.averages_statistics() && !trained_.statistics.members.empty())
    sums.push_back({kNewStatistics, tensor(kNewStatistics)});
  TW_RETURN_IF_ERROR(add_program(std::move(graph), data_->columns().size(), options, threads));
  sums_.emplace(std::move(sums), job_.distributed.exact,
                starts_of(programs_[0].session->executable()));
  return {};
}

// What ranks must have in common, for the sums of their gradients to be of one model and one step.
Status Trainer::compare_ranks(const CompileOptions& compile) {
  if (!ranks_.any()) return {};
  TW_ASSIGN(const std::string essentials, essentials_of(job_, model_hash_));
  std::map<std::string, std::string> items = items_of(essentials);
  items["steps"] = std::to_string(job_.steps);
  items["evaluation.every"] = std::to_string(job_.evaluation.every);
  items["numerics"] = std::string(name(compile.numerics));
  for (const State& s : states_) {
    std::string& layout = items["layout of " + s.name];
    for (const Parameter& p : s.members->members)
      layout += p.name + to_string(p.stored_shape()) + "@" + std::to_string(p.offset) + " ";
  }
  items["version"] = version();
  for (const passes::ResultRange& r : starts_of(session().executable()))
    items["collectives"] +=
        r.result + "[" + std::to_string(r.begin) + ":" + std::to_string(r.end) + "] ";
  cache::ContentHash hash;
  for (const auto& [key, value] : items) hash.add(key).add(value);
  common_hash_ = hash.hex().substr(0, 12);
  return ranks_.compare(items);
}

// Part n of the step: its samples go through the model.
Status Trainer::run_part(int64_t n, int64_t next) {
  const Batch& batch = batches_->at(step_ * job_.parts() + n, next);
  Program& p = programs_[0];
  std::copy(batch.columns.begin(), batch.columns.end(), p.inputs.begin());
  std::copy(batch.ids.begin(), batch.ids.end(), tensor("sample_ids").data_as<int64_t>());
  TW_RETURN_IF_ERROR(p.session->run(p.inputs, p.outputs));
  suspect_ |= p.session->met_not_finite();
  record_[static_cast<size_t>(n)] = static_cast<double>(*tensor("loss").data_as<float>());
  return {};
}

distributed::PartRange Trainer::own_parts() const {
  return distributed::parts_of_rank(ranks_.rank(), ranks_.size(), static_cast<int>(job_.parts()));
}

Status Trainer::begin_sums(distributed::Comm* comm) {
  return job_.is_cut() ? sums_->begin_step(own_parts(), static_cast<int>(job_.parts()), comm)
                       : Status();
}

// Those of this rank.
Status Trainer::run_parts(Collectives* recorder) {
  const int64_t parts = job_.parts();
  const distributed::PartRange run = own_parts();
  for (int64_t n = run.begin; n < run.end; ++n) {
    TW_ASSIGN(const std::vector<Tensor> written, sums_->begin_part());
    if (job_.distributed.exact)  // behind the loss
      std::copy(written.begin(), written.end(), programs_[0].outputs.begin() + 1);
    *tensor("part").data_as<int64_t>() = n - run.begin;
    Collectives* const sums = sums_->collectives();
    programs_[0].session->set_collectives(n + 1 == run.end && !sums ? recorder : sums);
    TW_RETURN_IF_ERROR(run_part(n, step_ * parts + (n + 1 < run.end ? n + 1 : parts + run.begin)));
    sums_->end_part();
  }
  return {};
}

// Adds up what ranks made of their parts. The last collective tells all of them how it went.
Status Trainer::sum_up(const std::function<bool()>& stop, const Status& mine) {
  double* flags = &record_[static_cast<size_t>(job_.parts())];
  flags[kStop] = stop && stop();
  if (!ranks_.any()) return mine;
  sums_->start_rest();
  flags[kFailed] = !mine.ok();
  flags[kSuspect] = suspect_;
  flags[kRegroup] = ranks_.group()->has_newcomers();
  TW_RETURN_IF_ERROR(ranks_.merge(record_, "the step's losses"));
  suspect_ = flags[kSuspect] > 0;
  return flags[kFailed] > 0 ? ranks_.agree(mine, "the step") : Status();
}

Status Trainer::run_update() {
  if (programs_.size() < 2) return {};
  TW_RETURN_IF_ERROR(programs_[1].session->run(programs_[1].inputs, programs_[1].outputs));
  suspect_ |= programs_[1].session->met_not_finite();
  return {};
}

Result<StepEnd> Trainer::step(const std::function<bool()>& stop, const Status& failed) {
  StepTimes times{.begun = now_nanoseconds()};
  if (ranks_.comm()) ranks_.comm()->take_times();
  *tensor("step").data_as<int64_t>() = step_;
  *tensor("lr").data_as<float>() = static_cast<float>(learning_rate(job_, step_));
  suspect_ = false;
  std::fill(record_.begin(), record_.end(), 0.0);
  // Other ranks make the step's calls, whatever this one met: so does it.
  const Status begun = begin_sums(ranks_.comm());
  Status status = failed.ok() ? begun : failed;
  if (status.ok()) status = job_.is_cut() ? run_parts() : run_part(0, step_ + 1);
  times.computed = now_nanoseconds();
  TW_RETURN_IF_ERROR(sum_up(stop, status));
  times.summed = now_nanoseconds();
  if (ranks_.comm()) times.communicating = ranks_.comm()->take_times().communicating;
  TW_RETURN_IF_ERROR(run_update());
  times.ended = now_nanoseconds();
  ++step_;
  const auto losses = record_.begin(), end = losses + job_.parts();
  last_loss_ = std::accumulate(losses, end, 0.0) / static_cast<double>(job_.parts());
  return StepEnd{*last_loss_, end[kStop] > 0, end[kRegroup] > 0, times};
}

Result<double> Trainer::time_alone(StepPart part) {
  const int64_t since = now_nanoseconds();
  if (part == StepPart::kComputing) {
    TW_RETURN_IF_ERROR(begin_sums(nullptr));
    TW_RETURN_IF_ERROR(job_.is_cut() ? run_parts() : run_part(0, step_ + 1));
    TW_RETURN_IF_ERROR(run_update());
  } else if (ranks_.comm()) {
    TW_RETURN_IF_ERROR(begin_sums(ranks_.comm()));
    sums_->start_rest();
    TW_RETURN_IF_ERROR(ranks_.merge(record_, "the step's losses"));
  }
  return static_cast<double>(now_nanoseconds() - since) * 1e-9;
}

namespace {

class StartTimes final : public Collectives {
 public:
  explicit StartTimes(StepTimeline& timeline) : timeline_(timeline) {}
  void start(int32_t, std::byte*, int64_t bytes) override {
    timeline_.starts.push_back(static_cast<double>(now_nanoseconds() - begun_) * 1e-9);
    timeline_.bytes.push_back(bytes);
  }
  double seconds() const { return static_cast<double>(now_nanoseconds() - begun_) * 1e-9; }

 private:
  StepTimeline& timeline_;
  const int64_t begun_ = now_nanoseconds();
};

}  // namespace

Result<StepTimeline> Trainer::timeline() {
  StepTimeline timeline;
  StartTimes times(timeline);
  TW_RETURN_IF_ERROR(begin_sums(nullptr));
  TW_RETURN_IF_ERROR(run_parts(&times));
  timeline.computed = times.seconds();
  TW_RETURN_IF_ERROR(run_update());
  timeline.ended = times.seconds();
  return timeline;
}

void Trainer::set_profiling(bool enabled) {
  for (const Program& p : programs_) p.session->set_profiling(enabled);
  if (ranks_.comm()) ranks_.comm()->set_tracing(enabled);
}

// The first thread's row has the kernels, the second one the calls.
std::string Trainer::trace_events(int64_t origin, int64_t clock_offset) const {
  const int64_t zero = origin - clock_offset;
  std::string events = trace_names(ranks_.rank(), "rank " + std::to_string(ranks_.rank()),
                                   "computing", "communicating");
  for (const Program& p : programs_)
    if (const std::string more = p.session->profile().trace_events(ranks_.rank(), zero);
        !more.empty())
      events += ",\n" + more;
  if (!ranks_.comm()) return events;
  for (const distributed::CallRecord& c : ranks_.comm()->trace())
    events += ",\n" + trace_event(c.what, "collective", {ranks_.rank(), 2}, c.begun - zero,
                                  c.ended - c.begun, std::to_string(c.bytes) + " bytes");
  return events;
}

Status Trainer::verify() const {
  const int64_t every = job_.distributed.verify;
  if (!ranks_.any() || every == 0 || step_ % every != 0) return {};
  std::vector<std::string> items;
  std::vector<int64_t> hashes;
  for (const StatePart& part : state())
    for (const Parameter& p : part.layout->members) {
      items.push_back("step " + std::to_string(step_ - 1) + ": '" + p.name + "' of the " +
                      part.prefix);
      const float* values = part.flat.data_as<float>() + p.offset;
      const std::string_view bytes(reinterpret_cast<const char*>(values),
                                   static_cast<size_t>(p.elements) * sizeof(float));
      const std::string hash = cache::ContentHash().add(bytes).hex();
      hashes.push_back(static_cast<int64_t>(std::stoull(hash.substr(0, 16), nullptr, 16)));
    }
  return ranks_.verify(items, hashes);
}

Status Trainer::share_state() {
  if (!ranks_.any()) return {};
  std::vector<double> steps(static_cast<size_t>(ranks_.size()));
  steps[static_cast<size_t>(ranks_.rank())] = static_cast<double>(step_);
  TW_RETURN_IF_ERROR(ranks_.merge(steps, "the steps that are done"));
  const auto furthest = std::max_element(steps.begin(), steps.end());
  const int source = static_cast<int>(furthest - steps.begin());
  std::vector<double> last(2);  // is there a loss; which
  if (ranks_.rank() == source && last_loss_) last = {1, *last_loss_};
  TW_RETURN_IF_ERROR(ranks_.merge(last, "the last step's loss"));
  for (const StatePart& part : state()) {
    const std::span bytes(static_cast<std::byte*>(part.flat.data()),
                          static_cast<size_t>(part.flat.bytes()));
    TW_RETURN_IF_ERROR(ranks_.comm()->broadcast(bytes, source, "the state's " + part.prefix));
  }
  step_ = static_cast<int64_t>(*furthest);
  last_loss_.reset();
  if (last[0] > 0) last_loss_ = last[1];
  return {};
}

// Gradients first, where they lie in memory: the others follow from them.
Status Trainer::check_finite() const {
  if (!suspect_) return {};
  std::vector<StatePart> parts = state();
  if (keeps_gradients(job_))
    parts.insert(parts.begin(), {kGradients, &trained_.parameters, tensor(kGradients)});
  for (const StatePart& part : parts)
    if (const auto found = find_not_finite(*part.layout, part.flat.data_as<float>()))
      return invalid(
          "step " + std::to_string(step_ - 1) + " makes " + describe(part.prefix, *found),
          job_.file.string());
  return {};
}

NamedTensors Trainer::gradients() const {
  return take_apart(trained_.parameters, tensor(kGradients).data_as<float>());
}
std::string Trainer::summary() const {
  std::string text = train::summary(trained_);
  if (!job_.distributed.exact) return text;
  const ExactPrice price = price_of_exact(static_cast<int>(job_.parts()), ranks_.size());
  const double more =
      static_cast<double>(trained_.parameters.elements) * sizeof(float) * (price.buffers - 1);
  char cost[128];
  std::snprintf(cost, sizeof cost, "\nexact sums: %.1f MB more memory%s", more * 1e-6,
                ranks_.size() > 1 ? " a rank" : "");
  text += cost;
  if (ranks_.size() > 1) {
    std::snprintf(cost, sizeof cost, ", %.2f times the bytes of all-reduces", price.traffic);
    text += cost;
  }
  return text;
}
static HostTensor transposed(const HostTensor& t) {
  HostTensor turned(t.dtype, {t.shape[1], t.shape[0]});
  for (int64_t i = 0; i < t.shape[0]; ++i)
    for (int64_t k = 0; k < t.shape[1]; ++k)
      turned.data<float>()[k * t.shape[0] + i] = t.data<float>()[i * t.shape[1] + k];
  return turned;
}
NamedTensors Trainer::initializers() const {
  NamedTensors all;
  for (const State& s : states_)
    if (s.name == kParameters || s.name == kStatistics)
      for (auto& t : take_apart(*s.members, tensor(s.name).data_as<float>()))
        all.push_back(std::move(t));
  NamedTensors copies;
  for (const auto& [copy, of] : transposed_copies_)
    for (const auto& [name, t] : all)
      if (name == of) copies.emplace_back(copy, transposed(t));
  std::move(copies.begin(), copies.end(), std::back_inserter(all));
  all.insert(all.end(), unchanged_copies_.begin(), unchanged_copies_.end());
  return all;
}
int64_t Trainer::samples_of_rank() const { return job_.part() * own_parts().count(); }
int64_t Trainer::parameter_count() const {
  int64_t n = 0;
  for (const Parameter& p : trained_.parameters.members) n += p.elements;
  return n;
}

std::vector<StatePart> Trainer::state() const {
  std::vector<StatePart> parts;
  for (const State& s : states_) parts.push_back({s.name, s.members, tensor(s.name)});
  return parts;
}

}  // namespace tilewright::train
