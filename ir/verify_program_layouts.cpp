// Layouts in programs: an element that two buffers name has one place in memory, and bytes are copied
// between buffers that order their elements alike.
#include "ir/graph/view_layouts.h"
#include "ir/loops/simplify.h"
#include "ir/module_text/printer_graph.h"
#include "ir/program_verifier.h"
#include "ir/text/printer_loops.h"

namespace tilewright::ir {

namespace {

bool is_same(const Layout& a, const Layout& b, const TensorType& type) {
  return a == b || is_same_order(a, b, type);
}
// False if both extents are known and differ.
bool is_same_extent(const Expr& a, const Expr& b) {
  const auto x = as_int(a), y = as_int(b);
  return !x || !y || *x == *y;
}
// One element type and rank, and no extents that are known to differ.
bool is_same_type(const TensorType& a, const TensorType& b) {
  return a.dtype == b.dtype && a.rank() == b.rank() &&
         std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), is_same_extent);
}
bool is_permutation(const std::vector<int>& dims, int rank) {
  std::vector<bool> seen(static_cast<size_t>(rank));
  for (int d : dims) {
    if (d < 0 || d >= rank || seen[static_cast<size_t>(d)]) return false;
    seen[static_cast<size_t>(d)] = true;
  }
  return dims.size() == seen.size();
}
bool is_part(const ProgramBuffer& view, const ProgramBuffer& whole) {
  const auto own = strides_of(view.type, view.layout), outer = strides_of(whole.type, whole.layout);
  const auto rank = view.type.dims.size();
  if (!own || !outer || view.view.dims.size() != rank || view.view.steps.size() != rank)
    return false;
  for (size_t d = 0; d < rank; ++d) {
    const int along = view.view.dims[d];
    if (along < 0 || along >= whole.type.rank()) return false;
    if (*as_int(view.type.dims[d]) > 1 &&
        (*own)[d] != view.view.steps[d] * (*outer)[static_cast<size_t>(along)])
      return false;
  }
  return true;
}
bool is_permutation_of_axes(const Layout& layout, int rank) {
  std::vector<int> dims;
  for (const LayoutAxis& axis : layout) {
    if (axis.divisor != 1 || axis.modulus != 0) return false;
    dims.push_back(axis.dim);
  }
  return layout.empty() || is_permutation(dims, rank);
}
// As many elements, as far as extents are known.
bool is_same_count(const TensorType& a, const TensorType& b) {
  const auto x = as_int(simplify(element_count(a))), y = as_int(simplify(element_count(b)));
  return !x || !y || *x == *y;
}
bool agrees(const ProgramBuffer& view, const ProgramBuffer& whole) {
  switch (view.view.kind) {
    case ViewMap::Kind::kSame:
      return is_same_type(view.type, whole.type) && is_same(view.layout, whole.layout, view.type);
    case ViewMap::Kind::kReshaped: {
      const auto found = reshaped_layout(whole.layout, whole.type, view.type);
      return found && is_same_count(view.type, whole.type) &&
             is_same(*found, view.layout, view.type);
    }
    case ViewMap::Kind::kTransposed: {
      if (!is_permutation(view.view.dims, whole.type.rank()) ||
          !is_permutation_of_axes(whole.layout, whole.type.rank()) ||
          view.type.rank() != whole.type.rank())
        return false;
      for (int d = 0; d < view.type.rank(); ++d)
        if (!is_same_extent(
                view.type.dims[static_cast<size_t>(d)],
                whole.type.dims[static_cast<size_t>(view.view.dims[static_cast<size_t>(d)])]))
          return false;
      const std::vector<int64_t> perm(view.view.dims.begin(), view.view.dims.end());
      return is_same(transposed_layout(whole.layout, perm), view.layout, view.type);
    }
    case ViewMap::Kind::kPart: return is_part(view, whole);
  }
  return false;
}
std::string shown(const ProgramBuffer& b) { return to_text(b.type) + " " + layout_text(b.layout); }

}  // namespace

std::string layout_text(const Layout& layout) {
  return layout.empty() ? "row-major" : to_text(layout);
}

void ProgramVerifier::view_layout(int32_t number) {
  const ProgramBuffer &view = at(number), &whole = at(view.alias_of);
  for (const ProgramBuffer* b : {&view, &whole})
    if (!std::all_of(b->layout.begin(), b->layout.end(),
                     [&](const LayoutAxis& axis) { return axis.fits(b->type.rank()); }))
      return report(shown(*b) + " has a layout of other dimensions");
  if (view.type.dtype != whole.type.dtype || !agrees(view, whole))
    report(who(number) + ", " + shown(view) + ", has another order in memory than " +
           who(view.alias_of) + ", " + shown(whole) + ", which it views");
}
void ProgramVerifier::same_layout(int32_t a, int32_t b) {
  if (!is_same_type(at(a).type, at(b).type) || !is_same(at(a).layout, at(b).layout, at(a).type))
    report(who(a) + ", " + shown(at(a)) + ", gets the bytes of " + who(b) + ", " + shown(at(b)));
}
void ProgramVerifier::row_major(int32_t b, const char* what) {
  if (!is_row_major(at(b).layout, at(b).type))
    report(who(b) + " " + what + " and is laid out as " + to_text(at(b).layout));
}

void ProgramVerifier::layouts(const ProgramInstruction& x) {
  if (const auto* c = std::get_if<CopyInstruction>(&x)) same_layout(c->to, c->from);
  if (const auto* d = std::get_if<DefineSymbolInstruction>(&x))
    row_major(d->buffer, "defines a symbol");
  if (const auto* i = std::get_if<CheckIndicesInstruction>(&x))
    row_major(i->farthest, "tells the farthest indices");
  const auto* l = std::get_if<LoopInstruction>(&x);
  if (!l) return;
  for (const auto& [state, computed] : l->carried) same_layout(state, computed);
  for (const auto& [element, result] : l->scans) {
    row_major(element, "is stacked by a loop");
    row_major(result, "is what a loop stacks");
  }
}

}  // namespace tilewright::ir
