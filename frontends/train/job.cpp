// toml++ parses; what the keys mean, and what they may be, stands here. Tables are read key by key and
// note what was asked for, so that a key that nobody reads is a mistake with a list of those that there
// are. The first mistake in the file is the one that is reported: its place is that of the value, and
// nothing of the job is used then.
#include "frontends/train/job.h"

#include <toml++/toml.h>
#include <algorithm>
#include <functional>

namespace tilewright::train {

namespace {

constexpr int64_t kMost = int64_t{1} << 40;  // steps, samples of a batch

// Reads keys of one table; what is wrong first is kept, with its place in the file.
class Table {
 public:
  Table(const toml::table& table, std::string name, const std::filesystem::path& file,
        Status& status)
      : table_(table), name_(std::move(name)), file_(file), status_(status) {}

  bool has(const char* key) const { return table_.contains(key); }
  // Keys that are missing keep what `to` is, unless they are required.
  void read(const char* key, std::string& to, bool required = false) {
    if (const toml::node* n = find(key, required))
      take(key, n->value<std::string>(), "a text", *n, to);
  }
  void read(const char* key, bool& to) {
    if (const toml::node* n = find(key, false))
      take(key, n->value<bool>(), "true or false", *n, to);
  }
  void read(const char* key, std::filesystem::path& to, bool required = false) {
    std::string text;
    read(key, text, required);
    if (!text.empty()) to = file_.parent_path() / text;
  }
  void read(const char* key, int64_t& to, int64_t least, bool required = false) {
    const toml::node* n = find(key, required);
    if (!n) return;
    take(key, n->is_integer() ? n->value<int64_t>() : std::nullopt, "an integer", *n, to);
    if (to < least || to > kMost)
      fail(*n, quoted(key) + " is " + std::to_string(to) + ", expected at least " +
                   std::to_string(least) + " and at most 2^40");
  }
  // In [least, below).
  void read(const char* key, double& to, double least, double below, bool required = false) {
    if (const toml::node* n = find(key, required)) number(key, *n, least, below, to);
  }
  void read(const char* key, double (&to)[2], double least, double below) {
    const toml::node* n = find(key, false);
    if (!n) return;
    const toml::array* a = n->as_array();
    if (!a || a->size() != 2) return fail(*n, quoted(key) + " is not two numbers");
    for (size_t i = 0; i < 2; ++i) number(key, (*a)[i], least, below, to[i]);
  }
  void read(const char* key, std::vector<std::string>& to) {
    const toml::node* n = find(key, false);
    if (!n) return;
    const toml::array* a = n->as_array();
    if (!a || a->empty()) return fail(*n, quoted(key) + " is no list of texts");
    to.assign(a->size(), {});
    for (size_t i = 0; i < a->size(); ++i)
      take(key, (*a)[i].value<std::string>(), "a list of texts", *n, to[i]);
  }
  void read(const char* key, std::map<std::string, std::string>& to) {
    const toml::node* n = find(key, false);
    if (!n) return;
    const toml::table* t = n->as_table();
    if (!t) return fail(*n, quoted(key) + " is no table of names");
    for (const auto& [name, value] : *t)
      take(key, value.value<std::string>(), "a table of names", value, to[std::string(name.str())]);
  }
  // One of the words.
  void read_word(const char* key, std::string& to, const std::vector<std::string>& words,
                 bool required = true) {
    read(key, to, required);
    const toml::node* n = table_.get(key);
    if (!n || !status_.ok() || std::find(words.begin(), words.end(), to) != words.end()) return;
    std::string all;
    for (const std::string& w : words) all += (all.empty() ? "" : ", ") + w;
    fail(*n, quoted(key) + " is '" + to + "', expected one of " + all);
  }
  Table table(const char* key) {
    seen_.push_back(key);
    static const toml::table kNone;
    const toml::node* n = table_.get(key);
    if (n && !n->is_table()) fail(*n, quoted(key) + " is no table");
    if (!n) missing("table [" + std::string(key) + "]");
    return {n && n->is_table() ? *n->as_table() : kNone, key, file_, status_};
  }
  // After all reads: keys that nothing read are mistakes.
  void finish() {
    for (const auto& [key, value] : table_)
      if (std::find(seen_.begin(), seen_.end(), key.str()) == seen_.end()) {
        std::string known;
        for (const std::string& s : seen_) known += (known.empty() ? "" : ", ") + s;
        return fail(value, quoted(std::string(key.str())) + " is no key here; there are: " + known);
      }
  }

