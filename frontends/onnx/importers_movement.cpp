// Padding, tiling, and reading and writing at indices.
#include <array>
#include <cmath>
#include <set>

#include "frontends/onnx/importers.h"
#include "ir/loops/simplify.h"

namespace tilewright::onnx {

int normalized_axis(const NodeImport& n, int64_t axis, int rank, const char* what) {
  if (axis < -rank || axis >= rank)
    n.fail(std::string(what) + " " + std::to_string(axis) + " is outside rank " +
           std::to_string(rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

namespace {

using ir::Attributes;
using ir::Expr;
using ir::ValueId;

// Before opset 11 the pads and the value are attributes.
void pad(NodeImport& n) {
  ValueId x = n.required(0);
  Attributes a{{"mode", n.string_attr("mode", "constant")}};
  if (n.opset() >= 11) {
    n.out(0, n.op("pad", {x, n.required(1), n.in(2), n.in(3)}, a));
    return;
  }
  ValueId pads = n.ints(n.ints_attr(n.opset() < 2 ? "paddings" : "pads"));
  n.out(0, n.op("pad", {x, pads, n.scalar_like(n.float_attr("value", 0), x)}, a));
}

void center_crop_pad(NodeImport& n) {
  ValueId x = n.required(0);
  auto shape = n.known(n.required(1));
  if (!shape) n.needs_value("shape is not known at compile time");
  std::vector<int64_t> axes = n.ints_attr("axes");
  if (axes.empty())
    for (int d = 0; d < n.rank(x); ++d) axes.push_back(d);
  if (axes.size() != shape->size())
    n.fail("shape has " + std::to_string(shape->size()) + " elements for " +
           std::to_string(axes.size()) + " axes");
  const auto rank = static_cast<size_t>(n.rank(x));
  std::vector<Expr> pads(2 * rank, Expr(0));
  std::set<int> seen;
  for (size_t k = 0; k < axes.size(); ++k) {
    const int d = normalized_axis(n, axes[k], n.rank(x));
    if (!seen.insert(d).second) n.fail("axis " + std::to_string(axes[k]) + " is named twice");
    Expr more = simplify(ir::cast(DType::kInt64, (*shape)[k]) - n.dim(x, d)),
         begin = simplify(more / Expr(2));
    pads[static_cast<size_t>(d)] = begin;
    pads[static_cast<size_t>(d) + rank] = simplify(more - begin);
  }
  n.out(0, n.op("pad", {x, n.dims(pads)}));
}

void tile(NodeImport& n) { n.out(0, n.op("tile", {n.required(0), n.required(1)})); }

// The edge of the blocks, at least 1; x must be an image.
int64_t block_size(NodeImport& n) {
  const int64_t b = n.int_attr("blocksize", 0);
  if (b < 1) n.fail("blocksize is " + std::to_string(b));
  if (n.rank(n.required(0)) != 4)
    n.fail("x is " + to_string(n.type(n.in(0))) + ", expected [n, c, h, w]");
  return b;
}
// Pixel shuffle (Shi et al. 2016): blocks of b * b channels become blocks of pixels. DCR has the
// position in the block as the outer part of the channel, CRD as the inner one.
void depth_to_space(NodeImport& n) {
  const int64_t b = block_size(n);
  ValueId x = n.in(0);
  n.require_multiple(n.dim(x, 1), b * b,
                     "channels must be whole blocks of " + std::to_string(b * b));
  const Expr batch = n.dim(x, 0), depth = simplify(floordiv(n.dim(x, 1), Expr(b * b))),
             h = n.dim(x, 2), w = n.dim(x, 3);
  const std::string mode = n.string_attr("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") n.fail("mode is '" + mode + "'");
  ValueId parts = mode == "DCR" ? n.reshape(x, {batch, b, b, depth, h, w})
                                : n.reshape(x, {batch, depth, b, b, h, w});
  parts = n.transpose(parts, mode == "DCR" ? std::vector<int64_t>{0, 3, 4, 1, 5, 2}
                                           : std::vector<int64_t>{0, 1, 4, 2, 5, 3});
  n.out(0, n.reshape(parts, {batch, depth, simplify(h * Expr(b)), simplify(w * Expr(b))}));
}
void space_to_depth(NodeImport& n) {
  const int64_t b = block_size(n);
  ValueId x = n.in(0);
  for (int d : {2, 3})
    n.require_multiple(
        n.dim(x, d), b,
        "dimension " + std::to_string(d) + " must be whole blocks of " + std::to_string(b));
  const Expr batch = n.dim(x, 0), c = n.dim(x, 1), h = simplify(floordiv(n.dim(x, 2), Expr(b))),
             w = simplify(floordiv(n.dim(x, 3), Expr(b)));
  const std::string mode = n.string_attr("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") n.fail("mode is '" + mode + "'");
  ValueId parts = n.transpose(n.reshape(x, {batch, c, h, b, w, b}),
                              mode == "DCR" ? std::vector<int64_t>{0, 3, 5, 1, 2, 4}
                                            : std::vector<int64_t>{0, 1, 3, 5, 2, 4});
  n.out(0, n.reshape(parts, {batch, simplify(c * Expr(b * b)), h, w}));
}

void reverse_sequence(NodeImport& n) {
  const ValueId x = n.required(0);
  const int64_t time = n.int_attr("time_axis", 0), batch = n.int_attr("batch_axis", 1);
  const Expr steps = n.dim(x, normalized_axis(n, time, n.rank(x), "time_axis"));
  n.out(0, n.op("reverse_sequence",
                {x, n.within(n.required(1), steps + 1, "an element of 'sequence_lens'")},
                {{"time_axis", time}, {"batch_axis", batch}}));
}
void gather_elements(NodeImport& n) {
  n.out(0,
        n.op("gather_elements", {n.required(0), n.required(1)}, {{"axis", n.int_attr("axis", 0)}}));
}
void gather_nd(NodeImport& n) {
  n.out(0, n.op("gather_nd", {n.required(0), n.required(1)},
                {{"batch_dims", n.int_attr("batch_dims", 0)}}));
}
void scatter_elements(NodeImport& n) {
  n.out(0,
        n.op("scatter_elements", {n.required(0), n.required(1), n.required(2)},
             {{"axis", n.int_attr("axis", 0)}, {"reduction", n.string_attr("reduction", "none")}}));
}
void scatter_nd(NodeImport& n) {
  n.out(0, n.op("scatter_nd", {n.required(0), n.required(1), n.required(2)},
                {{"reduction", n.string_attr("reduction", "none")}}));
}
void tensor_scatter(NodeImport& n) {
  const ValueId cache = n.required(0), update = n.required(1);
  const int64_t axis = n.int_attr("axis", -2);
  const std::string mode = n.string_attr("mode", "linear");
  ValueId at = n.in(2);
  if (n.rank(cache) == n.rank(update)) {
    // A circular cache takes indices modulo its extent, so they have no upper bound but that of extents.
    const int d = normalized_axis(n, axis, n.rank(cache));
    n.require_at_most(n.dim(update, d), n.dim(cache, d), "the update fits in the cache");
    const Expr end =
        mode == "linear" ? n.dim(cache, d) - n.dim(update, d) + 1 : Expr(int64_t{1} << 31);
    at = n.within(at, end, "an element of 'write_indices'");
  }
  n.out(0, n.op("tensor_scatter", {cache, update, at}, {{"axis", axis}, {"mode", mode}}));
}

constexpr auto kMovementRows = std::to_array<OpMapping>({
    {"", "Pad", 1, pad},
    {"", "CenterCropPad", 18, center_crop_pad},
    {"", "Tile", 6, tile},
    {"", "DepthToSpace", 1, depth_to_space},
    {"", "SpaceToDepth", 1, space_to_depth},
    {"", "ReverseSequence", 10, reverse_sequence},
    {"", "GatherElements", 11, gather_elements},
    {"", "GatherND", 11, gather_nd},
    {"", "Scatter", 9, scatter_elements},
    {"", "ScatterElements", 11, scatter_elements},
    {"", "ScatterND", 11, scatter_nd},
    {"", "TensorScatter", 24, tensor_scatter},
});

}  // namespace

std::span<const OpMapping> movement_mappings() { return kMovementRows; }

}  // namespace tilewright::onnx
