// Operators that sort, and running sums.
#include "ir/formula/gradient.h"
#include "ir/loops/simplify.h"
#include "ir/ops/accumulator.h"
#include "ir/ops/families.h"
#include "ir/ops/indexing_gradient.h"
#include "ir/ops/indices.h"
#include "ir/ops/sort_loops.h"
#include "ir/text/printer_loops.h"

namespace tilewright::ir {
namespace {

Axes with_axis(Axes outer, int axis, Expr at) {
  outer.insert(outer.begin() + axis, std::move(at));
  return outer;
}
std::vector<Expr> without_axis(std::vector<Expr> dims, int axis) {
  dims.erase(dims.begin() + axis);
  return dims;
}

// --- cumulative --------------------------------------------------------------------------------

std::optional<int> scan_axis(const NodeView& c) {
  auto axis = c.known_ints(1);
  if (!axis || axis->size() != 1) return std::nullopt;
  return static_cast<int>((*axis)[0] < 0 ? (*axis)[0] + c.rank(0) : (*axis)[0]);
}
Status infer_scan(InferContext& c) {
  auto axis = scan_axis(c);
  if (!axis) return c.needs_value("axis is not known at compile time");
  if (*axis < 0 || *axis >= c.rank(0)) return c.error(axis_message(*axis, c.type(0)));
  if (c.type(0).dtype == DType::kBool) return c.error("x is " + to_string(c.type(0)));
  c.set_output(0, c.type(0));
  return {};
}
template <Combiner how>
void compute_scan(ComputeContext& c) {
  const int axis = *scan_axis(c);
  const auto d = static_cast<size_t>(axis);
  const bool reverse = c.attr_int("reverse") != 0, exclusive = c.attr_int("exclusive") != 0;
  const Buffer &x = c.in(0), &y = c.out();
  const Expr n = x->shape[d];
  const DType t = x->dtype, acc = accumulator(t);
  c.b.opaque_over(
      without_axis(x->shape, axis),
      [&](const Axes& outer) {
        Buffer total = make_buffer("total", acc, {Expr(1)}, Scope::kLocal);
        Stmt steps = loop_nest({n}, [&](const Axes& step) {
          const Axes at = with_axis(outer, axis, reverse ? n - 1 - step[0] : step[0]);
          Stmt write = store(y, at, cast(t, load(total, {Expr(0)})));
          Stmt grow =
              store(total, {Expr(0)}, combine(how, load(total, {Expr(0)}), cast(acc, load(x, at))));
          return exclusive ? seq({write, grow}) : seq({grow, write});
        });
        return allocate(total, seq({store(total, {Expr(0)}, neutral(how, acc)), steps}));
      },
      "scan");
}

// What was summed up forwards is summed up backwards.
void gradient_of_sum(GradientContext& c) {
  const NodeView node = c.view();
  Attributes a = node.node().attributes;
  a["reverse"] = static_cast<int64_t>(node.attr_int("reverse") == 0);
  c.add(0, c.dy().make("cumulative_sum", {c.dy().id, c.in(1).id}, std::move(a)));
}

// dy times the product of the others, summed up backwards over the results that an element is in:
// y / x. The first zero is in products of the others alone, which its own place taken as 1 gives;
// behind it all products are 0, and no element matters.
void gradient_of_product(GradientContext& c) {
  const NodeView node = c.view();
  const Attributes forwards = node.node().attributes;
  Attributes backwards = forwards,
             before{{"reverse", node.attr_int("reverse")}, {"exclusive", int64_t{1}}};
  backwards["reverse"] = static_cast<int64_t>(node.attr_int("reverse") == 0);
  const auto scan = [&](const char* op, V v, const Attributes& a) {
    return v.make(op, {v.id, c.in(1).id}, a);
  };
  const V x = c.in(0), one = x.number(1), none = x.number(0);
  const V is_zero = apply("equal", x, none);
  const V zeros = where(is_zero, one, none), so_far = scan("cumulative_sum", zeros, before);
  const V no_zero = apply("equal", so_far, none), first = apply("and", is_zero, no_zero);
  const V others = scan("cumulative_product", where(first, one, x), forwards);
  const V of_first = scan("cumulative_sum", c.dy() * others, backwards),
          of_rest = scan("cumulative_sum", c.dy() * c.out(), backwards) / where(is_zero, one, x);
  c.add(0, where(first, of_first, where(no_zero, of_rest, none)));
}

// --- top_k -------------------------------------------------------------------------------------

constexpr int64_t kInsertAtMost = 64;  // results of this number are kept sorted while x is read

Status infer_top_k(InferContext& c) {
  const auto& x = c.type(0);
  const int axis = c.axis(x.rank(), -1);
  if (axis < 0 || axis >= x.rank()) return c.error(axis_message(c.attr_int("axis", -1), x));
  if (x.dtype == DType::kBool) return c.error("x is " + to_string(x));
  auto known = known_dims(c, 1);
  if (known && known->size() != 1)
    return c.error("k is " + to_string(c.type(1)) + ", expected one number");
  const Expr k = known ? (*known)[0] : Expr(c.data_dependent_symbol(0, "k"));
  if (!c.at_most(0, k, "k must be at least 0") ||
      !c.at_most(k, x.dims[static_cast<size_t>(axis)], "the axis must have k elements"))
    return c.error("k is " + to_text(k) + ", x is " + to_string(x));
  std::vector<Expr> dims = x.dims;
  dims[static_cast<size_t>(axis)] = k;
  c.set_output(0, x.dtype, dims);
  c.set_output(1, DType::kInt64, dims);
  return {};
}
void compute_top_k_count(ComputeContext& c) {
  c.b.opaque(store(c.out(), {Expr(0)}, cast(DType::kInt64, load(c.in(1), zeros(c.rank(1))))), "k");
}
// Each element is inserted among the best so far, behind its equals.
// Insertion into a sorted list of k: mostly one comparison per element, as few beat the worst kept;
// O(n k) at worst. Large k take a full sort.
Stmt insert_best(const ComputeContext& c, const Axes& outer, int axis, const Expr& n, int64_t k,
                 bool largest) {
  const Scalars s(2);  // how many are kept; where the new one goes
  auto at = [&](const Expr& i) { return with_axis(outer, axis, i); };
  auto better = [&](const Expr& a, const Expr& b) {
    return largest ? is_above(a, b) : is_above(b, a);
  };
  Stmt scan = loop_nest({n}, [&](const Axes& i) {
    return with_value("x", load(c.in(0), at(i[0])), [&](const Expr& x) {
      Expr place = s.get(1), before = place - 1;
      Expr moves =
          select(place > Expr(0), better(x, load(c.out(0), at(max(before, 0)))), bool_imm(false));
      Stmt move = seq({store(c.out(0), at(place), load(c.out(0), at(before))),
                       store(c.out(1), at(place), load(c.out(1), at(before))), s.add(1, -1)});
      Stmt put = seq({store(c.out(0), at(place), x), store(c.out(1), at(place), i[0]),
                      s.set(0, min(s.get(0) + 1, k))});
      const Expr worst = load(c.out(0), at(Expr(k - 1))), some_are_missing = s.get(0) < Expr(k);
      const Expr belongs = select(some_are_missing, bool_imm(true), better(x, worst));
      auto insert = [&](const Stmt& last) {
        return seq({s.set(1, min(s.get(0), k - 1)), while_loop(moves, move), last});
      };
      if (!is_float(x.dtype())) return if_then(belongs, insert(put));
      // One comparison, which NaN passes too, tells nearly all that are not among the best. The
      // exact one stands behind the loop, where it is not made for every element.
      return if_then(
          select(some_are_missing, bool_imm(true), logical_not(largest ? x <= worst : x >= worst)),
          insert(if_then(belongs, put)));
    });
  });
  return s.around(seq({s.set(0, 0), scan}));
}
void compute_top_k(ComputeContext& c) {
  const int axis = c.axis(c.rank(0), -1);
  const Buffer& x = c.in(0);
  const Expr n = x->shape[static_cast<size_t>(axis)], k = c.out()->shape[static_cast<size_t>(axis)];
  const bool largest = c.attr_int("largest", 1) != 0;
  if (is_zero(k)) return;
  c.b.opaque_over(
      without_axis(x->shape, axis),
      [&](const Axes& outer) {
        if (auto few = as_int(k); few && *few <= kInsertAtMost)
          return insert_best(c, outer, axis, n, *few, largest);
        auto value = [&](const Expr& i) { return load(x, with_axis(outer, axis, i)); };
        auto compare = [&](const Expr& a, const Expr& b, const std::function<Stmt(Expr)>& result) {
          return result(largest ? three_way(value(b), value(a)) : three_way(value(a), value(b)));
        };
        return with_sorted(n, compare, [&](const Buffer& order) {
          return loop_nest({k}, [&](const Axes& r) {
            const Axes at = with_axis(outer, axis, r[0]);
            return seq(
                {store(c.out(0), at, value(load(order, r))), store(c.out(1), at, load(order, r))});
          });
        });
      },
      "top_k");
}

// --- unique ------------------------------------------------------------------------------------

// Axis of the slices that are compared; -1: single elements.
int unique_axis(const NodeView& c) { return c.has_attribute("axis") ? c.axis(c.rank(0)) : -1; }

Status infer_unique(InferContext& c) {
  const auto& x = c.type(0);
  const int axis = unique_axis(c);
  if (c.has_attribute("axis") && (axis < 0 || axis >= x.rank()))
    return c.error(axis_message(c.attr_int("axis"), x));
  const Expr count = c.data_dependent_symbol(0, "count");
  std::vector<Expr> dims{count};
  if (axis >= 0) {
    dims = x.dims;
    dims[static_cast<size_t>(axis)] = count;
  }
  c.set_output(0, x.dtype, dims);
  c.set_output(1, DType::kInt64, {count});
  c.set_output(2, DType::kInt64,
               {axis >= 0 ? x.dims[static_cast<size_t>(axis)] : element_count(x)});
  c.set_output(3, DType::kInt64, {count});
  return {};
}
Compare compare_items(const ComputeContext& c) {
  const int axis = unique_axis(c);
  const Buffer x = c.in(0);
  if (axis < 0)
    return [x](const Expr& a, const Expr& b, const std::function<Stmt(Expr)>& result) {
      return result(three_way(load(x, unravel(a, x->shape)), load(x, unravel(b, x->shape))));
    };
  return [x, axis](const Expr& a, const Expr& b, const std::function<Stmt(Expr)>& result) {
    const Scalars s(1);
    Stmt scan = loop_nest(without_axis(x->shape, axis), [&](const Axes& i) {
      Expr order = three_way(load(x, with_axis(i, axis, a)), load(x, with_axis(i, axis, b)));
      return if_then(eq(s.get(0), Expr(0)), s.set(0, order));  // the first difference decides
    });
    return s.around(seq({s.set(0, 0), scan, result(s.get(0))}));
  };
}
Expr item_count(const ComputeContext& c) {
  const int axis = unique_axis(c);
  return axis >= 0 ? c.dim(0, axis) : element_count(c.type(0));
}
// body(item, is new) for the items in sorted order; an item is new when it differs from the one
// before.
Stmt over_sorted(const ComputeContext& c,
                 const std::function<Stmt(const Expr& item, const Expr& is_new)>& body) {
  const Expr n = item_count(c);
  const Compare compare = compare_items(c);
  return with_sorted(n, compare, [&](const Buffer& order) {
    const Scalars differs(1);
    auto set = [&](Expr e) { return differs.set(0, std::move(e)); };
    return differs.around(loop_nest({n}, [&](const Axes& i) {
      Stmt test = if_then(eq(i[0], Expr(0)), set(Expr(1)),
                          compare(load(order, {max(i[0] - 1, 0)}), load(order, i), set));
      Stmt use = with_value("item", load(order, i), [&](const Expr& item) {
        return body(item, ne(differs.get(0), Expr(0)));
      });
      return seq({test, use});
    }));
  });
}
void compute_unique_count(ComputeContext& c) {
  const Axes at{Expr(0)};
  Stmt count = over_sorted(c, [&](const Expr&, const Expr& is_new) {
    return if_then(is_new, store(c.out(), at, load(c.out(), at) + 1));
  });
  c.b.opaque(seq({store(c.out(), at, Expr(0)), count}), "count");
}
void compute_unique(ComputeContext& c) {
  const Expr n = item_count(c), count = c.out(1)->shape[0];
  const int axis = unique_axis(c);
  const bool sorted = c.attr_int("sorted", 1) != 0;
  // Group of each item in sorted order, and the group's number in the result.
  Buffer group = c.b.temp("group", DType::kInt64, {n}),
         first = c.b.temp("first", DType::kInt64, {count}),
         number = c.b.temp("number", DType::kInt64, {count});
  const Scalars s(1);
  Stmt fill = over_sorted(c, [&](const Expr& item, const Expr& is_new) {
    Stmt open = seq({store(first, {s.get(0)}, item),
                     s.add(0, 1)});  // the sort is stable: the first of its group
    return seq({if_then(is_new, open), store(group, {item}, s.get(0) - 1)});
  });
  c.b.opaque(s.around(seq({s.set(0, 0), fill})), "groups");
  const Scalars next(1);
  Stmt rename = loop_nest({n}, [&](const Axes& i) {
    return with_value("g", load(group, i), [&](const Expr& g) {
      return if_then(eq(load(first, {g}), i[0]),
                     seq({store(number, {g}, next.get(0)), next.add(0, 1)}));
    });
  });
  if (sorted)
    c.b.compute(number, [&](const Axes& i) { return i[0]; }, "number");
  else
    c.b.opaque(next.around(seq({next.set(0, 0), rename})), "number");
  c.b.opaque(loop_nest({count},
                       [&](const Axes& g) {
                         Expr to = load(number, g);
                         return seq({store(c.out(1), {to}, load(first, g)),
                                     store(c.out(3), {to}, Expr(0))});
                       }),
             "first");
  c.b.opaque(
      loop_nest({n},
                [&](const Axes& i) {
                  return with_value("to", load(number, {load(group, i)}), [&](const Expr& to) {
                    return seq(
                        {store(c.out(2), i, to), store(c.out(3), {to}, load(c.out(3), {to}) + 1)});
                  });
                }),
      "inverse");
  c.b.compute(
      c.out(0),
      [&](const Axes& i) {
        if (axis < 0) return load(c.in(0), unravel(load(c.out(1), i), c.in(0)->shape));
        Axes at = i;
        at[static_cast<size_t>(axis)] = load(c.out(1), {i[static_cast<size_t>(axis)]});
        return load(c.in(0), at);
      },
      "unique");
}

}  // namespace

const std::vector<OpDef>& sorting_ops() {
  static const TensorType x2{DType::kFloat32, {3, 9}}, i1{DType::kInt64, {1}};
  static const std::vector<AttributeDef> scan_attributes{
      {"reverse", AttributeKind::kInt, "from the end"},
      {"exclusive", AttributeKind::kInt, "without the element itself"}};
  static const std::vector<OpDef> ops{
      {.name = "cumulative_sum",
       .summary = "running sum along an axis",
       .operands = {{"x"}, {"axis"}},
       .attributes = scan_attributes,
       .infer_type = infer_scan,
       .compute = compute_scan<Combiner::kSum>,
       .gradient = gradient_of_sum,
       .example = {.inputs = {x2, i1}, .values = {{}, {1}}},
       .source = "https://onnx.ai/onnx/operators/onnx__CumSum.html"},
      {.name = "cumulative_product",
       .summary = "running product along an axis",
       .operands = {{"x"}, {"axis"}},
       .attributes = scan_attributes,
       .infer_type = infer_scan,
       .compute = compute_scan<Combiner::kProduct>,
       .gradient = gradient_of_product,
       .example = {.inputs = {x2, i1}, .values = {{}, {0}}},
       .source = "https://onnx.ai/onnx/operators/onnx__CumProd.html"},
      {.name = "top_k",
       .summary = "the k largest or smallest elements along an axis, best first; of equals the one "
                  "of lower index first; NaN is larger than all numbers",
       .operands = {{"x"}, {"k"}},
       .attributes = {{"axis", AttributeKind::kInt, "default -1"},
                      {"largest", AttributeKind::kInt, "default 1"}},
       .outputs = "values,indices",
       .infer_type = infer_top_k,
       .compute = compute_top_k,
       .gradient = gradient_of_top_k,
       .compute_symbols = compute_top_k_count,
       .symbols_rule = "k is below 0",
       .example = {.inputs = {x2, i1}, .values = {{}, {4}}, .outputs = 2},
       .source = "https://onnx.ai/onnx/operators/onnx__TopK.html"},
      {.name = "unique",
       .summary =
           "the different elements, or slices along an axis; first occurrences, inverse, counts",
       .operands = {{"x"}},
       .attributes = {{"axis", AttributeKind::kInt, "absent: x as one list"},
                      {"sorted", AttributeKind::kInt, "default 1; 0: by first occurrence"}},
       .outputs = "y,indices,inverse,counts",
       .infer_type = infer_unique,
       .compute = compute_unique,
       .compute_symbols = compute_unique_count,
       .example = {.inputs = {{DType::kInt64, {7}}}, .values = {{3, 1, 3, 2}}, .outputs = 4},
       .source = "https://onnx.ai/onnx/operators/onnx__Unique.html"},
  };
  return ops;
}

}  // namespace tilewright::ir
