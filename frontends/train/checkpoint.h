// What a run needs to go on after a step, in one file: an .npz, which NumPy reads too, with the arrays
// PART/NAME (f32, in a parameter's own shape, whatever lies around it in memory), `step` (i64, how many
// are done), `job` (its essentials, as text in bytes) and `hash` (of all the others).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "frontends/train/parameters.h"
#include "runtime/core/host_tensor.h"
#include "runtime/core/result.h"
#include "runtime/tensor.h"

namespace tilewright::train {

// One flat buffer of a trainer's state, f32 [layout->elements]. prefix: "parameters", "mean"; without '/'.
struct StatePart {
  std::string prefix;
  const Parameters* layout = nullptr;
  Tensor flat;
};

struct Checkpoint {
  int64_t step = 0;     // how many were done
  std::string job;      // job_essentials.h
  NamedTensors arrays;  // "PART/NAME"
};

// A copy of the state. Errors: kLimit for more than an archive may hold.
Result<Checkpoint> take_checkpoint(int64_t step, std::string job,
                                   const std::vector<StatePart>& parts);
// Into the parts, all of them or none. Errors: an array that is missing, of another shape, or too many.
Status restore(const Checkpoint& checkpoint, const std::vector<StatePart>& parts);

// Readers see the old file or the new one, whole, even if the machine stops meanwhile: it is written
// beside `path` (partial_file.h), flushed to the disk and renamed. After an error (kIo) nothing is left of it.
Status write_checkpoint(const std::filesystem::path& path, Checkpoint checkpoint);
// Untrusted. Errors (kIo, kInvalid ...) name the file: what is not there, damaged, not as hashed, or not finite.
Result<Checkpoint> read_checkpoint(const std::filesystem::path& path);

}  // namespace tilewright::train
