// What of a job decides what its run computes, so that a checkpoint is never used by another job.
#pragma once

#include <map>
#include <string>

#include "frontends/onnx/model.h"
#include "frontends/train/job.h"
#include "runtime/core/result.h"

namespace tilewright::train {

// Of all that the model was read from.
std::string hash_of(const OnnxModel& model);

// A JSON object of keys as a job has them; files are there by their contents. Not there: what may change
// from run to run, as outputs, and the number of steps where no rate depends on it. Reads the job's data
// whole. Errors: kIo.
Result<std::string> essentials_of(const Job& job, const std::string& model_hash);

// Returns the value of each key, serialised as JSON.
std::map<std::string, std::string> items_of(const std::string& essentials);

// "optimizer.lr was 0.1 and is 0.05", for the first few keys; empty: none differs. `was` comes from a
// file and may be anything.
std::string difference(const std::string& was, const std::string& is);

}  // namespace tilewright::train
