#include "tests/fuzz/guarded_run.h"

#include <cstring>
#include <map>

#include "runtime/session.h"
#include "tests/fuzz/tried.h"
#include "tests/ops/graph_oracle.h"
#include "tests/ops/guarded_memory.h"

namespace tilewright {
namespace {

constexpr int64_t kMostElements = 1 << 20;  // of an operand
constexpr int64_t kMostRunBytes = 256
                                  << 20;  // of a result, and of buffers whose sizes the run decides

// Whether no result with constant extents is larger than a fuzzer may wait for.
bool is_small(const Session& session) {
  for (const ValueInfo& info : session.outputs()) {
    int64_t bytes = byte_size(info.dtype);
    for (const int64_t d : info.extents) {
      if (d <= 0) continue;
      if (bytes > kMostRunBytes / d) return false;
      bytes *= d;
    }
  }
  return true;
}

// Operands of small extents for each symbol, at the end of their pages.
bool fill_inputs(const Session& session, std::mt19937_64& random,
                 std::vector<GuardedMemory>& memory, std::vector<Tensor>& inputs,
                 NamedTensors& given) {
  std::map<std::string, int64_t> symbols;
  for (const ValueInfo& info : session.inputs()) {
    Shape shape;
    for (size_t d = 0; d < info.extents.size(); ++d)
      shape.push_back(info.extents[d] >= 0
                          ? info.extents[d]
                          : symbols.emplace(info.dim_names[d], static_cast<int64_t>(random() % 6))
                                .first->second);
    const auto count = element_count(shape);
    if (!count || *count > kMostElements) return false;
    // Scalars stay small: they may be numbers of iterations.
    HostTensor values = is_integer(info.dtype) && !shape.empty() && random() % 3 == 0
                            ? random_bytes(info.dtype, shape, random)
                            : random_tensor(info.dtype, shape, random);
    memory.emplace_back(values.bytes.size(), random() % 2 ? Place::kAtEnd : Place::kAlignedAtEnd);
    if (!values.bytes.empty())
      std::memcpy(memory.back().data(), values.bytes.data(), values.bytes.size());
    inputs.push_back(Tensor::borrow(info.dtype, shape, memory.back().data()));
    given.emplace_back(info.name, std::move(values));
  }
  return true;
}

}  // namespace

GuardedRun run_guarded(const OnnxModel& model, const CompileOptions& options,
                       std::mt19937_64& random) {
  GuardedRun run;
  auto executable = compile_in_memory(model, {}, options);
  if (!executable.ok()) return judge(executable.error()), run;
  SessionOptions session_options;
  session_options.threads = 1;
  session_options.dynamic_limit = kMostRunBytes;
  session_options.guard = random() % 2 ? Guard::kBehind : Guard::kBefore;
  auto session = Session::create(*executable, session_options);
  if (!session.ok()) return judge(session.error()), run;
  if (!is_small(**session)) return run;
  std::vector<GuardedMemory> memory;
  std::vector<Tensor> inputs, outputs;
  if (!fill_inputs(**session, random, memory, inputs, run.inputs)) return run;
  if (const Status s = (*session)->run(inputs, outputs); !s.ok()) return judge(s.error()), run;
  for (size_t i = 0; i < outputs.size(); ++i) {
    HostTensor h(outputs[i].dtype(), outputs[i].shape());
    if (!h.bytes.empty()) std::memcpy(h.bytes.data(), outputs[i].data(), h.bytes.size());
    run.outputs.emplace_back((*session)->outputs()[i].name, std::move(h));
  }
  return run;
}

}  // namespace tilewright
