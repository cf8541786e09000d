// Matrix products and sums of products over named dimensions.
//
// GEMM is `matmul` with its operands' transposes as attributes; what Gemm of ONNX scales and adds
// are operators behind it. An einsum is one reduction over all letters that the result lacks; the
// importer makes matrix products of contractions, so that diagonals and broadcast extents remain
// here.
#include <map>

#include "ir/formula/gradient.h"
#include "ir/graph/compute.h"
#include "ir/loops/simplify.h"
#include "ir/ops/accumulator.h"
#include "ir/ops/families.h"

namespace tilewright::ir {
namespace {

// a: [..., m, k] (trans_a: [..., k, m]), b: [..., k, n] (trans_b: [..., n, k]); vectors as in
// numpy.matmul.
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
  TW_ASSIGN(d.batch, c.broadcast(batch_a, batch_b));
  return d;
}

// Zero points are of their operand's type and broadcast against it.
Status check_zero_points(const InferContext& c) {
  for (int k : {2, 3}) {
    if (!c.has(k)) continue;
    const TensorType &of = c.type(k - 2), &zero = c.type(k);
    auto dims = c.broadcast(of.dims, zero.dims);
    if (zero.dtype != of.dtype || !dims.ok() || dims->size() != of.dims.size())
      return c.error("zero point " + to_string(zero) + " for " + to_string(of));
  }
  return {};
}

Status infer_matmul(InferContext& c) {
  if (c.type(0).dtype != c.type(1).dtype && !c.has_attribute("out_dtype"))
    return c.error("operands differ in type: " + to_string(c.type(0)) + " and " +
                   to_string(c.type(1)));
  auto d = matmul_dims(c);
  if (!d.ok())
    return c.error("a is " + to_string(c.type(0)) + ", b is " + to_string(c.type(1)) + ": " +
                   d.error().message);
  if (!c.agree(d->k, d->k_of_b))
    return c.error("inner dimensions differ: a is " + to_string(c.type(0)) + ", b is " +
                   to_string(c.type(1)));
  TW_RETURN_IF_ERROR(check_zero_points(c));
  std::vector<Expr> dims = d->batch;
  if (c.rank(0) > 1) dims.push_back(d->m);
  if (c.rank(1) > 1) dims.push_back(d->n);
  TW_ASSIGN(const DType out, out_dtype(c));
  c.set_output(0, out, std::move(dims));
  return {};
}

Axes operand_index(const Buffer& x, const Axes& batch, Expr row, Expr column, bool transposed) {
  if (x->rank() == 1) return {row ? row : column};
  Axes at;
  const size_t lead = x->shape.size() - 2;
  for (size_t d = 0; d < lead; ++d)
    at.push_back(is_one(x->shape[d]) ? Expr(0) : batch[batch.size() - lead + d]);
  at.push_back(transposed ? column : row);
  at.push_back(transposed ? row : column);
  return at;
}

Expr without_zero_point(const ComputeContext& c, int operand, const Axes& at, DType t) {
  const Expr x = cast(t, load(c.in(operand), at));
  return c.has(operand + 2) ? x - cast(t, c.read(operand + 2, at)) : x;
}

void compute_matmul(ComputeContext& c) {
  const MatmulDims d = matmul_dims(c).value();
  const bool ta = c.attr_int("trans_a") != 0, tb = c.attr_int("trans_b") != 0;
  const bool row = c.rank(0) > 1, column = c.rank(1) > 1;
  // Half precision accumulates in f32 and is rounded once.
  const DType dtype = c.out()->dtype;
  const DType acc = accumulator(dtype);
  const bool half = acc != dtype;
  Buffer sum = half ? c.b.temp("acc", acc, c.out()->shape) : c.out();
  c.b.reduce(
      sum, {d.k}, Combiner::kSum,
      [&](const Axes& i, const Axes& k) {
        Axes batch(i.begin(), i.begin() + static_cast<long>(d.batch.size()));
        size_t next = d.batch.size();
        Expr m = row ? i[next++] : Expr(), n = column ? i[next] : Expr();
        const Axes at_a = c.rank(0) == 1 ? Axes{k[0]} : operand_index(c.in(0), batch, m, k[0], ta),
                   at_b = c.rank(1) == 1 ? Axes{k[0]} : operand_index(c.in(1), batch, k[0], n, tb);
        return without_zero_point(c, 0, at_a, acc) * without_zero_point(c, 1, at_b, acc);
      },
      "matmul");
  if (half) c.b.compute(c.out(), [&](const Axes& i) { return cast(dtype, load(sum, i)); }, "round");
}

// da = dy b^T, db = a^T dy, each as its operand lies. Where b is one matrix for all of a's, the rows
// of all of them are those of one product.
void gradient_of_matmul(GradientContext& c) {
  const NodeView node = c.view();
  if (node.has(2) || node.has(3)) c.fail("zero points have no gradient");
  V a = c.in(0), b = c.in(1), dy = c.dy().to(a.dtype());
  int64_t ta = node.attr_int("trans_a") != 0, tb = node.attr_int("trans_b") != 0;
  const auto shaped = [&](V v, const std::vector<Expr>& dims) {
    return V{c, c.reshape(v.id, dims)};
  };
  const auto product = [](V x, int64_t tx, V y, int64_t ty) {
    return x.make("matmul", {x.id, y.id}, {{"trans_a", tx}, {"trans_b", ty}});
  };
  const MatmulDims d = matmul_dims(node).value();
  std::vector<Expr> full = d.batch;
  full.push_back(d.m);
  full.push_back(d.n);
  const bool one_row = a.rank() == 1, one_column = b.rank() == 1;
  if (one_row) ta = 0, a = shaped(a, {Expr(1), d.k});
  if (one_column) tb = 0, b = shaped(b, {d.k, Expr(1)});
  if (one_row || one_column) dy = shaped(dy, full);
  const V as_given =
      dy;  // so that what reads da, which lies as a does, is an epilogue of its product
  if (b.rank() == 2 && a.rank() > 2 && !ta) {
    Expr rows = d.m;
    for (const Expr& e : d.batch) rows = rows * e;
    rows = simplify(rows);
    a = shaped(a, {rows, d.k});
    dy = shaped(dy, {rows, d.n});
  }
  // Of a vector the extent of 1 goes, behind what is still to be summed over batches.
  const auto as_vector = [&](V v) {
    std::vector<Expr> dims(c.type(v.id).dims.begin(), c.type(v.id).dims.end() - 2);
    dims.push_back(d.k);
    return shaped(v, dims);
  };
  if (c.wants(0)) {
    const V da = ta ? product(b, tb, dy, 1) : product(as_given, 0, b, !tb);
    c.add(0, one_row ? as_vector(da) : da);
  }
  if (c.wants(1)) {
    const V db = tb ? product(dy, 1, a, ta) : product(a, !ta, dy, 0);
    c.add(1, one_column ? as_vector(db) : db);
  }
}

// "ab,bc->ac": one letter per dimension; letters absent from the result are summed over.
struct EinsumTerms {
  std::vector<std::string> inputs;
  std::string output, summed;
  std::map<char, Expr> extents;
};
Result<EinsumTerms> einsum_terms(const NodeView& c) {
  EinsumTerms t;
  const std::string equation = c.attr_string("equation");
  const size_t arrow = equation.find("->");
  if (arrow == std::string::npos) return invalid("equation '" + equation + "' without ->");
  t.output = equation.substr(arrow + 2);
  t.inputs.emplace_back();
  for (char ch : equation.substr(0, arrow)) {
    if (ch == ',')
      t.inputs.emplace_back();
    else
      t.inputs.back().push_back(ch);
  }
  if (static_cast<int>(t.inputs.size()) != c.num_inputs())
    return invalid("equation '" + equation + "' for " + std::to_string(c.num_inputs()) +
                   " operands");
  for (int k = 0; k < c.num_inputs(); ++k) {
    const std::string& labels = t.inputs[static_cast<size_t>(k)];
    if (static_cast<int>(labels.size()) != c.rank(k))
      return invalid("'" + labels + "' for " + to_string(c.type(k)));
    for (size_t d = 0; d < labels.size(); ++d) {
      const Expr e = c.dim(k, static_cast<int>(d));
      auto [it, fresh] = t.extents.emplace(labels[d], e);
      auto old = as_int(it->second), now = as_int(e);
      if (fresh || (now && *now == 1)) continue;
      if (old != 1 && !c.agree(it->second, e))
        return invalid(std::string("'") + labels[d] + "' is " + std::to_string(*old) + " and " +
                       std::to_string(*now));
      if (old && *old == 1) it->second = e;
    }
  }
  for (const auto& [letter, extent] : t.extents)
    if (t.output.find(letter) == std::string::npos) t.summed.push_back(letter);
  for (char ch : t.output)
    if (!t.extents.count(ch))
      return invalid(std::string("'") + ch + "' of the result is in no operand");
  return t;
}
Status infer_einsum(InferContext& c) {
  auto t = einsum_terms(c);
  if (!t.ok()) return c.error(t.error().message);
  std::vector<Expr> dims;
  for (char ch : t->output) dims.push_back(t->extents.at(ch));
  for (int k = 1; k < c.num_inputs(); ++k)
    if (c.type(k).dtype != c.type(0).dtype)
      return c.error("operands differ in type: " + to_string(c.type(0)) + " and " +
                     to_string(c.type(k)));
  c.set_output(0, c.type(0).dtype, std::move(dims));
  return {};
}
void compute_einsum(ComputeContext& c) {
  const EinsumTerms t = einsum_terms(c).value();
  const DType dtype = c.out()->dtype;
  const DType acc = accumulator(dtype);
  const bool half = acc != dtype;
  std::vector<Expr> reduce;
  for (char ch : t.summed) reduce.push_back(t.extents.at(ch));
  auto value = [&](const Axes& i, const Axes& r) {
    Expr product;
    for (int k = 0; k < c.num_inputs(); ++k) {
      Axes at;
      for (char ch : t.inputs[static_cast<size_t>(k)]) {
        const size_t o = t.output.find(ch);
        at.push_back(is_one(c.dim(k, static_cast<int>(at.size()))) ? Expr(0)
                     : o != std::string::npos                      ? i[o]
                                                                   : r[t.summed.find(ch)]);
      }
      Expr x = cast(acc, load(c.in(k), at));
      product = product ? product * x : x;
    }
    return product;
  };
  if (reduce.empty()) {
    c.b.compute(c.out(), [&](const Axes& i) { return cast(dtype, value(i, {})); }, "einsum");
    return;
  }
  Buffer sum = half ? c.b.temp("acc", acc, c.out()->shape) : c.out();
  c.b.reduce(sum, reduce, Combiner::kSum, value, "einsum");
  if (half) c.b.compute(c.out(), [&](const Axes& i) { return cast(dtype, load(sum, i)); }, "round");
}

void gradient_of_einsum(GradientContext& c) {
  for (int k = 0; k < c.view().num_inputs(); ++k) c.add_transposed(k);
}

}  // namespace

