// Boosting by XGBoost's C API: the only file that knows it, in a library that tuning opens.
#include <xgboost/c_api.h>

#include <string>
#include <utility>

#include "autotune/learn/boosting.h"

// tests/autotune/replay/run.sh makes the file.
__asm__(
    ".section .rodata\n"
    ".balign 16\n"
    "tilewright_base_model: .incbin \"" TILEWRIGHT_BASE_MODEL
    "\"\n"
    "tilewright_base_model_end: .byte 0\n"
    ".previous\n");
extern "C" const uint8_t tilewright_base_model[], tilewright_base_model_end[];

namespace tilewright::autotune {

namespace {

Status checked(int code) {
  if (code == 0) return {};
  // The first line; a trace of its own stack follows.
  const std::string why = XGBGetLastError();
  return invalid("XGBoost: " + why.substr(0, why.find('\n')));
}

// A matrix of XGBoost's own.
class Matrix {
 public:
  static Result<Matrix> make(const Rows& rows) {
    Matrix m;
    // The third argument is what stands for a missing value, which features never are.
    TW_RETURN_IF_ERROR(checked(XGDMatrixCreateFromMat(rows.values.data(), rows.count(),
                                                      rows.columns, -3.0e38F, &m.handle_)));
    return m;
  }
  Matrix(Matrix&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Matrix& operator=(Matrix&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Matrix() {
    if (handle_) XGDMatrixFree(handle_);
  }
  // "label", "weight" or "base_margin": one for each row; nothing where there is none.
  Status set(const char* field, std::span<const float> values) {
    if (values.empty()) return {};
    return checked(XGDMatrixSetFloatInfo(handle_, field, values.data(), values.size()));
  }
  DMatrixHandle get() const { return handle_; }

 private:
  Matrix() = default;
  DMatrixHandle handle_ = nullptr;
};

class Booster : public Trees {
 public:
  explicit Booster(BoosterHandle handle) : handle_(handle) {}
  Booster(const Booster&) = delete;
  Booster& operator=(const Booster&) = delete;
  ~Booster() override { XGBoosterFree(handle_); }

  Result<std::vector<float>> predict(const Rows& rows,
                                     std::span<const float> start) const override {
    if (rows.count() == 0) return std::vector<float>{};
    TW_ASSIGN(Matrix m, Matrix::make(rows));
    TW_RETURN_IF_ERROR(m.set("base_margin", start));
    constexpr const char* kMargins =
        "{\"type\": 1, \"training\": false, \"iteration_begin\": 0, \"iteration_end\": 0, "
        "\"strict_shape\": false}";
    const bst_ulong* shape = nullptr;
    bst_ulong dimensions = 0;
    const float* values = nullptr;
    TW_RETURN_IF_ERROR(checked(
        XGBoosterPredictFromDMatrix(handle_, m.get(), kMargins, &shape, &dimensions, &values)));
    return std::vector<float>(values, values + rows.count());
  }
  Result<std::vector<uint8_t>> save() const override {
    bst_ulong size = 0;
    const char* bytes = nullptr;
    TW_RETURN_IF_ERROR(
        checked(XGBoosterSaveModelToBuffer(handle_, "{\"format\": \"ubj\"}", &size, &bytes)));
    return std::vector<uint8_t>(bytes, bytes + size);
  }
  Status set(const char* name, const std::string& value) {
    return checked(XGBoosterSetParam(handle_, name, value.c_str()));
  }
  BoosterHandle get() const { return handle_; }

 private:
  BoosterHandle handle_;
};

Result<std::unique_ptr<Booster>> new_booster(const DMatrixHandle* matrices, bst_ulong count) {
  BoosterHandle handle = nullptr;
  TW_RETURN_IF_ERROR(checked(XGBoosterCreate(matrices, count, &handle)));
  auto b = std::make_unique<Booster>(handle);
  TW_RETURN_IF_ERROR(b->set("nthread", "1"));
  TW_RETURN_IF_ERROR(b->set("verbosity", "0"));
  return b;
}

class XgboostBoosting : public Boosting {
 public:
  Result<std::unique_ptr<Trees>> fit(const Rows& rows, std::span<const float> targets,
                                     std::span<const float> weights, std::span<const float> start,
                                     const BoostingOptions& o) const override {
    TW_ASSIGN(Matrix m, Matrix::make(rows));
    TW_RETURN_IF_ERROR(m.set("label", targets));
    TW_RETURN_IF_ERROR(m.set("weight", weights));
    TW_RETURN_IF_ERROR(m.set("base_margin", start));
    const DMatrixHandle matrices[] = {m.get()};
    TW_ASSIGN(std::unique_ptr<Booster> b, new_booster(matrices, 1));
    const std::pair<const char*, std::string> parameters[] = {
        {"objective", "reg:squarederror"},
        {"base_score", "0"},
        // Histograms cost more than they spare where rows are few.
        {"tree_method", rows.count() > 1000 ? "hist" : "exact"},
        {"max_depth", std::to_string(o.depth)},
        {"eta", std::to_string(o.rate)},
        {"lambda", std::to_string(o.shrinkage)},
        {"min_child_weight", std::to_string(o.least_weight)},
        {"colsample_bytree", std::to_string(o.columns)},
        {"seed", std::to_string(o.seed)}};
    for (const auto& [name, value] : parameters) TW_RETURN_IF_ERROR(b->set(name, value));
    for (int i = 0; i < o.trees; ++i)
      TW_RETURN_IF_ERROR(checked(XGBoosterUpdateOneIter(b->get(), i, m.get())));
    return std::unique_ptr<Trees>(std::move(b));
  }
  Result<std::unique_ptr<Trees>> load(std::span<const uint8_t> bytes,
                                      size_t columns) const override {
    TW_ASSIGN(std::unique_ptr<Booster> b, new_booster(nullptr, 0));
    TW_RETURN_IF_ERROR(checked(XGBoosterLoadModelFromBuffer(b->get(), bytes.data(), bytes.size())));
    bst_ulong found = 0;
    TW_RETURN_IF_ERROR(checked(XGBoosterGetNumFeature(b->get(), &found)));
    if (found != columns)
      return invalid("trees of " + std::to_string(found) + " columns, not " +
                     std::to_string(columns));
    return std::unique_ptr<Trees>(std::move(b));
  }
  std::span<const uint8_t> base_model() const override {
    return {tilewright_base_model, tilewright_base_model_end};
  }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const Boosting* tilewright_boosting() {
  static const XgboostBoosting boosting;
  return &boosting;
}

}  // namespace tilewright::autotune
