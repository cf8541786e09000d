// State lies in tensors that each step updates in place: no parameter is copied.
#include "frontends/train/trainer.h"

#include <algorithm>
#include <cstring>

#include "frontends/train/job_essentials.h"
#include "frontends/train/schedule.h"

namespace tilewright::train {

namespace {

constexpr size_t kLoss = 0, kGradients = 1;  // outputs

Result<Tensor> zeros(DType dtype, const Shape& shape) {
  TW_ASSIGN(Tensor t, Tensor::allocate(dtype, shape));
  if (t.bytes() > 0) std::memset(t.data(), 0, static_cast<size_t>(t.bytes()));
  return t;
}

}  // namespace

Result<std::unique_ptr<Trainer>> Trainer::create(const Job& job, const CompileOptions& compile,
                                                 int threads) {
  std::unique_ptr<Trainer> trainer(new Trainer(job));
  TW_RETURN_IF_ERROR(trainer->prepare(compile, threads));
  return trainer;
}

Status Trainer::prepare(const CompileOptions& compile, int threads) {
  TW_ASSIGN(const std::unique_ptr<OnnxModel> model, open_model(job_.model.string(), true));
  model_hash_ = hash_of(*model);
  TW_ASSIGN(trained_, find_trained(*model, job_.parameters));
  TW_ASSIGN(StepGraph step, build_step(*model, trained_, job_));
  TW_ASSIGN(data_, open_dataset(job_.data, step.wanted));
  TW_ASSIGN(Order order, Order::create(job_, data_->size()));
  TW_ASSIGN(batches_, Batches::create(*data_, std::move(order), job_.batch));
  columns_ = data_->columns().size();
  draws_ = step.draws;
  states_ = std::move(step.states);
  TW_RETURN_IF_ERROR(add_inputs(*model));
  for (const Shape& shape : {Shape{}, Shape{trained_.parameters.elements}}) {
    TW_ASSIGN(Tensor t, zeros(DType::kFloat32, shape));
    outputs_.push_back(std::move(t));
  }
  const int64_t since = now_nanoseconds();
  TW_ASSIGN(const std::shared_ptr<Executable> executable,
            compile_in_memory(std::move(step.graph), compile));
  TW_ASSIGN(session_, Session::create(executable, {.threads = threads}));
  compile_seconds_ = static_cast<double>(now_nanoseconds() - since) * 1e-9;
  if (job_.evaluation.data.file.empty()) return {};
  // It reads the tensors that steps write.
  std::vector<const Parameters*> members;
  std::vector<Tensor> flats;
  for (const StatePart& part : state())
    if (part.prefix == kParameters || part.prefix == kStatistics)
      members.push_back(part.layout), flats.push_back(part.flat);
  TW_ASSIGN(evaluator_,
            Evaluator::create(*model, members, flats, job_, step.wanted, compile, threads));
  return {};
}

// In the order of the graph's.
Status Trainer::add_inputs(const OnnxModel& model) {
  const auto add = [&](DType dtype, const Shape& shape) -> Status {
    TW_ASSIGN(Tensor t, zeros(dtype, shape));
    inputs_.push_back(std::move(t));
    return {};
  };
  inputs_.resize(columns_);  // a batch's
  if (draws_) TW_RETURN_IF_ERROR(add(DType::kInt64, {job_.batch}));
  TW_RETURN_IF_ERROR(add(DType::kInt64, {}));
  TW_RETURN_IF_ERROR(add(DType::kFloat32, {}));
  for (const State& s : states_) {
    TW_RETURN_IF_ERROR(add(DType::kFloat32, {s.members->elements}));
    if (s.name != kParameters && s.name != kStatistics) continue;
    const HostTensor start = initial_values(model, *s.members);
    std::memcpy(inputs_.back().data(), start.bytes.data(), start.bytes.size());
  }
  return {};
}

// The samples of the step, and the rate that it has.
void Trainer::load_batch() {
  const Batch& batch = batches_->at(step_);
  std::copy(batch.columns.begin(), batch.columns.end(), inputs_.begin());
  if (draws_) std::copy(batch.ids.begin(), batch.ids.end(), inputs_[columns_].data_as<int64_t>());
  *inputs_[step_input()].data_as<int64_t>() = step_;
  *inputs_[step_input() + 1].data_as<float>() = static_cast<float>(learning_rate(job_, step_));
}

Result<double> Trainer::step() {
  load_batch();
  TW_RETURN_IF_ERROR(session_->run(inputs_, outputs_));
  ++step_;
  return static_cast<double>(*outputs_[kLoss].data_as<float>());
}

NamedTensors Trainer::gradients() const {
  return take_apart(trained_.parameters, outputs_[kGradients].data_as<float>());
}
NamedTensors Trainer::initializers() const {
  NamedTensors all;
  for (size_t k = 0; k < states_.size(); ++k)
    if (states_[k].name == kParameters || states_[k].name == kStatistics)
      for (auto& t : take_apart(*states_[k].members, inputs_[first_state() + k].data_as<float>()))
        all.push_back(std::move(t));
  return all;
}
int64_t Trainer::parameter_count() const {
  int64_t n = 0;
  for (const Parameter& p : trained_.parameters.members) n += p.elements;
  return n;
}

std::vector<StatePart> Trainer::state() const {
  std::vector<StatePart> parts;
  for (size_t k = 0; k < states_.size(); ++k)
    parts.push_back({states_[k].name, states_[k].members, inputs_[first_state() + k]});
  return parts;
}

}  // namespace tilewright::train
