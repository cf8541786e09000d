// toml++ parses. The first mistake in the order of reading is the one that is reported.
#include "frontends/train/job_table.h"

#include <algorithm>

#include "runtime/core/open_file.h"

namespace tilewright::train {

namespace {

constexpr uint64_t kMostBytes = uint64_t{16} << 20;  // of a job file
constexpr int64_t kMost = int64_t{1} << 40;          // steps, samples of a batch
constexpr int kMostParts = 64;                       // of a key

// "3:5" for the line and column of a character.
std::string place_of(std::string_view text, size_t at) {
  const std::string_view before = text.substr(0, at);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t column = at - (line > 1 ? before.rfind('\n') + 1 : 0) + 1;
  return std::to_string(line) + ":" + std::to_string(column);
}

// Returns the position of the last character of a quoted string or key, which begins at `at` and has one quote on each
// side, or three where it spans lines.
size_t end_of_quoted(std::string_view text, size_t at) {
  const char quote = text[at];
  const std::string three(3, quote);
  const bool is_long = text.substr(at, 3) == three;
  for (at += is_long ? 3 : 1; at < text.size(); ++at) {
    if (text[at] == '\\' && quote == '"')
      ++at;
    else if (is_long ? text.substr(at, 3) == three : text[at] == quote || text[at] == '\n')
      break;
  }
  if (!is_long) return at;
  at += 2;
  for (int more = 0; more < 2 && at + 1 < text.size() && text[at + 1] == quote; ++more) ++at;
  return at;
}

// Where a key has too many parts, each of which would be a table in a table. The parser bounds values alone.
std::optional<size_t> find_deep_key(std::string_view text) {
  int dots = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      i = end_of_quoted(text, i);
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
      dots = 0;
    } else if (c == '.') {
      if (++dots >= kMostParts) return i;
    } else if (std::string_view("\n=,[]{}").find(c) != std::string_view::npos) {
      dots = 0;
    }
  }
  return std::nullopt;
}

bool breaks_a_rule(std::string_view text) {
  try {
    (void)toml::parse(text);
  } catch (const BrokenTomlRule&) { return true; } catch (const toml::parse_error&) {
  }
  return false;
}

// The character at which the parser meets what it takes for impossible: the last of the shortest beginning of the text
// that does so.
size_t find_broken_rule(std::string_view text) {
  size_t below = 0, most = text.size();
  while (most - below > 1) {
    const size_t middle = below + (most - below) / 2;
    (breaks_a_rule(text.substr(0, middle)) ? most : below) = middle;
  }
  return most - 1;
}

}  // namespace

Result<toml::table> parse_job_file(const std::filesystem::path& path) {
  TW_ASSIGN(const std::string text, read_whole(path.string(), kMostBytes));
  if (const auto deep = find_deep_key(text))
    return invalid("a key of more than " + std::to_string(kMostParts) + " parts",
                   path.string() + ":" + place_of(text, *deep));
  try {
    return toml::parse(text, path.string());
  } catch (const toml::parse_error& e) {
    const toml::source_position at = e.source().begin;
    const std::string place =
        at ? ":" + std::to_string(at.line) + ":" + std::to_string(at.column) : "";
    return invalid(std::string(e.description()), path.string() + place);
  } catch (const BrokenTomlRule&) {
    return invalid("is no TOML", path.string() + ":" + place_of(text, find_broken_rule(text)));
  }
}

void Table::read(const char* key, std::string& to, bool required) {
  note(key, {.kind = JobKey::Kind::kText, .required = required});
  if (const toml::node* n = find(key, required))
    take(key, n->value<std::string>(), "a text", *n, to);
}

void Table::read(const char* key, bool& to) {
  note(key, {.kind = JobKey::Kind::kBool});
  if (const toml::node* n = find(key, false)) take(key, n->value<bool>(), "true or false", *n, to);
}

void Table::read(const char* key, std::filesystem::path& to, bool required) {
  note(key, {.kind = JobKey::Kind::kFile, .required = required});
  std::string text;
  read(key, text, required);
  if (!text.empty()) to = file_.parent_path() / text;
}

void Table::read(const char* key, int64_t& to, int64_t least, bool required) {
  note(key, {.kind = JobKey::Kind::kInteger,
             .required = required,
             .least = static_cast<double>(least),
             .below = static_cast<double>(kMost)});
  const toml::node* n = find(key, required);
  if (!n) return;
  take(key, n->is_integer() ? n->value<int64_t>() : std::nullopt, "an integer", *n, to);
  if (to < least || to > kMost)
    fail(*n, quoted(key) + " is " + std::to_string(to) + ", expected at least " +
                 std::to_string(least) + " and at most 2^40");
}

void Table::read(const char* key, double& to, double least, double below, bool required) {
  note(key, {.kind = JobKey::Kind::kNumber, .required = required, .least = least, .below = below});
  if (const toml::node* n = find(key, required)) number(key, *n, least, below, to);
}

