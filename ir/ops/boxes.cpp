// Choosing boxes: the best first, without those that overlap a better one.
//
// Greedy non-maximum suppression. Candidates are kept as integer ranks with the best of every group
// of 64 beside them (a two-level tournament), so that finding the next best costs n / 64 + 64
// comparisons instead of a sort of all boxes, most of which are never looked at.
#include "ir/loops/simplify.h"
#include "ir/ops/families.h"
#include "ir/ops/indices.h"
#include "ir/ops/sort_loops.h"

namespace tilewright::ir {
namespace {

constexpr int64_t kGroup = 64;  // boxes of which the best is known

// Numbers that folds leave behind.
class Folds {
 public:
  explicit Folds(DType t) : found_(make_buffer("found", t, {Expr(3)}, Scope::kLocal)) {}
  DType dtype() const { return found_->dtype; }
  Expr get(int k) const { return load(found_, {Expr(k)}); }
  // Result k: the largest (smallest) of value(i) for i = 0 .. n - 1.
  Stmt fold(int k, BinaryOp op, const Expr& n,
            const std::function<Expr(const Expr&)>& value) const {
    const Expr none = op == BinaryOp::kMax ? lowest(dtype()) : highest(dtype());
    const Axes result{Expr(k)};
    Stmt each = loop_nest(
        {n}, [&](const Axes& i) { return store(found_, result, binary(op, get(k), value(i[0]))); });
    return seq({store(found_, result, none), each});
  }
  // Result k: the first i at which value(i) is `wanted`.
  Stmt first(int k, const Expr& wanted, const Expr& n,
             const std::function<Expr(const Expr&)>& value) const {
    return fold(k, BinaryOp::kMin, n, [&](const Expr& i) {
      return select(eq(value(i), wanted), cast(dtype(), i), highest(dtype()));
    });
  }
  Stmt around(const Stmt& body) const { return allocate(found_, body); }

