// Sequences of tensors. There are none in the graph: an import keeps, by name, the values that a
// sequence holds, so that their number and the positions asked for have to be known then. What
// exporters make of `split`, `chunk` and `stack` is of that kind.
#include <algorithm>
#include <array>

#include "frontends/onnx/importers.h"
#include "ir/loops/simplify.h"

namespace tilewright::onnx {
namespace {

using ir::Expr;
using ir::ValueId;
using Values = std::vector<ValueId>;

constexpr int64_t kMostElements = 10'000;  // of one sequence: each is a node of the graph

void must_be_few(const NodeImport& n, int64_t elements) {
  if (elements > kMostElements)
    n.unsupported("a sequence of more than " + std::to_string(kMostElements) + " tensors");
}

ValueId without(NodeImport& n, ValueId x, int axis) {
  std::vector<Expr> dims = n.type(x).dims;
  dims.erase(dims.begin() + axis);
  return n.reshape(x, dims);
}

// The lengths of the parts of a dimension: `each`, of which the last may be less.
std::vector<int64_t> equal_parts(NodeImport& n, ValueId x, int axis, int64_t each) {
  if (each < 1) n.fail("split is " + std::to_string(each));
  const auto extent = ir::as_int(n.dim(x, axis));
  if (!extent)
    n.needs_value("dimension " + std::to_string(axis) + " of " + to_string(n.type(x)) +
                  ", which is split, is not known at compile time");
  must_be_few(n, *extent / each + (*extent % each != 0));
  std::vector<int64_t> parts;
  for (int64_t at = 0; at < *extent; at += each) parts.push_back(std::min(each, *extent - at));
  return parts;
}

void split_to_sequence(NodeImport& n) {
  ValueId x = n.required(0);
  const int axis = normalized_axis(n, n.int_attr("axis", 0), n.rank(x));
  const bool drops = !n.has(1) && n.int_attr("keepdims", 1) == 0;
  std::vector<int64_t> parts;
  if (n.has(1) && n.rank(n.in(1)) > 0) {
    parts = n.must_know_ints(n.in(1), "split");
    x = must_add_up(n, x, axis, parts);
  } else {
    parts = equal_parts(n, x, axis, n.has(1) ? n.must_know_ints(n.in(1), "split").at(0) : 1);
  }
  Values elements;
  int64_t at = 0;
  for (const int64_t part : parts) {
    const ValueId element = n.slice(x, axis, at, at + part);
    elements.push_back(drops ? without(n, element, axis) : element);
    at += part;
  }
  n.out_sequence(std::move(elements));
}

void must_agree(NodeImport& n, const Values& elements) {
  for (const ValueId v : elements)
    if (n.dtype(v) != n.dtype(elements[0]))
      n.fail("tensors of one sequence are " + to_string(n.type(elements[0])) + " and " +
             to_string(n.type(v)) + ": their types differ");
}

void sequence_construct(NodeImport& n) {
  Values elements = n.all_inputs();
  must_agree(n, elements);
  n.out_sequence(std::move(elements));
}
void sequence_empty(NodeImport& n) { n.out_sequence({}); }

// Operand i, a position in 0..last, or from the end; the last one when it is absent.
int64_t position(NodeImport& n, int i, int64_t last, size_t length) {
  if (!n.has(i)) return last;
  const std::vector<int64_t> given = n.must_know_ints(n.in(i), "position");
  const auto from_end = static_cast<int64_t>(length);
  if (given.size() != 1 || given[0] < -from_end || given[0] > last)
    n.fail("position " + to_string(given) + " is outside a sequence of " + std::to_string(length) +
           " tensors");
  return given[0] < 0 ? given[0] + from_end : given[0];
}
void sequence_insert(NodeImport& n) {
  Values elements = n.sequence(0);
  const auto length = static_cast<int64_t>(elements.size());
  must_be_few(n, length + 1);
  elements.insert(elements.begin() + position(n, 2, length, elements.size()), n.required(1));
  must_agree(n, elements);
  n.out_sequence(std::move(elements));
}
void sequence_erase(NodeImport& n) {
  Values elements = n.sequence(0);
  const int64_t last = static_cast<int64_t>(elements.size()) - 1;
  if (last < 0) n.fail("the sequence is empty");
  elements.erase(elements.begin() + position(n, 1, last, elements.size()));
  n.out_sequence(std::move(elements));
}
void sequence_at(NodeImport& n) {
  const Values elements = n.sequence(0);
  const int64_t last = static_cast<int64_t>(elements.size()) - 1;
  if (last < 0) n.fail("the sequence is empty");
  n.out(0, elements[static_cast<size_t>(position(n, 1, last, elements.size()))]);
}
void sequence_length(NodeImport& n) {
  n.out(0, n.scalar(static_cast<double>(n.sequence(0).size()), DType::kInt64));
}

void concat_from_sequence(NodeImport& n) {
  Values elements = n.sequence(0);
  if (elements.empty()) n.fail("the sequence is empty");
  const bool stacks = n.int_attr("new_axis", 0) != 0;
  const int rank = n.rank(elements[0]) + (stacks ? 1 : 0);
  const int axis = normalized_axis(n, n.int_attr("axis", 0), rank);
  if (stacks)
    for (ValueId& v : elements) {
      std::vector<Expr> dims = n.type(v).dims;
      if (n.rank(v) + 1 != rank) n.fail("tensors of different rank are stacked");
      dims.insert(dims.begin() + axis, Expr(1));
      v = n.reshape(v, dims);
    }
  n.out(0, elements.size() == 1 ? n.op("identity", elements)
                                : n.op("concat", elements, {{"axis", int64_t{axis}}}));
}

constexpr auto kSequenceRows = std::to_array<OpMapping>({
    {"", "SplitToSequence", 11, split_to_sequence},
    {"", "SequenceConstruct", 11, sequence_construct},
    {"", "SequenceEmpty", 11, sequence_empty},
    {"", "SequenceInsert", 11, sequence_insert},
    {"", "SequenceErase", 11, sequence_erase},
    {"", "SequenceAt", 11, sequence_at},
    {"", "SequenceLength", 11, sequence_length},
    {"", "ConcatFromSequence", 11, concat_from_sequence},
});

}  // namespace

std::span<const OpMapping> sequence_mappings() { return kSequenceRows; }

}  // namespace tilewright::onnx
