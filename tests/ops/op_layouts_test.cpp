// Operands and results that do not lie as they would alone: each operator's example with each operand
// behind a transpose, a slice or a convolution whose channels are innermost, and each result before one;
// indices are data of the run, and extents are numbers or symbols. Compiled as interpreted.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "ir/graph/infer.h"
#include "ir/graph/op.h"
#include "ir/ops/known_ops.h"
#include "tests/ops/graph_oracle.h"

namespace tilewright {
namespace {

using ir::Expr;
using ir::OpDef;
using ir::ValueId;

enum class Way : uint8_t { kNone, kTransposed, kSliced, kConvolved };
constexpr Way kWays[] = {Way::kTransposed, Way::kSliced, Way::kConvolved};
const char* name_of(Way way) {
  switch (way) {
    case Way::kNone: return "as it is";
    case Way::kTransposed: return "transposed";
    case Way::kSliced: return "sliced";
    case Way::kConvolved: return "convolved";
  }
  return "";
}
// The places that change their layout: an operand, or a result behind the operands.
struct Case {
  Way way = Way::kNone;
  int operand = -1, result = -1;
  bool open = false;  // extents are symbols
};

HostTensor floats_of(const HostTensor& t) {
  HostTensor f(DType::kFloat32, t.shape);
  for (int64_t i = 0; i < t.size(); ++i) f.data<float>()[i] = static_cast<float>(element(t, i));
  return f;
}
// Element `at(index)` of t for each index of a tensor of this shape.
HostTensor rearranged(const HostTensor& t, const Shape& shape,
                      const std::function<int64_t(const Shape&)>& at) {
  HostTensor r(t.dtype, shape);
  const auto bytes = static_cast<size_t>(byte_size(t.dtype));
  Shape index(shape.size(), 0);
  for (int64_t i = 0; i < r.size(); ++i) {
    int64_t rest = i;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) index[d] = rest % shape[d];
    std::memcpy(r.bytes.data() + static_cast<size_t>(i) * bytes,
                t.bytes.data() + static_cast<size_t>(at(index)) * bytes, bytes);
  }
  return r;
}

// The graph around one call of an operator.
class Surroundings {
 public:
  Surroundings(const OpDef& op, const Case& c) : op_(op), case_(c) { call_.graph.name = "around"; }

  // Nothing where the place cannot lie that way (rank, type, a small constant); an error where the
  // operator refuses its operands.
  std::optional<Result<GraphCall>> build() {
    std::vector<ValueId> operands;
    for (size_t i = 0; i < op_.example.inputs.size(); ++i) {
      const ValueId v = operand(i);
      if (v == ir::kNone) return std::nullopt;
      operands.push_back(v);
    }
    auto results = ir::add_node(call_.graph, op_.name, operands, op_.example.attributes,
                                op_.example.outputs, "result", {"example"});
    if (!results.ok()) return results.error();
    for (size_t k = 0; k < results->size(); ++k) {
      const bool here = static_cast<int>(k) == case_.result;
      if (here && !is_possible((*results)[k])) return std::nullopt;
      call_.output(here ? behind((*results)[k]) : (*results)[k]);
    }
    return std::move(call_);
  }

 private:
  int rank(ValueId v) const { return call_.graph.value(v).type.rank(); }
  static bool is_possible(Way way, int rank, DType t) {
    switch (way) {
      case Way::kNone: return true;
      case Way::kTransposed: return rank >= 2;
      case Way::kSliced: return rank >= 1;
      case Way::kConvolved: return rank >= 3 && rank <= 5 && t != DType::kFloat64;
    }
    return false;
  }
  bool is_possible(ValueId v) const {
    return is_possible(case_.way, rank(v), call_.graph.value(v).type.dtype);
  }