 private:
  Buffer found_;
};

// --- choose_boxes ------------------------------------------------------------------------------

Status infer_choose_boxes(InferContext& c) {
  const auto &boxes = c.type(0), &scores = c.type(1);
  if (boxes.rank() != 3 || scores.rank() != 3 || !c.agree(boxes.dims[2], 4) ||
      !c.agree(boxes.dims[0], scores.dims[0]) || !c.agree(boxes.dims[1], scores.dims[2]))
    return c.error("boxes is " + to_string(boxes) + ", scores is " + to_string(scores) +
                   ": expected [batch, n, 4] and [batch, class, n]");
  if (!is_float(boxes.dtype) || boxes.dtype != scores.dtype)
    return c.error("boxes is " + to_string(boxes) + ", scores is " + to_string(scores));
  Expr room = c.has(2) ? boxes.dims[1] : Expr(0);
  if (c.has(2))
    if (auto most = c.known_ints(2); most && most->size() == 1)
      room = min(room, std::max<int64_t>((*most)[0], 0));
  c.set_output(0, DType::kInt64, {scores.dims[0], scores.dims[1], simplify(room + 1)});
  return {};
}

// A whole number for each score, in the same order; NaN comes last, before `lowest`, which is none.
Expr rank_of(const Expr& score) {
  const bool wide = score.dtype() == DType::kFloat64;
  const DType number = wide ? DType::kInt64 : DType::kInt32;
  const Expr x = wide ? score : cast(DType::kFloat32, score), zero = constant(0, x.dtype());
  const Expr bits = bitcast(number, select(eq(x, zero), zero, x));  // -0 is 0
  const Expr rank =
      select(bits < int_imm(0, number), binary(BinaryOp::kXor, bits, highest(number)), bits);
  return select(unary(UnaryOp::kIsNan, x), lowest(number) + int_imm(1, number), rank);
}

// Sides of a box, low ones first, and its area.
using Box = std::vector<Expr>;
enum : size_t { kLow, kHigh = 2, kArea = 4 };
Box box_at(const ComputeContext& c, const Expr& batch, const Expr& i) {
  Box box(kArea);
  for (size_t d = 0; d < 2; ++d) {
    const Expr p = load(c.in(0), {batch, i, Expr(static_cast<int64_t>(d))}),
               q = load(c.in(0), {batch, i, Expr(static_cast<int64_t>(d + 2))});
    const Expr half = q / constant(2, q.dtype());
    const bool centred = c.attr_int("center_point_box") != 0;
    box[kLow + d] = centred ? p - half : min(p, q);
    box[kHigh + d] = centred ? p + half : max(p, q);
  }
  return box;
}
Expr area(const Box& b) { return (b[kHigh] - b[kLow]) * (b[kHigh + 1] - b[kLow + 1]); }
// Do the boxes overlap by more than the threshold?
Expr overlaps(const Box& a, const Box& b, const Expr& threshold) {
  const Expr zero = constant(0, a[0].dtype());
  Expr common, meet = logical_and(a[kArea] > zero, b[kArea] > zero);
  for (size_t d = 0; d < 2; ++d) {
    const Expr width = min(a[kHigh + d], b[kHigh + d]) - max(a[kLow + d], b[kLow + d]);
    meet = logical_and(meet, width > zero);
    common = common ? common * width : width;
  }
  const Expr sum = a[kArea] + b[kArea] - common;
  return logical_and(meet, logical_and(sum > zero, common / sum > threshold));
}

// The ranks of the boxes of one batch and class, and the best of each group of them. A box that was
// looked at has none.
struct Candidates {
  Buffer rank, best;
  Expr groups;
};
// Boxes chosen before, side by side.
struct Chosen {
  std::vector<Buffer> side;
  Box at(const Expr& i) const {
    Box box;
    for (const Buffer& s : side) box.push_back(load(s, {i}));
    return box;
  }
};

enum : int { kRank, kPlace, kClash };  // of Folds

class ChooseBoxes {
 public:
  ChooseBoxes(const ComputeContext& c, const Expr& batch, const Expr& cls)
      : c_(c),
        batch_(batch),
        class_(cls),
        n_(c.dim(0, 1)),
        folds_(c.in(1)->dtype == DType::kFloat64 ? DType::kInt64 : DType::kInt32) {
    candidates_.groups = simplify(ceildiv(n_, kGroup));
    candidates_.rank = make_buffer("rank", folds_.dtype(), {simplify(candidates_.groups * kGroup)},
                                   Scope::kWorkspace);
    candidates_.best = make_buffer("best", folds_.dtype(), {candidates_.groups}, Scope::kWorkspace);
    for (const char* name : {"low_y", "low_x", "high_y", "high_x", "area"})
      chosen_.side.push_back(make_buffer(name, c.in(0)->dtype, {n_}, Scope::kWorkspace));
  }
  Stmt run() const {
    const Axes head{batch_, class_, Expr(0)};
    const Expr most = c_.has(2) ? cast(DType::kInt64, load(c_.in(2), zeros(c_.rank(2)))) : Expr(0);
    const Expr room = c_.out()->shape[2] - 1;
    Stmt clear = loop_nest({c_.out()->shape[2]}, [&](const Axes& i) {
      return store(c_.out(), {batch_, class_, i[0]}, Expr(0));
    });
    const Expr more =
        logical_and(state_.get(0) < min(most, room), folds_.get(kRank) > lowest(folds_.dtype()));
    Stmt all = seq({clear, rank_boxes(), state_.set(0, Expr(0)), find_best(),
                    while_loop(more, seq({take_best(), find_best()})),
                    store(c_.out(), head, state_.get(0))});
    all = state_.around(folds_.around(allocate(candidates_.rank, allocate(candidates_.best, all))));
    for (const Buffer& s : chosen_.side) all = allocate(s, all);
    return all;
  }

