// ConvTranspose: auto_pad, output_shape and output_padding are resolved to what is cut off the full
// result, so that the operator of the graph has one way to say its extents.
#include <array>

#include "frontends/onnx/importers.h"
#include "frontends/onnx/windows.h"
#include "ir/loops/simplify.h"

namespace tilewright::onnx {
namespace {

using ir::Expr;
using ir::ValueId;
using Ints = std::vector<int64_t>;

// The attributes that say how much is cut off, with their defaults.
struct Crop {
  Ints pads, more, wanted;
  AutoPad mode;
};
Crop crop_of(NodeImport& n, size_t spatial) {
  Crop c{n.ints_attr("pads", Ints(2 * spatial, 0)), n.ints_attr("output_padding", Ints(spatial, 0)),
         n.ints_attr("output_shape"), auto_pad(n)};
  if (c.pads.size() != 2 * spatial || c.more.size() != spatial ||
      (!c.wanted.empty() && c.wanted.size() < spatial))
    n.fail("pads, output_padding or output_shape do not fit " + std::to_string(spatial) +
           " spatial dimensions");
  return c;
}

// Begins, then ends; an end below 0 is output padding. Nothing where attributes do not fit x and w,
// which the operator reports. output_shape goes before pads, as the standard has it.
std::optional<ir::Extents> cut_off(NodeImport& n, ValueId x, ValueId w) {
  if (n.rank(x) < 3 || n.rank(w) != n.rank(x)) return std::nullopt;
  const size_t spatial = static_cast<size_t>(n.rank(x)) - 2;
  const Crop c = crop_of(n, spatial);
  const Ints strides = n.ints_attr("strides", Ints(spatial, 1)),
             dilations = n.ints_attr("dilations", Ints(spatial, 1));
  if (strides.size() != spatial || dilations.size() != spatial) return std::nullopt;
  ir::Extents cut{std::vector<Expr>(2 * spatial)};
  for (size_t d = 0; d < spatial; ++d) {
    const int at = static_cast<int>(d) + 2;
    const Expr in = n.dim(x, at), stride = strides[d], more = c.more[d],
               reach = (n.dim(w, at) - 1) * Expr(dilations[d]) + 1,
               full = (in - 1) * stride + reach;
    const bool valid = c.mode == AutoPad::kValid;
    Expr begin = valid ? 0 : c.pads[d], end = Expr(valid ? 0 : c.pads[d + spatial]) - more;
    if (is_same(c.mode) || !c.wanted.empty()) {
      const Expr out =
          c.wanted.empty() ? in * stride : Expr(c.wanted[d + c.wanted.size() - spatial]);
      const Expr total = max(full + more - out, 0), half = floordiv(total, 2);
      begin = c.mode == AutoPad::kSameUpper ? half : total - half;
      end = full - begin - out;
    }
    cut.dims[d] = simplify(begin);
    cut.dims[d + spatial] = simplify(end);
  }
  return cut;
}

void conv_transpose(NodeImport& n) {
  const ValueId x = n.required_stored(0), w = shaped_kernel(n, n.required_stored(1));
  ir::Attributes a{{"group", n.int_attr("group", 1)}};
  for (const char* name : {"strides", "dilations"})
    if (n.has_attr(name)) a[name] = n.ints_attr(name);
  if (auto pads = cut_off(n, x, w)) a["pads"] = pads_attribute(std::move(*pads));
  if (!n.has(2)) return n.out(0, n.op("conv_transpose", {x, w}, std::move(a)));
  const ValueId y = n.product("conv_transpose", {x, w}, std::move(a));
  std::vector<Expr> per_channel(static_cast<size_t>(n.rank(x)) - 1, Expr(1));
  per_channel[0] = n.dim(y, 1);
  if (n.rank(n.in(2)) == 1)
    n.require_equal(n.dim(n.in(2), 0), n.dim(y, 1), "each channel must have its bias");
  n.out(0, n.op("add", {y, n.reshape(n.in(2), per_channel)}));
}

constexpr auto kConvTransposeRows =
    std::to_array<OpMapping>({{"", "ConvTranspose", 1, conv_transpose, Form::kFormula}});

}  // namespace

std::span<const OpMapping> conv_transpose_mappings() { return kConvTransposeRows; }

}  // namespace tilewright::onnx
