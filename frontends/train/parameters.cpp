#include "frontends/train/parameters.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "frontends/onnx/lift_constants.h"
#include "frontends/train/initializer_uses.h"
#include "frontends/train/left_alone.h"
#include "frontends/train/step_update.h"
#include "ir/loops/layout.h"

namespace tilewright::train {

namespace {

constexpr int64_t kAlignment = 16;  // elements of f32: a cache line

Status append(Parameters& to, const std::string& name, const TensorView& tensor) {
  if (tensor.dtype() != DType::kFloat32)
    return unsupported("initialiser '" + name + "' is " +
                       std::string(tilewright::name(*tensor.dtype())) + ", expected f32 to train");
  const int64_t n = *element_count(tensor.shape);
  to.members.push_back({name, tensor.shape, 0, n, {}});
  lay_out(to);
  return {};
}

constexpr const char* kMerged =
    "; exporters merge tensors that are equal, as those of a fresh network are (PyTorch's with "
    "optimize=True)";

// Means and variances that are scales or biases as well would get two new values in each step.
Status check_statistics(const std::set<std::string>& statistics, const InitializerUses& uses) {
  for (const std::string& name : statistics)
    for (const OnnxNode* node : uses.normalizations(name))
      return invalid("initialiser " + quote(name) +
                     " is a running statistic of BatchNormalization, and scale or bias of " +
                     node->op_type + " " + quote(node->outputs[0]) + kMerged);
  return {};
}

// "" where there is nothing to say.
std::string note_of_merged(const OnnxModel& model, const Parameters& parameters,
                           const InitializerUses& uses) {
  std::string first;
  int more = 0;
  for (const Parameter& p : parameters.members)
    if (uses.normalizations(p.name).size() > 1 && is_uniform(model.graph.initializers.at(p.name)))
      first.empty() ? void(first = quote(p.name)) : void(++more);
  if (first.empty()) return "";
  return first + (more > 0 ? " and " + std::to_string(more) + " more" : "") +
         ": used by several normalisations, and trained as one" + kMerged;
}

}  // namespace

namespace {

// Which patterns have matched a parameter, and one that is left alone.
class Patterns {
 public:
  explicit Patterns(const std::vector<std::string>& patterns)
      : patterns_(patterns), used_(patterns.size()), passed_(patterns.size()) {}
  bool names(const std::string& name) const {
    return std::find(patterns_.begin(), patterns_.end(), name) != patterns_.end();
  }
  bool match(const std::string& name) { return match(name, used_, name); }
  // An initialiser that is `what` instead of a parameter.
  bool pass(const std::string& name, std::string_view what, const char* cure) {
    return match(name, passed_, quote(name) + ", of the " + std::string(what) + ", which " + cure);
  }
  Status check(const char* none) const {
    for (size_t k = 0; k < patterns_.size(); ++k)
      if (used_[k].empty())
        return invalid(none + quote(patterns_[k]) +
                       (passed_[k].empty() ? "" : " but " + passed_[k]));
    return {};
  }

