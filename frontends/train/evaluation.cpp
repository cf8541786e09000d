#include "frontends/train/evaluation.h"

#include <algorithm>

namespace tilewright::train {

Result<std::unique_ptr<Evaluator>> Evaluator::create(const OnnxModel& model,
                                                     const std::vector<const Parameters*>& layouts,
                                                     const std::vector<Tensor>& flats,
                                                     const Job& job, const Wanted& wanted,
                                                     const CompileOptions& compile, int threads) {
  auto e = std::make_unique<Evaluator>();
  e->batch_ = job.part();
  TW_ASSIGN(e->data_, open_dataset(job.evaluation.data, wanted));
  TW_ASSIGN(EvalGraph eval, build_evaluation(model, layouts, job, e->data_->size() % job.part()));
  e->counts_hits_ = eval.counts_hits;
  for (const int64_t extent : wanted.targets.shape) e->positions_ *= extent;
  for (const SampleInfo& c : e->data_->columns()) {
    Shape shape = c.shape;
    shape.insert(shape.begin(), job.part());
    TW_ASSIGN(Tensor t, Tensor::allocate(c.dtype, shape));
    e->inputs_.push_back(std::move(t));
  }
  e->inputs_.insert(e->inputs_.end(), flats.begin(), flats.end());
  TW_ASSIGN(const std::shared_ptr<Executable> executable,
            compile_in_memory(std::move(eval.graph), compile));
  TW_ASSIGN(e->session_, Session::create(executable, {.threads = threads, .seed = 1}));
  return e;
}

// The last batch is filled up with its last sample; its own outputs leave these rows out. Losses are added up in the
// order of batches, whatever rank has them.
Result<HeldBack> Evaluator::run(const Ranks& ranks) {
  const int64_t samples = data_->size(), batches = (samples + batch_ - 1) / batch_;
  const size_t outputs = counts_hits_ ? 2 : 1, columns = data_->columns().size();
  std::vector<double> found(static_cast<size_t>(batches) * outputs);
  std::vector<int64_t> ids(static_cast<size_t>(batch_));
  const auto run_batch = [&](int64_t batch) -> Status {
    const int64_t first = batch * batch_, here = std::min(batch_, samples - first);
    for (int64_t k = 0; k < batch_; ++k)
      ids[static_cast<size_t>(k)] = first + std::min(k, here - 1);
    data_->read(ids, {inputs_.data(), columns});
    // Each batch draws the same random numbers in every evaluation.
    session_->set_next_run(static_cast<uint64_t>(batch));
    TW_RETURN_IF_ERROR(session_->run(inputs_, outputs_));
    const size_t at = here < batch_ ? outputs : 0, place = static_cast<size_t>(batch) * outputs;
    found[place] = static_cast<double>(*outputs_[at].data_as<float>()) * static_cast<double>(here);
    if (counts_hits_) found[place + 1] = static_cast<double>(*outputs_[at + 1].data_as<int64_t>());
    return {};
  };
  Status mine;
  for (int64_t b = ranks.rank(); b < batches && mine.ok(); b += ranks.size()) mine = run_batch(b);
  TW_RETURN_IF_ERROR(ranks.agree(mine, "the evaluation"));
  TW_RETURN_IF_ERROR(ranks.merge(found, "the evaluation"));
  double loss = 0, hits = 0;
  for (size_t k = 0; k < found.size(); k += outputs) {
    loss += found[k];
    if (counts_hits_) hits += found[k + 1];
  }
  HeldBack all{loss / static_cast<double>(samples), {}};
  if (counts_hits_) all.accuracy = hits / static_cast<double>(samples * positions_);
  return all;
}

}  // namespace tilewright::train
