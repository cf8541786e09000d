// Everything is checked when it is opened: types, shapes, lengths, and that targets are classes of the
// model. Reading a batch cannot fail then.
#include "frontends/train/data.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "frontends/tensor_files/mapped_file.h"
#include "frontends/tensor_files/npy_file.h"
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

// Pieces of a text, one for each place where one begins.
class Tokens final : public Dataset {
 public:
  static Result<std::unique_ptr<Dataset>> open(const DataJob& job, const Wanted& wanted) {
    const std::string where = job.file.string();
    if (wanted.inputs.size() != 1 || wanted.inputs[0].name != job.input)
      return invalid("data.input is '" + job.input + "', the model's inputs are others", where);
    const SampleInfo& x = wanted.inputs[0];
    if (x.shape != Shape{job.length} || (x.dtype != DType::kInt64 && x.dtype != DType::kInt32))
      return invalid("input '" + x.name + "' wants " + std::string(name(x.dtype)) +
                         to_string(x.shape) + ", pieces of a text are i64[" +
                         std::to_string(job.length) + "]",
                     where);
    if (wanted.has_targets && wanted.targets.shape != x.shape)
      return invalid("the loss wants targets of " + to_string(wanted.targets.shape) +
                         ", those of a text are as long as its pieces: " + to_string(x.shape),
                     where);
    auto set = std::make_unique<Tokens>();
    TW_ASSIGN(set->file_, MappedFile::open(job.file));
    set->length_ = job.length;
    set->columns_ = {x};
    if (wanted.has_targets) set->columns_.push_back(wanted.targets);
    if (set->size() < 1)
      return invalid("has " + std::to_string(set->bytes().size()) +
                         " bytes, less than a piece of " + std::to_string(job.length) +
                         " and the byte behind it",
                     where);
    if (wanted.classes > 0)
      for (size_t i = 0; i < set->bytes().size(); ++i)
        if (set->bytes()[i] >= wanted.classes)
          return invalid("byte " + std::to_string(i) + " is " + std::to_string(set->bytes()[i]) +
                             ", the model has the classes 0 to " +
                             std::to_string(wanted.classes - 1),
                         where);
    return std::unique_ptr<Dataset>(std::move(set));
  }
  int64_t size() const override { return static_cast<int64_t>(bytes().size()) - length_; }
  const std::vector<SampleInfo>& columns() const override { return columns_; }
  void read(std::span<const int64_t> ids, std::span<const Tensor> rows) const override {
    for (size_t c = 0; c < columns_.size(); ++c)
      for (size_t i = 0; i < ids.size(); ++i) {
        const uint8_t* from = bytes().data() + ids[i] + static_cast<int64_t>(c);
        const auto row = static_cast<int64_t>(i) * length_;
        if (columns_[c].dtype == DType::kInt64)
          std::copy_n(from, length_, rows[c].data_as<int64_t>() + row);
        else
          std::copy_n(from, length_, rows[c].data_as<int32_t>() + row);
      }
  }

 private:
  std::span<const uint8_t> bytes() const { return file_->bytes(); }
  std::shared_ptr<const MappedFile> file_;
  int64_t length_ = 0;
  std::vector<SampleInfo> columns_;
};

// SplitMix64 (Steele, Lea and Flood, 2014): a well mixed number for each state.
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_dataset(const DataJob& job, const Wanted& wanted) {
  return job.kind == DataKind::kTokens ? Tokens::open(job, wanted) : Arrays::open(job, wanted);
}

Result<Order> Order::create(const Job& job, int64_t samples) {
  Order order;
  order.samples_ = samples;
  order.batch_ = job.batch;
  order.seed_ = job.seed;
  if (job.data.order.empty()) return order;
  const std::string where = job.data.order.string();
  TW_ASSIGN(const HostTensor t, read_npy(job.data.order));
  if (t.dtype != DType::kInt64 || t.shape != Shape{job.steps, job.batch})
    return invalid("is " + std::string(name(t.dtype)) + to_string(t.shape) + ", expected i64" +
                       to_string(Shape{job.steps, job.batch}) + " (steps, batch)",
                   where);
  order.given_.assign(t.data<int64_t>(), t.data<int64_t>() + t.size());
  for (size_t i = 0; i < order.given_.size(); ++i)
    if (order.given_[i] < 0 || order.given_[i] >= samples)
      return invalid("element " + std::to_string(i) + " is " + std::to_string(order.given_[i]) +
                         ", there are " + std::to_string(samples) + " samples",
                     where);
  return order;
}

// Fisher and Yates' shuffle of each epoch; a batch may reach into the next one.
std::vector<int64_t> Order::batch(int64_t step) {
  std::vector<int64_t> ids;
  for (int64_t k = step * batch_; k < (step + 1) * batch_; ++k) {
    if (!given_.empty()) {
      ids.push_back(given_[static_cast<size_t>(k)]);
      continue;
    }
    if (const int64_t epoch = k / samples_; epoch != epoch_) {
      epoch_ = epoch;
      shuffled_.resize(static_cast<size_t>(samples_));
      std::iota(shuffled_.begin(), shuffled_.end(), int64_t{0});
      uint64_t state = mixed(seed_) ^ mixed(static_cast<uint64_t>(epoch) + 1);
      for (size_t i = shuffled_.size(); i > 1; --i) {
        state = mixed(state);
        std::swap(shuffled_[i - 1], shuffled_[state % i]);
      }
    }
    ids.push_back(shuffled_[static_cast<size_t>(k % samples_)]);
  }
  return ids;
}

}  // namespace tilewright::train
