// The gradient of a convolution by its weights: for each place of the kernel a product of the pixels of
// dy, transposed, with those of x.
//
// Written as what it is, the sum over all pixels of all images would pass over both operands once for
// each tile of results, from memory. So pixels are cut into runs whose operands stay in cache while
// every tile of results passes over them, each run with sums of its own that are added up behind: as
// many as follow from the shape alone, so that results are the same for any number of threads, which
// share out the runs. Sums lie with results' channels innermost, along which vectors run in both dy and
// the sums. (The direct algorithm of Georganas et al., "Anatomy of High-Performance Deep Learning
// Convolutions on SIMD Architectures", SC 2018, section on weight gradients.)
#include "ir/graph/compute.h"
#include "ir/loops/simplify.h"
#include "ir/ops/accumulator.h"
#include "ir/ops/families.h"
#include "ir/ops/window.h"

namespace tilewright::ir {
namespace {

constexpr const char* kKernel = "kernel_shape";
constexpr int64_t kFewChannels = 16;  // fill no vector
// Pixels of a run, whose rows of 16 or 64 channels a second cache holds, and bytes of all sums.
constexpr int64_t kRunPixels = 1536, kMostSumBytes = int64_t{8} << 20;
// Of sums that a second cache does not hold, both operands are copied into panels.
constexpr int64_t kManySumBytes = int64_t{600} << 10;
constexpr int64_t kNarrow = 48;  // channels, fewer than three vectors, fill no tile

struct Geometry {
  WindowGeometry window;
  Expr outs, ins;  // channels of results, and channels that each of them reads
};
// Operands: dy [n, o, out...], x [n, c, spatial...].
Result<Geometry> geometry_of(const NodeView& c) {
  TW_ASSIGN(WindowGeometry window, window_geometry(c, c.type(1).dims, c.attr_ints(kKernel)));
  return Geometry{std::move(window), c.dim(0, 1),
                  simplify(floordiv(c.dim(1, 1), Expr(c.attr_int("group", 1))))};
}

Status infer_weights_gradient(InferContext& c) {
  const TensorType &dy = c.type(0), &x = c.type(1);
  const int64_t group = c.attr_int("group", 1);
  if (x.rank() < 3 || dy.rank() != x.rank() || dy.dtype != x.dtype || !is_float(x.dtype))
    return c.error("dy is " + to_string(dy) + ", x is " + to_string(x) +
                   ": expected floats of one type, [n, o, out...] and [n, c, spatial...]");
  auto g = geometry_of(c);
  if (!g.ok()) return c.at_node(g.error());
  bool fits = group >= 1 && c.agree(dy.dims[0], x.dims[0]);
  for (const Expr& channels : {dy.dims[1], x.dims[1]})
    if (auto n = as_int(channels)) fits &= *n % group == 0;
  for (size_t d = 0; fits && d < g->window.out.size(); ++d)
    fits = c.agree(dy.dims[d + 2], g->window.out[d]);
  if (!fits)
    return c.error("dy is " + to_string(dy) + ", which is no result of x, " + to_string(x));
  std::vector<Expr> dims{g->outs, g->ins};
  for (const Expr& k : window_extents(g->window)) dims.push_back(k);
  c.set_output(0, x.dtype, std::move(dims));
  return {};
}

// How many runs of whole images, or of whole rows of one: a divisor of their number.
struct Runs {
  int64_t images = 1, rows = 1;  // runs that these are cut into
};
int64_t divisor_near(int64_t n, int64_t wanted) {
  while (wanted > 1 && n % wanted != 0) --wanted;
  return std::max<int64_t>(wanted, 1);
}
Runs runs_of(const ComputeContext& c, const Geometry& g, int64_t sum_bytes) {
  const auto images = as_int(c.dim(0, 0)), rows = as_int(g.window.out[0]);
  int64_t pixels = 1;
  for (const Expr& e : g.window.out) pixels *= std::max<int64_t>(as_int(e).value_or(0), 0);
  if (!images || *images < 1 || pixels < 1 || sum_bytes < 1) return {};
  const int64_t most = std::max<int64_t>(kMostSumBytes / sum_bytes, 1);
  const int64_t wanted = std::min(*images * pixels / kRunPixels, most);
  if (wanted <= *images) return {divisor_near(*images, wanted), 1};
  return {*images, divisor_near(*rows, wanted / *images)};
}

bool is_one_place(const WindowGeometry& w) {
  const std::vector<Expr> extents = window_extents(w);
  return std::all_of(extents.begin(), extents.end(), is_one);
}

// Vectors run along results' channels, unless these do not fill any. A window of one place leaves the choice, as its
// sums are the result when they lie along operands' channels: these make the better tiles beside few results', and
// where both operands are copied, what is copied as a whole, ahead of all tiles, are the rows.
bool vectors_along_ins(const ComputeContext& c, const Geometry& g, int64_t sum_bytes) {
  const int64_t outs = as_int(g.outs).value_or(kFewChannels), ins = as_int(g.ins).value_or(0);
  if (c.attr_int("group", 1) != 1 || ins < kFewChannels) return false;
  if (!is_one_place(g.window)) return outs < kFewChannels;
  return outs < kFewChannels || (outs < kNarrow && 2 * outs <= ins) ||
         (outs < ins && sum_bytes > kManySumBytes);
}

// sums[image run, row run, kernel..., c, o], or [..., o, c]
class WeightsGradient {
 public:
  explicit WeightsGradient(ComputeContext& c)
      : c_(c), g_(geometry_of(c).value()), dw_(c.out()), dy_(c.in(0)) {
    x_ = padded_copy(c, c.in(1), g_.window, [&](const Axes&) { return constant(0, dw_->dtype); });
    int64_t bytes = byte_size(acc_);
    for (const Expr& e : dw_->shape) bytes *= as_int(e).value_or(0);
    runs_ = runs_of(c, g_, bytes);
    images_ = simplify(floordiv(dy_->shape[0], Expr(runs_.images)));
    rows_ = simplify(floordiv(g_.window.out[0], Expr(runs_.rows)));
    ins_last_ = vectors_along_ins(c, g_, bytes);
  }

