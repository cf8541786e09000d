// Operators whose results are integers, or that compute with fractions of integers: how each is
// rounded, and what becomes of results beyond the range of the type. One table; each row is run
// against the rule as written down here, interpreted and compiled at all levels of numerics.
#include <set>

#include "tests/frontends/integer_rules.h"

namespace tilewright {
namespace {

void expect_result(const Row& row, const std::vector<double>& found) {
  Operands operands;
  for (const Operand& o : row.operands)
    operands.push_back(o.tensor.defined() ? numbers_of(o.tensor) : Numbers{});
  const std::vector<Real> reals = row.reals(operands);
  ASSERT_EQ(found.size(), reals.size());
  for (size_t i = 0; i < reals.size(); ++i) {
    const Real whole = in_range(rounded(reals[i], row.rounding), row.result, row.beyond);
    // A double holds the largest numbers of 64 bits only roughly.
    ASSERT_EQ(static_cast<double>(whole), found[i])
        << "element " << i << " is " << static_cast<double>(reals[i]) << ", by " << row.source;
  }
}
void expect_compiled(const Row& row, const NodeModel& m, Numerics numerics, int threads) {
  SCOPED_TRACE(testing::Message() << "numerics " << static_cast<int>(numerics) << ", " << threads
                                  << " threads");
  CompileOptions compile;
  compile.numerics = numerics;
  compile.schedule_threads = threads;
  SessionOptions options;
  options.threads = threads;
  auto session = m.session(compile, options);
  ASSERT_TRUE(session.ok()) << session.error().to_string();
  std::vector<Tensor> outputs;
  const Status s = (*session)->run(m.inputs, outputs);
  ASSERT_TRUE(s.ok()) << s.error().to_string();
  ASSERT_EQ(outputs[0].dtype(), row.result);
  expect_result(row, numbers_of(outputs[0]));
}
void expect_interpreted(const Row& row, const NodeModel& m) {
  SCOPED_TRACE("interpreted");
  auto model = parse(m.proto);
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  const auto graph = build_graph(**model, {});
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  Tensors inputs;
  for (const Tensor& t : m.inputs) inputs.push_back(to_host(t));
  const auto oracle = interpret_graph(*graph, inputs);
  ASSERT_TRUE(oracle.ok()) << oracle.error().to_string();
  expect_result(row, numbers_of(to_tensor(oracle->outputs[0])));
}

const std::vector<Row>& table() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> all;
    for (auto* add : {add_resizes, add_samples, add_casts, add_quantised, add_quantised_products,
                      add_arithmetic, add_powers, add_reductions, add_products, add_roundings})
      add(all);
    return all;
  }();
  return rows;
}

// The rows of one operator.
class IntegerResults : public testing::TestWithParam<std::string> {};

TEST_P(IntegerResults, AreRoundedByTheRule) {
  for (const Row& row : table()) {
    if (row.op != GetParam()) continue;
    SCOPED_TRACE(testing::PrintToString(row));
    NodeModel m(row.opset);
    Names in;
    for (const Operand& o : row.operands) in.push_back(m.operand(o));
    m.output("y");
    m.node(row.op, in, {"y"}, row.attributes);
    for (const Numerics numerics : {Numerics::kExact, Numerics::kStandard, Numerics::kRelaxed})
      for (const int threads : {1, 3}) expect_compiled(row, m, numerics, threads);
    expect_interpreted(row, m);
    if (HasFailure()) return;
  }
}

std::vector<std::string> operators() {
  std::set<std::string> names;
  for (const Row& row : table()) names.insert(row.op);
  return {names.begin(), names.end()};
}
INSTANTIATE_TEST_SUITE_P(Table, IntegerResults, testing::ValuesIn(operators()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tilewright
