#include "tests/autotune/replay/replay_table.h"

#include <cstring>
#include <map>
#include <sstream>

#include "frontends/tensor_files/npz.h"
#include "tests/autotune/replay/replay_task.h"

namespace tilewright::autotune {

namespace {

constexpr int32_t kUsual = INT32_MIN;  // an answer that was not given

HostTensor text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  HostTensor t(DType::kUInt8, {static_cast<int64_t>(text.size())});
  std::memcpy(t.bytes.data(), text.data(), text.size());
  return t;
}
std::vector<std::string> lines_of(const HostTensor& t) {
  std::istringstream text(std::string(t.bytes.begin(), t.bytes.end()));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}
// The upper 10 bits of the mantissa, which is more than any split of a tree needs: files pack well.
float shortened(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits = (bits + 0x1000U) & ~0x1fffU;
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

}  // namespace

Status write_table(const std::filesystem::path& folder, const ReplayTable& table) {
  std::map<std::string, size_t> column;
  for (const ReplayForm& f : table.forms)
    for (const auto& [name, value] : f.answers) column.emplace(name, 0);
  std::vector<std::string> names;
  for (auto& [name, at] : column) at = names.size(), names.push_back(name);
  const auto n = static_cast<int64_t>(table.forms.size());
  const auto decisions = static_cast<int64_t>(names.size());
  const auto width = static_cast<int64_t>(table.features.size());
  HostTensor answers(DType::kInt32, {n, decisions}), schedules(DType::kUInt64, {n}),
      ratios(DType::kFloat32, {n, 2}), features(DType::kFloat32, {n, width}),
      expected(DType::kFloat32, {n});
  std::fill_n(answers.data<int32_t>(), answers.size(), kUsual);
  for (size_t i = 0; i < table.forms.size(); ++i) {
    const ReplayForm& f = table.forms[i];
    for (const auto& [name, value] : f.answers)
      answers.data<int32_t>()[i * names.size() + column[name]] = static_cast<int32_t>(value);
    schedules.data<uint64_t>()[i] = f.schedule;
    expected.data<float>()[i] = f.expected_us;
    std::copy(f.ratios.begin(), f.ratios.end(), ratios.data<float>() + 2 * i);
    TW_CHECK(f.features.size() == table.features.size());
    for (size_t c = 0; c < f.features.size(); ++c)
      features.data<float>()[i * f.features.size() + c] = shortened(f.features[c]);
  }
  return write_npz(folder / (table.name + ".npz"), {{"decisions", text_of(names)},
                                                    {"answers", std::move(answers)},
                                                    {"schedules", std::move(schedules)},
                                                    {"ratios", std::move(ratios)},
                                                    {"expected_us", std::move(expected)},
                                                    {"feature_names", text_of(table.features)},
                                                    {"features", std::move(features)}});
}

Result<ReplayTable> read_table(const std::filesystem::path& folder, const std::string& name) {
  TW_ASSIGN(const NamedTensors arrays, read_npz(folder / (name + ".npz")));
  std::map<std::string, const HostTensor*> by_name;
  for (const auto& [key, tensor] : arrays) by_name[key] = &tensor;
  for (const char* key :
       {"decisions", "answers", "schedules", "ratios", "expected_us", "feature_names", "features"})
    if (!by_name.count(key)) return invalid(std::string("there is no array '") + key + "'", name);
  ReplayTable table{.name = name, .features = lines_of(*by_name["feature_names"])};
  for (const ReplayTask& t : replay_tasks())
    if (t.name == name) table.rule = t.rule;
  const std::vector<std::string> names = lines_of(*by_name["decisions"]);
  const auto n = static_cast<size_t>(by_name["schedules"]->size());
  const size_t width = table.features.size();
  if (by_name["answers"]->size() != static_cast<int64_t>(n * names.size()) ||
      by_name["ratios"]->size() != static_cast<int64_t>(2 * n) ||
      by_name["expected_us"]->size() != static_cast<int64_t>(n) ||
      by_name["features"]->size() != static_cast<int64_t>(n * width))
    return invalid("arrays of extents that do not agree", name);
  for (size_t i = 0; i < n; ++i) {
    ReplayForm f{.schedule = by_name["schedules"]->data<uint64_t>()[i],
                 .expected_us = by_name["expected_us"]->data<float>()[i]};
    for (size_t c = 0; c < names.size(); ++c)
      if (const int32_t a = by_name["answers"]->data<int32_t>()[i * names.size() + c]; a != kUsual)
        f.answers[names[c]] = a;
    const float* ratios = by_name["ratios"]->data<float>() + 2 * i;
    f.ratios = {ratios[0], ratios[1]};
    const float* features = by_name["features"]->data<float>() + width * i;
    f.features.assign(features, features + width);
    table.forms.push_back(std::move(f));
  }
  return table;
}

Result<std::vector<ReplayTable>> read_tables(const std::filesystem::path& folder) {
  std::vector<ReplayTable> tables;
  for (const ReplayTask& t : replay_tasks()) {
    if (!std::filesystem::exists(folder / (t.name + ".npz"))) continue;
    TW_ASSIGN(ReplayTable table, read_table(folder, t.name));
    tables.push_back(std::move(table));
  }
  if (tables.empty()) return Error{ErrorKind::kIo, "no tables in " + folder.string()};
  return tables;
}

}  // namespace tilewright::autotune
