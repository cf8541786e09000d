// Einsum: the equation is made explicit, operands are joined two at a time. A contraction of two
// operands becomes a matrix product between transposes and reshapes; what is none (diagonals,
// broadcast extents) stays an einsum.
#include <algorithm>
#include <array>
#include <map>

#include "frontends/onnx/importers.h"
#include "ir/loops/simplify.h"
#include "ir/text/printer_loops.h"

namespace tilewright::onnx {
namespace {

using ir::Expr;
using ir::ValueId;

// An intermediate result, and the label of each of its dimensions.
struct Term {
  ValueId value;
  std::string labels;
};
bool has_label(const std::string& labels, char c) { return labels.find(c) != std::string::npos; }

// "a...b" for a value of `rank` dimensions; dimensions of the ellipsis get the last of `extra`.
std::string spelled_out(NodeImport& n, const std::string& text, int rank, const std::string& extra,
                        size_t& widest) {
  const size_t dots = text.find("...");
  if (dots == std::string::npos) {
    if (rank >= 0 && static_cast<int>(text.size()) != rank)
      n.fail("'" + text + "' for an operand of rank " + std::to_string(rank));
    return text;
  }
  const int count = rank < 0 ? static_cast<int>(widest) : rank - static_cast<int>(text.size() - 3);
  if (count < 0 || count > static_cast<int>(extra.size()))
    n.fail("'" + text + "' for an operand of rank " + std::to_string(rank));
  widest = std::max(widest, static_cast<size_t>(count));
  return text.substr(0, dots) + extra.substr(extra.size() - static_cast<size_t>(count)) +
         text.substr(dots + 3);
}

// The equation with its ellipses spelled out by letters that it does not use itself.
struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};
Equation parse(NodeImport& n) {
  std::string text = n.string_attr("equation", "");
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  std::string extra, used;
  for (char c = 'A'; c <= 'Z'; ++c)
    if (!has_label(text, c)) extra.push_back(c);
  for (char c = 'a'; c <= 'z'; ++c)
    if (!has_label(text, c)) extra.push_back(c);
  for (char c : text)
    if (!std::isalpha(static_cast<unsigned char>(c)) && !has_label(".,->", c))
      n.fail("equation '" + text + "' has the character '" + std::string(1, c) + "'");
  const size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  Equation e;
  size_t widest = 0, start = 0;
  for (int k = 0; k < n.num_inputs(); ++k) {
    if (start > left.size())
      n.fail("equation '" + text + "' for " + std::to_string(n.num_inputs()) + " operands");
    const size_t comma = std::min(left.find(',', start), left.size());
    e.inputs.push_back(spelled_out(n, left.substr(start, comma - start),
                                   n.rank(n.required_stored(k)), extra, widest));
    used += e.inputs.back();
    start = comma + 1;
  }
  if (start <= left.size())
    n.fail("equation '" + text + "' for " + std::to_string(n.num_inputs()) + " operands");
  if (arrow != std::string::npos) {
    e.output = spelled_out(n, text.substr(arrow + 2), -1, extra, widest);
    return e;
  }
  // Without a result: the ellipsis, then all letters that appear once, in alphabetical order.
  const std::string ellipsis = extra.substr(extra.size() - widest);
  std::sort(used.begin(), used.end());
  for (char c : used)
    if (std::count(used.begin(), used.end(), c) == 1 && !has_label(ellipsis, c))
      e.output.push_back(c);
  e.output = ellipsis + e.output;
  return e;
}

bool repeats(const std::string& s) {
  for (char c : s)
    if (std::count(s.begin(), s.end(), c) > 1) return true;
  return false;
}
// Transposed so that its labels stand in the wanted order.
ValueId permuted(NodeImport& n, const Term& t, const std::string& wanted) {
  if (t.labels == wanted) return t.value;
  std::vector<int64_t> perm;
  for (char c : wanted) perm.push_back(static_cast<int64_t>(t.labels.find(c)));
  return n.transpose(t.value, perm);
}
// What no matrix product can do, as one einsum of the graph IR.
ValueId general(NodeImport& n, const std::vector<Term>& terms, const std::string& output) {
  std::string equation;
  std::vector<ValueId> values;
  for (const Term& t : terms) {
    equation += (values.empty() ? "" : ",") + t.labels;
    values.push_back(n.widened(t.value));
  }
  return n.op("einsum", values, {{"equation", equation + "->" + output}});
}
// Sums over the labels that are not kept.
Term summed(NodeImport& n, Term t, const std::string& keep) {
  std::vector<int64_t> axes;
  std::string left;
  for (size_t d = 0; d < t.labels.size(); ++d) {
    if (has_label(keep, t.labels[d]))
      left.push_back(t.labels[d]);
    else
      axes.push_back(static_cast<int64_t>(d));
  }
  if (axes.empty()) return t;
  return {n.op("reduce_sum", {n.widened(t.value)}, {{"axes", axes}, {"keepdims", int64_t{0}}}),
          left};
}
// The end: sums over what the result lacks, and its order.
ValueId one(NodeImport& n, const Term& t, const std::string& output) {
  if (repeats(t.labels) || repeats(output)) return general(n, {t}, output);
  ValueId v = permuted(n, summed(n, t, output), output);
  return v == t.value ? n.op("identity", {v}) : v;
}

// The labels of a product by their part in it: in both operands and the result, in the left one
// only, in the right one only, in both and summed over.
struct Roles {
  std::string batch, rows, columns, inner;
};
Expr extent(NodeImport& n, const Term& t, char c) {
  return n.dim(t.value, static_cast<int>(t.labels.find(c)));
}
std::vector<Expr> extents(NodeImport& n, const Term& t, const std::string& labels) {
  std::vector<Expr> r;
  for (char c : labels) r.push_back(extent(n, t, c));
  return r;
}
Expr product(const std::vector<Expr>& dims) {
  Expr p = 1;
  for (const Expr& d : dims) p = p * d;
  return simplify(p);
}
// t as [batch..., first, second], each of the two a group of labels.
ValueId matrix(NodeImport& n, const Term& t, const Roles& r, const std::string& first,
               const std::string& second) {
  ValueId v = permuted(n, t, r.batch + first + second);
  std::vector<Expr> dims = extents(n, t, r.batch);
  dims.push_back(product(extents(n, t, first)));
  dims.push_back(product(extents(n, t, second)));
  return first.size() == 1 && second.size() == 1 ? v : n.reshape(v, dims);
}
// The product of two operands, as a term whose labels are those of `keep` in some order.
Term two(NodeImport& n, Term a, Term b, const std::string& keep) {
  std::string result;
  for (char c : a.labels + b.labels)
    if (has_label(keep, c) && !has_label(result, c)) result.push_back(c);
  if (repeats(a.labels) || repeats(b.labels)) return {general(n, {a, b}, result), result};
  a = summed(n, a, keep + b.labels);
  b = summed(n, b, keep + a.labels);
  Roles r;
  for (char c : a.labels) {
    if (!has_label(b.labels, c)) {
      r.rows.push_back(c);
      continue;
    }
    if (to_text(extent(n, a, c)) == to_text(extent(n, b, c)))
      (has_label(keep, c) ? r.batch : r.inner).push_back(c);
    else
      return {general(n, {a, b}, result), result};
  }
  for (char c : b.labels)
    if (!has_label(a.labels, c)) r.columns.push_back(c);
  if (r.inner.empty()) return {general(n, {a, b}, result), result};
  // Operands that lie transposed are taken as they are.
  const bool ta = a.labels == r.batch + r.inner + r.rows,
             tb = b.labels == r.batch + r.columns + r.inner;
  ValueId left = ta ? matrix(n, a, r, r.inner, r.rows) : matrix(n, a, r, r.rows, r.inner);
  ValueId right = tb ? matrix(n, b, r, r.columns, r.inner) : matrix(n, b, r, r.inner, r.columns);
  if (n.dtype(left) != n.dtype(right)) {  // one is a sum
    left = n.widened(left);
    right = n.widened(right);
  }
  ValueId y =
      n.product("matmul", {left, right}, {{"trans_a", int64_t{ta}}, {"trans_b", int64_t{tb}}});
  std::vector<Expr> dims = extents(n, a, r.batch + r.rows);
  for (const Expr& e : extents(n, b, r.columns)) dims.push_back(e);
  const bool same = r.rows.size() == 1 && r.columns.size() == 1;
  return {same ? y : n.reshape(y, dims), r.batch + r.rows + r.columns};
}

// The operands, of which none has an extent that only the run may find to be 1 where another has more.
std::vector<Term> broadcast_terms(NodeImport& n, const Equation& e) {
  std::vector<Term> terms;
  std::map<char, Expr> joined;
  for (size_t k = 0; k < e.inputs.size(); ++k) {
    terms.push_back({n.required_stored(static_cast<int>(k)), e.inputs[k]});
    for (size_t d = 0; d < e.inputs[k].size(); ++d) {
      const Expr extent = n.dim(terms[k].value, static_cast<int>(d));
      auto [it, fresh] = joined.emplace(e.inputs[k][d], extent);
      if (!fresh) it->second = n.joined(it->second, extent);
    }
  }
  for (Term& t : terms) {
    std::vector<Expr> dims;
    for (char c : t.labels) dims.push_back(joined.at(c));
    t.value = n.expanded_to(t.value, dims);
  }
  return terms;
}

// From left to right, in the order of the operands; no search for a cheaper order is made.
void einsum(NodeImport& n) {
  const Equation e = parse(n);
  const std::vector<Term> terms = broadcast_terms(n, e);
  Term t = terms[0];
  for (size_t k = 1; k < terms.size(); ++k) {
    std::string keep = e.output;
    for (size_t later = k + 1; later < terms.size(); ++later) keep += terms[later].labels;
    t = two(n, t, terms[k], keep);
  }
  n.out(0, one(n, t, e.output));
}

constexpr auto kEinsumRows = std::to_array<OpMapping>({{"", "Einsum", 12, einsum, Form::kFormula}});

}  // namespace

std::span<const OpMapping> einsum_mappings() { return kEinsumRows; }

}  // namespace tilewright::onnx
