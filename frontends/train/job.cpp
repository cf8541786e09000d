// What the keys of a job file mean, and what they may be.
#include "frontends/train/job.h"

#include "frontends/train/job_table.h"

namespace tilewright::train {

namespace {

constexpr double kMostRate = 1e6;

void read_data(Table& t, DataJob& data) {
  std::string kind;
  t.read_word("kind", kind, {"arrays", "tokens", "libsvm"});
  t.read("file", data.file, true);
  if (kind == "tokens") {
    data.kind = DataKind::kTokens;
    t.read("input", data.input, true);
    t.read("length", data.length, 1, true);
  } else if (kind == "libsvm") {
    data.kind = DataKind::kLibsvm;
    t.read("labels", data.labels);
  } else {
    t.read("inputs", data.inputs);
    t.read("targets", data.targets);
  }
}

void read_evaluation(Table t, EvaluationJob& e) {
  read_data(t, e.data);
  t.read("every", e.every, 1, true);
  // Each byte of a text is a target once.
  e.data.apart = true;
  t.finish();
}

void read_optimizer(Table t, OptimizerJob& o) {
  t.read_word("name", o.name, {"sgd", "adagrad", "rmsprop", "adam", "adamw", "lamb"});
  const bool adam = o.name == "adam" || o.name == "adamw" || o.name == "lamb";
  o.eps = o.name == "adagrad" ? 1e-10 : o.name == "lamb" ? 1e-6 : 1e-8;
  if (o.name == "adamw") o.weight_decay = 0.01;
  t.read("lr", o.lr, 0, kMostRate, true);
  if (o.name == "sgd" || o.name == "rmsprop") t.read("momentum", o.momentum, 0, 1);
  if (o.name == "sgd") t.read("nesterov", o.nesterov);
  if (o.name == "rmsprop") t.read("alpha", o.alpha, 0, 1);
  if (adam) t.read("betas", o.betas, 0, 1);
  if (o.name != "sgd") t.read("eps", o.eps, 0, kMostRate);
  t.read("weight_decay", o.weight_decay, 0, kMostRate);
  t.read("no_decay", o.no_decay);
  t.read("clip_norm", o.clip_norm, 0, 1e30);
  t.read("clip_value", o.clip_value, 0, 1e30);
  t.finish();
}

void read_schedule(Table t, const OptimizerJob& o, ScheduleJob& s) {
  std::string kind;
  t.read_word("kind", kind, {"constant", "step", "cosine"});
  t.read("warmup", s.warmup, 0);
  if (kind == "step") {
    s.kind = ScheduleKind::kStep;
    t.read("every", s.every, 1, true);
    t.read("gamma", s.gamma, 0, 1e3, true);
  } else if (kind == "cosine") {
    s.kind = ScheduleKind::kCosine;
    t.read("least", s.least, 0, kMostRate);
    if (s.least > o.lr) t.refuse("least", "is above optimizer.lr");
  }
  t.finish();
}

}  // namespace

Result<Job> read_job(const std::filesystem::path& path, std::vector<JobKey>* keys) {
  TW_ASSIGN(const toml::table root, parse_job_file(path));
  Job job;
  job.file = path;
  Status status;
  Table t(root, "", path, status, keys);
  t.read("model", job.model, true);
  t.read_word("loss", job.loss, {"cross_entropy", "mean_squares", "logistic", "output"});
  t.read("class_axis", job.class_axis, 1);
  if (job.class_axis > 0 && job.loss != "cross_entropy")
    t.refuse("class_axis", "is for the loss cross_entropy");
  t.read("parameters", job.parameters);
  t.read("exclude", job.exclude);
  t.read_word("statistics", job.statistics, {"batch", "running"}, false);
  t.read("steps", job.steps, 1, true);
  t.read("batch", job.batch, 1, true);
  t.read("accumulate", job.accumulate, 1);
  if (job.batch > 0 && job.batch % job.parts() != 0)
    t.refuse("accumulate", "does not divide batch, " + std::to_string(job.batch));
  int64_t seed = 1;
  t.read("seed", seed, 0);
  job.seed = static_cast<uint64_t>(seed);
  Table data = t.table("data");
  read_data(data, job.data);
  data.read("order", job.data.order);
  data.finish();
  read_optimizer(t.table("optimizer"), job.optimizer);
  if (t.has("schedule")) read_schedule(t.table("schedule"), job.optimizer, job.schedule);
  if (t.has("checkpoint")) {
    Table c = t.table("checkpoint");
    c.read("folder", job.checkpoint.folder, true);
    c.read("every", job.checkpoint.every, 1, true);
    c.finish();
  }
  if (t.has("evaluation")) read_evaluation(t.table("evaluation"), job.evaluation);
  if (t.has("distributed")) {
    Table d = t.table("distributed");
    d.read_word("engine", job.distributed.engine, {"gloo", "openmpi", "mpich"}, false);
    d.read("exact", job.distributed.exact);
    d.read("deadline", job.distributed.deadline, 0.001, 1e6);
    d.read("verify", job.distributed.verify, 1);
    d.finish();
  }
  if (t.has("output")) {
    Table out = t.table("output");
    out.read("log", job.log);
    out.read("gradients", job.gradients);
    out.read("model", job.trained);
    out.read("report", job.report);
    out.read("outputs", job.outputs);
    if (!job.outputs.empty() && job.trained.empty())
      out.refuse("outputs", "is for the model that is written, output.model");
    out.finish();
  }
  t.finish();
  if (!status.ok()) return status.error();
  return job;
}

// Greedy, with one place to come back to: linear for patterns that people write, and never worse than
// the product of both lengths.
bool matches(const std::string& pattern, const std::string& name) {
  size_t p = 0, n = 0, star = std::string::npos, from = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p, ++n;
    } else if (star != std::string::npos) {
      p = star + 1;
      n = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace tilewright::train
