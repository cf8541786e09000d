// What was written to a position is read from there: scatters give back by gathers with the same
// indices. What was read is added there, by the adjoint of a gather.
#include "ir/ops/indexing_gradient.h"

#include "ir/graph/compute.h"
#include "ir/loops/simplify.h"
#include "ir/ops/indices.h"

namespace tilewright::ir {
namespace {

// A tensor of one number.
V filled(GradientContext& c, V number, const std::vector<Expr>& dims) {
  return number.make("expand", {number.id, c.dims(dims)});
}
Expr product(const std::vector<Expr>& dims) {
  Expr n = 1;
  for (const Expr& d : dims) n = n * d;
  return simplify(n);
}
// 0, 1, 2, ... in row-major order, i64.
V numbered(GradientContext& c, std::vector<Expr> dims) {  // a copy: nodes are added
  const ValueId all = c.op("range", {c.ints({0}), c.dims({product(dims)}), c.ints({1})});
  return {c, c.reshape(all, dims)};
}
V equal(V a, V b) { return apply("equal", a, b); }

// One scatter, and reading where it wrote.
struct Scatter {
  explicit Scatter(GradientContext& context)
      : c(context), by_tuples(c.view().node().op->name == std::string_view("scatter_nd")) {
    if (!by_tuples) axis["axis"] = c.view().attr_int("axis");
  }
  V gather(V y) const {
    return y.make(by_tuples ? "gather_nd" : "gather_elements", {y.id, c.in(1).id}, axis);
  }
  V scatter(V data, V updates, const std::string& reduction) const {
    Attributes a = axis;
    a["reduction"] = reduction;
    return data.make(c.view().node().op->name, {data.id, c.in(1).id, updates.id}, std::move(a));
  }
  // Which updates are the last ones to be written to their places: those whose number is found there.
  V last() const {
    std::vector<Expr> numbers = c.type(c.in(2).id).dims, places = c.type(c.in(0).id).dims;
    const std::vector<Expr> updates = numbers;
    if (by_tuples) {  // slices are written as a whole: one number for each tuple
      const std::vector<Expr>& tuples = c.type(c.in(1).id).dims;
      numbers.assign(tuples.begin(), tuples.end() - 1);
      places.resize(static_cast<size_t>(*as_int(tuples.back())));
    }
    const V n = numbered(c, numbers);
    const V is_last = equal(gather(scatter(filled(c, n.number(0), places), n, "none")), n);
    numbers.resize(updates.size(), Expr(1));
    return {c, c.reshape(is_last.id, numbers)};
  }