 private:
  std::string quoted(const std::string& key) const {
    return "'" + (name_.empty() ? key : name_ + "." + key) + "'";
  }
  const toml::node* find(const char* key, bool required) {
    seen_.push_back(key);
    const toml::node* n = table_.get(key);
    if (!n && required) missing(quoted(key));
    return n;
  }
  void missing(const std::string& what) {
    if (status_.ok()) status_ = invalid(what + " is missing", file_.string());
  }
  void fail(const toml::node& n, const std::string& message) {
    if (status_.ok())
      status_ = invalid(message, file_.string() + ":" + std::to_string(n.source().begin.line));
  }
  template <typename T>
  void take(const char* key, const std::optional<T>& value, const char* kind, const toml::node& n,
            T& to) {
    if (value)
      to = *value;
    else
      fail(n, quoted(key) + " is not " + kind);
  }
  void number(const char* key, const toml::node& n, double least, double below, double& to) {
    take(key, n.is_number() ? n.value<double>() : std::nullopt, "a number", n, to);
    if (!(to >= least && to < below))
      fail(n, quoted(key) + " is " + std::to_string(to) + ", expected at least " +
                  std::to_string(least) + " and below " + std::to_string(below));
  }

  const toml::table& table_;
  const std::string name_;
  const std::filesystem::path& file_;
  Status& status_;
  std::vector<std::string> seen_;
};

void read_data(Table t, Job& job) {
  std::string kind;
  t.read_word("kind", kind, {"arrays", "tokens"});
  t.read("file", job.data.file, true);
  t.read("order", job.data.order);
  if (kind == "tokens") {
    job.data.kind = DataKind::kTokens;
    t.read("input", job.data.input, true);
    t.read("length", job.data.length, 1, true);
  } else {
    t.read("inputs", job.data.inputs);
    t.read("targets", job.data.targets);
  }
  t.finish();
}

void read_optimizer(Table t, OptimizerJob& o) {
  constexpr double kMostRate = 1e6;
  t.read_word("name", o.name, {"sgd", "adagrad", "rmsprop", "adam", "adamw"});
  const bool adam = o.name == "adam" || o.name == "adamw";
  o.eps = o.name == "adagrad" ? 1e-10 : 1e-8;
  if (o.name == "adamw") o.weight_decay = 0.01;
  t.read("lr", o.lr, 0, kMostRate, true);
  if (o.name == "sgd" || o.name == "rmsprop") t.read("momentum", o.momentum, 0, 1);
  if (o.name == "sgd") t.read("nesterov", o.nesterov);
  if (o.name == "rmsprop") t.read("alpha", o.alpha, 0, 1);
  if (adam) t.read("betas", o.betas, 0, 1);
  if (o.name != "sgd") t.read("eps", o.eps, 0, kMostRate);
  t.read("weight_decay", o.weight_decay, 0, kMostRate);
  t.read("clip_norm", o.clip_norm, 0, 1e30);
  t.read("clip_value", o.clip_value, 0, 1e30);
  t.finish();
}

}  // namespace

Result<Job> read_job(const std::filesystem::path& path) {
  toml::table root;
  try {
    root = toml::parse_file(path.string());
  } catch (const toml::parse_error& e) {
    const std::string line = e.source().begin ? ":" + std::to_string(e.source().begin.line) : "";
    return Error{e.source().begin ? invalid(std::string(e.description()), path.string() + line)
                                  : io_error(std::string(e.description()), path.string())};
  }
  Job job;
  job.file = path;
  Status status;
  Table t(root, "", path, status);
  t.read("model", job.model, true);
  t.read_word("loss", job.loss, {"cross_entropy", "mean_squares", "logistic", "output"});
  t.read("parameters", job.parameters);
  t.read_word("statistics", job.statistics, {"batch", "running"}, false);
  t.read("steps", job.steps, 1, true);
  t.read("batch", job.batch, 1, true);
  int64_t seed = 1;
  t.read("seed", seed, 0);
  job.seed = static_cast<uint64_t>(seed);
  read_data(t.table("data"), job);
  read_optimizer(t.table("optimizer"), job.optimizer);
  if (t.has("output")) {
    Table out = t.table("output");
    out.read("log", job.log);
    out.read("gradients", job.gradients);
    out.read("model", job.trained);
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
