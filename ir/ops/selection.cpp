// Operators whose number of results depends on data: the places of non-zero elements, chosen
// elements, chosen boxes.
#include "ir/loops/simplify.h"
#include "ir/ops/families.h"
#include "ir/ops/indices.h"
#include "ir/ops/sort_loops.h"

namespace tilewright::ir {
namespace {

// --- nonzero -----------------------------------------------------------------------------------

Status infer_nonzero(InferContext& c) {
  c.set_output(0, DType::kInt64, {Expr(c.rank(0)), c.data_dependent_symbol(0, "count")});
  return {};
}
// `hit` for each element that is not zero.
Stmt over_nonzero(const ComputeContext& c, const std::function<Stmt(const Axes&)>& hit) {
  return loop_nest(c.in(0)->shape, [&](const Axes& i) {
    return if_then(cast(DType::kBool, load(c.in(0), i)), hit(i));
  });
}
void compute_nonzero_count(ComputeContext& c) {
  const Scalars s(1);
  Stmt count = over_nonzero(c, [&](const Axes&) { return s.add(0, 1); });
  c.b.opaque(s.around(seq({s.set(0, 0), count, store(c.out(), {Expr(0)}, s.get(0))})), "count");
}
void compute_nonzero(ComputeContext& c) {
  if (c.rank(0) == 0) return;
  const Scalars s(1);
  Stmt scan = over_nonzero(c, [&](const Axes& i) {
    std::vector<Stmt> stores;
    for (size_t d = 0; d < i.size(); ++d)
      stores.push_back(store(c.out(), {Expr(static_cast<int64_t>(d)), s.get(0)}, i[d]));
    stores.push_back(s.add(0, 1));
    return seq(stores);
  });
  c.b.opaque(s.around(seq({s.set(0, 0), scan})), "nonzero");
}

// --- compress ----------------------------------------------------------------------------------

int compress_axis(const NodeView& c) { return c.has_attribute("axis") ? c.axis(c.rank(0)) : -1; }
Status infer_compress(InferContext& c) {
  const auto& x = c.type(0);
  const int axis = compress_axis(c);
  if (c.has_attribute("axis") && (axis < 0 || axis >= x.rank()))
    return c.error(axis_message(c.attr_int("axis"), x));
  if (c.rank(1) != 1 || c.type(1).dtype != DType::kBool)
    return c.error("condition is " + to_string(c.type(1)) + ", expected bool of one dimension");
  const Expr count = c.data_dependent_symbol(0, "count");
  std::vector<Expr> dims{count};
  if (axis >= 0) {
    dims = x.dims;
    dims[static_cast<size_t>(axis)] = count;
  }
  c.set_output(0, x.dtype, std::move(dims));
  return {};
}
// Elements of the condition that say something about x: a shorter condition is taken as ending in
// false.
Expr compress_extent(const ComputeContext& c) {
  const int axis = compress_axis(c);
  return min(c.dim(1, 0), axis >= 0 ? c.dim(0, axis) : element_count(c.type(0)));
}
Stmt over_chosen(const ComputeContext& c, const Scalars& s,
                 const std::function<Stmt(const Expr&)>& hit) {
  Stmt scan = loop_nest({compress_extent(c)}, [&](const Axes& i) {
    return if_then(load(c.in(1), i), seq({hit(i[0]), s.add(0, 1)}));
  });
  return seq({s.set(0, 0), scan});
}
void compute_compress_count(ComputeContext& c) {
  const Scalars s(1);
  Stmt scan = loop_nest({compress_extent(c)},
                        [&](const Axes& i) { return if_then(load(c.in(1), i), s.add(0, 1)); });
  c.b.opaque(s.around(seq({s.set(0, 0), scan, store(c.out(), {Expr(0)}, s.get(0))})), "count");
}
void compute_compress(ComputeContext& c) {
  const int axis = compress_axis(c);
  const size_t d = axis >= 0 ? static_cast<size_t>(axis) : 0;
  Buffer chosen = c.b.temp("chosen", DType::kInt64, {c.out()->shape[d]});
  const Scalars s(1);
  c.b.opaque(
      s.around(over_chosen(c, s, [&](const Expr& i) { return store(chosen, {s.get(0)}, i); })),
      "chosen");
  c.b.compute(
      c.out(),
      [&](const Axes& i) {
        if (axis < 0) return load(c.in(0), unravel(load(chosen, i), c.in(0)->shape));
        Axes at = i;
        at[d] = load(chosen, {i[d]});
        return load(c.in(0), at);
      },
      "compress");
}

// --- non_max_suppression -----------------------------------------------------------------------

Status infer_nms(InferContext& c) {
  const auto &boxes = c.type(0), &scores = c.type(1);
  if (boxes.rank() != 3 || scores.rank() != 3 || as_int(boxes.dims[2]).value_or(4) != 4)
    return c.error("boxes is " + to_string(boxes) + ", scores is " + to_string(scores) +
                   ": expected [batch, n, 4] and [batch, class, n]");
  if (!is_float(boxes.dtype) || boxes.dtype != scores.dtype)
    return c.error("boxes is " + to_string(boxes) + ", scores is " + to_string(scores));
  c.set_output(0, DType::kInt64, {c.data_dependent_symbol(0, "count"), Expr(3)});
  return {};
}
Expr half_of(const Expr& e) { return e / constant(2, e.dtype()); }

struct Side {
  Expr low, high;
};
// The extent of a box in one direction; 0: y (or the centre's x), 1: the other.
Side box_side(const ComputeContext& c, const Expr& batch, const Expr& box, int direction) {
  Expr p = load(c.in(0), {batch, box, Expr(direction)}),
       q = load(c.in(0), {batch, box, Expr(direction + 2)});
  if (c.attr_int("center_point_box")) return {p - half_of(q), p + half_of(q)};
  return {min(p, q), max(p, q)};
}
// Do the boxes overlap by more than the threshold?
Expr overlaps(const ComputeContext& c, const Expr& batch, const Expr& a, const Expr& b) {
  const DType t = c.in(0)->dtype;
  Expr common = constant(1, t), area_a = constant(1, t), area_b = constant(1, t),
       meet = bool_imm(true);
  for (int direction : {0, 1}) {
    Side p = box_side(c, batch, a, direction), q = box_side(c, batch, b, direction);
    Expr width = min(p.high, q.high) - max(p.low, q.low);
    meet = logical_and(meet, width > constant(0, t));
    common = common * width;
    area_a = area_a * (p.high - p.low);
    area_b = area_b * (q.high - q.low);
  }
  Expr threshold = c.has(3) ? cast(t, load(c.in(3), zeros(c.rank(3)))) : constant(0, t);
  Expr sum = area_a + area_b - common;
  meet = logical_and(meet, logical_and(area_a > constant(0, t), area_b > constant(0, t)));
  return logical_and(meet, logical_and(sum > constant(0, t), common / sum > threshold));
}

enum : int { kTotal, kKept, kClash };

// Boxes of one batch and class from the best score on; a box that overlaps a chosen one is dropped.
Stmt choose_boxes(const ComputeContext& c, const Scalars& s, const Buffer& kept, const Expr& batch,
                  const Expr& cls, const std::function<Stmt(const Expr&)>& hit) {
  const Expr n = c.dim(0, 1);
  auto score = [&](const Expr& i) { return load(c.in(1), {batch, cls, i}); };
  auto compare = [&](const Expr& a, const Expr& b, const std::function<Stmt(Expr)>& result) {
    return result(three_way(score(b), score(a)));
  };
  const Expr most = c.has(2) ? cast(DType::kInt64, load(c.in(2), zeros(c.rank(2)))) : Expr(0);
  return with_sorted(n, compare, [&](const Buffer& order) {
    Stmt scan = loop_nest({n}, [&](const Axes& i) {
      return with_value("box", load(order, i), [&](const Expr& box) {
        Expr wanted = s.get(kKept) < most;
        if (c.has(4))
          wanted = logical_and(wanted,
                               score(box) > cast(c.in(1)->dtype, load(c.in(4), zeros(c.rank(4)))));
        Stmt check = with_value("kept_now", s.get(kKept), [&](const Expr& now) {
          return loop_nest({now}, [&](const Axes& r) {
            Stmt test = with_value("other", load(kept, r), [&](const Expr& other) {
              return if_then(overlaps(c, batch, box, other), s.set(kClash, 1));
            });
            return if_then(eq(s.get(kClash), Expr(0)), test);
          });
        });
        Stmt keep =
            seq({store(kept, {s.get(kKept)}, box), hit(box), s.add(kKept, 1), s.add(kTotal, 1)});
        return if_then(wanted,
                       seq({s.set(kClash, 0), check, if_then(eq(s.get(kClash), Expr(0)), keep)}));
      });
    });
    return seq({s.set(kKept, 0), scan});
  });
}
Stmt over_boxes(ComputeContext& c, const Scalars& s, const std::function<Stmt(const Axes&)>& hit) {
  Buffer kept = c.b.temp("kept", DType::kInt64, {c.dim(0, 1)});
  return seq({s.set(kTotal, 0), loop_nest({c.dim(1, 0), c.dim(1, 1)}, [&](const Axes& i) {
                return choose_boxes(c, s, kept, i[0], i[1],
                                    [&](const Expr& box) { return hit({i[0], i[1], box}); });
              })});
}
void compute_nms_count(ComputeContext& c) {
  const Scalars s(3);
  Stmt scan = over_boxes(c, s, [](const Axes&) { return seq({}); });
  c.b.opaque(s.around(seq({scan, store(c.out(), {Expr(0)}, s.get(kTotal))})), "count");
}
void compute_nms(ComputeContext& c) {
  const Scalars s(3);
  Stmt scan = over_boxes(c, s, [&](const Axes& found) {
    std::vector<Stmt> stores;
    for (size_t k = 0; k < 3; ++k)
      stores.push_back(store(c.out(), {s.get(kTotal), Expr(static_cast<int64_t>(k))}, found[k]));
    return seq(stores);
  });
  c.b.opaque(s.around(scan), "non_max_suppression");
}

}  // namespace

const std::vector<OpDef>& selection_ops() {
  static const TensorType scalar{DType::kFloat32, {1}};
  static const std::vector<OpDef> ops{
      {.name = "nonzero",
       .summary = "indices of the elements that are not zero: [rank, count], in row-major order",
       .operands = {{"x"}},
       .infer_type = infer_nonzero,
       .compute = compute_nonzero,
       .compute_symbols = compute_nonzero_count,
       .example = {.inputs = {{DType::kInt32, {3, 4}}}, .values = {{0, 2, 0, 1, 5}}},
       .source = "https://onnx.ai/onnx/operators/onnx__NonZero.html"},
      {.name = "compress",
       .summary = "the slices of x along an axis where the condition holds",
       .operands = {{"x"}, {"condition"}},
       .attributes = {{"axis", AttributeKind::kInt, "absent: x as one list"}},
       .infer_type = infer_compress,
       .compute = compute_compress,
       .compute_symbols = compute_compress_count,
       .example = {.inputs = {{DType::kFloat32, {3, 4}}, {DType::kBool, {3}}},
                   .attributes = {{"axis", int64_t{0}}},
                   .values = {{}, {1, 0, 1}}},
       .source = "https://onnx.ai/onnx/operators/onnx__Compress.html"},
      {.name = "non_max_suppression",
       .summary = "boxes by falling score, without those that overlap a better one: rows of batch, "
                  "class, box",
       .operands = {{"boxes"},
                    {"scores"},
                    {"most", OperandDef::kOptional},
                    {"overlap", OperandDef::kOptional},
                    {"score", OperandDef::kOptional}},
       .attributes = {{"center_point_box", AttributeKind::kInt, "boxes are centre and size"}},
       .infer_type = infer_nms,
       .compute = compute_nms,
       .compute_symbols = compute_nms_count,
       .example =
           {.inputs = {{DType::kFloat32, {1, 3, 4}},
                       {DType::kFloat32, {1, 1, 3}},
                       {DType::kInt64, {1}},
                       scalar,
                       scalar},
            .values = {{0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 5, 1, 6}, {0.9, 0.8, 0.7}, {2}, {0.5}, {0}}},
       .source = "https://onnx.ai/onnx/operators/onnx__NonMaxSuppression.html"},
  };
  return ops;
}

}  // namespace tilewright::ir
