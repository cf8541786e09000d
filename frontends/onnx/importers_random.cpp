// Random numbers. A node with a seed draws from it, the same numbers in each run; one without draws
// from the run's key, numbers of its own. Inside of a loop each iteration has its own numbers too,
// with a seed or without. In training all nodes draw from the step's key, by sample: a seed in the
// model would be the same numbers in each step.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "frontends/onnx/graph_import.h"
#include "frontends/onnx/importers.h"
#include "frontends/onnx/node_import.h"
#include "frontends/tensor_files/element_type.h"

namespace tilewright::onnx {
namespace {

using ir::Expr;
using ir::ValueId;

// A key or the number of a stream: two words for the generator, Philox (Salmon et al. 2011), which
// computes number i of a stream by itself, so that results do not depend on threads.
ValueId words(NodeImport& n, uint32_t low, uint32_t high) {
  return n.constant(ir::make_constant_of(DType::kUInt32, {2}, std::vector<uint32_t>{low, high}));
}

// A seed is a whole number for Dropout, and a number of f32 for the others.
ValueId key_of_seed(NodeImport& n) {
  if (std::holds_alternative<int64_t>(n.node.attributes.at("seed"))) {
    const auto seed = static_cast<uint64_t>(n.int_attr("seed", 0));
    return words(n, static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
  }
  return words(n, std::bit_cast<uint32_t>(static_cast<float>(n.float_attr("seed", 0))), 1);
}

enum class Numbers : uint8_t { kUniform, kNormal };

// The dimension of a result that holds the samples of a batch: the first, or that with as many rows
// (recurrent layers have steps in front), or the first again where samples and steps are joined in it.
std::optional<int64_t> axis_of_samples(NodeImport& n, ValueId samples,
                                       const std::vector<Expr>& dims) {
  const auto batch = ir::as_int(n.dim(samples, 0));
  std::vector<std::optional<int64_t>> extents;
  for (const Expr& d : dims) extents.push_back(ir::as_int(d));
  const auto same = std::find(extents.begin(), extents.end(), batch);
  if (same != extents.end()) return same - extents.begin();
  const bool joined = !dims.empty() && extents[0] && *batch > 0 && *extents[0] % *batch == 0;
  return joined ? std::optional<int64_t>(0) : std::nullopt;
}

// Numbers of f32, or of f64 where that is what they are for; those in [0, 1) that are to be rounded
// to fewer bits have no more than these, so that none becomes 1. One for each element of `like`, or
// `each` of them for each of its first extent: what makes its extents is needed for these.
V random(NodeImport& n, Numbers kind, DType use, std::vector<Expr> dims, ValueId like = kNone,
         int64_t each = 0) {
  const bool seeded = n.has_attr("seed") && !n.owner().training();
  const uint32_t number = seeded ? 0 : n.owner().next_stream();
  const ValueId key = seeded ? key_of_seed(n) : n.owner().scope()->find(kRunKey),
                place = n.owner().scope()->find(kLoopPlace);
  ValueId stream = words(n, number, 0);
  if (place != kNone) stream = n.op("random_key", {stream, place});
  const DType t = use == DType::kFloat64 ? use : DType::kFloat32;
  ir::Attributes a{{"to", std::string(name(t))}};
  ValueId shape = kNone;
  if (like == kNone || ir::constant_shape({t, dims})) {
    a["shape"] = ir::Extents{dims};
  } else {
    shape = n.op("shape", {like});
    if (each > 0)
      shape = n.op("concat", {n.slice(shape, 0, 0, 1), n.ints({each})}, {{"axis", int64_t{0}}});
  }
  std::vector<ValueId> operands{key, stream, shape};
  if (const ValueId samples = n.owner().scope()->find(kSamples); samples != kNone) {
    if (const auto axis = axis_of_samples(n, samples, dims)) {
      operands.push_back(samples);
      a["axis"] = *axis;
    }
  }
  if (kind == Numbers::kNormal) return {n, n.op("random_normal", std::move(operands), a)};
  if (use == DType::kFloat16) a["bits"] = int64_t{11};
  if (use == DType::kBFloat16) a["bits"] = int64_t{8};
  return {n, n.op("random_uniform", std::move(operands), a)};
}

// Element type of the results; some operators take that of an operand when it is not stated.
DType type_attr(NodeImport& n, const char* attribute, std::optional<DType> fallback) {
  if (!n.has_attr(attribute) && fallback) return *fallback;
  const int64_t code = n.int_attr(attribute, 1);
  const auto t = dtype_from_onnx(static_cast<int>(code));
  if (!t) n.unsupported("element type " + onnx_element_name(code));
  return *t;
}
// Numbers of the standard distribution, scaled and moved; steps that change nothing are left out.
void give_numbers(NodeImport& n, Numbers kind, DType t, std::vector<Expr> dims,
                  ValueId like = kNone) {
  if (!is_float(t)) n.fail("random numbers of type " + std::string(name(t)));
  V x = random(n, kind, t, std::move(dims), like);
  if (kind == Numbers::kNormal) {
    const double mean = n.float_attr("mean", 0), scale = n.float_attr("scale", 1);
    if (scale != 1) x = x * scale;
    if (mean != 0) x = x + mean;
  } else {
    const double low = n.float_attr("low", 0), high = n.float_attr("high", 1);
    if (high - low != 1) x = x * (high - low);
    if (low != 0) x = x + low;
  }
  n.out(0, x.to(t).id);
}
template <Numbers kind>
void random_of_shape(NodeImport& n) {
  if (!n.has_attr("shape")) n.fail("attribute 'shape' is missing");
  std::vector<Expr> dims;
  for (int64_t d : n.ints_attr("shape")) {
    if (d < 0) n.fail("attribute 'shape' has the extent " + std::to_string(d));
    dims.push_back(d);
  }
  give_numbers(n, kind, type_attr(n, "dtype", DType::kFloat32), dims);
}
template <Numbers kind>
void random_like(NodeImport& n) {
  const ValueId x = n.required(0);
  const DType like = n.dtype(x);
  give_numbers(n, kind, type_attr(n, "dtype", is_float(like) ? std::optional(like) : std::nullopt),
               n.type(x).dims, x);
}

// 1 with the probability that the operand states.
void bernoulli(NodeImport& n) {
  V p{n, n.required(0)};
  if (!is_float(p.dtype())) n.fail("x is " + to_string(n.type(p.id)) + ", expected probabilities");
  const DType to = type_attr(n, "dtype", p.dtype());
  const DType t = p.dtype() == DType::kFloat64 ? p.dtype() : DType::kFloat32;
  V below = apply("less", random(n, Numbers::kUniform, t, n.type(p.id).dims, p.id), p.to(t));
  n.out(0, below.to(to).id);
}

// Class numbers, drawn by logarithms of probabilities, of which only differences matter: the number
// of running sums that do not exceed a part of their total. That part is less than the total, also
// when it is rounded, so that no class of probability 0 is drawn.
void multinomial(NodeImport& n) {
  V x{n, n.required(0)};
  const int64_t samples = n.int_attr("sample_size", 1);
  if (x.rank() != 2 || !is_float(x.dtype()))
    n.fail("x is " + to_string(n.type(x.id)) + ", expected [batch, classes] of floats");
  if (samples < 1) n.fail("sample_size is " + std::to_string(samples));
  const DType to = type_attr(n, "dtype", DType::kInt32);
  if (to != DType::kInt32 && to != DType::kInt64)
    n.fail("class numbers of type " + std::string(name(to)) + ", expected i32 or i64");
  const std::vector<Expr> dims = n.type(x.id).dims;
  V wide = x.to(DType::kFloat64);
  V weights = apply("exp", wide - reduce("reduce_max", wide, {1}));
  V sums{n, n.op("cumulative_sum", {weights.id, n.scalar(1, DType::kInt64)})};
  V total = reduce("reduce_max", sums, {1});
  V part = random(n, Numbers::kUniform, DType::kFloat64, {dims[0], Expr(samples)}, x.id, samples);
  part = part * (1 - 0x1p-52) * total;
  V passed = apply("greater_equal", V{n, n.reshape(part.id, {dims[0], Expr(samples), Expr(1)})},
                   V{n, n.reshape(sums.id, {dims[0], Expr(1), dims[1]})});
  n.out(0, reduce("reduce_sum", passed.to(to), {2}, false).id);
}

// What of a Dropout node says how many it drops: an attribute before opset 12.
V dropped_part(NodeImport& n, DType t) {
  if (!n.has(1)) return {n, n.scalar(n.opset() < 12 ? n.float_attr("ratio", 0.5) : 0.5, t)};
  V ratio = V{n, n.in(1)}.to(t);
  if (ratio.rank() > 0) ratio = {n, n.reshape(ratio.id, std::vector<int64_t>{})};
  return ratio;
}
// Does the node drop, as far as that is known? Not for inference, unless an operand asks for it.
std::optional<bool> drops(NodeImport& n) {
  if (n.owner().mode() != ImportMode::kStated) return n.owner().mode() == ImportMode::kTraining;
  const ValueId asked = n.opset() >= 12 ? n.in(2) : kNone;
  if (asked == kNone) return false;
  const auto known = n.known_ints(asked);
  return known ? std::optional(known->at(0) != 0) : std::nullopt;
}
// Training drops elements with a probability and scales up the others; x itself otherwise.
void dropout(NodeImport& n) {
  V x{n, n.required(0)};
  const std::vector<Expr> dims = n.type(x.id).dims;
  const std::optional<bool> active = drops(n);
  if (active == false) {
    const ValueId yes = n.constant(ir::make_constant(DType::kBool, {}, {1}));
    n.out(0, n.op("identity", {x.id}));
    if (n.wants(1)) n.out(1, n.op("expand", {yes, n.op("shape", {x.id})}));
    return;
  }
  if (!is_float(x.dtype())) n.fail("x is " + to_string(n.type(x.id)));
  const DType t = x.dtype() == DType::kFloat64 ? x.dtype() : DType::kFloat32;
  const V ratio = dropped_part(n, t);
  V mask = apply("greater_equal", random(n, Numbers::kUniform, t, dims, x.id), ratio);
  V wide = x.to(t);
  V y = where(mask, wide * (1.0 / (1.0 - ratio)), wide.number(0)).to(x.dtype());
  if (!active) {
    const ValueId asked = n.in(2);
    V on{n, n.rank(asked) > 0 ? n.reshape(asked, std::vector<int64_t>{}) : asked};
    y = where(on, y, x);
    mask = apply("or", mask, apply("not", on));
  }
  n.out(0, y.id);
  if (n.wants(1)) n.out(1, mask.id);
}

constexpr auto kRandomRows = std::to_array<OpMapping>({
    {"", "RandomNormal", 1, random_of_shape<Numbers::kNormal>},
    {"", "RandomUniform", 1, random_of_shape<Numbers::kUniform>},
    {"", "RandomNormalLike", 1, random_like<Numbers::kNormal>},
    {"", "RandomUniformLike", 1, random_like<Numbers::kUniform>},
    {"", "Bernoulli", 15, bernoulli},
    {"", "Multinomial", 7, multinomial},
    {"", "Dropout", 7, dropout},
});

}  // namespace

std::span<const OpMapping> random_mappings() { return kRandomRows; }

ValueId loop_place(NodeImport& n, ImportScope& around, ValueId iteration) {
  ValueId outer = around.find(kLoopPlace);
  if (outer == kNone) outer = words(n, 0, 2);
  return n.op("random_key", {outer, iteration});
}

bool draws_numbers(const OnnxGraph& graph, ImportMode mode) {
  for (const OnnxNode& node : graph.nodes) {
    const bool trains = node.op_type != "Dropout" || mode == ImportMode::kTraining ||
                        (mode == ImportMode::kStated && node.inputs.size() > 2);
    if (node.domain.empty() && trains &&
        std::any_of(kRandomRows.begin(), kRandomRows.end(),
                    [&](const OpMapping& m) { return m.op_type == node.op_type; }))
      return true;
    for (const auto& [name, value] : node.attributes) {
      if (const auto* g = std::get_if<std::shared_ptr<OnnxGraph>>(&value);
          g && draws_numbers(**g, mode))
        return true;
      if (const auto* all = std::get_if<std::vector<std::shared_ptr<OnnxGraph>>>(&value))
        for (const auto& g : *all)
          if (draws_numbers(*g, mode)) return true;
    }
  }
  return false;
}

}  // namespace tilewright::onnx
