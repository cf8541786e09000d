// Exact kernels: results are those of each operator by itself in every bit, whatever is fused, how
// values are laid out, what is folded, how large the caches are and how many threads run.
#include <gtest/gtest.h>

#include "tests/differential/random_graph.h"

namespace tilewright {
namespace {

struct NamedForm {
  const char* name;
  CompiledForm form;
};
std::vector<NamedForm> exact_forms() {
  std::vector<NamedForm> all{{"a kernel per node", {false, true}},
                             {"fused", {true, true}},
                             {"folded", {true, true, true}},
                             {"small caches", {true, true, true}}};
  all.back().form.small_caches = true;
  for (NamedForm& f : all) f.form.numerics = Numerics::kExact;
  return all;
}
bool has_symbols(const ir::Graph& graph) {
  for (const ir::Value& v : graph.values)
    for (const ir::Expr& d : v.type.dims)
      if (!ir::as_int(d)) return true;
  return false;
}

void expect_same_bits(const Tensors& found, const Tensors& expected, const char* form) {
  for (size_t k = 0; k < found.size(); ++k) {
    ASSERT_EQ(found[k].shape, expected[k].shape);
    const int64_t at = first_difference(found[k], expected[k]);
    EXPECT_EQ(at, -1) << form << ": output " << k << " has " << element(found[k], at) << ", not "
                      << element(expected[k], at);
  }
}
// Extents that only the run knows leave a sum in one order that specialised code may not have: with
// these, nodes are not compared one by one.
void check_graph(const ir::Graph& graph, const Tensors& inputs) {
  std::vector<Tensors> results;
  const std::vector<NamedForm> forms = exact_forms();
  if (!has_symbols(graph)) {
    auto apart = run_nodes_apart(graph, inputs, forms[0].form);
    ASSERT_TRUE(apart.ok()) << apart.error().to_string();
    results.push_back(std::move(*apart));
  }
  for (const NamedForm& f : forms) {
    auto runs = run_compiled(graph, inputs, f.form, {1, 3});
    ASSERT_TRUE(runs.ok()) << f.name << ": " << runs.error().to_string();
    if (results.empty()) results = *runs;
    for (const Tensors& run : *runs) expect_same_bits(run, results[0], f.name);
  }
}

constexpr int kParts = 4;
class ExactGraphs : public testing::TestWithParam<int> {};

void check_random_graph(uint64_t seed) {
  const RandomGraph r = make_random_graph(seed);
  SCOPED_TRACE("TILEWRIGHT_SEED=" + std::to_string(seed) + "\n" + describe_graph(r.graph));
  check_graph(r.graph, r.inputs);
}
TEST_P(ExactGraphs, KeepEveryBit) { check_seeds(GetParam(), kParts, 80, check_random_graph); }
INSTANTIATE_TEST_SUITE_P(Part, ExactGraphs, testing::Range(0, kParts));

// What layouts, tiles and cuts of reductions could change.
class ExactLayers : public testing::Test {
 protected:
  ir::ValueId input(const Shape& shape, DType t = DType::kFloat32) {
    return call_.input(random_tensor(t, shape, random_));
  }
  ir::ValueId weight(const Shape& shape, DType t = DType::kFloat32) {
    return call_.constant(random_tensor(t, shape, random_));
  }
  ir::ValueId ints(const std::vector<double>& values) {
    return call_.constant(repeated(DType::kInt64, {static_cast<int64_t>(values.size())}, values));
  }
  ir::ValueId conv(ir::ValueId x, int64_t from, int64_t to, int64_t window, int64_t groups = 1) {
    const int64_t pad = window / 2;
    return call_.op("conv", {x, weight({to, from / groups, window, window})},
                    {{"pads", std::vector<int64_t>{pad, pad, pad, pad}}, {"group", groups}});
  }
  ir::ValueId reduced(const char* op, ir::ValueId x, std::vector<int64_t> axes) {
    return call_.op(op, {x}, {{"axes", std::move(axes)}, {"keepdims", int64_t{1}}});
  }
  void check() { check_graph(call_.graph, call_.inputs); }

