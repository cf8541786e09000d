// Sorting, running sums, and operators whose number of results depends on data.
#include <array>

#include "frontends/onnx/importers.h"

namespace tilewright::onnx {
namespace {

using ir::Attributes;
using ir::ValueId;

template <bool product>
void cumulative(NodeImport& n) {
  ValueId axis = n.required(1);
  n.out(0,
        n.op(product ? "cumulative_product" : "cumulative_sum", {n.required(0), axis},
             {{"reverse", n.int_attr("reverse", 0)}, {"exclusive", n.int_attr("exclusive", 0)}}));
}
// Before opset 10 k is an attribute. Sorted or not, the best come first.
void top_k(NodeImport& n) {
  ValueId k = n.opset() >= 10 ? n.required(1) : n.ints({n.int_attr("k", 1)});
  auto y = n.ops("top_k", {n.required(0), k},
                 {{"axis", n.int_attr("axis", -1)}, {"largest", n.int_attr("largest", 1)}}, 2);
  n.out(0, y[0]);
  n.out(1, y[1]);
}
void unique(NodeImport& n) {
  Attributes a{{"sorted", n.int_attr("sorted", 1)}};
  if (n.has_attr("axis")) a["axis"] = n.int_attr("axis", 0);
  auto y = n.ops("unique", {n.required(0)}, a, 4);
  for (int k = 0; k < 4; ++k) n.out(k, y[static_cast<size_t>(k)]);
}
void nonzero(NodeImport& n) { n.out(0, n.op("nonzero", {n.required(0)})); }
void compress(NodeImport& n) {
  Attributes a;
  if (n.has_attr("axis")) a["axis"] = n.int_attr("axis", 0);
  n.out(0, n.op("compress", {n.required(0), n.required(1)}, a));
}
void non_max_suppression(NodeImport& n) {
  const ir::ValueId chosen =
      n.op("choose_boxes", {n.required(0), n.required(1), n.in(2), n.in(3), n.in(4)},
           {{"center_point_box", n.int_attr("center_point_box", 0)}});
  n.out(0, n.op("list_boxes", {chosen}));
}

constexpr auto kSelectionRows = std::to_array<OpMapping>({
    {"", "CumSum", 11, cumulative<false>},
    {"", "CumProd", 26, cumulative<true>},
    {"", "TopK", 1, top_k},
    {"", "Unique", 11, unique},
    {"", "NonZero", 9, nonzero},
    {"", "Compress", 9, compress},
    {"", "NonMaxSuppression", 10, non_max_suppression},
});

}  // namespace

std::span<const OpMapping> selection_mappings() { return kSelectionRows; }

}  // namespace tilewright::onnx
