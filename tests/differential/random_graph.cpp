#include "tests/differential/random_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "ir/graph/infer.h"
#include "ir/graph/op.h"
#include "tests/differential/graph_generator.h"

namespace tilewright {

using ir::Expr;
using ir::ValueId;

RandomGraph GraphGenerator::run() {
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

// Extents in numbers.
Shape GraphGenerator::shape(ValueId v) {
  Shape s;
  for (const Expr& d : type(v).dims) s.push_back(ir::evaluate_int(d, values_).value());
  return s;
}

Shape GraphGenerator::random_shape(int rank, bool may_be_empty) {
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

ValueId GraphGenerator::add_input(const Shape& extents, bool symbolic) {
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

ValueId GraphGenerator::add_ints(const std::vector<int64_t>& values) {
  return graph().add_constant(
      "c" + std::to_string(graph().values.size()),
      ir::make_constant_of<int64_t>(DType::kInt64, {static_cast<int64_t>(values.size())}, values));
}

// A weight whose elements are at most 1 / sqrt(fan_in).
ValueId GraphGenerator::add_weight(const Shape& extents, int64_t fan_in) {
  HostTensor t = random_tensor(DType::kFloat32, extents, random_);
  const auto scale =
      static_cast<float>(1 / std::sqrt(static_cast<double>(std::max<int64_t>(fan_in, 1))));
  for (int64_t i = 0; i < t.size(); ++i) t.data<float>()[i] *= scale;
  return graph().add_constant(
      "w" + std::to_string(graph().values.size()),
      ir::make_constant(DType::kFloat32, extents,
                        std::vector<uint8_t>(t.bytes.begin(), t.bytes.end())));
}

bool GraphGenerator::add(std::string_view op, std::vector<ValueId> operands,
                         ir::Attributes attributes, double bound) {
  auto outputs = ir::add_node(graph(), op, std::move(operands), std::move(attributes), 1,
                              std::string(op), {std::string(op)});
  TW_CHECK(outputs.ok());
  live_.push_back({(*outputs)[0], bound});
  return true;
}

GraphGenerator::Known GraphGenerator::pick() {
  // Recent results more often: chains are what fuses.
  const auto n = static_cast<int64_t>(live_.size());
  return live_[static_cast<size_t>(chance(0.6) ? n - 1 : below(n))];
}

bool GraphGenerator::step() {
  const Known x = pick();
  if (x.bound > kLargestBound) return add("tanh", {x.id}, {}, 1);
  switch (below(17)) {
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
    case 13:
    case 14: return look_up(x);
    case 15: return add_up_at(x);
    default: return normalize(x);
  }
}

// The last result, and now and then one on the way.
void GraphGenerator::choose_outputs() {
  auto add_output = [&](ValueId v) {
    if (std::count(graph().outputs.begin(), graph().outputs.end(), v)) return;
    graph().outputs.push_back(v);
    graph().output_names.push_back(graph().value(v).name + std::to_string(graph().outputs.size()));
  };
  for (const Known& k : live_)
    if (graph().value(k.id).producer >= 0 && chance(0.15)) add_output(k.id);
  for (size_t i = live_.size(); i-- > 0;)
    if (graph().value(live_[i].id).producer >= 0) {
      add_output(live_[i].id);
      break;
    }
}

RandomGraph make_random_graph(uint64_t seed) { return GraphGenerator(seed).run(); }

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

uint64_t from_environment(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : fallback;
}

// A relative change of the inputs and of every result on the way shows what rounding may grow by. A
// small change shows where differences of nearly equal numbers are divided by little more than
// their roundings; a larger one, steps.
std::vector<double> tolerances(const ir::Graph& graph, const Tensors& inputs,
                               const OracleRun& oracle) {
  std::vector<double> growth(oracle.outputs.size(), 0);
  for (const double change : {0x1p-10, 0x1p-16}) {
    auto run = interpret_graph(graph, inputs, change);
    TW_CHECK(run.ok());
    for (size_t k = 0; k < growth.size(); ++k)
      growth[k] =
          std::max(growth[k], difference(oracle.outputs[k], run->outputs[k]).value_or(0) / change);
  }
  // Each node rounds once per reduction step, and its functions are off by up to kUlps.
  constexpr double kUlps = 4;
  const double roundings = oracle.steps + kUlps * static_cast<double>(graph.nodes.size());
  for (double& g : growth) g = epsilon(DType::kFloat32) * roundings * (oracle.largest + g);
  return growth;
}

void expect_as_interpreted(const std::vector<Tensors>& runs, const OracleRun& oracle,
                           const std::vector<double>& allowed) {
  for (size_t k = 0; k < oracle.outputs.size(); ++k) {
    auto d = difference(runs[0][k], oracle.outputs[k]);
    ASSERT_TRUE(d.has_value()) << "output " << k << ": type, shape, infinities or NaNs differ";
    EXPECT_LE(*d, allowed[k]) << "output " << k;
    EXPECT_EQ(runs[1][k].bytes, runs[0][k].bytes)
        << "output " << k << " depends on the number of threads";
  }
}

void check_seeds(int part, int parts, uint64_t count, void (*check)(uint64_t seed)) {
  const uint64_t only = from_environment("TILEWRIGHT_SEED", ~uint64_t{0});
  if (only != ~uint64_t{0}) {
    if (part == 0) check(only);
    return;
  }
  const uint64_t end = from_environment("TILEWRIGHT_GRAPHS", count);
  for (auto seed = static_cast<uint64_t>(part); seed < end && !testing::Test::HasFailure();
       seed += static_cast<uint64_t>(parts))
    check(seed);
}

}  // namespace tilewright
