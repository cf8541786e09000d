// Models of the generators of this folder as graphs, and sessions that run them again and again.
#pragma once

#include "frontends/onnx/onnx.pb.h"
#include "runtime/session.h"
#include "tests/ops/graph_oracle.h"

namespace tilewright {

// The graph of a model, through the checks of a file.
Result<ir::Graph> import_model(const onnx_format::ModelProto& model);

// A session with as many threads. With one, temporaries lie at pages that may not be touched and hold
// no numbers before they are written and after their last use.
class ProgramRun {
 public:
  // `dynamic_limit`: as in SessionOptions.
  ProgramRun(std::shared_ptr<const Executable> executable, int threads,
             int64_t dynamic_limit = int64_t{1} << 30);
  // What one more run gives. `inputs` is what their memory holds afterwards: updates, or the same.
  Result<Tensors> run(Tensors& inputs);

 private:
  std::unique_ptr<Session> session_;
};

}  // namespace tilewright
