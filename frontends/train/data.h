// Where samples come from: files that are mapped or held in memory, and rows of batches from them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "frontends/train/job.h"
#include "runtime/core/host_tensor.h"
#include "runtime/core/result.h"
#include "runtime/tensor.h"

namespace tilewright::train {

// One input of a step, or its targets: element type, and extents of a sample.
struct SampleInfo {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  // Samples are numbered from 0.
  virtual int64_t size() const = 0;
  // What a sample consists of: the inputs in the model's order, then the targets where there are any.
  virtual const std::vector<SampleInfo>& columns() const = 0;
  // Writes the samples into the rows of [ids.size(), columns()[k].shape...] for each column k.
  virtual void read(std::span<const int64_t> ids, std::span<const Tensor> rows) const = 0;
};

// What the model wants: its inputs, and the targets of its loss (last), as types of one sample.
struct Wanted {
  std::vector<SampleInfo> inputs;
  bool has_targets = false;
  SampleInfo targets;
  int64_t classes = 0;  // targets are numbers below it; 0: they are not
};
// What the data says of the extents of a sample before anybody knows what is wanted, by input of the
// model: for models that leave them open. Errors: a file that cannot be read.
Result<std::map<std::string, Shape>> sample_shapes(const DataJob& job,
                                                   const std::vector<std::string>& inputs);
// Errors: a file that cannot be read, arrays that are missing, of another shape or type than the model
// wants, or of different lengths; targets that are no class.
Result<std::unique_ptr<Dataset>> open_dataset(const DataJob& job, const Wanted& wanted);

}  // namespace tilewright::train