  GraphCall call_;
  std::mt19937_64 random_{7};
};

TEST_F(ExactLayers, ConvolutionsAndWhatIsSummedOfThem) {
  for (const int64_t side : {7, 14, 24}) {
    const ir::ValueId x = conv(input({2, 24, side, side}), 24, 40, 3),
                      y = conv(call_.op("relu", {x}), 40, 40, 3, 40);
    call_.output(call_.op("mul", {y, reduced("reduce_mean", y, {2, 3})}));
    call_.output(reduced("reduce_sum", y, {1}));
    call_.output(reduced("reduce_sum", y, {0, 2, 3}));
    call_.output(conv(y, 40, 8, 1));
  }
  check();
}
TEST_F(ExactLayers, ProductsOfManyTerms) {
  for (const auto& [rows, terms, columns] :
       {std::tuple<int64_t, int64_t, int64_t>{1, 700, 300}, {37, 2100, 67}, {64, 64, 64}}) {
    const ir::ValueId x = input({rows, terms}),
                      product = call_.op("matmul", {x, weight({terms, columns})});
    call_.output(call_.op("add", {product, weight({columns})}));
    call_.output(call_.op("matmul", {x, input({columns, terms})}, {{"trans_b", int64_t{1}}}));
  }
  call_.output(call_.op("matmul", {input({5000}), input({5000})}));
  check();
}
TEST_F(ExactLayers, ProductsThatAreSummed) {
  for (const DType t : {DType::kFloat32, DType::kFloat64}) {
    const ir::ValueId x = input({9, 200}, t), y = input({9, 200}, t);
    call_.output(reduced("reduce_sum", call_.op("mul", {x, y}), {1}));
    call_.output(reduced("reduce_sum", call_.op("mul", {x, y}), {0}));
    call_.output(reduced("reduce_mean", call_.op("mul", {x, x}), {0, 1}));
  }
  check();
}
TEST_F(ExactLayers, RowsOfAllLengths) {
  for (const int64_t n : {1, 3, 15, 16, 17, 64, 100, 128, 130, 1000}) {
    const ir::ValueId x = input({6, n});
    call_.output(call_.op("softmax", {x}, {{"axis", int64_t{1}}}));
    call_.output(call_.op("softmax", {x}, {{"axis", int64_t{0}}}));
    call_.output(call_.op("layer_norm", {x, weight({n}), weight({n})}, {{"axis", int64_t{1}}}));
    call_.output(reduced("reduce_prod", call_.op("tanh", {x}), {1}));
  }
  check();
}
// An empty result beside the sum.
TEST_F(ExactLayers, SumsBesideNothing) {
  const ir::ValueId sum = reduced("reduce_sum", input({3, 100}), {1});
  call_.output(sum);
  call_.output(call_.op("add", {sum, input({0, 3, 1})}));
  call_.output(call_.op("mul", {sum, sum}));
  check();
}
TEST_F(ExactLayers, Attention) {
  const ir::ValueId q = input({2, 3, 50, 16}), k = input({2, 3, 50, 16}), v = input({2, 3, 50, 16});
  const ir::ValueId scores = call_.op("matmul", {q, k}, {{"trans_b", int64_t{1}}});
  call_.output(call_.op("matmul", {call_.op("softmax", {scores}, {{"axis", int64_t{3}}}), v}));
  check();
}
TEST_F(ExactLayers, ResampledImages) {
  for (const char* mode : {"linear", "cubic"}) {
    const ir::ValueId x = conv(input({1, 8, 12, 10}), 8, 16, 3);
    const ir::ValueId y = call_.op("resize", {x, ir::kNone, ir::kNone, ints({1, 16, 24, 20})},
                                   {{"mode", std::string(mode)}});
    call_.output(y);
    call_.output(conv(y, 16, 8, 3));
  }
  check();
}
TEST_F(ExactLayers, Halves) {
  for (const DType t : {DType::kFloat16, DType::kBFloat16}) {
    const ir::ValueId x = input({12, 64}, t), y = call_.op("matmul", {x, weight({64, 48}, t)});
    call_.output(call_.op("mul", {y, y}));
    call_.output(reduced("reduce_sum", call_.op("mul", {y, y}), {1}));
  }
  check();
}

}  // namespace
}  // namespace tilewright