  // Operand i of the example, where it is this one's turn behind a node of another layout.
  ValueId operand(size_t i) {
    const ir::TensorType& type = op_.example.inputs[i];
    const bool given = i < op_.example.values.size() && !op_.example.values[i].empty();
    const bool is_index = static_cast<int>(i) == op_.index_operand;
    const Shape shape = ir::constant_shape(type).value();
    HostTensor t = given ? repeated(type.dtype, shape, op_.example.values[i])
                         : random_tensor(type.dtype, shape, random_);
    if (static_cast<int>(i) != case_.operand)
      return given && type.rank() <= 1 && !is_index ? call_.constant(t) : input(std::move(t));
    if (t.size() == 0 || !is_possible(case_.way, type.rank(), type.dtype) ||
        (given && type.rank() <= 1 && !is_index))
      return ir::kNone;
    switch (case_.way) {
      case Way::kNone: break;
      case Way::kTransposed: return transposed(t);
      case Way::kSliced: return sliced(t);
      case Way::kConvolved: {
        const ValueId y = convolution(input(floats_of(t), true));
        return type.dtype == DType::kFloat32 ? y : cast(y, type.dtype);
      }
    }
    return input(std::move(t));
  }
  ValueId behind(ValueId v) {
    switch (case_.way) {
      case Way::kNone: return v;
      case Way::kTransposed: return call_.op("transpose", {v}, {{"perm", reversed(rank(v))}});
      case Way::kSliced: {
        const auto n = static_cast<size_t>(rank(v));
        return slice(v, std::vector<int64_t>(n, 0), std::vector<int64_t>(n, INT64_MAX), 2);
      }
      case Way::kConvolved: return convolution(cast(v, DType::kFloat32));
    }
    return v;
  }

