#include "frontends/train/data.h"

#include "frontends/train/data_kinds.h"

namespace tilewright::train {

Result<std::unique_ptr<Dataset>> open_dataset(const DataJob& job, const Wanted& wanted) {
  switch (job.kind) {
    case DataKind::kArrays: return open_arrays(job, wanted);
    case DataKind::kTokens: return open_tokens(job, wanted);
    case DataKind::kLibsvm: return open_libsvm(job, wanted);
  }
  return internal_error("a kind of data that there is not");
}

}  // namespace tilewright::train
