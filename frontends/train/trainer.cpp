// State lies in tensors that each step updates in place: no parameter is copied.
#include "frontends/train/trainer.h"

#include <algorithm>
#include <cstring>

#include "frontends/train/job_essentials.h"
#include "frontends/train/optimizers.h"
#include "frontends/train/schedule.h"
#include "frontends/train/step_graph.h"

namespace tilewright::train {

namespace {

// Inputs behind the data: rates, then parameters and buffers. Outputs.
constexpr size_t kRates = 3, kLoss = 0, kGradients = 1;

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
  TW_ASSIGN(const std::unique_ptr<OnnxModel> model, open_model(job_.model.string()));
  model_hash_ = hash_of(*model);
  TW_ASSIGN(parameters_, find_parameters(*model, job_.parameters));
  TW_ASSIGN(StepGraph step, build_step(*model, parameters_, job_));
  TW_ASSIGN(data_, open_dataset(job_.data, step.wanted));
  TW_ASSIGN(Order order, Order::create(job_, data_->size()));
  TW_ASSIGN(batches_, Batches::create(*data_, std::move(order), job_.batch));
  columns_ = data_->columns().size();
  inputs_.resize(columns_);  // a batch's
  const Shape flat{parameters_.elements};
  for (const Shape& shape : {Shape{}, Shape{}, Shape{}, flat}) {
    TW_ASSIGN(Tensor t, zeros(DType::kFloat32, shape));
    inputs_.push_back(std::move(t));
  }
  const HostTensor start = initial_values(*model, parameters_);
  std::memcpy(inputs_.back().data(), start.bytes.data(), start.bytes.size());
  for (const Shape& shape : {Shape{}, flat}) {
    TW_ASSIGN(Tensor t, zeros(DType::kFloat32, shape));
    outputs_.push_back(std::move(t));
  }
  for (size_t k = 0; k < step.states.size(); ++k) {
    TW_ASSIGN(Tensor t, zeros(DType::kFloat32, flat));
    inputs_.push_back(std::move(t));
  }
  states_ = step.states;
  const int64_t since = now_nanoseconds();
  TW_ASSIGN(const std::shared_ptr<Executable> executable,
            compile_in_memory(std::move(step.graph), compile));
  // Not 0, which would draw random numbers that no other run has.
  const uint64_t seed = std::max<uint64_t>(job_.seed, 1);
  TW_ASSIGN(session_, Session::create(executable, {.threads = threads, .seed = seed}));
  compile_seconds_ = static_cast<double>(now_nanoseconds() - since) * 1e-9;
  if (job_.evaluation.data.file.empty()) return {};
  TW_ASSIGN(evaluator_, Evaluator::create(*model, {&parameters_}, {inputs_[columns_ + kRates]},
                                          job_, step.wanted, compile, threads));
  return {};
}

// The samples of the step, and the rates that it has.
void Trainer::load_batch() {
  const std::vector<Tensor>& batch = batches_->at(step_);
  std::copy(batch.begin(), batch.end(), inputs_.begin());
  Rates rates = rates_at(job_.optimizer, step_);
  rates.lr = learning_rate(job_, step_);
  const double values[kRates] = {rates.lr, rates.correction1, rates.correction2};
  for (size_t k = 0; k < kRates; ++k)
    *inputs_[columns_ + k].data_as<float>() = static_cast<float>(values[k]);
}

Result<double> Trainer::step() {
  load_batch();
  TW_RETURN_IF_ERROR(session_->run(inputs_, outputs_));
  ++step_;
  return static_cast<double>(*outputs_[kLoss].data_as<float>());
}

NamedTensors Trainer::gradients() const {
  return take_apart(parameters_, outputs_[kGradients].data_as<float>());
}
NamedTensors Trainer::parameters() const {
  return take_apart(parameters_, inputs_[columns_ + kRates].data_as<float>());
}
int64_t Trainer::parameter_count() const {
  int64_t n = 0;
  for (const Parameter& p : parameters_.members) n += p.elements;
  return n;
}

std::vector<StatePart> Trainer::state() const {
  std::vector<StatePart> parts{{"parameters", &parameters_, inputs_[columns_ + kRates]}};
  for (size_t k = 0; k < states_.size(); ++k)
    parts.push_back({states_[k], &parameters_, inputs_[columns_ + kRates + 1 + k]});
  return parts;
}

void Trainer::go_on_at(int64_t step) {
  step_ = step;
  session_->set_next_run(static_cast<uint64_t>(step));
}

}  // namespace tilewright::train
