// Nodes that read and write at positions which the run gives. Indices come out of nodes after which they
// lie in another order than row-major: transposes, slices, reshapes and convolutions.
#include <algorithm>
#include <numeric>

#include "ir/graph/infer.h"
#include "tests/differential/graph_generator.h"

namespace tilewright {

using ir::Expr;
using ir::ValueId;

// The largest index that survives a convolution: the tolerance run perturbs its floats, which still round to
// the same integer up to this magnitude.
constexpr int64_t kMostConvolved = 60;

ValueId GraphGenerator::index_node(std::string_view op, std::vector<ValueId> operands,
                                   ir::Attributes attributes) {
  return ir::add_node(graph(), op, std::move(operands), std::move(attributes), 1, "index",
                      {"index"})
      .value()[0];
}
ValueId GraphGenerator::index_input(const Shape& extents, int64_t limit) {
  ir::TensorType type{DType::kInt32, {}};
  for (const int64_t e : extents) type.dims.push_back(Expr(e));
  const ValueId v = graph().add_value("x" + std::to_string(graph().inputs.size()), type);
  graph().inputs.push_back(v);
  HostTensor t(DType::kInt32, extents);
  for (int64_t i = 0; i < t.size(); ++i)
    t.data<int32_t>()[i] = static_cast<int32_t>(below(2 * limit) - limit);
  result_.inputs.push_back(std::move(t));
  return v;
}
// Passes integers through a convolution by an identity matrix, which leaves them unchanged.
ValueId GraphGenerator::convolved(ValueId v, int64_t channels, int rank, int64_t limit) {
  Shape shape(static_cast<size_t>(rank), 1);
  shape[0] = shape[1] = channels;
  std::vector<float> weights(static_cast<size_t>(channels * channels), 0);
  for (int64_t c = 0; c < channels; ++c) weights[static_cast<size_t>(c * channels + c)] = 1;
  const auto constant = [&](const Shape& s, auto values, DType t) {
    return graph().add_constant("c" + std::to_string(graph().values.size()),
                                ir::make_constant_of(t, s, values));
  };
  const ValueId w = constant(shape, weights, DType::kFloat32),
                half = constant({}, std::vector<float>{0.5f}, DType::kFloat32),
                shift =
                    constant({}, std::vector<int32_t>{static_cast<int32_t>(limit)}, DType::kInt32);
  v = index_node("cast", {index_node("add", {v, shift}, {})}, {{"to", std::string("f32")}});
  v = index_node("add", {index_node("conv", {v, w}, {}), half}, {});
  return index_node("sub", {index_node("cast", {v}, {{"to", std::string("i32")}}), shift}, {});
}

// Returns integers in [-limit, limit), moved by up to `nodes` nodes that keep their values.
ValueId GraphGenerator::whole_numbers(const Shape& extents, int64_t limit, int nodes) {
  const auto rank = static_cast<int64_t>(extents.size());
  const int64_t way = nodes == 0 || rank == 0 ? -1 : below(4);
  if (way == 0) {
    std::vector<int64_t> perm(extents.size());
    std::iota(perm.begin(), perm.end(), 0);
    std::shuffle(perm.begin(), perm.end(), random_);
    Shape before(extents.size());
    for (size_t d = 0; d < perm.size(); ++d) before[static_cast<size_t>(perm[d])] = extents[d];
    return index_node("transpose", {whole_numbers(before, limit, nodes - 1)}, {{"perm", perm}});
  }
  if (way == 1) {
    Shape before = extents;
    std::vector<int64_t> starts, ends, axes(extents.size());
    std::iota(axes.begin(), axes.end(), 0);
    for (int64_t& d : before) {
      starts.push_back(below(2));
      ends.push_back(starts.back() + d);
      d += starts.back() + below(2);
    }
    return index_node(
        "slice",
        {whole_numbers(before, limit, nodes - 1), add_ints(starts), add_ints(ends), add_ints(axes)},
        {});
  }
  if (way == 2 && rank >= 3 && rank <= 5 && extents[1] > 0 && extents[1] <= 64 &&
      limit <= kMostConvolved)
    return convolved(whole_numbers(extents, limit, nodes - 1), extents[1], static_cast<int>(rank),
                     limit);
  if (way == 3) {
    const int64_t n = element_count(extents).value();
    return index_node("reshape", {whole_numbers({n}, limit, nodes - 1), add_ints(extents)},
                      {{"allowzero", int64_t{1}}});
  }
  return index_input(extents, limit);
}
ValueId GraphGenerator::indices(const Shape& extents, int64_t limit) {
  const ValueId v = whole_numbers(extents, limit, static_cast<int>(below(4)));
  return chance(0.5) ? v : index_node("cast", {v}, {{"to", std::string("i64")}});
}

bool GraphGenerator::look_up(const Known& x) {
  const Shape s = shape(x.id);
  if (s.empty() || !is_static(x.id) || element_count(s) == 0) return false;
  const int64_t axis = below(static_cast<int64_t>(s.size())), way = below(3);
  const int64_t extent = s[static_cast<size_t>(axis)];
  if (way == 0) {  // one index for a whole slice
    const Shape places = random_shape(static_cast<int>(below(4)), true);
    if (element_count(places).value() * element_count(s).value() / extent > kMostElements)
      return false;
    return add("gather", {x.id, indices(places, extent)}, {{"axis", axis}}, x.bound);
  }
  if (way == 1) {  // one for an element
    Shape places = s;
    for (int64_t& d : places) d = 1 + below(d);
    places[static_cast<size_t>(axis)] = 1 + below(12);
    if (element_count(places).value() > kMostElements) return false;
    return add("gather_elements", {x.id, indices(places, extent)}, {{"axis", axis}}, x.bound);
  }
  // Tuples of one or two, all within the shorter of the extents.
  const int64_t tuple = std::min<int64_t>(1 + below(2), static_cast<int64_t>(s.size()));
  Shape places = random_shape(static_cast<int>(1 + below(2)), true);
  int64_t rest = 1;
  for (size_t d = static_cast<size_t>(tuple); d < s.size(); ++d) rest *= s[d];
  if (element_count(places).value() * rest > kMostElements) return false;
  places.push_back(tuple);
  return add("gather_nd", {x.id, indices(places, *std::min_element(s.begin(), s.begin() + tuple))},
             {}, x.bound);
}

// Adds a scatter with reduction "add"; several updates may go to one element.
bool GraphGenerator::add_up_at(const Known& x) {
  const Shape s = shape(x.id);
  if (s.empty() || !is_static(x.id) || element_count(s) == 0) return false;
  const int64_t axis = below(static_cast<int64_t>(s.size()));
  Shape places = s;
  for (int64_t& d : places) d = 1 + below(std::min<int64_t>(d, 8));
  if (chance(0.5)) {
    const ValueId at = indices(places, s[static_cast<size_t>(axis)]);
    const ValueId updates = add_input(places);
    return add("scatter_elements", {x.id, at, updates},
               {{"axis", axis}, {"reduction", std::string("add")}},
               x.bound + static_cast<double>(places[static_cast<size_t>(axis)]));
  }
  const int64_t rows = 1 + below(6);
  Shape updates = s;
  updates[0] = rows;
  if (element_count(updates).value() > kMostElements) return false;
  const ValueId at = indices({rows, 1}, s[0]);
  return add("scatter_nd", {x.id, at, add_input(updates)}, {{"reduction", std::string("add")}},
             x.bound + static_cast<double>(rows));
}

}  // namespace tilewright