 private:
  bool match(const std::string& name, std::vector<std::string>& noted, const std::string& what) {
    bool any = false;
    for (size_t k = 0; k < patterns_.size(); ++k) {
      if (!matches(patterns_[k], name)) continue;
      any = true;
      if (noted[k].empty()) noted[k] = what;
    }
    return any;
  }
  const std::vector<std::string>& patterns_;
  std::vector<std::string> used_, passed_;  // by pattern: the first match
};

// Of f32 elements, which need not be aligned. Magnitudes are ordered as the bits without the sign are. The maximum of a
// piece is vector code.
bool all_finite_at(const uint8_t* data, size_t bytes) {
  constexpr size_t kPiece = 4096 * sizeof(float);
  constexpr uint32_t kInfinity = 0x7f800000, kNoSign = 0x7fffffff;
  for (size_t from = 0; from < bytes; from += kPiece) {
    uint32_t largest = 0;
    for (size_t k = from; k < std::min(from + kPiece, bytes); k += sizeof(float)) {
      uint32_t bits;
      std::memcpy(&bits, data + k, sizeof bits);
      largest = std::max(largest, bits & kNoSign);
    }
    if (largest >= kInfinity) return false;
  }
  return true;
}

Status check_finite(const std::string& name, const TensorView& tensor) {
  if (all_finite_at(tensor.data, tensor.bytes)) return {};
  return invalid("initialiser " + quote(name) +
                 " holds an infinity or NaN, and cannot be trained: see `exclude`");
}

}  // namespace

// In the order of names, as the model's map has them: the same for every process.
Result<Trained> find_trained(const OnnxModel& model, const Job& job) {
  const InitializerUses uses(model.graph);
  const std::set<std::string> statistics = uses.statistics();
  TW_RETURN_IF_ERROR(check_statistics(statistics, uses));
  const std::map<std::string, std::string_view> others = left_alone(model);
  Trained found;
  Patterns wanted(job.parameters), excluded(job.exclude);
  for (const auto& [name, tensor] : model.graph.initializers) {
    const auto dtype = tensor.dtype();
    if (!dtype || !is_float(*dtype)) continue;
    const bool named = wanted.names(name);
    if (statistics.count(name)) {
      if (named)
        return invalid("'" + name + "' is a running statistic of BatchNormalization, no parameter");
      for (Patterns* patterns : {&wanted, &excluded})
        patterns->pass(name, "running statistics", "are no parameters: see `statistics`");
      TW_RETURN_IF_ERROR(check_finite(name, tensor));
      TW_RETURN_IF_ERROR(append(found.statistics, name, tensor));
      continue;
    }
    if (excluded.match(name)) {
      wanted.match(name);
      found.left_alone["excluded"].push_back(name);
      continue;
    }
    if (const auto other = others.find(name); other != others.end() && !named) {
      wanted.pass(name, other->second, "are trained only by their full names");
      found.left_alone[other->second].push_back(name);
      continue;
    }
    if (!wanted.match(name)) {
      found.left_alone["not in `parameters`"].push_back(name);
      continue;
    }
    TW_RETURN_IF_ERROR(append(found.parameters, name, tensor));
    TW_RETURN_IF_ERROR(check_finite(name, tensor));
  }
  TW_RETURN_IF_ERROR(wanted.check("no float initialiser of the model matches "));
  TW_RETURN_IF_ERROR(excluded.check("no float initialiser of the model matches `exclude`'s "));
  if (found.parameters.members.empty()) return invalid("`exclude` leaves no parameter to train");
  found.note = note_of_merged(model, found.parameters, uses);
  return found;
}

// The first few names, and how many more there are.
static std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kShown = 4;
  std::string text;
  for (size_t k = 0; k < std::min(kShown, names.size()); ++k)
    text += (k > 0 ? ", " : "") + quote(names[k]);
  if (names.size() > kShown) text += ", and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

std::string summary(const Trained& trained) {
  std::vector<std::string> names;
  int64_t elements = 0;
  for (const Parameter& p : trained.parameters.members)
    names.push_back(p.name), elements += p.elements;
  std::string text = "trains " + std::to_string(names.size()) + " parameters of " +
                     std::to_string(elements) + " elements: " + some_of(names);
  if (const size_t n = trained.statistics.members.size(); n > 0)
    text += "; keeps " + std::to_string(n) + " running statistics";
  bool first = true;
  for (const auto& [what, of] : trained.left_alone) {
    text += (first ? "; left alone: " : ", ") + std::string(what) + " (" + some_of(of) + ")";
    first = false;
  }
  return text;
}

Shape Parameter::stored_shape() const {
  Shape stored;
  for (const int d : order) stored.push_back(shape[static_cast<size_t>(d)]);
  return order.empty() ? shape : stored;
}

static const uint8_t* bytes_of(const float* values) {
  return reinterpret_cast<const uint8_t*>(values);
}
void lay_out(Parameters& parameters) {
  parameters.elements = 0;
  for (Parameter& p : parameters.members) {
    p.offset = parameters.elements;
    parameters.elements += (p.elements + kAlignment - 1) / kAlignment * kAlignment;
  }
}

void put(const Parameter& p, const float* values, float* flat) {
  if (p.order.empty() || p.elements == 0) {
    std::copy_n(values, p.elements, flat + p.offset);
    return;
  }
  const std::vector<uint8_t> stored =
      ir::pack(bytes_of(values), DType::kFloat32, p.shape, ir::permuted_layout(p.order));
  std::memcpy(flat + p.offset, stored.data(), stored.size());
}
void get(const Parameter& p, const float* flat, float* values) {
  if (p.order.empty() || p.elements == 0) {
    std::copy_n(flat + p.offset, p.elements, values);
    return;
  }
  const std::vector<uint8_t> rows =
      ir::unpack(bytes_of(flat + p.offset), DType::kFloat32, p.shape, ir::permuted_layout(p.order));
  std::memcpy(values, rows.data(), rows.size());
}

void put_initial_values(const OnnxModel& model, const Parameters& parameters, float* flat) {
  for (const Parameter& p : parameters.members) {
    const TensorView& t = model.graph.initializers.at(p.name);
    HostTensor values(DType::kFloat32, p.shape);  // aligned
    if (p.elements > 0) std::memcpy(values.bytes.data(), t.data, t.bytes);
    put(p, values.data<float>(), flat);
  }
}

bool all_finite(const float* values, int64_t count) {
  return all_finite_at(bytes_of(values), static_cast<size_t>(count) * sizeof(float));
}

std::optional<NotFinite> find_not_finite(const Parameters& parameters, const float* flat) {
  for (const Parameter& p : parameters.members) {
    const float* values = flat + p.offset;
    if (all_finite(values, p.elements)) continue;
    const float* found =
        std::find_if_not(values, values + p.elements, [](float x) { return std::isfinite(x); });
    return NotFinite{p.name, *found};
  }
  return std::nullopt;
}
std::string describe(const std::string& buffer, const NotFinite& found) {
  const std::string what = buffer == kParameters   ? "parameter "
                           : buffer == kStatistics ? "running statistic "
                           : buffer == kGradients  ? "the gradient of "
                                                   : "the optimiser's '" + buffer + "' of ";
  return what + quote(found.name) + (std::isnan(found.value) ? " NaN" : " infinite");
}

NamedTensors take_apart(const Parameters& parameters, const float* flat) {
  NamedTensors tensors;
  for (const Parameter& p : parameters.members) {
    HostTensor t(DType::kFloat32, p.shape);
    get(p, flat, t.data<float>());
    tensors.emplace_back(p.name, std::move(t));
  }
  return tensors;
}

}  // namespace tilewright::train
