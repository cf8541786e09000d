#include "frontends/train/data.h"

#include "frontends/tensor_files/npz.h"
#include "frontends/train/data_kinds.h"

namespace tilewright::train {

Result<std::map<std::string, Shape>> sample_shapes(const DataJob& job,
                                                   const std::vector<std::string>& inputs) {
  std::map<std::string, Shape> shapes;
  if (job.kind == DataKind::kTokens) shapes[job.input] = {job.length};
  if (job.kind != DataKind::kArrays) return shapes;
  TW_ASSIGN(const NamedTensors arrays, read_npz(job.file));
  for (const std::string& input : inputs) {
    const auto named = job.inputs.find(input);
    for (const auto& [name, array] : arrays)
      if (name == (named == job.inputs.end() ? input : named->second) && !array.shape.empty())
        shapes[input] = Shape(array.shape.begin() + 1, array.shape.end());
  }
  return shapes;
}

Result<std::unique_ptr<Dataset>> open_dataset(const DataJob& job, const Wanted& wanted) {
  switch (job.kind) {
    case DataKind::kArrays: return open_arrays(job, wanted);
    case DataKind::kTokens: return open_tokens(job, wanted);
    case DataKind::kLibsvm: return open_libsvm(job, wanted);
  }
  return internal_error("a kind of data that there is not");
}

}  // namespace tilewright::train
