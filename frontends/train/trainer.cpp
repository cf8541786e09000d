// State lies in tensors that each step updates in place: no parameter is copied.
#include "frontends/train/trainer.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "frontends/onnx/write_trained.h"
#include "frontends/tensor_files/npz.h"
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
  TW_ASSIGN(parameters_, find_parameters(*model, job_.parameters));
  TW_ASSIGN(StepGraph step, build_step(*model, parameters_, job_));
  TW_ASSIGN(data_, open_dataset(job_.data, step.wanted));
  TW_ASSIGN(Order order, Order::create(job_, data_->size()));
  order_ = std::make_unique<Order>(std::move(order));
  columns_ = data_->columns().size();
  for (const SampleInfo& c : data_->columns()) {
    Shape shape = c.shape;
    shape.insert(shape.begin(), job_.batch);
    TW_ASSIGN(Tensor t, Tensor::allocate(c.dtype, shape));
    inputs_.push_back(std::move(t));
  }
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
  const int64_t since = now_nanoseconds();
  TW_ASSIGN(const std::shared_ptr<Executable> executable,
            compile_in_memory(std::move(step.graph), compile));
  TW_ASSIGN(session_, Session::create(executable, {.threads = threads, .seed = job_.seed}));
  compile_seconds_ = static_cast<double>(now_nanoseconds() - since) * 1e-9;
  return {};
}

// The samples of the step, and the rates that it has.
Status Trainer::load_batch() {
  const std::vector<int64_t> ids = order_->batch(step_);
  data_->read(ids, {inputs_.data(), columns_});
  Rates rates = rates_at(job_.optimizer, step_);
  rates.lr = learning_rate(job_, step_);
  const double values[kRates] = {rates.lr, rates.correction1, rates.correction2};
  for (size_t k = 0; k < kRates; ++k)
    *inputs_[columns_ + k].data_as<float>() = static_cast<float>(values[k]);
  return {};
}

Result<double> Trainer::step() {
  TW_RETURN_IF_ERROR(load_batch());
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

Status train(Trainer& trainer, const Job& job,
             const std::function<void(int64_t step, double loss)>& progress) {
  std::ofstream log;
  if (!job.log.empty()) {
    log.open(job.log);
    if (!log) return io_error("cannot be written", job.log.string());
  }
  for (int64_t step = trainer.steps_done(); step < job.steps; ++step) {
    const int64_t since = now_nanoseconds();
    TW_ASSIGN(const double loss, trainer.step());
    const double seconds = static_cast<double>(now_nanoseconds() - since) * 1e-9;
    if (step == 0 && !job.gradients.empty())
      TW_RETURN_IF_ERROR(write_npz(job.gradients, trainer.gradients()));
    if (log.is_open()) {
      // What two runs share comes first.
      log << nlohmann::ordered_json{{"step", step},
                                    {"loss", loss},
                                    {"lr", learning_rate(job, step)},
                                    {"samples_per_second",
                                     static_cast<double>(job.batch) / seconds}}
                 .dump()
          << "\n";
      if (!log.flush()) return io_error("cannot be written", job.log.string());
    }
    if (!std::isfinite(loss))
      return invalid("the loss of step " + std::to_string(step) + " is " + std::to_string(loss),
                     job.file.string());
    if (progress) progress(step, loss);
  }
  return job.trained.empty()
             ? Status()
             : write_with_initializers(job.model, trainer.parameters(), job.trained);
}

}  // namespace tilewright::train
