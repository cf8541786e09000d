// Operators against sums written out here, not against their loops in the interpreter: what the
// node cases of ONNX do not ask for.
#include <gtest/gtest.h>

#include "tests/ops/graph_oracle.h"

namespace tilewright {
namespace {

// Offset of a matrix in an operand whose batch dimensions broadcast, aligned right.
int64_t matrix_at(const Shape& shape, const std::vector<int64_t>& batch) {
  int64_t at = 0;
  const size_t lead = shape.size() - 2;
  for (size_t d = 0; d < lead; ++d)
    at = at * shape[d] + (shape[d] == 1 ? 0 : batch[batch.size() - lead + d]);
  return at;
}

TEST(Definitions, ProductsOfBatchesOfOtherRanks) {
  std::mt19937_64 random(11);
  const int64_t rows = 3, terms = 5, columns = 4;
  for (const auto& [a_batch, b_batch] : {std::pair{Shape{2, 3}, Shape{3}},
                                         {Shape{3}, Shape{2, 3}},
                                         {Shape{2, 3}, Shape{}},
                                         {Shape{2, 1}, Shape{3}},
                                         {Shape{}, Shape{2, 3}},
                                         {Shape{1, 3}, Shape{2, 1}}}) {
    Shape a = a_batch, b = b_batch;
    a.insert(a.end(), {rows, terms});
    b.insert(b.end(), {terms, columns});
    GraphCall call;
    const HostTensor x = random_tensor(DType::kInt32, a, random),
                     y = random_tensor(DType::kInt32, b, random);
    call.output(call.op("matmul", {call.input(x), call.input(y)}));
    auto found = interpret_graph(call.graph, call.inputs);
    ASSERT_TRUE(found.ok()) << found.error().to_string();
    const HostTensor& z = found->outputs[0];
    std::vector<int64_t> batch(z.shape.size() - 2);
    for (int64_t n = 0; n < z.size(); ++n) {
      int64_t rest = n / (rows * columns);
      for (size_t d = batch.size(); d-- > 0; rest /= z.shape[d]) batch[d] = rest % z.shape[d];
      const int64_t r = n / columns % rows, c = n % columns;
      double sum = 0;
      for (int64_t k = 0; k < terms; ++k)
        sum += element(x, (matrix_at(a, batch) * rows + r) * terms + k) *
               element(y, (matrix_at(b, batch) * terms + k) * columns + c);
      ASSERT_EQ(element(z, n), sum) << to_string(a) << " by " << to_string(b) << ", element " << n;
    }
  }
}

}  // namespace
}  // namespace tilewright