  GradientContext& c;
  const bool by_tuples;
  Attributes axis;
};

// What is overwritten matters to nothing: neither data below an update, nor an update below a later
// one, which is told by the numbers of updates, scattered alike.
void gradient_of_last(GradientContext& c, const Scatter& s) {
  const V dy = c.dy(), none = dy.number(0);
  if (c.wants(0)) c.add(0, s.scatter(dy, filled(c, none, c.type(c.in(2).id).dims), "none"));
  if (c.wants(2)) c.add(2, where(s.last(), s.gather(dy), none));
}
// dy times the product of the other factors of an element, without a division by 0: zeros are counted
// apart, and one of them alone leaves a product of others.
void gradient_of_product(GradientContext& c, const Scatter& s) {
  const V data = c.in(0), updates = c.in(2), one = data.number(1), none = data.number(0);
  const auto is_zero = [&](V v) { return equal(v, none); };
  const auto nonzero = [&](V v) { return where(is_zero(v), one, v); };
  const auto counted = [&](V v) { return where(is_zero(v), one, none); };
  const V all = s.scatter(nonzero(data), nonzero(updates), "mul"),
          zeros = s.scatter(counted(data), counted(updates), "add");
  const auto others = [&](V factor, V product_there, V zeros_there) {
    return where(is_zero(factor), where(equal(zeros_there, one), product_there, none),
                 where(is_zero(zeros_there), product_there / nonzero(factor), none));
  };
  c.add(0, c.dy() * others(data, all, zeros));
  c.add(2, s.gather(c.dy()) * others(updates, s.gather(all), s.gather(zeros)));
}
// In equal parts to all that are the largest, of data and updates alike. NaN equals nothing and gets
// nothing.
void gradient_of_extreme(GradientContext& c, const Scatter& s) {
  const V y = c.out(), none = y.number(0), one = y.number(1), y_there = s.gather(y);
  const V of_data = equal(c.in(0), y), of_updates = equal(c.in(2), y_there);
  const V parts = s.scatter(where(of_data, one, none), where(of_updates, one, none), "add");
  const V share = c.dy() / parts;
  c.add(0, where(of_data, share, none));
  c.add(2, where(of_updates, s.gather(share), none));
}

}  // namespace

void gradient_of_scatter(GradientContext& c) {
  const Scatter s(c);
  const std::string reduction = c.view().attr_string("reduction", "none");
  if (reduction == "none") return gradient_of_last(c, s);
  if (reduction == "mul") return gradient_of_product(c, s);
  if (reduction != "add") return gradient_of_extreme(c, s);
  c.add(0, c.dy());
  if (c.wants(2)) c.add(2, s.gather(c.dy()));
}

// The indices that come with the values say where these were; no two are equal.
void gradient_of_top_k(GradientContext& c) {
  if (!c.has_dy(0)) return;
  const V x = c.in(0);
  c.add(0, c.adjoint("gather_elements", {{"axis", c.view().attr_int("axis", -1)}},
                     c.type(x.id).dims, c.dy(), {c.out(1).id}));
}

// The places of what was chosen are not among the results: they are found once more.
void gradient_of_compress(GradientContext& c) {
  const NodeView node = c.view();
  const bool flat = !node.has_attribute("axis");
  const int axis = flat ? 0 : node.axis(node.rank(0));
  std::vector<Expr> dims = node.type(0).dims;
  if (flat) dims = {product(dims)};
  // The condition may say more than there is.
  const Expr extent = dims[static_cast<size_t>(axis)];
  V condition = c.in(1);
  if (!can_prove(node.dim(1, 0) <= extent))
    condition = condition.make(
        "slice", {condition.id, c.ints({0}), c.dims({extent}), c.ints({0}), c.ints({1})});
  const V places = apply("nonzero", condition);  // [1, count]
  const ValueId chosen = c.reshape(places.id, {c.dim(places.id, 1)});
  const V dx = c.adjoint("gather", {{"axis", static_cast<int64_t>(axis)}}, dims, c.dy(), {chosen});
  c.add(0, {c, c.reshape(dx.id, node.type(0).dims)});
}

// Indices count in a tensor of the extents `from`, but for the first of them: what lies behind the
// last batch of `from` may be one of the result.
void gradient_of_max_unpool(GradientContext& c) {
  std::vector<Expr> from = *known_dims(c.view(), 3);
  const std::vector<Expr> to = c.type(c.out().id).dims;
  from[0] = to[0];
  std::vector<Expr> pads(from.size(), Expr(0));
  bool pad = false;
  for (size_t d = 0; d < from.size(); ++d) {
    pads.push_back(simplify(from[d] - to[d]));
    pad |= !is_zero(pads.back());
  }
  const Expr count = product(from);
  const V place = c.in(1), size = {c, c.dims({count})};
  // What stands at the place of each element of x.
  const auto read = [&](V v) {
    if (pad) v = v.make("pad", {v.id, c.dims(pads)});
    const ValueId list = c.reshape(v.id, {count});
    return v.make("gather", {list, place.id}, {{"clamps", int64_t{1}}});
  };
  const V number = numbered(c, c.type(c.in(0).id).dims) + 1.0;
  const V written = number.make("max_unpool", {number.id, place.id, c.in(2).id, c.in(3).id});
  const V is_inside =
      apply("and", apply("greater_equal", place, place.number(0)), apply("less", place, size));
  const V is_last = apply("and", is_inside, equal(read(written), number));
  c.add(0, where(is_last, read(c.dy()), c.dy().number(0)));
}

}  // namespace tilewright::ir
