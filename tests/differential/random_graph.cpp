#include "tests/differential/random_graph.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/graph/infer.h"
#include "ir/graph/op.h"
#include "ir/interpreter/evaluate.h"

namespace tilewright {

namespace {

using ir::Expr;
using ir::ValueId;

constexpr int64_t kExtents[] = {1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 33, 64, 97};
constexpr int64_t kMostElements = 12000;
constexpr int64_t kMostProducts = 400000;  // multiplications of one contraction
constexpr double kLargestBound = 30;

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  RandomGraph run() {
    result_.graph.name = "random";
    if (chance(0.3)) {
      symbol_ = ir::Var("n");
      extent_of_symbol_ = any_extent();
      values_[symbol_.get()] = extent_of_symbol_;
    }
    add_input(random_shape(static_cast<int>(below(4)) + 1, true), chance(0.7));
    const int steps = static_cast<int>(below(6)) + 2;
    for (int made = 0, tries = 0; made < steps && tries < 60; ++tries) made += step() ? 1 : 0;
    choose_outputs();
    return std::move(result_);
  }

 private:
  struct Known {
    ValueId id;
    double bound;
  };  // |elements| <= bound

  int64_t below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random_); }
  bool chance(double p) { return std::uniform_real_distribution<double>(0, 1)(random_) < p; }
  int64_t any_extent() { return kExtents[below(std::size(kExtents))]; }
  ir::Graph& graph() { return result_.graph; }
  const ir::TensorType& type(ValueId v) { return graph().value(v).type; }

  // Extents in numbers.
  Shape shape(ValueId v) {
    Shape s;
    for (const Expr& d : type(v).dims) s.push_back(ir::evaluate_int(d, values_).value());
    return s;
  }
  bool is_static(ValueId v) { return ir::constant_shape(type(v)).has_value(); }

  Shape random_shape(int rank, bool may_be_empty) {
    Shape s;
    int64_t n = 1;
    for (int d = 0; d < rank; ++d) {
      int64_t e = any_extent();
      while (n * e > kMostElements) e = e / 2;
      if (may_be_empty && chance(0.01)) e = 0;
      s.push_back(e);
      n *= std::max<int64_t>(e, 1);
    }
    return s;
  }
  ValueId add_input(const Shape& extents, bool symbolic = false) {
    ir::TensorType t{DType::kFloat32, {}};
    Shape actual = extents;
    for (size_t d = 0; d < extents.size(); ++d) t.dims.push_back(Expr(extents[d]));
    if (symbolic && symbol_ && !extents.empty()) {
      int64_t rest = 1;
      for (size_t d = 1; d < extents.size(); ++d) rest *= extents[d];
      if (rest * extent_of_symbol_ <= 4 * kMostElements) {
        t.dims[0] = symbol_;
        actual[0] = extent_of_symbol_;
      }
    }
    const ValueId v = graph().add_value("x" + std::to_string(graph().inputs.size()), t);
    graph().inputs.push_back(v);
    result_.inputs.push_back(random_tensor(DType::kFloat32, actual, random_));
    live_.push_back({v, 1});
    return v;
  }
  ValueId add_ints(const std::vector<int64_t>& values) {
    return graph().add_constant("c" + std::to_string(graph().values.size()),
                                ir::make_constant_of<int64_t>(
                                    DType::kInt64, {static_cast<int64_t>(values.size())}, values));
  }
  // A weight whose elements are at most 1 / sqrt(fan_in).
  ValueId add_weight(const Shape& extents, int64_t fan_in) {
    HostTensor t = random_tensor(DType::kFloat32, extents, random_);
    const auto scale =
        static_cast<float>(1 / std::sqrt(static_cast<double>(std::max<int64_t>(fan_in, 1))));
    for (int64_t i = 0; i < t.size(); ++i) t.data<float>()[i] *= scale;
    return graph().add_constant(
        "w" + std::to_string(graph().values.size()),
        ir::make_constant(DType::kFloat32, extents,
                          std::vector<uint8_t>(t.bytes.begin(), t.bytes.end())));
  }
  bool add(std::string_view op, std::vector<ValueId> operands, ir::Attributes attributes,
           double bound) {
    auto outputs = ir::add_node(graph(), op, std::move(operands), std::move(attributes), 1,
                                std::string(op), {std::string(op)});
    TW_CHECK(outputs.ok());
    live_.push_back({(*outputs)[0], bound});
    return true;
  }
  Known pick() {
    // Recent results more often: chains are what fuses.
    const auto n = static_cast<int64_t>(live_.size());
    return live_[static_cast<size_t>(chance(0.6) ? n - 1 : below(n))];
  }

  bool step() {
    const Known x = pick();
    if (x.bound > kLargestBound) return add("tanh", {x.id}, {}, 1);
    switch (below(14)) {
      case 0:
      case 1: return unary(x);
      case 2:
      case 3:
      case 4: return binary(x);
      case 5: return reduce(x);
      case 6: return transpose(x);
      case 7: return reshape(x);
      case 8: return slice(x);
      case 9: return concat(x);
      case 10: return matmul(x);
      case 11: return conv(x);
      case 12: return pool(x);
      default: return normalize(x);
    }
  }
  bool unary(const Known& x) {
    switch (below(8)) {
      case 0: return add("neg", {x.id}, {}, x.bound);
      case 1: return add("abs", {x.id}, {}, x.bound);
      case 2: return add("relu", {x.id}, {}, x.bound);
      case 3: return add("sigmoid", {x.id}, {}, 1);
      case 4: return add("tanh", {x.id}, {}, 1);
      case 5: return add("erf", {x.id}, {}, 1);
      case 6: return add("sin", {x.id}, {}, 1);
      default: return x.bound > 3 ? false : add("exp", {x.id}, {}, std::exp(x.bound));
    }
  }
  // Another value that broadcasts with x: one of the same type, or a new input with some extents 1
  // or fewer dimensions.
  Known partner(const Known& x) {
    if (chance(0.5)) {
      std::vector<Known> same;
      for (const Known& k : live_)
        if (shape(k.id) == shape(x.id) && ir::to_string(type(k.id)) == ir::to_string(type(x.id)))
          same.push_back(k);
      if (same.size() > 1)
        return same[static_cast<size_t>(below(static_cast<int64_t>(same.size())))];
    }
    Shape s = shape(x.id);
    const auto& dims = type(x.id).dims;
    for (size_t d = 0; d < s.size(); ++d)
      if (chance(0.4) || !ir::as_int(dims[d])) s[d] = 1;
    s.erase(s.begin(), s.begin() + below(static_cast<int64_t>(s.size()) + 1));
    if (chance(0.5)) return {add_weight(s, 1), 1};
    return {add_input(s), 1};
  }
  bool binary(const Known& x) {
    Known a = x, b = partner(x);
    if (chance(0.5)) std::swap(a, b);
    switch (below(5)) {
      case 0: return add("add", {a.id, b.id}, {}, a.bound + b.bound);
      case 1: return add("sub", {a.id, b.id}, {}, a.bound + b.bound);
      case 2: return add("mul", {a.id, b.id}, {}, a.bound * b.bound);
      case 3: return add("max", {a.id, b.id}, {}, std::max(a.bound, b.bound));
      default: return add("min", {a.id, b.id}, {}, std::max(a.bound, b.bound));
    }
  }
  bool reduce(const Known& x) {
    const Shape s = shape(x.id);
    if (s.empty()) return false;
    std::vector<int64_t> axes;
    double n = 1;
    for (size_t d = 0; d < s.size(); ++d)
      if (chance(0.5) || (axes.empty() && d + 1 == s.size())) {
        axes.push_back(chance(0.3) ? static_cast<int64_t>(d) - static_cast<int64_t>(s.size())
                                   : static_cast<int64_t>(d));
        n *= static_cast<double>(s[d]);
      }
    const ir::Attributes attributes{{"axes", axes}, {"keepdims", below(2)}};
    if (n < 1) return add("reduce_sum", {x.id}, attributes, 0);
    switch (below(4)) {
      case 0:
        return n * x.bound > 1000 ? false : add("reduce_sum", {x.id}, attributes, n * x.bound);
      case 1: return add("reduce_max", {x.id}, attributes, x.bound);
      case 2: return add("reduce_min", {x.id}, attributes, x.bound);
      default: return add("reduce_mean", {x.id}, attributes, x.bound);
    }
  }
  bool transpose(const Known& x) {
    std::vector<int64_t> perm(shape(x.id).size());
    for (size_t d = 0; d < perm.size(); ++d) perm[d] = static_cast<int64_t>(d);
    std::shuffle(perm.begin(), perm.end(), random_);
    return add("transpose", {x.id}, {{"perm", perm}}, x.bound);
  }
  bool reshape(const Known& x) {
    if (!is_static(x.id)) return false;
    Shape s = shape(x.id);
    int64_t n = element_count(s).value();
    if (n == 0) return false;
    if (chance(0.3)) return add("reshape", {x.id, add_ints({-1})}, {}, x.bound);
    std::vector<int64_t> to;
    for (int64_t d : {2, 3, 8, 13})
      if (n % d == 0 && chance(0.6)) {
        to.push_back(d);
        n /= d;
      }
    to.push_back(n);
    std::shuffle(to.begin(), to.end(), random_);
    return add("reshape", {x.id, add_ints(to)}, {}, x.bound);
  }
  bool slice(const Known& x) {
    const Shape s = shape(x.id);
    std::vector<int64_t> starts, ends, axes, steps;
    for (size_t d = 0; d < s.size(); ++d) {
      if (!ir::as_int(type(x.id).dims[d]) || s[d] < 2 || chance(0.4)) continue;
      const int64_t a = below(s[d]), b = below(s[d]);
      axes.push_back(static_cast<int64_t>(d));
      const bool backwards = chance(0.25);
      starts.push_back(backwards ? std::max(a, b) : std::min(a, b));
      ends.push_back(backwards ? std::min(a, b) - 1 - s[d] : std::max(a, b) + 1);
      steps.push_back(backwards ? -1 - below(2) : 1 + below(3));
    }
    if (axes.empty()) return false;
    return add("slice", {x.id, add_ints(starts), add_ints(ends), add_ints(axes), add_ints(steps)},
               {}, x.bound);
  }
  bool concat(const Known& x) {
    const Shape s = shape(x.id);
    if (s.empty() || !is_static(x.id)) return false;
    const int64_t axis = below(static_cast<int64_t>(s.size()));
    std::vector<ValueId> parts{x.id};
    double bound = x.bound;
    for (int64_t k = 1 + below(2); k > 0; --k) {
      if (chance(0.3)) {
        parts.push_back(x.id);
        continue;
      }
      Shape other = s;
      other[static_cast<size_t>(axis)] = any_extent();
      if (element_count(other).value() > kMostElements) return false;
      parts.push_back(add_input(other));
      bound = std::max(bound, 1.0);
    }
    std::shuffle(parts.begin(), parts.end(), random_);
    return add("concat", parts, {{"axis", axis}}, bound);
  }
  bool matmul(const Known& x) {
    const Shape s = shape(x.id);
    if (s.empty()) return false;
    const int64_t n = any_extent(), k = s.back();
    if (element_count(s).value() * n > kMostProducts || !ir::as_int(type(x.id).dims.back()))
      return false;
    const bool transposed = chance(0.3);
    Shape w = transposed ? Shape{n, k} : Shape{k, n};
    if (s.size() > 2 && is_static(x.id) && chance(0.3))
      w.insert(w.begin(), chance(0.5) ? s[s.size() - 3] : 1);
    ir::Attributes attributes;
    if (transposed) attributes["trans_b"] = int64_t{1};
    const double bound = x.bound * std::sqrt(static_cast<double>(k));
    return add("matmul", {x.id, add_weight(w, k)}, attributes, bound);
  }
  bool conv(const Known& x) {
    const Shape s = shape(x.id);
    if (s.size() < 3 || !ir::as_int(type(x.id).dims[1])) return false;
    const size_t spatial = s.size() - 2;
    std::vector<int64_t> kernel, pads(2 * spatial), strides, dilations;
    int64_t fan_in = s[1], group = 1;
    if (chance(0.3))
      group = s[1];
    else if (s[1] % 2 == 0 && chance(0.3))
      group = 2;
    if (group == 0) return false;
    fan_in /= group;
    for (size_t d = 0; d < spatial; ++d) {
      kernel.push_back(1 + below(3));
      strides.push_back(1 + below(2));
      dilations.push_back(1 + below(2));
      pads[d] = below(3);
      pads[d + spatial] = below(3);
      fan_in *= kernel.back();
      if (!ir::as_int(type(x.id).dims[d + 2])) return false;
      if (s[d + 2] + pads[d] + pads[d + spatial] < (kernel.back() - 1) * dilations.back() + 1)
        return false;
    }
    const int64_t out = group * (1 + below(group > 3 ? 2 : 9));
    if (fan_in == 0 ||
        element_count(s).value() / std::max<int64_t>(s[1], 1) * out * fan_in > kMostProducts)
      return false;
    Shape w{out, s[1] / group};
    w.insert(w.end(), kernel.begin(), kernel.end());
    const double bound = x.bound * std::sqrt(static_cast<double>(fan_in));
    add("conv", {x.id, add_weight(w, fan_in)},
        {{"pads", pads}, {"strides", strides}, {"dilations", dilations}, {"group", group}}, bound);
    Shape bias(spatial + 1, 1);
    bias[0] = out;
    return chance(0.5) ? add("add", {live_.back().id, add_weight(bias, 1)}, {}, bound + 1) : true;
  }
  bool pool(const Known& x) {
    const Shape s = shape(x.id);
    if (s.size() < 3) return false;
    const size_t spatial = s.size() - 2;
    std::vector<int64_t> kernel, pads(2 * spatial), strides;
    for (size_t d = 0; d < spatial; ++d) {
      kernel.push_back(1 + below(3));
      strides.push_back(1 + below(3));
      for (size_t side : {d, d + spatial}) pads[side] = below(kernel.back());
      if (s[d + 2] + pads[d] + pads[d + spatial] < kernel.back() ||
          !ir::as_int(type(x.id).dims[d + 2]))
        return false;
    }
    const ir::Attributes attributes{{"kernel_shape", kernel}, {"pads", pads}, {"strides", strides}};
    return add(chance(0.5) ? "max_pool" : "average_pool", {x.id}, attributes, x.bound);
  }
  bool normalize(const Known& x) {
    const Shape s = shape(x.id);
    if (s.empty() || element_count(s) == 0) return false;
    const int64_t axis = below(static_cast<int64_t>(s.size()));
    if (chance(0.5))
      return add(chance(0.7) ? "softmax" : "log_softmax", {x.id}, {{"axis", axis}},
                 2 * x.bound + 6);
    Shape scale;
    for (size_t d = static_cast<size_t>(axis); d < s.size(); ++d) {
      if (!ir::as_int(type(x.id).dims[d])) return false;
      scale.push_back(s[d]);
    }
    if (element_count(scale).value() < 5)
      return false;  // the variance of so few may vanish: ill-conditioned
    std::vector<ValueId> operands{x.id};
    if (chance(0.7)) {
      operands.push_back(add_weight(scale, 1));
      operands.push_back(add_weight(scale, 1));
    }
    return add("layer_norm", operands, {{"axis", axis}}, 10);
  }
  // The last result, and now and then one on the way.
  void choose_outputs() {
    auto add_output = [&](ValueId v) {
      if (std::count(graph().outputs.begin(), graph().outputs.end(), v)) return;
      graph().outputs.push_back(v);
      graph().output_names.push_back(graph().value(v).name +
                                     std::to_string(graph().outputs.size()));
    };
    for (const Known& k : live_)
      if (graph().value(k.id).producer >= 0 && chance(0.15)) add_output(k.id);
    for (size_t i = live_.size(); i-- > 0;)
      if (graph().value(live_[i].id).producer >= 0) {
        add_output(live_[i].id);
        break;
      }
  }

  std::mt19937_64 random_;
  RandomGraph result_;
  std::vector<Known> live_;
  ir::Var symbol_;
  int64_t extent_of_symbol_ = 1;
  ir::IntValues values_;
};

}  // namespace

RandomGraph make_random_graph(uint64_t seed) { return Generator(seed).run(); }

std::string describe_graph(const ir::Graph& graph) {
  std::string text;
  auto show = [&](ValueId v) {
    if (v == ir::kNone) return std::string("none");
    return "%" + std::to_string(v) + ": " + ir::to_string(graph.value(v).type);
  };
  for (ValueId v : graph.inputs) text += "  input " + show(v) + "\n";
  for (const ir::Node& n : graph.nodes) {
    text += " ";
    for (ValueId v : n.outputs) text += " " + show(v);
    text += " = " + std::string(n.op->name);
    for (ValueId v : n.inputs) text += " " + show(v);
    for (const auto& [name, value] : n.attributes) {
      text += " " + name + "=";
      if (const auto* i = std::get_if<int64_t>(&value)) text += std::to_string(*i);
      if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) text += to_string(*list);
    }
    text += "\n";
  }
  for (ValueId v : graph.outputs) text += "  output " + show(v) + "\n";
  return text;
}

}  // namespace tilewright
