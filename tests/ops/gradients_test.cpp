// Gradients of all operators that have a rule, against central differences of the interpreter in f64:
// of the operator's example and of shapes with extents of 1 and primes; and compiled against
// interpreted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "ir/graph/infer.h"
#include "ir/graph/op.h"
#include "ir/ops/families.h"
#include "passes/graph/differentiate.h"
#include "tests/ops/gradient_cases.h"
#include "tests/ops/gradient_graphs.h"
#include "tests/ops/graph_oracle.h"

namespace tilewright {
namespace {

using ir::ValueId;

void set_outputs(ir::Graph& graph, const std::vector<ValueId>& outputs) {
  graph.outputs = outputs;
  graph.output_names.clear();
  for (size_t i = 0; i < outputs.size(); ++i) graph.output_names.push_back("y" + std::to_string(i));
}

// (loss(x + h) - loss(x - h)) / 2h of one element, by Richardson's extrapolation: errors of h^4.
Result<double> difference_at(const ir::Graph& graph, Tensors inputs, size_t input, int64_t k) {
  double* x = inputs[input].data<double>() + k;
  const double at = *x;
  const auto slope = [&](double h) -> Result<double> {
    double sides[2];
    for (int side : {0, 1}) {
      *x = side ? at + h : at - h;
      TW_ASSIGN(OracleRun run, interpret_graph(graph, inputs));
      sides[side] = run.outputs[0].data<double>()[0];
    }
    return (sides[1] - sides[0]) / (2 * h);
  };
  constexpr double kStep = 1e-3;
  TW_ASSIGN(const double wide, slope(kStep));
  TW_ASSIGN(const double narrow, slope(kStep / 2));
  return (4 * narrow - wide) / 3;
}

class Gradients : public testing::TestWithParam<GradientCase> {};

TEST_P(Gradients, EqualCentralDifferences) {
  auto d = graph_of(GetParam());
  ASSERT_TRUE(d.ok()) << d.error().to_string();
  ir::Graph forward = d->graph;
  set_outputs(forward, {d->loss});
  auto gradients = passes::differentiate(d->graph, d->loss, d->of);
  ASSERT_TRUE(gradients.ok()) << gradients.error().to_string();
  set_outputs(d->graph, *gradients);
  auto run = interpret_graph(d->graph, d->inputs);
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  for (size_t g = 0; g < gradients->size(); ++g) {
    const auto input =
        static_cast<size_t>(std::find(d->graph.inputs.begin(), d->graph.inputs.end(), d->of[g]) -
                            d->graph.inputs.begin());
    const HostTensor& found = run->outputs[g];
    ASSERT_EQ(found.shape, d->inputs[input].shape) << "operand " << g;
    double largest = 1;
    for (int64_t k = 0; k < found.size(); ++k)
      largest = std::max(largest, std::abs(found.data<double>()[k]));
    // Every element of small operands, some of large ones.
    const int64_t step = std::max<int64_t>(1, found.size() / 40);
    for (int64_t k = 0; k < found.size(); k += step) {
      auto expected = difference_at(forward, d->inputs, input, k);
      ASSERT_TRUE(expected.ok()) << expected.error().to_string();
      EXPECT_NEAR(found.data<double>()[k], *expected, 1e-6 * largest)
          << "operand " << g << ", element " << k;
    }
  }
}

TEST_P(Gradients, CompiledEqualInterpreted) {
  auto d = graph_of(GetParam());
  ASSERT_TRUE(d.ok()) << d.error().to_string();
  auto gradients = passes::differentiate(d->graph, d->loss, d->of);
  ASSERT_TRUE(gradients.ok()) << gradients.error().to_string();
  set_outputs(d->graph, *gradients);
  auto oracle = interpret_graph(d->graph, d->inputs);
  ASSERT_TRUE(oracle.ok()) << oracle.error().to_string();
  auto runs = run_compiled(d->graph, d->inputs, {}, {1, 3});
  ASSERT_TRUE(runs.ok()) << runs.error().to_string();
  for (size_t i = 0; i < oracle->outputs.size(); ++i) {
    const auto off = difference((*runs)[0][i], oracle->outputs[i]);
    ASSERT_TRUE(off.has_value()) << "gradient " << i;
    EXPECT_LE(*off,
              epsilon(DType::kFloat64) * (16 + oracle->steps) * std::max(1.0, oracle->largest));
    EXPECT_EQ((*runs)[1][i].bytes, (*runs)[0][i].bytes) << "depends on the number of threads";
  }
}

INSTANTIATE_TEST_SUITE_P(All, Gradients, testing::ValuesIn(gradient_cases()),
                         [](const auto& info) { return info.param.name(); });

// Why an operator has no rule. Those that take no floats, or give none, need no reason.
const std::map<std::string_view, std::string_view>& reasons() {
  constexpr std::string_view kOfGradients = "made by gradients, of which no gradient is taken",
                             kByPasses = "made by passes behind differentiation",
                             kInThePass = "passes/graph/differentiate goes into its regions";
  static const std::map<std::string_view, std::string_view> kReasons{
      {"conv_weights_gradient", kOfGradients},
      {"rnn_steps_gradient", kOfGradients},
      {"gru_steps_gradient", kOfGradients},
      {"lstm_steps_gradient", kOfGradients},
      {"max_pool_gradient", kOfGradients},
      {"softmax_gradient", kOfGradients},
      {"layer_norm_gradient", kOfGradients},
      {"roi_align_gradient", kOfGradients},
      {"cofactors", kOfGradients},
      {"transposed", kOfGradients},
      {"winograd_conv", kByPasses},
      {"winograd_weights", kByPasses},
      {"winograd_weights_gradient", kByPasses},
      {"round_rows", kByPasses},
      {"if", kInThePass},
      {"loop", kInThePass},
      {"checked_indices", "indices are integers"},
      {"watched", "made of states behind differentiation"},
      {"stop_gradient", "its derivative is taken for zero"},
      {"bit_cast", "bits are no continuous function of a number"},
      {"unique", "where two elements meet, the number of results jumps"},
      {"linear_attention", "the state of each token would have to be kept"},
  };
  return kReasons;
}
// Does the operator's example? One that cannot be typed as it stands is taken for one that does.
bool takes_and_gives_floats(const ir::OpDef& op) {
  ir::Graph graph;
  std::vector<ValueId> operands;
  bool takes = false, gives = false;
  for (size_t i = 0; i < op.example.inputs.size(); ++i) {
    const ir::TensorType& type = op.example.inputs[i];
    takes |= is_float(type.dtype);
    const bool given = i < op.example.values.size() && !op.example.values[i].empty();
    const HostTensor t = given
                             ? repeated(type.dtype, *ir::constant_shape(type), op.example.values[i])
                             : HostTensor(type.dtype, *ir::constant_shape(type));
    operands.push_back(
        given && type.rank() <= 1
            ? graph.add_constant(
                  "operand", ir::make_constant(t.dtype, t.shape, {t.bytes.begin(), t.bytes.end()}))
            : graph.add_value("operand", type));
  }
  const auto results = ir::add_node(graph, op.name, operands, op.example.attributes,
                                    op.example.outputs, "result", {});
  if (!results.ok()) return true;
  for (ValueId v : *results) gives |= is_float(graph.value(v).type.dtype);
  return takes && gives;
}

// Who adds a rule is asked for a case, and who adds an operator of floats for a rule or a reason.
TEST(Gradients, EveryOperatorHasARuleOrAReason) {
  std::set<std::string> tried;
  for (const GradientCase& c : gradient_cases()) tried.insert(c.op);
  for (const ir::OpDef* op : ir::all_ops()) {
    const bool has_reason = reasons().count(op->name) != 0;
    if (op->gradient) {
      EXPECT_TRUE(tried.count(std::string(op->name)) || is_straight_through(op->name))
          << op->name << " is not tried";
      EXPECT_FALSE(has_reason) << op->name << " has a rule";
    } else if (!op->compute && op->example.inputs.empty() && !has_reason) {
      EXPECT_TRUE(op->operands.empty()) << op->name << " has neither a rule nor a reason";
    } else {
      EXPECT_TRUE(has_reason || !takes_and_gives_floats(*op))
          << op->name << " takes and gives floats, and has neither a rule nor a reason";
    }
  }
  for (const auto& [name, why] : reasons()) EXPECT_TRUE(ir::find_op(name)) << name;
}

}  // namespace
}  // namespace tilewright