 private:
  Stmt rank_boxes() const {
    const Expr none = lowest(folds_.dtype());
    Stmt ranks = loop_nest({n_}, [&](const Axes& i) {
      const Expr score = load(c_.in(1), {batch_, class_, i[0]});
      Expr rank = rank_of(score);
      if (c_.has(4))
        rank = select(score > cast(score.dtype(), load(c_.in(4), zeros(c_.rank(4)))), rank, none);
      return store(candidates_.rank, i, rank);
    });
    // The last group is filled up with what is no box.
    Stmt rest = loop_nest({simplify(candidates_.groups * kGroup - n_)}, [&](const Axes& i) {
      return store(candidates_.rank, {n_ + i[0]}, none);
    });
    return seq({ranks, rest,
                loop_nest({candidates_.groups}, [&](const Axes& g) { return best_of(g[0]); })});
  }
  Expr rank_in(const Expr& group, const Expr& i) const {
    return load(candidates_.rank, {group * kGroup + i});
  }
  Stmt best_of(const Expr& group) const {
    return seq({folds_.fold(kRank, BinaryOp::kMax, kGroup,
                            [&](const Expr& i) { return rank_in(group, i); }),
                store(candidates_.best, {group}, folds_.get(kRank))});
  }
  Stmt find_best() const {
    return folds_.fold(kRank, BinaryOp::kMax, candidates_.groups,
                       [&](const Expr& i) { return load(candidates_.best, {i}); });
  }
  // The best box that is left, chosen unless it overlaps one that is.
  Stmt take_best() const {
    auto place = [&] { return cast(DType::kInt64, folds_.get(kPlace)); };
    return with_value("rank_now", folds_.get(kRank), [&](const Expr& rank) {
      Stmt find_group = folds_.first(kPlace, rank, candidates_.groups,
                                     [&](const Expr& i) { return load(candidates_.best, {i}); });
      Stmt in_group = with_value("group", place(), [&](const Expr& group) {
        Stmt find =
            folds_.first(kPlace, rank, kGroup, [&](const Expr& i) { return rank_in(group, i); });
        Stmt take = with_value("box", group * kGroup + place(), [&](const Expr& box) {
          return seq({store(candidates_.rank, {box}, lowest(folds_.dtype())), best_of(group),
                      try_box(box)});
        });
        return seq({find, take});
      });
      return seq({find_group, in_group});
    });
  }
  Stmt try_box(const Expr& i) const {
    return with_box(box_at(c_, batch_, i), 0, [&](Box box) {
      return with_value("size", area(box), [&](const Expr& size) {
        box.push_back(size);
        return with_value("count", state_.get(0),
                          [&](const Expr& count) { return compare_and_keep(i, box, count); });
      });
    });
  }
  // body, with each side bound to a variable.
  static Stmt with_box(Box box, size_t from, const std::function<Stmt(const Box&)>& body) {
    if (from == box.size()) return body(box);
    return with_value("side", box[from], [&](const Expr& v) {
      Box bound = box;
      bound[from] = v;
      return with_box(bound, from + 1, body);
    });
  }
  Stmt compare_and_keep(const Expr& i, const Box& box, const Expr& count) const {
    const DType t = c_.in(0)->dtype, number = folds_.dtype();
    const Expr threshold = c_.has(3) ? cast(t, load(c_.in(3), zeros(c_.rank(3)))) : constant(0, t);
    Stmt compare = folds_.fold(kClash, BinaryOp::kMax, count, [&](const Expr& k) {
      return select(overlaps(box, chosen_.at(k), threshold), int_imm(1, number),
                    int_imm(0, number));
    });
    std::vector<Stmt> keep;
    for (size_t k = 0; k < box.size(); ++k) keep.push_back(store(chosen_.side[k], {count}, box[k]));
    keep.push_back(store(c_.out(), {batch_, class_, count + 1}, i));
    keep.push_back(state_.set(0, count + 1));
    return seq({compare, if_then(folds_.get(kClash) <= int_imm(0, number), seq(keep))});
  }