  ValueId input(HostTensor t, bool has_channels = false) {
    const Shape shape = t.shape;
    const ValueId v = call_.input(std::move(t));
    if (!case_.open) return v;
    std::vector<Expr>& dims = call_.graph.value(v).type.dims;
    for (size_t d = 0; d < dims.size(); ++d)
      if (shape[d] > 1 && !(has_channels && d == 1)) dims[d] = symbol(shape[d]);
    return v;
  }
  Expr symbol(int64_t extent) {
    auto [it, fresh] = symbols_.emplace(extent, ir::Var());
    if (fresh) it->second = ir::Var("n" + std::to_string(extent));
    return it->second;
  }
  ValueId ints(const std::vector<int64_t>& values) {
    HostTensor t(DType::kInt64, {static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), t.data<int64_t>());
    return call_.constant(t);
  }
  ValueId cast(ValueId v, DType to) {
    return call_.graph.value(v).type.dtype == to
               ? v
               : call_.op("cast", {v}, {{"to", std::string(name(to))}});
  }
  static std::vector<int64_t> reversed(int rank) {
    std::vector<int64_t> perm(static_cast<size_t>(rank));
    std::iota(perm.rbegin(), perm.rend(), 0);
    return perm;
  }
  ValueId transposed(const HostTensor& t) {
    const Shape shape(t.shape.rbegin(), t.shape.rend());
    const ValueId v = input(rearranged(t, shape, [&](const Shape& index) {
      int64_t at = 0;
      for (size_t d = 0; d < t.shape.size(); ++d)
        at = at * t.shape[d] + index[index.size() - 1 - d];
      return at;
    }));
    return call_.op("transpose", {v}, {{"perm", reversed(rank(v))}});
  }
  ValueId slice(ValueId v, const std::vector<int64_t>& starts, const std::vector<int64_t>& ends,
                int64_t step) {
    std::vector<int64_t> axes(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
    return call_.op("slice", {v, ints(starts), ints(ends), ints(axes),
                              ints(std::vector<int64_t>(starts.size(), step))});
  }
  // One more element on both sides of each dimension of more than one.
  ValueId sliced(const HostTensor& t) {
    Shape shape = t.shape;
    for (int64_t& d : shape) d += 2;
    for (size_t d = 0; d < shape.size(); ++d)
      if (t.shape[d] == 1) shape[d] = 1;  // an extent that may be 1 does not broadcast in a graph
    const ValueId v = input(rearranged(t, shape, [&](const Shape& index) {
      int64_t at = 0;
      for (size_t d = 0; d < t.shape.size(); ++d)
        at = at * t.shape[d] +
             std::clamp<int64_t>(index[d] - 1, 0, std::max<int64_t>(t.shape[d] - 1, 0));
      return at;
    }));
    std::vector<int64_t> starts, ends;
    for (size_t d = 0; d < shape.size(); ++d) {
      starts.push_back(shape[d] == 1 ? 0 : 1);
      ends.push_back(shape[d] == 1 ? 1 : -1);
    }
    return slice(v, starts, ends, 1);
  }
  // Each channel as it is.
  ValueId convolution(ValueId x) {
    const int64_t channels = ir::as_int(call_.graph.value(x).type.dims[1]).value_or(0);
    if (channels == 0) return x;
    Shape shape(static_cast<size_t>(rank(x)), 1);
    shape[0] = shape[1] = channels;
    HostTensor w(DType::kFloat32, shape);
    std::fill_n(w.data<float>(), w.size(), 0.0f);
    for (int64_t c = 0; c < channels; ++c) w.data<float>()[c * channels + c] = 1;
    return call_.op("conv", {x, call_.constant(w)});
  }

  const OpDef& op_;
  const Case case_;
  GraphCall call_;
  std::mt19937_64 random_{1};
  std::map<int64_t, ir::Var> symbols_;
};

// Chooses the layout with channels innermost wherever the compiler offers it, whatever the cost model
// says.
CompiledForm with_channels_innermost(const ir::Graph& graph) {
  CompiledForm form{true, true, true};
  auto decisions = graph_decisions(graph, form);
  if (!decisions.ok()) return form;
  for (const passes::Decision& d : *decisions)
    if (!d.labels.empty() && d.labels.back() == "channels_innermost")
      form.answers[d.name] = d.values.back();
  return form;
}

// Operators that must know an extent of an operand at compile time: of a kernel, of the state of a
// recurrent layer, of an index or a pair, or what a scale multiplies.
const std::set<std::string_view> kKnownExtents{
    "conv",       "conv_transpose", "farthest_index", "gather_nd",     "gru_steps",
    "lstm_steps", "resize",         "rnn_steps",      "winograd_conv", "winograd_weights"};

// Returns whether the case is one: see Surroundings::build.
bool is_case(const OpDef& op, const Case& c) { return Surroundings(op, c).build().has_value(); }
void expect_as_interpreted(const OpDef& op, const Case& c) {
  auto built = Surroundings(op, c).build();
  if (!built) return;
  SCOPED_TRACE(std::string(name_of(c.way)) + (c.operand >= 0 ? " operand " : " result ") +
               std::to_string(std::max(c.operand, c.result)) + (c.open ? ", open extents" : ""));
  if (!built->ok() && c.open && kKnownExtents.count(op.name)) return;
  ASSERT_TRUE(built->ok()) << built->error().to_string();
  GraphCall* call = &**built;
  auto oracle = interpret_graph(call->graph, call->inputs);
  ASSERT_TRUE(oracle.ok()) << oracle.error().to_string();
  auto runs = run_compiled(call->graph, call->inputs, with_channels_innermost(call->graph), {1, 3});
  ASSERT_TRUE(runs.ok()) << runs.error().to_string();
  constexpr double kUlps = 4;
  for (size_t i = 0; i < oracle->outputs.size(); ++i) {
    const HostTensor& expected = oracle->outputs[i];
    const auto d = difference((*runs)[0][i], expected);
    ASSERT_TRUE(d.has_value()) << "output " << i << ": type, shape or special values differ";
    EXPECT_LE(*d, epsilon(expected.dtype) * (kUlps + oracle->steps) * oracle->largest)
        << "output " << i;
    EXPECT_EQ((*runs)[1][i].bytes, (*runs)[0][i].bytes)
        << "output " << i << " depends on the number of threads";
  }
}

class OpLayouts : public testing::TestWithParam<const OpDef*> {};

TEST_P(OpLayouts, OfOperands) {
  const OpDef& op = *GetParam();
  for (int i = 0; i < static_cast<int>(op.example.inputs.size()); ++i)
    for (const Way way : kWays)
      for (const bool open : {false, true}) expect_as_interpreted(op, {way, i, -1, open});
}
TEST_P(OpLayouts, OfResults) {
  const OpDef& op = *GetParam();
  for (int k = 0; k < op.example.outputs; ++k)
    for (const Way way : kWays)
      for (const bool open : {false, true}) expect_as_interpreted(op, {way, -1, k, open});
}

// Each result that has dimensions stands before a slice, and one that has two before a transpose.
TEST_P(OpLayouts, HasCases) {
  const OpDef& op = *GetParam();
  auto alone = Surroundings(op, {}).build();
  ASSERT_TRUE(alone.has_value());
  ASSERT_TRUE(alone->ok()) << alone->error().to_string();
  const ir::Graph& graph = (*alone)->graph;
  for (int k = 0; k < op.example.outputs; ++k) {
    const int rank = graph.value(graph.outputs[static_cast<size_t>(k)]).type.rank();
    EXPECT_EQ(is_case(op, {Way::kSliced, -1, k, false}), rank >= 1) << "result " << k;
    EXPECT_EQ(is_case(op, {Way::kTransposed, -1, k, false}), rank >= 2) << "result " << k;
  }
}

std::vector<const OpDef*> ops_with_loops() {
  std::vector<const OpDef*> ops;
  for (const OpDef* op : ir::all_ops())
    if (op->compute) ops.push_back(op);
  return ops;
}
INSTANTIATE_TEST_SUITE_P(All, OpLayouts, testing::ValuesIn(ops_with_loops()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace tilewright
