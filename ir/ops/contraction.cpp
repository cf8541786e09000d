// Matrix products.
#include "ir/graph/compute.h"
#include "ir/loops/simplify.h"
#include "ir/ops/families.h"

namespace tilewright::ir {
namespace {

// a: [..., m, k] (trans_a: [..., k, m]), b: [..., k, n] (trans_b: [..., n, k]); vectors as in numpy.matmul.
struct MatmulDims {
  std::vector<Expr> batch;
  Expr m, n, k, k_of_b;
};
Result<MatmulDims> matmul_dims(const NodeView& c) {
  const auto &a = c.type(0).dims, &b = c.type(1).dims;
  if (a.empty() || b.empty()) return invalid("operands must have at least one dimension");
  const bool ta = c.attr_int("trans_a") != 0, tb = c.attr_int("trans_b") != 0;
  MatmulDims d;
  const size_t ra = a.size(), rb = b.size();
  d.m = ra == 1 ? Expr(1) : a[ra - (ta ? 1 : 2)];
  d.k = ra == 1 ? a[0] : a[ra - (ta ? 2 : 1)];
  d.k_of_b = rb == 1 ? b[0] : b[rb - (tb ? 1 : 2)];
  d.n = rb == 1 ? Expr(1) : b[rb - (tb ? 2 : 1)];
  std::vector<Expr> batch_a, batch_b;
  if (ra > 2) batch_a.assign(a.begin(), a.end() - 2);
  if (rb > 2) batch_b.assign(b.begin(), b.end() - 2);
  TW_ASSIGN(d.batch, broadcast_dims(batch_a, batch_b));
  return d;
}

Status infer_matmul(InferContext& c) {
  if (c.type(0).dtype != c.type(1).dtype && !c.has_attribute("out_dtype"))
    return c.error("operands differ in type: " + to_string(c.type(0)) + " and " + to_string(c.type(1)));
  auto d = matmul_dims(c);
  if (!d.ok()) return c.error("a is " + to_string(c.type(0)) + ", b is " + to_string(c.type(1)) + ": " + d.error().message);
  if (as_int(d->k) && as_int(d->k_of_b) && *as_int(d->k) != *as_int(d->k_of_b))
    return c.error("inner dimensions differ: a is " + to_string(c.type(0)) + ", b is " + to_string(c.type(1)));
  std::vector<Expr> dims = d->batch;
  if (c.rank(0) > 1) dims.push_back(d->m);
  if (c.rank(1) > 1) dims.push_back(d->n);
  DType out = c.type(0).dtype;
  if (c.has_attribute("out_dtype")) out = *dtype_from_name(c.attr_string("out_dtype"));
  c.set_output(0, out, std::move(dims));
  return {};
}

Axes operand_index(const Buffer& x, const Axes& batch, Expr row, Expr column, bool transposed) {
  if (x->rank() == 1) return {row ? row : column};
  Axes at;
  const size_t lead = x->shape.size() - 2;
  for (size_t d = 0; d < lead; ++d) at.push_back(is_one(x->shape[d]) ? Expr(0) : batch[batch.size() - lead + d]);
  at.push_back(transposed ? column : row);
  at.push_back(transposed ? row : column);
  return at;
}

void compute_matmul(ComputeContext& c) {
  const MatmulDims d = matmul_dims(c).value();
  const bool ta = c.attr_int("trans_a") != 0, tb = c.attr_int("trans_b") != 0;
  const bool row = c.rank(0) > 1, column = c.rank(1) > 1;
  // Half precision accumulates in f32 and is rounded once.
  const DType dtype = c.out()->dtype;
  const bool half = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  const DType acc = half ? DType::kFloat32 : dtype;
  Buffer sum = half ? c.b.temp("acc", acc, c.out()->shape) : c.out();
  c.b.reduce(sum, {d.k}, Combiner::kSum, [&](const Axes& i, const Axes& k) {
    Axes batch(i.begin(), i.begin() + static_cast<long>(d.batch.size()));
    size_t next = d.batch.size();
    Expr m = row ? i[next++] : Expr(), n = column ? i[next] : Expr();
    Expr a = c.rank(0) == 1 ? load(c.in(0), {k[0]}) : load(c.in(0), operand_index(c.in(0), batch, m, k[0], ta));
    Expr b = c.rank(1) == 1 ? load(c.in(1), {k[0]}) : load(c.in(1), operand_index(c.in(1), batch, k[0], n, tb));
    return cast(acc, a) * cast(acc, b);
  }, "matmul");
  if (half) c.b.compute(c.out(), [&](const Axes& i) { return cast(dtype, load(sum, i)); }, "round");
}

}  // namespace

const std::vector<OpDef>& contraction_ops() {
  static const std::vector<OpDef> ops{
      {.name = "matmul", .summary = "matrix product of the last two dimensions, broadcast over the others", .operands = {{"a"}, {"b"}},
       .attributes = {{"trans_a", AttributeKind::kInt, "a is [..., k, m]"}, {"trans_b", AttributeKind::kInt, "b is [..., n, k]"},
                      {"out_dtype", AttributeKind::kString, "type of the result and the sum; default: that of a"}},
       .fusion = FusionKind::kContraction, .infer_type = infer_matmul, .compute = compute_matmul,
       .example = {.inputs = {{DType::kFloat32, {2, 17, 23}}, {DType::kFloat32, {23, 33}}}},
       .source = "https://onnx.ai/onnx/operators/onnx__MatMul.html"},
  };
  return ops;
}

}  // namespace tilewright::ir