  const ComputeContext& c_;
  Expr batch_, class_, n_;
  Scalars state_{1};  // boxes chosen so far
  Folds folds_;
  Candidates candidates_;
  Chosen chosen_;
};

void compute_choose_boxes(ComputeContext& c) {
  c.b.opaque_over(
      {c.dim(1, 0), c.dim(1, 1)}, [&](const Axes& i) { return ChooseBoxes(c, i[0], i[1]).run(); },
      "choose_boxes");
}

// --- list_boxes --------------------------------------------------------------------------------

Status infer_list_boxes(InferContext& c) {
  if (c.rank(0) != 3 || c.type(0).dtype != DType::kInt64 ||
      !c.at_most(1, c.dim(0, 2), "their number must come first"))
    return c.error("chosen is " + to_string(c.type(0)) + ", expected i64[batch, class, 1 + n]");
  c.set_output(0, DType::kInt64, {c.data_dependent_symbol(0, "count"), Expr(3)});
  return {};
}
void compute_list_count(ComputeContext& c) {
  const Scalars s(1);
  Stmt add = loop_nest({c.dim(0, 0), c.dim(0, 1)}, [&](const Axes& i) {
    return s.add(0, load(c.in(0), {i[0], i[1], Expr(0)}));
  });
  c.b.opaque(s.around(seq({s.set(0, 0), add, store(c.out(), {Expr(0)}, s.get(0))})), "count");
}
void compute_list_boxes(ComputeContext& c) {
  const Scalars s(1);
  Stmt list = loop_nest({c.dim(0, 0), c.dim(0, 1)}, [&](const Axes& i) {
    return with_value("count", load(c.in(0), {i[0], i[1], Expr(0)}), [&](const Expr& count) {
      return loop_nest({count}, [&](const Axes& k) {
        const Axes row{i[0], i[1], load(c.in(0), {i[0], i[1], k[0] + 1})};
        std::vector<Stmt> stores;
        for (size_t d = 0; d < row.size(); ++d)
          stores.push_back(store(c.out(), {s.get(0), Expr(static_cast<int64_t>(d))}, row[d]));
        stores.push_back(s.add(0, 1));
        return seq(stores);
      });
    });
  });
  c.b.opaque(s.around(seq({s.set(0, 0), list})), "list_boxes");
}

}  // namespace

const std::vector<OpDef>& box_ops() {
  static const TensorType scalar{DType::kFloat32, {1}};
  static constexpr std::string_view kSource =
      "https://onnx.ai/onnx/operators/onnx__NonMaxSuppression.html";
  static const std::vector<OpDef> ops{
      {.name = "choose_boxes",
       .summary = "boxes of each batch and class by falling score, without those that overlap a "
                  "better one: [batch, class, 1 + n], their number first",
       .operands = {{"boxes"},
                    {"scores"},
                    {"most", OperandDef::kOptional},
                    {"overlap", OperandDef::kOptional},
                    {"score", OperandDef::kOptional}},
       .attributes = {{"center_point_box", AttributeKind::kInt, "boxes are centre and size"}},
       .infer_type = infer_choose_boxes,
       .compute = compute_choose_boxes,
       .example =
           {.inputs = {{DType::kFloat32, {1, 3, 4}},
                       {DType::kFloat32, {1, 1, 3}},
                       {DType::kInt64, {1}},
                       scalar,
                       scalar},
            .values = {{0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 5, 1, 6}, {0.9, 0.8, 0.7}, {2}, {0.5}, {0}}},
       .source = kSource},
      {.name = "list_boxes",
       .summary = "what choose_boxes chose as rows of batch, class, box",
       .operands = {{"chosen"}},
       .infer_type = infer_list_boxes,
       .compute = compute_list_boxes,
       .compute_symbols = compute_list_count,
       .example = {.inputs = {{DType::kInt64, {1, 2, 4}}}, .values = {{2, 1, 0, 0, 1, 7, 0, 0}}},
       .source = kSource},
  };
  return ops;
}

}  // namespace tilewright::ir
