// Cofactors of square matrices: the derivatives of a determinant by its elements.
//
// C(A) = det(A) inverse(A)^T where A has an inverse, but there for any A: of rank n - 1 it has rank 1,
// below that it is 0. Cofactors multiply, C(A B) = C(A) C(B), so A is taken apart. Gauss and
// Jordan's elimination of n - 1 columns, with the largest element of all that is left as the pivot,
// turns [A Q | I] into [M | R] with
//
//    R A Q = M = | I  u |    C(A) = D R^T C(M) Q^T    C(M) = |  d I   0 |
//                | 0  d |                                    | -u^T   1 |
//
// where Q permutes columns and D = det(Q) / det(R), the product of the pivots and of the signs of all
// exchanges. Nothing is divided by d, which alone is 0 or nearly so where A is singular.
#include "ir/graph/compute.h"
#include "ir/ops/accumulator.h"
#include "ir/ops/families.h"
#include "ir/ops/sort_loops.h"

namespace tilewright::ir {
namespace {

// x: [..., n, n]
Status infer_cofactors(InferContext& c) {
  const auto& x = c.type(0);
  if (x.rank() < 2 || !is_float(x.dtype) ||
      !c.agree(x.dims[x.dims.size() - 2], x.dims[x.dims.size() - 1]))
    return c.error("x is " + to_string(x) + ", expected floats [..., n, n]");
  c.set_output(0, x);
  return {};
}

// One matrix. Buffers: m [n, 2 n], the column of A that is now the j-th, D, and the place of a pivot.
class Decomposition {
 public:
  Decomposition(const ComputeContext& c, Axes batch, DType t)
      : c_(c),
        batch_(std::move(batch)),
        n_(c.in(0)->shape.back()),
        m_(make_buffer("m", t, {n_, n_ * 2}, Scope::kWorkspace)),
        column_(make_buffer("column", DType::kInt64, {n_}, Scope::kWorkspace)),
        d_(make_buffer("d", t, {Expr(1)}, Scope::kLocal)),
        zero_(constant(0, t)),
        one_(constant(1, t)) {}

  Stmt run() const {
    Stmt start = loop_nest({n_}, [&](const Axes& i) {
      Stmt row = loop_nest({n_}, [&](const Axes& j) {
        return seq({store(m_, {i[0], j[0]}, cast(m_->dtype, load(c_.in(0), in_batch(i[0], j[0])))),
                    store(m_, {i[0], n_ + j[0]}, select(eq(i[0], j[0]), one_, zero_))});
      });
      return seq({store(column_, i, i[0]), row});
    });
    Stmt steps = loop_nest({n_ - 1}, [&](const Axes& k) { return step(k[0]); });
    Stmt body = place_.around(seq({store(d_, {Expr(0)}, one_), start, steps, write()}));
    return allocate(m_, allocate(column_, allocate(d_, body)));
  }

 private:
  Axes in_batch(const Expr& i, const Expr& j) const {
    Axes at = batch_;
    at.push_back(i);
    at.push_back(j);
    return at;
  }
  Expr at(const Expr& i, const Expr& j) const { return load(m_, {i, j}); }
  Expr d() const { return load(d_, {Expr(0)}); }
  // d *= value
  Stmt scale(const Expr& value) const { return store(d_, {Expr(0)}, d() * value); }

  // The largest element of what is left becomes the pivot. Where that is 0, so is the rest of the
  // matrix and D: then nothing is divided.
  Stmt step(const Expr& k) const {
    const Expr row = place_.get(0), column = place_.get(1);
    Stmt find = loop_nest({n_ - k, n_ - k}, [&](const Axes& i) {
      const Expr larger =
          unary(UnaryOp::kAbs, at(k + i[0], k + i[1])) > unary(UnaryOp::kAbs, at(row, column));
      return if_then(larger, seq({place_.set(0, k + i[0]), place_.set(1, k + i[1])}));
    });
    Stmt rows =
        loop_nest({n_ * 2}, [&](const Axes& j) { return exchange(m_, {k, j[0]}, {row, j[0]}); });
    Stmt columns =
        loop_nest({n_}, [&](const Axes& i) { return exchange(m_, {i[0], k}, {i[0], column}); });
    return seq(
        {place_.set(0, k), place_.set(1, k), find, if_then(ne(row, k), seq({rows, scale(-one_)})),
         if_then(ne(column, k), seq({columns, exchange(column_, {k}, {column}), scale(-one_)})),
         scale(at(k, k)), if_then(ne(at(k, k), zero_), eliminate(k))});
  }
  static Stmt exchange(const Buffer& b, const Axes& i, const Axes& j) {
    return with_value("saved", load(b, i), [&](const Expr& saved) {
      return seq({store(b, i, load(b, j)), store(b, j, saved)});
    });
  }
  // Column k becomes that of the identity.
  Stmt eliminate(const Expr& k) const {
    Stmt divide = with_value("pivot", at(k, k), [&](const Expr& pivot) {
      return loop_nest({n_ * 2},
                       [&](const Axes& j) { return store(m_, {k, j[0]}, at(k, j[0]) / pivot); });
    });
    Stmt others = loop_nest({n_}, [&](const Axes& i) {
      Stmt subtract = with_value("factor", at(i[0], k), [&](const Expr& factor) {
        return loop_nest({n_ * 2}, [&](const Axes& j) {
          return store(m_, {i[0], j[0]}, at(i[0], j[0]) - factor * at(k, j[0]));
        });
      });
      return if_then(ne(i[0], k), subtract);
    });
    return seq({divide, others});
  }
  // Column j of D R^T C(M), which belongs to column_[j] of A.
  Stmt write() const {
    const Expr last = n_ - 1;
    return loop_nest({n_, n_}, [&](const Axes& i) {
      const Expr of_last = at(last, n_ + i[1]);
      const Expr value = select(eq(i[0], last), of_last,
                                at(last, last) * at(i[0], n_ + i[1]) - at(i[0], last) * of_last);
      return store(c_.out(), in_batch(i[1], load(column_, {i[0]})),
                   cast(c_.out()->dtype, d() * value));
    });
  }

  const ComputeContext& c_;
  const Axes batch_;
  const Expr n_;
  const Buffer m_, column_, d_;
  const Expr zero_, one_;
  const Scalars place_{2};  // of the pivot: row, column
};
void compute_cofactors(ComputeContext& c) {
  const DType t = accumulator(c.in(0)->dtype);
  c.b.opaque_over(
      {c.out()->shape.begin(), c.out()->shape.end() - 2},
      [&](const Axes& batch) { return Decomposition(c, batch, t).run(); }, "cofactors");
}

}  // namespace

const std::vector<OpDef>& cofactor_ops() {
  static const std::vector<OpDef> ops{
      {.name = "cofactors",
       .summary = "for each element of the matrices in the last two dimensions the determinant "
                  "without its row and column, with its sign: the derivative of the determinant",
       .operands = {{"x"}},
       .infer_type = infer_cofactors,
       .compute = compute_cofactors,
       .example = {.inputs = {{DType::kFloat32, {3, 5, 5}}}},
       .source = "Golub and Van Loan, Matrix Computations, 2013"},
  };
  return ops;
}

}  // namespace tilewright::ir
