// Arrays are converted once, when they are opened: a batch is copied as it lies.
#include "frontends/train/data_kinds.h"

#include <algorithm>
#include <cstring>

#include "frontends/tensor_files/npz.h"

namespace tilewright::train {

namespace {

// Any integer type to i64, and floats among themselves; nothing else is what it was.
bool converts(DType from, DType to) {
  return from == to || (!is_float(from) && !is_float(to)) || (is_float(from) && is_float(to));
}

template <typename From, typename To>
void convert_as(const void* from, void* to, int64_t n) {
  const auto* x = static_cast<const From*>(from);
  auto* y = static_cast<To*>(to);
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<To>(x[i]);
}
template <typename From>
Status convert_from(const void* from, DType dtype, void* to, int64_t n) {
  switch (dtype) {
    case DType::kFloat32: convert_as<From, float>(from, to, n); return {};
    case DType::kFloat64: convert_as<From, double>(from, to, n); return {};
    case DType::kInt64: convert_as<From, int64_t>(from, to, n); return {};
    case DType::kInt32: convert_as<From, int32_t>(from, to, n); return {};
    default: return unsupported("conversion to " + std::string(name(dtype)));
  }
}
Result<HostTensor> converted(HostTensor t, DType dtype) {
  if (t.dtype == dtype) return t;
  HostTensor out(dtype, t.shape);
  const auto to = [&](auto of) {
    return convert_from<decltype(of)>(t.bytes.data(), dtype, out.bytes.data(), t.size());
  };
  Status s;
  switch (t.dtype) {
    case DType::kFloat32: s = to(float{}); break;
    case DType::kFloat64: s = to(double{}); break;
    case DType::kInt64: s = to(int64_t{}); break;
    case DType::kInt32: s = to(int32_t{}); break;
    case DType::kUInt8: s = to(uint8_t{}); break;
    case DType::kInt8: s = to(int8_t{}); break;
    default: s = unsupported("conversion of " + std::string(name(t.dtype)));
  }
  if (!s.ok()) return s.error();
  return out;
}

// Rows of arrays.
class Arrays final : public Dataset {
 public:
  static Result<std::unique_ptr<Dataset>> open(const DataJob& job, const Wanted& wanted) {
    TW_ASSIGN(NamedTensors arrays, read_npz(job.file));
    auto set = std::make_unique<Arrays>();
    for (const SampleInfo& input : wanted.inputs) {
      const auto it = job.inputs.find(input.name);
      TW_RETURN_IF_ERROR(
          set->add(job, arrays, it == job.inputs.end() ? input.name : it->second, input));
    }
    for (const auto& [input, array] : job.inputs)
      if (std::none_of(wanted.inputs.begin(), wanted.inputs.end(),
                       [&](const SampleInfo& i) { return i.name == input; }))
        return invalid("'" + input + "' of data.inputs is no input of the model",
                       job.file.string());
    if (wanted.has_targets) {
      if (job.targets.empty())
        return invalid("data.targets is missing: the loss has targets", job.file.string());
      TW_RETURN_IF_ERROR(set->add(job, arrays, job.targets, wanted.targets));
      TW_RETURN_IF_ERROR(check_classes(job, set->values_.back(), wanted.classes));
    }
    return std::unique_ptr<Dataset>(std::move(set));
  }
  int64_t size() const override { return size_; }
  const std::vector<SampleInfo>& columns() const override { return columns_; }
  void read(std::span<const int64_t> ids, std::span<const Tensor> rows) const override {
    for (size_t c = 0; c < columns_.size(); ++c) {
      const size_t bytes =
          static_cast<size_t>(values_[c].bytes.size()) / static_cast<size_t>(size_);
      auto* to = rows[c].data_as<uint8_t>();
      for (size_t i = 0; i < ids.size(); ++i)
        std::memcpy(to + i * bytes, values_[c].bytes.data() + static_cast<size_t>(ids[i]) * bytes,
                    bytes);
    }
  }

 private:
  Status add(const DataJob& job, NamedTensors& arrays, const std::string& name,
             const SampleInfo& wanted) {
    const auto it =
        std::find_if(arrays.begin(), arrays.end(), [&](const auto& a) { return a.first == name; });
    if (it == arrays.end()) {
      std::string there;
      for (const auto& [other, tensor] : arrays) there += (there.empty() ? "" : ", ") + other;
      return invalid("there is no array '" + name + "'; there are: " + there, job.file.string());
    }
    const HostTensor& t = it->second;
    const Shape sample(t.shape.begin() + (t.shape.empty() ? 0 : 1), t.shape.end());
    if (t.shape.empty() || sample != wanted.shape || !converts(t.dtype, wanted.dtype))
      return invalid("array '" + name + "' is " + std::string(tilewright::name(t.dtype)) +
                         to_string(t.shape) + ", '" + wanted.name + "' wants rows of " +
                         std::string(tilewright::name(wanted.dtype)) + to_string(wanted.shape),
                     job.file.string());
    if (!columns_.empty() && t.shape[0] != size_)
      return invalid("array '" + name + "' has " + std::to_string(t.shape[0]) +
                         " rows, the one of '" + columns_[0].name + "' has " +
                         std::to_string(size_),
                     job.file.string());
    size_ = t.shape[0];
    if (size_ == 0) return invalid("array '" + name + "' has no rows", job.file.string());
    columns_.push_back(wanted);
    TW_ASSIGN(HostTensor values, converted(t, wanted.dtype));
    values_.push_back(std::move(values));
    return {};
  }
  static Status check_classes(const DataJob& job, const HostTensor& t, int64_t classes) {
    if (classes == 0) return {};
    for (int64_t i = 0; i < t.size(); ++i)
      if (const int64_t k = t.data<int64_t>()[i]; k < 0 || k >= classes)
        return invalid("element " + std::to_string(i) + " of '" + job.targets + "' is " +
                           std::to_string(k) + ", the model has the classes 0 to " +
                           std::to_string(classes - 1),
                       job.file.string());
    return {};
  }

  int64_t size_ = 0;
  std::vector<SampleInfo> columns_;
  std::vector<HostTensor> values_;
};
}  // namespace

Result<std::unique_ptr<Dataset>> open_arrays(const DataJob& job, const Wanted& wanted) {
  return Arrays::open(job, wanted);
}

}  // namespace tilewright::train
