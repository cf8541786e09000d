// What to train, on what, how, and where results go: a job file in TOML.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/result.h"

namespace tilewright::train {

// kArrays: arrays of an .npz, whose rows are samples. kTokens: bytes of a text; samples are pieces of
// `length` bytes, each one's target the byte behind it. kLibsvm: sparse rows of a text file for the only
// input of the model, f32 [features], each with a label.
enum class DataKind { kArrays, kTokens, kLibsvm };
struct DataJob {
  DataKind kind = DataKind::kArrays;
  std::filesystem::path file;
  // kArrays: the array of each input of the model, and that of the targets; empty: the loss needs none.
  std::map<std::string, std::string> inputs;
  std::string targets;
  // kTokens: the input of the model, and how long its pieces are; apart: none begins within another.
  std::string input;
  int64_t length = 0;
  bool apart = false;
  // kLibsvm: the labels in the file, by the number that is the target of each; empty: they are targets.
  std::vector<double> labels;
  // i64 [steps, batch], numbers of samples; empty: shuffled anew for each epoch.
  std::filesystem::path order;
};

// Names and meaning are those of PyTorch's optimisers (torch.optim).
struct OptimizerJob {
  std::string name;  // sgd, adagrad, rmsprop, adam, adamw or lamb
  double lr = 0, momentum = 0, alpha = 0.99, eps = 0, weight_decay = 0;
  double betas[2] = {0.9, 0.999};
  bool nesterov = false;
  std::vector<std::string> no_decay;  // patterns of parameters that weight_decay leaves alone
  // Bounds of the norm of all gradients together, and of each element; 0: none.
  double clip_norm = 0, clip_value = 0;
};

// What becomes of optimizer.lr (schedule.h).
enum class ScheduleKind { kConstant, kStep, kCosine };
struct ScheduleJob {
  ScheduleKind kind = ScheduleKind::kConstant;
  int64_t warmup = 0;  // steps
  // kStep: after so many steps each, times gamma.
  int64_t every = 1;
  double gamma = 0.1;
  // kCosine: where it ends.
  double least = 0;
};

// State is written to the folder after so many steps each, and at the end; an empty folder: never.
struct CheckpointJob {
  std::filesystem::path folder;
  int64_t every = 0;
};

// Held-back samples, each of which counts once after so many steps each, and at the end; an empty
// data.file: there are none.
struct EvaluationJob {
  DataJob data;
  int64_t every = 0;
};

// How the ranks of a run go together; nothing of it but `exact` changes what is trained.
struct DistributedJob {
  std::string engine;  // gloo, openmpi or mpich; empty: that of the launcher
  // Sums follow one tree over the parts of a step, so that they have the same bits on any number of ranks.
  bool exact = false;
  double deadline = 60;  // of each collective, seconds
  // After so many steps each, ranks compare hashes of all that steps update; 0: never.
  int64_t verify = 0;
  // Gradients are summed over ranks in ranges of at least so many bytes; 0: by their size.
  int64_t bucket_bytes = 0;
};

// Paths are relative to the job file's folder.
struct Job {
  std::filesystem::path file, model;
  std::string loss;  // cross_entropy, mean_squares, logistic, or output: the model's own
  // Of the output: the dimension of the logits of cross_entropy; -1: the last one.
  int64_t class_axis = -1;
  // Patterns (* and ?) of initialisers to train, and of those of them that stay as they are.
  std::vector<std::string> parameters{"*"}, exclude;
  // Of BatchNormalization: those of the batch, or the running ones, which then stay as they are.
  std::string statistics = "batch";
  // A step's samples go through the model in `accumulate` equal parts, whose gradients are averaged: one after the
  // other, and by several ranks at a time. 0: one part, or as many as there are ranks.
  int64_t steps = 0, batch = 0, accumulate = 0;
  int64_t parts() const { return accumulate > 0 ? accumulate : 1; }
  int64_t part() const { return batch / parts(); }  // samples
  // Tells whether several ranks execute the job. The trainer sets it.
  bool has_ranks = false;
  // Is a step cut into a program for each part and one that updates?
  bool is_cut() const { return parts() > 1 || has_ranks || distributed.exact; }
  // Do all parts of a step start from the same running statistics, which then are averaged like gradients?
  // Otherwise each part starts from those of the one before.
  bool averages_statistics() const { return has_ranks || distributed.exact; }
  uint64_t seed = 1;
  DataJob data;
  OptimizerJob optimizer;
  ScheduleJob schedule;
  CheckpointJob checkpoint;
  EvaluationJob evaluation;
  DistributedJob distributed;
  // Files to write; empty: not written.
  std::filesystem::path log, gradients, trained, report;
  // Values of the model that are the outputs of `trained`; empty: the model's own.
  std::vector<std::string> outputs;
};

// A key that a job file may have, as it is asked for. `words` and `required` are of this job: another kind of
// data or another optimiser has other keys.
struct JobKey {
  enum class Kind : uint8_t {
    kTable,
    kText,
    kWord,  // one of `words`
    kFile,  // relative to the job file's folder
    kBool,
    kInteger,  // from `least`
    kNumber,   // in [least, below)
    kPair,     // of such numbers
    kTexts,
    kNumbers,
    kNames,  // a table of texts
  };
  std::string name;  // "steps", "optimizer.lr"
  Kind kind = Kind::kText;
  bool required = false;
  double least = 0, below = 0;
  std::vector<std::string> words = {};
};

// Errors (kInvalid, with the line): a key that there is not, a missing one, a value of another kind
// or out of its range. keys: all that were asked for are added there, also where there is an error; null: nobody
// wants to know.
Result<Job> read_job(const std::filesystem::path& path, std::vector<JobKey>* keys = nullptr);

// Does the name match a pattern in which * is any text and ? any letter?
bool matches(const std::string& pattern, const std::string& name);

}  // namespace tilewright::train
