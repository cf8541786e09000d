// Every operator of the table: documented, and its example gives the same result interpreted and
// compiled, fused or not, scheduled or not, with one thread and with three.
#include <gtest/gtest.h>

#include <set>

#include "ir/graph/infer.h"
#include "ir/graph/op.h"
#include "ir/text/printer_loops.h"
#include "passes/build_loops.h"
#include "passes/graph/graph_passes.h"
#include "tests/ops/graph_oracle.h"

namespace tilewright {
namespace {

using ir::OpDef;

struct Call {
  ir::Graph graph;
  Tensors inputs;
};

// The example as a graph of one node. Small integer operands with given values are constants:
// shapes may depend on them.
Result<Call> build_example(const OpDef& op) {
  Call call;
  call.graph.name = std::string(op.name);
  std::mt19937_64 random(1);
  std::vector<ir::ValueId> operands;
  for (size_t i = 0; i < op.example.inputs.size(); ++i) {
    const ir::TensorType& type = op.example.inputs[i];
    auto shape = ir::constant_shape(type);
    if (!shape) return invalid("the example's extents are not constant");
    const bool given = i < op.example.values.size() && !op.example.values[i].empty();
    HostTensor t = given ? repeated(type.dtype, *shape, op.example.values[i])
                         : random_tensor(type.dtype, *shape, random);
    const std::string name = "operand" + std::to_string(i);
    if (given && type.rank() <= 1) {
      operands.push_back(call.graph.add_constant(
          name, ir::make_constant(type.dtype, *shape,
                                  std::vector<uint8_t>(t.bytes.begin(), t.bytes.end()))));
    } else {
      operands.push_back(call.graph.add_value(name, type));
      call.graph.inputs.push_back(operands.back());
      call.inputs.push_back(std::move(t));
    }
  }
  TW_ASSIGN(std::vector<ir::ValueId> outputs,
            ir::add_node(call.graph, op.name, operands, op.example.attributes, op.example.outputs,
                         "result", {"example"}));
  for (ir::ValueId v : outputs) {
    call.graph.outputs.push_back(v);
    call.graph.output_names.push_back(call.graph.value(v).name);
  }
  return call;
}

class OpRecords : public testing::TestWithParam<const OpDef*> {};
class OpExamples : public testing::TestWithParam<const OpDef*> {};  // of what has loops

TEST_P(OpRecords, AreDocumented) {
  const OpDef& op = *GetParam();
  EXPECT_FALSE(op.summary.empty());
  EXPECT_FALSE(op.source.empty());
  EXPECT_NE(op.infer_type, nullptr);
  for (const ir::OperandDef& o : op.operands) EXPECT_FALSE(o.name.empty());
  for (const ir::AttributeDef& a : op.attributes) {
    EXPECT_FALSE(a.name.empty());
    EXPECT_FALSE(a.doc.empty()) << a.name;
  }
  if (!op.compute) return;  // control flow: no example of one node
  bool has_example = !op.example.inputs.empty() || !op.example.attributes.empty();
  EXPECT_TRUE(has_example) << "no example";
}

// Those whose positions come of data in ways that the proof does not follow: counters of what was found, and boxes by
// rank.
const std::set<std::string_view> kGuarded{"choose_boxes", "list_boxes", "nonzero", "top_k",
                                          "unique"};

// Every access of an operand or result lies inside by proof or under a requirement, checked indices taken as such.
TEST_P(OpExamples, AccessesAreProven) {
  const OpDef& op = *GetParam();
  auto call = build_example(op);
  ASSERT_TRUE(call.ok()) << call.error().to_string();
  auto checked = passes::check_indices(std::move(call->graph), false);
  ASSERT_TRUE(checked.ok()) << checked.error().to_string();
  const size_t last = checked->nodes.size() - 1;
  ASSERT_EQ(checked->nodes[last].op, &op);
  const passes::GroupKernel g = passes::build_group_kernel(*checked, {last}, checked->use_counts());
  for (const ir::Requirement& r : g.requirements)
    EXPECT_TRUE(!ir::as_int(r.a) || !ir::as_int(r.b)) << to_string(r);
  EXPECT_TRUE(g.guards == 0 || kGuarded.count(op.name)) << to_text(g.kernel);
}

TEST_P(OpExamples, CompiledEqualsInterpreted) {
  const OpDef& op = *GetParam();
  auto call = build_example(op);
  ASSERT_TRUE(call.ok()) << call.error().to_string();
  auto oracle = interpret_graph(call->graph, call->inputs);
  ASSERT_TRUE(oracle.ok()) << oracle.error().to_string();
  // What a function such as tanh may be off by is stated in codegen/cpu/vector_math.h, at most
  // kUlps.
  constexpr double kUlps = 4;
  for (const CompiledForm& form :
       {CompiledForm{true, true, true}, CompiledForm{true, true}, CompiledForm{true, false},
        CompiledForm{false, true}, CompiledForm{false, false}}) {
    SCOPED_TRACE(std::string(form.fuse ? "fused" : "unfused") +
                 (form.schedule ? ", scheduled" : ", plain loops"));
    auto runs = run_compiled(call->graph, call->inputs, form, {1, 3});
    ASSERT_TRUE(runs.ok()) << runs.error().to_string();
    for (size_t i = 0; i < oracle->outputs.size(); ++i) {
      const HostTensor& expected = oracle->outputs[i];
      const HostTensor& got = (*runs)[0][i];
      auto d = difference(got, expected);
      ASSERT_TRUE(d.has_value()) << "output " << i << " differs: " << name(got.dtype)
                                 << to_string(got.shape) << ", expected " << name(expected.dtype)
                                 << to_string(expected.shape);
      EXPECT_LE(*d, epsilon(expected.dtype) * (kUlps + oracle->steps) * oracle->largest)
          << "output " << i;
      EXPECT_EQ((*runs)[1][i].bytes, got.bytes)
          << "output " << i << " depends on the number of threads";
    }
  }
}

// Whatever is fused, folded or cut for caches: the same operations in the same order.
TEST_P(OpExamples, ExactKeepsEveryBit) {
  auto call = build_example(*GetParam());
  ASSERT_TRUE(call.ok()) << call.error().to_string();
  std::vector<Tensors> results;
  for (CompiledForm form : {CompiledForm{false, true}, CompiledForm{true, true, true},
                            CompiledForm{true, true, true, "native", true}}) {
    form.numerics = Numerics::kExact;
    auto runs = run_compiled(call->graph, call->inputs, form, {1, 3});
    ASSERT_TRUE(runs.ok()) << runs.error().to_string();
    if (results.empty()) results = *runs;
    for (const Tensors& run : *runs)
      for (size_t i = 0; i < run.size(); ++i) {
        ASSERT_EQ(run[i].shape, results[0][i].shape);
        EXPECT_EQ(first_difference(run[i], results[0][i]), -1) << "output " << i;
      }
  }
}

std::vector<const OpDef*> ops_with_loops() {
  std::vector<const OpDef*> ops;
  for (const OpDef* op : ir::all_ops())
    if (op->compute) ops.push_back(op);
  return ops;
}
constexpr auto kOpName = [](const auto& info) { return std::string(info.param->name); };
INSTANTIATE_TEST_SUITE_P(All, OpRecords, testing::ValuesIn(ir::all_ops()), kOpName);
INSTANTIATE_TEST_SUITE_P(All, OpExamples, testing::ValuesIn(ops_with_loops()), kOpName);

}  // namespace
}  // namespace tilewright