const std::vector<OpDef>& contraction_ops() {
  static const std::vector<OpDef> ops{
      {.name = "matmul",
       .summary =
           "matrix product of the last two dimensions, broadcast over the others; zero points are "
           "subtracted from the operands first",
       .operands = {{"a"},
                    {"b"},
                    {"a_zero_point", OperandDef::kOptional},
                    {"b_zero_point", OperandDef::kOptional}},
       .attributes = {{"trans_a", AttributeKind::kInt, "a is [..., k, m]"},
                      {"trans_b", AttributeKind::kInt, "b is [..., n, k]"},
                      {"out_dtype", AttributeKind::kString,
                       "type of the result and the sum; default: that of a"}},
       .fusion = FusionKind::kContraction,
       .reads_stored = true,
       .broadcasts = true,
       .infer_type = infer_matmul,
       .compute = compute_matmul,
       .gradient = gradient_of_matmul,
       .example = {.inputs = {{DType::kFloat32, {2, 17, 23}}, {DType::kFloat32, {23, 33}}}},
       .source = "https://onnx.ai/onnx/operators/onnx__MatMul.html"},
      {.name = "einsum",
       .summary = "sum of products over named dimensions",
       .operands = {{"x", OperandDef::kVariadic}},
       .attributes = {{"equation", AttributeKind::kString,
                       "letters of each operand and of the result: \"iij,jk->ik\""}},
       .fusion = FusionKind::kContraction,
       .infer_type = infer_einsum,
       .compute = compute_einsum,
       .gradient = gradient_of_einsum,
       .example = {.inputs = {{DType::kFloat32, {5, 5, 7}}, {DType::kFloat32, {7, 3}}},
                   .attributes = {{"equation", std::string("iij,jk->ik")}}},
       .source = "https://onnx.ai/onnx/operators/onnx__Einsum.html"},
  };
  return ops;
}

}  // namespace tilewright::ir