void Table::read(const char* key, double (&to)[2], double least, double below) {
  note(key, {.kind = JobKey::Kind::kPair, .least = least, .below = below});
  const toml::node* n = find(key, false);
  if (!n) return;
  const toml::array* a = n->as_array();
  if (!a || a->size() != 2) return fail(*n, quoted(key) + " is not two numbers");
  for (size_t i = 0; i < 2; ++i) number(key, (*a)[i], least, below, to[i]);
}

void Table::read(const char* key, std::vector<std::string>& to) {
  note(key, {.kind = JobKey::Kind::kTexts});
  const toml::node* n = find(key, false);
  if (!n) return;
  const toml::array* a = n->as_array();
  if (!a || a->empty()) return fail(*n, quoted(key) + " is no list of texts");
  to.assign(a->size(), {});
  for (size_t i = 0; i < a->size(); ++i)
    take(key, (*a)[i].value<std::string>(), "a list of texts", *n, to[i]);
}

void Table::read(const char* key, std::vector<double>& to) {
  note(key, {.kind = JobKey::Kind::kNumbers});
  const toml::node* n = find(key, false);
  if (!n) return;
  const toml::array* a = n->as_array();
  if (!a || a->empty()) return fail(*n, quoted(key) + " is no list of numbers");
  to.assign(a->size(), 0);
  for (size_t i = 0; i < a->size(); ++i)
    take(key, (*a)[i].is_number() ? (*a)[i].value<double>() : std::nullopt, "a list of numbers",
         (*a)[i], to[i]);
}

void Table::read(const char* key, std::map<std::string, std::string>& to) {
  note(key, {.kind = JobKey::Kind::kNames});
  const toml::node* n = find(key, false);
  if (!n) return;
  const toml::table* t = n->as_table();
  if (!t) return fail(*n, quoted(key) + " is no table of names");
  for (const auto& [name, value] : *t)
    take(key, value.value<std::string>(), "a table of names", value, to[std::string(name.str())]);
}

void Table::read_word(const char* key, std::string& to, const std::vector<std::string>& words,
                      bool required) {
  note(key, {.kind = JobKey::Kind::kWord, .required = required, .words = words});
  read(key, to, required);
  const toml::node* n = table_.get(key);
  if (!n || !status_.ok() || std::find(words.begin(), words.end(), to) != words.end()) return;
  std::string all;
  for (const std::string& w : words) all += (all.empty() ? "" : ", ") + w;
  fail(*n, quoted(key) + " is '" + to + "', expected one of " + all);
}

// Where it is missing an empty one is read, whose required keys say nothing more.
Table Table::table(const char* key) {
  note(key, {.kind = JobKey::Kind::kTable, .required = true});
  seen_.push_back(key);
  static const toml::table kNone;
  const toml::node* n = table_.get(key);
  if (n && !n->is_table()) fail(*n, quoted(key) + " is no table");
  if (!n) missing("table [" + std::string(key) + "]");
  return {n && n->is_table() ? *n->as_table() : kNone, key, file_, status_, keys_};
}

bool Table::has(const char* key) {
  note(key, {.kind = JobKey::Kind::kTable});
  return table_.contains(key);
}

void Table::note(const char* key, JobKey as) {
  if (!keys_) return;
  as.name = name_.empty() ? key : name_ + "." + key;
  const auto is_same = [&](const JobKey& known) { return known.name == as.name; };
  if (std::none_of(keys_->begin(), keys_->end(), is_same)) keys_->push_back(std::move(as));
}

void Table::finish() {
  for (const auto& [key, value] : table_)
    if (std::find(seen_.begin(), seen_.end(), key.str()) == seen_.end()) {
      std::string known;
      for (const std::string& s : seen_) known += (known.empty() ? "" : ", ") + s;
      return fail(value, quoted(std::string(key.str())) + " is no key here; there are: " + known);
    }
}

void Table::refuse(const char* key, const std::string& message) {
  if (const toml::node* n = table_.get(key)) fail(*n, quoted(key) + " " + message);
}

std::string Table::quoted(const std::string& key) const {
  return "'" + (name_.empty() ? key : name_ + "." + key) + "'";
}

const toml::node* Table::find(const char* key, bool required) {
  seen_.push_back(key);
  const toml::node* n = table_.get(key);
  if (!n && required) missing(quoted(key));
  return n;
}

// Only the first mistake is kept: others often follow from it.
void Table::missing(const std::string& what) {
  if (status_.ok()) status_ = invalid(what + " is missing", file_.string());
}

void Table::fail(const toml::node& n, const std::string& message) {
  if (status_.ok())
    status_ = invalid(message, file_.string() + ":" + std::to_string(n.source().begin.line));
}

template <typename T>
void Table::take(const char* key, const std::optional<T>& value, const char* kind,
                 const toml::node& n, T& to) {
  if (value)
    to = *value;
  else
    fail(n, quoted(key) + " is not " + kind);
}

void Table::number(const char* key, const toml::node& n, double least, double below, double& to) {
  take(key, n.is_number() ? n.value<double>() : std::nullopt, "a number", n, to);
  if (!(to >= least && to < below))
    fail(n, quoted(key) + " is " + std::to_string(to) + ", expected at least " +
                std::to_string(least) + " and below " + std::to_string(below));
}

}  // namespace tilewright::train
