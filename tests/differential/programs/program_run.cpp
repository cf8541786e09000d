#include "tests/differential/programs/program_run.h"

#include <cstring>

#include "frontends/onnx/import_graph.h"
#include "tests/frontends/model_builder.h"

namespace tilewright {

Result<ir::Graph> import_model(const onnx_format::ModelProto& model) {
  TW_ASSIGN(const std::unique_ptr<OnnxModel> parsed, parse(model));
  return import_graph(*parsed);
}

ProgramRun::ProgramRun(std::shared_ptr<const Executable> executable, int threads,
                       int64_t dynamic_limit) {
  SessionOptions options;
  options.threads = threads;
  options.guard = threads == 1 ? Guard::kBehind : Guard::kNone;
  options.dynamic_limit = dynamic_limit;
  auto session = Session::create(std::move(executable), options);
  TW_CHECK(session.ok());
  session_ = std::move(*session);
}

Result<Tensors> ProgramRun::run(Tensors& inputs) {
  std::vector<Tensor> given, outputs;
  for (const HostTensor& t : inputs) {
    TW_ASSIGN(Tensor copy, Tensor::allocate(t.dtype, t.shape));
    if (!t.bytes.empty()) std::memcpy(copy.data(), t.bytes.data(), t.bytes.size());
    given.push_back(std::move(copy));
  }
  TW_RETURN_IF_ERROR(session_->run(given, outputs));
  for (size_t k = 0; k < inputs.size(); ++k)
    if (HostTensor& t = inputs[k]; !t.bytes.empty())
      std::memcpy(t.bytes.data(), given[k].data(), t.bytes.size());
  Tensors results;
  for (const Tensor& t : outputs) {
    HostTensor& copy = results.emplace_back(t.dtype(), t.shape());
    if (!copy.bytes.empty()) std::memcpy(copy.bytes.data(), t.data(), copy.bytes.size());
  }
  return results;
}

}  // namespace tilewright
