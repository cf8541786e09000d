// The tensors of a model that training changes, side by side in one flat buffer: an update is one
// kernel over it, what is sent to other processes a range of it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/onnx/model.h"
#include "frontends/train/job.h"
#include "runtime/core/host_tensor.h"
#include "runtime/core/result.h"

namespace tilewright::train {

struct Parameter {
  std::string name;
  Shape shape;
  int64_t offset = 0;  // of its first element in the buffer
  int64_t elements = 0;
  // Its dimensions as they lie in the buffer, outermost first; empty: row-major (choose_orders).
  std::vector<int> order;

  Shape stored_shape() const;
};
struct Parameters {
  // By offset, each at a multiple of 64 bytes; what lies between them is 0 and stays so.
  std::vector<Parameter> members;
  int64_t elements = 0;  // of the buffer, f32
};
// Sets offsets by the order of the members, and the size of the buffer.
void lay_out(Parameters& parameters);

// What steps change of a model: by the optimiser, and as running means of what batches have.
struct Trained {
  Parameters parameters;
  Parameters statistics;  // means and variances of BatchNormalization nodes; may be empty
  // Float initialisers that are not trained, by what they are instead (left_alone.h).
  std::map<std::string_view, std::vector<std::string>> left_alone;
  std::string note;  // what of the model may surprise who trains it; may be empty
};
// "trains 3 parameters of 29 elements: 'f.bias', 'f.weight', 't'; left alone: buffers ('mean', 'std'), constants ('c')"
std::string summary(const Trained& trained);

// The float initialisers whose names match a pattern of the job's `parameters` and none of its `exclude`, in the order
// of names, other than statistics, which are found by their use. What is left alone by default (left_alone.h) is taken
// only where a pattern is its very name. Errors: a pattern that matches none, or has no * or ? and is a statistic's
// name; a parameter of another element type than f32, or whose elements are not all finite; a statistic that is scale
// or bias, too.
Result<Trained> find_trained(const OnnxModel& model, const Job& job);

// A parameter's elements, row-major, into its part of a flat buffer, and out of it.
void put(const Parameter& p, const float* values, float* flat);
void get(const Parameter& p, const float* flat, float* values);

// Copies the model's initialisers into a zero-filled flat buffer.
void put_initial_values(const OnnxModel& model, const Parameters& parameters, float* flat);

// The first element of a flat buffer that is an infinity or NaN: what it is, and whose. Nothing: all are finite.
struct NotFinite {
  std::string name;
  float value = 0;
};
std::optional<NotFinite> find_not_finite(const Parameters& parameters, const float* flat);
// "the gradient of 'w' NaN", or "parameter 'w' infinite"; `buffer`: its name (step_update.h).
std::string describe(const std::string& buffer, const NotFinite& found);
// Returns whether every element is finite.
bool all_finite(const float* values, int64_t count);

// Each parameter's part of a flat buffer, as a tensor of its own.
NamedTensors take_apart(const Parameters& parameters, const float* flat);

}  // namespace tilewright::train
