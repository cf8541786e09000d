// Normalisations other than softmax and layer norm, and losses.
#include <array>

#include "frontends/onnx/graph_import.h"
#include "frontends/onnx/importers.h"
#include "frontends/onnx/node_import.h"
#include "ir/loops/simplify.h"

namespace tilewright::onnx {
namespace {

using ir::Expr;
using ir::ValueId;

// A vector as [d, 1, 1, ...], to stand before `after` more dimensions.
V before_dims(V v, int after) {
  std::vector<Expr> dims{v.n.dim(v.id, 0)};
  dims.resize(static_cast<size_t>(after) + 1, Expr(1));
  return {v.n, v.n.reshape(v.id, dims)};
}
std::vector<int64_t> range(int64_t begin, int64_t end) {
  std::vector<int64_t> r;
  for (int64_t i = begin; i < end; ++i) r.push_back(i);
  return r;
}

// Each channel of each sample by itself.
void instance_norm(NodeImport& n) {
  V x{n, n.required(0)}, scale{n, n.required(1)}, bias{n, n.required(2)};
  if (x.rank() < 3) n.fail("x is " + to_string(n.type(x.id)) + ", expected [n, c, spatial...]");
  const int spatial = x.rank() - 2;
  n.out(0, n.op("layer_norm", {x.id, before_dims(scale, spatial).id, before_dims(bias, spatial).id},
                {{"axis", int64_t{2}}, {"epsilon", n.float_attr("epsilon", 1e-5)}}));
}
// Scale and bias are one value per group before opset 21, per channel since.
void group_norm(NodeImport& n) {
  V x{n, n.required(0)}, scale{n, n.required(1)}, bias{n, n.required(2)};
  const int64_t groups = n.int_attr("num_groups", 0);
  if (x.rank() < 2) n.fail("x is " + to_string(n.type(x.id)) + ", expected [n, c, spatial...]");
  const std::vector<Expr> dims = n.type(x.id).dims;
  if (groups < 1 || ir::as_int(dims[1]).value_or(groups) % groups)
    n.fail("num_groups " + std::to_string(groups) + " for x: " + to_string(n.type(x.id)));
  n.require_multiple(dims[1], groups, std::to_string(groups) + " groups must be of one size");
  std::vector<Expr> grouped{dims[0], Expr(groups), simplify(floordiv(dims[1], Expr(groups)))};
  grouped.insert(grouped.end(), dims.begin() + 2, dims.end());
  auto parameter = [&](V v) {
    if (n.opset() < 21) return before_dims(v, x.rank() - 1);
    std::vector<Expr> shape(grouped.begin() + 1, grouped.begin() + 3);
    shape.resize(static_cast<size_t>(x.rank()), Expr(1));
    return V{n, n.reshape(v.id, shape)};
  };
  ValueId y =
      n.op("layer_norm", {n.reshape(x.id, grouped), parameter(scale).id, parameter(bias).id},
           {{"axis", int64_t{2}}, {"epsilon", n.float_attr("epsilon", 1e-5)}});
  n.out(0, n.reshape(y, dims));
}
// x ^ 0.75
V three_quarters(V x) {
  V root = apply("sqrt", x);
  return root * apply("sqrt", root);
}
// x / (bias + alpha / size * sum of squares over `size` channels around) ^ beta. The mean over
// channels is a pooling.
void lrn(NodeImport& n) {
  V x{n, n.required(0)};
  const int64_t size = n.int_attr("size", 0);
  if (size < 1 || x.rank() < 3)
    n.fail("size " + std::to_string(size) + ", x is " + to_string(n.type(x.id)));
  const std::vector<Expr> dims = n.type(x.id).dims;
  Expr inner = 1;
  for (size_t d = 2; d < dims.size(); ++d) inner = inner * dims[d];
  ValueId squares = n.reshape((x * x).id, std::vector<Expr>{dims[0], 1, dims[1], simplify(inner)});
  ValueId mean = n.op("average_pool", {squares},
                      {{"kernel_shape", std::vector<int64_t>{size, 1}},
                       {"pads", std::vector<int64_t>{(size - 1) / 2, 0, size / 2, 0}},
                       {"count_include_pad", int64_t{1}}});
  V factor = V{n, n.reshape(mean, dims)} * n.float_attr("alpha", 1e-4) + n.float_attr("bias", 1);
  const double beta = n.float_attr("beta", 0.75);
  // What is surely above 0 has roots; those of roots are far cheaper than a power.
  V power = beta == 0.75 && n.float_attr("alpha", 1e-4) >= 0 && n.float_attr("bias", 1) > 0
                ? three_quarters(factor)
                : apply("pow", factor, factor.number(beta));
  n.out(0, (x / power).id);
}
// x / |x|_p; 0 where the norm is 0.
void lp_norm(NodeImport& n) {
  V x{n, n.required(0)};
  const int64_t p = n.int_attr("p", 2), axis = normalized_axis(n, n.int_attr("axis", -1), x.rank());
  if (p != 1 && p != 2) n.fail("p is " + std::to_string(p) + ", expected 1 or 2");
  V norm = reduce("reduce_sum", p == 1 ? apply("abs", x) : x * x, {axis});
  if (p == 2) norm = apply("sqrt", norm);
  n.out(0, where(apply("equal", norm, norm.number(0)), norm.number(0), x / norm).id);
}
// (x - mean) / (standard deviation + 1e-9), the mean taken out first: the difference of squares
// would cancel.
void mean_variance_norm(NodeImport& n) {
  V x{n, n.required(0)};
  const std::vector<int64_t> axes = n.ints_attr("axes", {0, 2, 3});
  V centred = x - reduce("reduce_mean", x, axes);
  V deviation = apply("sqrt", reduce("reduce_mean", centred * centred, axes));
  n.out(0, (centred / (deviation + 1e-9)).id);
}

struct BatchStatistics {
  V mean, var;
};
// scale * (x - mean) / sqrt(var + epsilon) + bias.
// Returns operand i of BatchNormalization, [c]. An x of one dimension has one channel; where only
// the run knows the operand's extent, the run checks it.
V channel_operand(NodeImport& n, V x, int i) {
  const V v{n, n.required(i)};
  if (x.rank() > 1) return v;
  const ir::TensorType t = n.type(v.id);
  if (as_int(element_count(t)).value_or(1) != 1)
    n.fail("operand " + std::to_string(i) + " is " + to_string(t) + ", but x, " +
           to_string(n.type(x.id)) + ", has one channel");
  if (t.rank() != 1 || as_int(t.dims[0])) return v;
  n.require_equal(t.dims[0], 1, "an x of one dimension has one channel");
  return V{n, n.op("reshape", {v.id, n.dims({1})})};
}

void apply_batch_norm(NodeImport& n, V x, BatchStatistics s) {
  V scale = channel_operand(n, x, 1).to(s.var.dtype()),
    bias = channel_operand(n, x, 2).to(s.var.dtype());
  V factor = scale / apply("sqrt", s.var + n.float_attr("epsilon", 1e-5));
  V shift = bias - s.mean * factor;
  // Statistics of a whole sample (spatial 0 in old opsets) have its shape already.
  auto channels = [&](V v) {
    if (v.rank() == 1 && x.rank() > 1)
      n.require_equal(n.dim(v.id, 0), n.dim(x.id, 1), "each channel must have its parameters");
    return v.rank() == 1 && x.rank() > 2 ? before_dims(v, x.rank() - 2) : v;
  };
  n.out(0, (x.to(s.var.dtype()) * channels(factor) + channels(shift)).to(x.dtype()).id);
}
// What a running statistic is now, and what it becomes: of a model that is trained, where it is one of
// its initialisers, also one that several nodes share.
class RunningStatistic {
 public:
  RunningStatistic(NodeImport& n, int operand) : n_(n), now_(n.required(operand)) {
    if (!n.owner().training()) return;
    ValueId v = now_;
    auto& updated = n.owner().training()->updated;
    while (v != kNone && !updated.count(v)) v = source_of_identity(v);
    if (v == kNone) return;
    becomes_ = &updated[v];
    now_ = *becomes_;
  }
  // The mean of what it was and what the batch has, as the node weighs them.
  ValueId update(V batch) {
    const double momentum = n_.float_attr("momentum", 0.9);
    const V old = V{n_, now_}.to(batch.dtype());
    const ValueId v = (old * momentum + batch * (1 - momentum)).to(n_.dtype(now_)).id;
    if (becomes_) *becomes_ = v;
    return v;
  }

