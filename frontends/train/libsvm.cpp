// Lines "label index:value index:value ..." as LIBSVM and svmlight write them: indices from 1, ascending;
// what is not there is 0. Rows stay sparse in memory, 8 bytes a value, and are spread out batch by
// batch. The file is untrusted; a mistake is reported with its line.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "frontends/tensor_files/mapped_file.h"
#include "frontends/train/data_kinds.h"

namespace tilewright::train {

namespace {

// Walks over the pieces of a line.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text.substr(0, text.find('#'))) {}
  // The next piece between blanks; empty: there is none.
  std::string_view next() {
    const size_t from = std::min(rest_.find_first_not_of(kBlanks), rest_.size());
    rest_.remove_prefix(from);
    const std::string_view piece = rest_.substr(0, rest_.find_first_of(kBlanks));
    rest_.remove_prefix(piece.size());
    return piece;
  }

 private:
  static constexpr std::string_view kBlanks = " \t\r";
  std::string_view rest_;
};

// All of the text, as a number that f32 can hold.
std::optional<float> to_number(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  const auto single = static_cast<float>(n);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(single))
    return std::nullopt;
  return single;
}
std::optional<uint32_t> to_index(std::string_view text) {
  uint32_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return n;
}

// As messages show it: bytes of a file may be anything.
std::string shown(std::string_view piece) {
  std::string text;
  for (const char c : piece.substr(0, 24)) text += c > ' ' && c < '\x7f' ? c : '?';
  return "'" + text + (piece.size() > 24 ? "..." : "") + "'";
}

class SparseRows final : public Dataset {
 public:
  static Result<std::unique_ptr<Dataset>> open(const DataJob& job, const Wanted& wanted) {
    const std::string where = job.file.string();
    if (wanted.inputs.size() != 1)
      return invalid("has one array of features, the model has " +
                         std::to_string(wanted.inputs.size()) + " inputs",
                     where);
    const SampleInfo& x = wanted.inputs[0];
    if (x.dtype != DType::kFloat32 || x.shape.size() != 1)
      return invalid("input '" + x.name + "' wants " + std::string(name(x.dtype)) +
                         to_string(x.shape) + ", rows of features are f32[features]",
                     where);
    if (wanted.has_targets && element_count(wanted.targets.shape) != 1)
      return invalid(
          "the loss wants targets of " + to_string(wanted.targets.shape) + ", a row has one label",
          where);
    auto set = std::make_unique<SparseRows>();
    set->columns_ = {x};
    if (wanted.has_targets) set->columns_.push_back(wanted.targets);
    TW_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(job.file));
    std::string_view rest(reinterpret_cast<const char*>(file->bytes().data()),
                          file->bytes().size());
    for (int64_t number = 1; !rest.empty(); ++number) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      if (Status s = set->add(Line(line), job, wanted); !s.ok())
        return invalid(s.error().message, where + ":" + std::to_string(number));
    }
    if (set->size() == 0) return invalid("has no rows", where);
    return std::unique_ptr<Dataset>(std::move(set));
  }

  int64_t size() const override { return static_cast<int64_t>(ends_.size()); }
  const std::vector<SampleInfo>& columns() const override { return columns_; }
  void read(std::span<const int64_t> ids, std::span<const Tensor> rows) const override {
    const int64_t features = columns_[0].shape[0];
    auto* x = rows[0].data_as<float>();
    std::fill_n(x, static_cast<int64_t>(ids.size()) * features, 0.0f);
    for (size_t i = 0; i < ids.size(); ++i, x += features) {
      const auto row = static_cast<size_t>(ids[i]);
      for (uint64_t e = row == 0 ? 0 : ends_[row - 1]; e < ends_[row]; ++e)
        x[entries_[e].column] = entries_[e].value;
      if (columns_.size() == 1) continue;
      if (columns_[1].dtype == DType::kInt64)
        rows[1].data_as<int64_t>()[i] = static_cast<int64_t>(targets_[row]);
      else
        rows[1].data_as<float>()[i] = targets_[row];
    }
  }

 private:
  // A line without pieces is no row.
  Status add(Line line, const DataJob& job, const Wanted& wanted) {
    const std::string_view label = line.next();
    if (label.empty()) return {};
    TW_ASSIGN(const float target, target_of(label, job, wanted));
    const int64_t features = columns_[0].shape[0];
    uint32_t before = 0;
    for (std::string_view piece = line.next(); !piece.empty(); piece = line.next()) {
      const size_t colon = std::min(piece.find(':'), piece.size());
      const auto index = to_index(piece.substr(0, colon));
      const auto value = to_number(piece.substr(std::min(colon + 1, piece.size())));
      if (!index || !value) return invalid(shown(piece) + " is not index:value, two numbers");
      if (*index <= before)
        return invalid(before == 0 ? "index 0: they begin at 1"
                                   : "index " + std::to_string(*index) + " comes behind " +
                                         std::to_string(before) + ", expected ascending ones");
      if (*index > features)
        return invalid("index " + std::to_string(*index) + ", input '" + columns_[0].name +
                       "' of the model has " + std::to_string(features) + " features");
      before = *index;
      entries_.push_back({*index - 1, *value});
    }
    ends_.push_back(entries_.size());
    targets_.push_back(target);
    return {};
  }
  // The place of the label in the job's list of them; the label itself where there is no list.
  static Result<float> target_of(std::string_view label, const DataJob& job, const Wanted& wanted) {
    const auto number = to_number(label);
    if (!number) return invalid("the label " + shown(label) + " is no number");
    float target = *number;
    if (!job.labels.empty()) {
      const auto it = std::find_if(job.labels.begin(), job.labels.end(),
                                   [&](double l) { return static_cast<float>(l) == *number; });
      if (it == job.labels.end())
        return invalid("the label " + shown(label) + " is none of data.labels");
      target = static_cast<float>(it - job.labels.begin());
    }
    const auto classes = static_cast<float>(wanted.classes);
    if (wanted.classes > 0 && (target < 0 || target >= classes || target != std::floor(target)))
      return invalid("the label " + shown(label) + " is no class; the model has the classes 0 to " +
                     std::to_string(wanted.classes - 1) + ", data.labels says which is which");
    return target;
  }

  struct Entry {
    uint32_t column;
    float value;
  };
  std::vector<Entry> entries_;
  std::vector<uint64_t> ends_;  // of each row, in entries_
  std::vector<float> targets_;
  std::vector<SampleInfo> columns_;
};

}  // namespace

Result<std::unique_ptr<Dataset>> open_libsvm(const DataJob& job, const Wanted& wanted) {
  return SparseRows::open(job, wanted);
}

}  // namespace tilewright::train
