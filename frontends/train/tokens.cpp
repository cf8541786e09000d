#include "frontends/train/data_kinds.h"

#include <algorithm>

#include "frontends/tensor_files/mapped_file.h"

namespace tilewright::train {

namespace {

// Pieces of a text, one for each place where one begins; where they are apart, a rest that is shorter
// than a piece is left out.
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
    set->stride_ = job.apart ? job.length : 1;
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
  int64_t size() const override {
    return (static_cast<int64_t>(bytes().size()) - length_ - 1 + stride_) / stride_;
  }
  const std::vector<SampleInfo>& columns() const override { return columns_; }
  void read(std::span<const int64_t> ids, std::span<const Tensor> rows) const override {
    for (size_t c = 0; c < columns_.size(); ++c)
      for (size_t i = 0; i < ids.size(); ++i) {
        const uint8_t* from = bytes().data() + ids[i] * stride_ + static_cast<int64_t>(c);
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
  int64_t length_ = 0, stride_ = 1;
  std::vector<SampleInfo> columns_;
};
}  // namespace

Result<std::unique_ptr<Dataset>> open_tokens(const DataJob& job, const Wanted& wanted) {
  return Tokens::open(job, wanted);
}

}  // namespace tilewright::train