  void compute() {
    const bool one_run = runs_.images * runs_.rows == 1,
               as_result = ins_last_ && is_one_place(g_.window) && acc_ == dw_->dtype;
    std::vector<Expr> reduce{images_, rows_};
    reduce.insert(reduce.end(), g_.window.out.begin() + 1, g_.window.out.end());
    const auto reduce_to = [&](const Buffer& to, const auto& at) {
      c_.b.reduce(
          to, reduce, Combiner::kSum, [&](const Axes& i, const Axes& r) { return term(at(i), r); },
          "weights");
    };
    if (one_run && as_result)
      return reduce_to(dw_, [&](const Axes& i) { return of_result(i, {Expr(0), Expr(0)}); });
    std::vector<Expr> shape = window_extents(g_.window);
    shape.push_back(ins_last_ ? g_.outs : g_.ins);
    shape.push_back(ins_last_ ? g_.ins : g_.outs);
    std::vector<Expr> of_runs{runs_.images, runs_.rows};
    of_runs.insert(of_runs.end(), shape.begin(), shape.end());
    const Buffer sums = c_.b.temp("sums", acc_, of_runs);
    reduce_to(sums, [](const Axes& i) { return i; });
    // Runs are added where they lie; only then is anything transposed.
    Buffer all = as_result ? dw_ : sums;
    if (!one_run) {
      if (!as_result) all = c_.b.temp("all", acc_, shape);
      c_.b.reduce(
          all, {runs_.images, runs_.rows}, Combiner::kSum,
          [&](const Axes& i, const Axes& r) {
            if (as_result) return load(sums, of_result(i, r));
            Axes from = r;
            from.insert(from.end(), i.begin(), i.end());
            return load(sums, from);
          },
          "runs");
    }
    if (as_result) return;
    const Axes run(one_run ? 2 : 0, Expr(0));
    c_.b.compute(
        dw_, [&](const Axes& i) { return cast(dw_->dtype, load(all, of_result(i, run))); },
        "result");
  }

 private:
  // Where the sums of a run have dw's element [o, c, kernel...].
  Axes of_result(const Axes& i, const Axes& run) const {
    Axes at = run;
    at.insert(at.end(), i.begin() + 2, i.end());
    at.push_back(i[ins_last_ ? 0 : 1]);
    at.push_back(i[ins_last_ ? 1 : 0]);
    return at;
  }
  // Of the element i of sums.
  Expr term(const Axes& i, const Axes& r) const {
    const int64_t group = c_.attr_int("group", 1);
    const Expr per_group = simplify(floordiv(g_.outs, Expr(group)));
    const Expr o = i[i.size() - (ins_last_ ? 2 : 1)], ic = i[i.size() - (ins_last_ ? 1 : 2)],
               image = simplify(i[0] * images_ + r[0]);
    const Expr channel = group == 1          ? ic
                         : is_one(per_group) ? simplify(o * g_.ins + ic)
                                             : simplify(floordiv(o, per_group) * g_.ins + ic);
    Axes at_x{image, channel}, at_dy{image, o};
    for (size_t d = 0; d < g_.window.out.size(); ++d) {
      const Expr p = d == 0 ? simplify(i[1] * rows_ + r[1]) : r[d + 1];
      at_dy.push_back(p);
      at_x.push_back(p * Expr(g_.window.strides[d]) + i[d + 2] * Expr(g_.window.dilations[d]));
    }
    return cast(acc_, load(x_, at_x)) * cast(acc_, load(dy_, at_dy));
  }

  ComputeContext& c_;
  const Geometry g_;
  const Buffer dw_, dy_;
  const DType acc_ = accumulator(dw_->dtype);
  Buffer x_;  // with padding
  Runs runs_;
  Expr images_ = 1, rows_ = 1;  // of a run
  bool ins_last_ = false;
};

void compute_weights_gradient(ComputeContext& c) { WeightsGradient(c).compute(); }

}  // namespace

const std::vector<OpDef>& conv_gradient_ops() {
  static const std::vector<OpDef> ops{
      {.name = "conv_weights_gradient",
       .summary = "the derivative by a convolution's weights, [o, c / group, kernel...], from that "
                  "by its results and its operand",
       .operands = {{"dy"}, {"x"}},
       .attributes =
           [] {
             auto a = kWindowAttributes;
             a.push_back({"group", AttributeKind::kInt, "default 1"});
             return a;
           }(),
       .fusion = FusionKind::kOpaque,
       .channels = Channels::kOperandsInnermost,
       .reads_stored = true,
       .infer_type = infer_weights_gradient,
       .compute = compute_weights_gradient,
       .example = {.inputs = {{DType::kFloat32, {6, 19, 16, 17}},
                              {DType::kFloat32, {6, 5, 16, 17}}},
                   .attributes = {{kKernel, std::vector<int64_t>{3, 3}},
                                  {"pads", std::vector<int64_t>{1, 1, 1, 1}}}},
       .source = "Georganas et al., Anatomy of High-Performance Deep Learning Convolutions, 2018"},
  };
  return ops;
}

}  // namespace tilewright::ir
