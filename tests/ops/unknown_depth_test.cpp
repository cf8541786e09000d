// Reductions over a number of elements that only the run tells, 0 among them.
#include "tests/ops/kernel_test.h"

namespace tilewright {
namespace {

class UnknownDepth : public KernelTest {
 protected:
  // An input whose dimensions named by letters are not known to the compiler.
  ir::ValueId input(GraphCall& call, const Shape& shape, const std::vector<std::string>& names) {
    const ir::ValueId v = call.input(random(DType::kFloat32, shape));
    for (size_t d = 0; d < names.size(); ++d)
      if (!names[d].empty()) {
        const auto [it, is_new] = symbols_.try_emplace(names[d], names[d]);
        call.graph.value(v).type.dims[d] = it->second;
      }
    return v;
  }
  std::map<std::string, ir::Var> symbols_;
};

TEST_P(UnknownDepth, Products) {
  for (int64_t k : {0, 1, 5, 64, 131})
    for (int64_t m : {1, 7, 33}) {
      SCOPED_TRACE(testing::Message() << m << " rows, " << k << " deep");
      GraphCall call;
      symbols_.clear();
      const ir::ValueId a = input(call, {2, m, k}, {"b", "m", "k"}),
                        b = input(call, {2, k, 50}, {"b", "k", ""}),
                        c = input(call, {2, 50, k}, {"b", "", "k"});
      const ir::ValueId y = call.op("matmul", {a, b});
      call.output(call.op("relu", {call.op("add", {y, y})}));
      call.output(call.op("matmul", {c, b}));
      call.output(call.op(
          "matmul", {a, call.op("transpose", {c}, {{"perm", std::vector<int64_t>{0, 2, 1}}})}));
      expect_equal(call, 8.0 + static_cast<double>(k), {{true, true}, {true, false}});
      if (HasFailure()) return;
    }
}
TEST_P(UnknownDepth, Rows) {
  for (int64_t k : {0, 1, 17, 64, 200}) {
    SCOPED_TRACE(k);
    GraphCall call;
    symbols_.clear();
    const ir::ValueId x = input(call, {3, 5, k}, {"a", "", "k"});
    const std::vector<int64_t> last{2}, middle{1};
    call.output(call.op("reduce_sum", {x}, {{"axes", last}}));
    call.output(call.op("add", {call.op("reduce_max", {x}, {{"axes", last}}), x}));
    call.output(call.op("reduce_sum", {x}, {{"axes", middle}}));
    call.output(call.op("reduce_sum", {x}, {{"axes", std::vector<int64_t>{0, 2}}}));
    call.output(call.op("softmax", {x}, {{"axis", int64_t{2}}}));
    expect_equal(call, 16.0 + static_cast<double>(k), {{true, true}, {true, false}});
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, UnknownDepth, testing::Values("x86-64", "x86-64-v3", "x86-64-v4"),
                         [](const auto& info) { return as_test_name(info.param); });

}  // namespace
}  // namespace tilewright