 private:
  // kNone: v is no copy.
  ValueId source_of_identity(ValueId v) const {
    const int32_t producer = n_.graph().value(v).producer;
    if (producer < 0) return kNone;
    const ir::Node& node = n_.graph().nodes[static_cast<size_t>(producer)];
    return node.op->name == "identity" ? node.inputs[0] : kNone;
  }
  NodeImport& n_;
  ValueId now_;
  ValueId* becomes_ = nullptr;
};

// Over the batch and, unless each place of a sample has its own (spatial 0 in old opsets), places.
void batch_norm_of_batch(NodeImport& n, V x) {
  if (n.owner().training() && !n.owner().is_main_graph())
    n.unsupported("running statistics of a nested graph, in training");
  RunningStatistic mean(n, 3), var(n, 4);
  const V like{n, n.required(4)};
  const DType t = like.dtype();
  const int places = like.rank() == 1 ? x.rank() - 2 : 0;
  std::vector<int64_t> axes{0};
  for (int d = 0; d < places; ++d) axes.push_back(d + 2);
  auto spread = [&](V v) { return places > 0 ? before_dims(v, places) : v; };
  const bool one_channel = x.rank() == 1;
  V wide = x.to(t), batch_mean = reduce("reduce_mean", wide, axes, one_channel);
  const bool trains = n.owner().training();
  // The sum of squares around a mean does not change with the mean.
  V centred = wide - spread(trains ? apply("stop_gradient", batch_mean) : batch_mean);
  V batch_var = reduce("reduce_mean", centred * centred, axes, one_channel);
  apply_batch_norm(n, x, {batch_mean, batch_var});
  if (n.wants(1) || trains) n.out(1, mean.update(batch_mean), 3);
  if (n.wants(2) || trains) n.out(2, var.update(batch_var), 4);
  // Before opset 14: what the batch has, as operands of a gradient.
  if (n.wants(3)) n.out(3, batch_mean.id, 3);
  if (n.wants(4)) n.out(4, batch_var.id, 4);
}
// Inference takes the given statistics and is affine per channel, which later passes fold into a
// convolution. In training mode the statistics are those of the batch, and running ones are
// returned.
void batch_norm(NodeImport& n) {
  V x{n, n.required(0)};
  if (x.rank() < 1) n.fail("x is " + to_string(n.type(x.id)) + ", expected [n, c, ...]");
  const V mean = channel_operand(n, x, 3), var = channel_operand(n, x, 4);
  const TrainingImport* training = n.owner().training();
  const bool stated = n.owner().mode() == ImportMode::kStated;
  if (training ? training->batch_statistics : stated && n.int_attr("training_mode", 0) != 0)
    return batch_norm_of_batch(n, x);
  if (n.wants(1) && stated)
    n.unsupported("the statistics of a batch in opset " + std::to_string(n.opset()) +
                  " without training_mode");
  apply_batch_norm(n, x, {mean, var});
  if (n.wants(1)) n.out(1, mean.id, 3);
  if (n.wants(2)) n.out(2, var.id, 4);
  // Before opset 14: what the batch has, as operands of a gradient.
  if (n.wants(3)) n.out(3, mean.id, 3);
  if (n.wants(4)) n.out(4, var.id, 4);
}

// x: [n, c, d...] log-probabilities, target: [n, d...] class numbers, weight: [c].
ValueId negative_log_likelihood(NodeImport& n, V x, V target, ValueId weight) {
  if (x.rank() < 2 || target.rank() != x.rank() - 1)
    n.fail("x is " + to_string(n.type(x.id)) + ", labels are " + to_string(n.type(target.id)) +
           ": expected [n, c, d...] and [n, d...]");
  for (int d = 0; d < target.rank(); ++d)
    n.require_equal(n.dim(target.id, d), n.dim(x.id, d == 0 ? 0 : d + 1),
                    "there must be a label for each place");
  if (weight != kNone && n.rank(weight) == 1)
    n.require_equal(n.dim(weight, 0), n.dim(x.id, 1), "there must be a weight for each class");
  auto classes = ir::as_int(n.dim(x.id, 1));
  if (!classes) n.needs_value("the number of classes is not known at compile time");
  std::vector<Expr> column = n.type(target.id).dims;
  column.insert(column.begin() + 1, Expr(1));
  std::vector<int64_t> line(static_cast<size_t>(x.rank()), 1);
  line[1] = *classes;
  const bool ignores = n.has_attr("ignore_index");
  V ignored = ignores ? apply("equal", target,
                              target.number(static_cast<double>(n.int_attr("ignore_index", 0))))
                      : target;
  const V judged = ignores ? where(ignored, target.number(0), target) : target;
  target = V{n, n.within(judged.id, Expr(*classes), "a class")};
  V wanted = V{n, n.reshape(target.id, column)}.to(DType::kInt64);
  V chosen = apply("equal", wanted, V{n, n.reshape(n.ints(range(0, *classes)), line)});
  V loss = apply("neg", reduce("reduce_sum", where(chosen, x, x.number(0)), {1}, false));
  if (ignores) loss = where(ignored, loss.number(0), loss);
  V weights = weight != kNone ? V{n, n.op("gather", {weight, target.id}, {{"clamps", int64_t{1}}})}
                              : loss.number(1);
  if (ignores) weights = where(ignored, loss.number(0), weights);
  const bool weighted = weight != kNone || ignores;
  if (weighted) loss = loss * weights;
  const std::string mode = n.string_attr("reduction", "mean");
  if (mode == "none") return loss.id;
  const std::vector<int64_t> all = range(0, loss.rank());
  if (mode == "mean" && !weighted) return reduce("reduce_mean", loss, all, false).id;
  V sum = reduce("reduce_sum", loss, all, false);
  if (mode == "sum") return sum.id;
  if (mode != "mean") n.fail("reduction '" + mode + "', expected none, sum or mean");
  return (sum / reduce("reduce_sum", weights, all, false)).id;
}
void nll_loss(NodeImport& n) {
  n.out(0, negative_log_likelihood(n, {n, n.required(0)}, V{n, n.required(1)}, n.in(2)));
}
void softmax_cross_entropy(NodeImport& n) {
  V log_prob{n, n.op("log_softmax", {n.required(0)}, {{"axis", int64_t{1}}})};
  n.out(0, negative_log_likelihood(n, log_prob, V{n, n.required(1)}, n.in(2)));
  n.out(1, log_prob.id);
}

constexpr auto kNormalizationRows = std::to_array<OpMapping>({
    {"", "InstanceNormalization", 1, instance_norm},
    {"", "GroupNormalization", 18, group_norm},
    {"", "LRN", 1, lrn, Form::kFormula},
    {"", "LpNormalization", 1, lp_norm, Form::kFormula},
    {"", "MeanVarianceNormalization", 9, mean_variance_norm, Form::kFormula},
    {"", "BatchNormalization", 7, batch_norm, Form::kFormula},
    {"", "NegativeLogLikelihoodLoss", 12, nll_loss, Form::kFormula},
    {"", "SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy, Form::kFormula},
});

}  // namespace

std::span<const OpMapping> normalization_mappings() { return kNormalizationRows; }

}  // namespace tilewright::onnx
