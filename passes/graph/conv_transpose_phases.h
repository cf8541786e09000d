// The phases of a transposed convolution: what each result reads, and which way to compute them has
// less to do.
//
// Result y = q * stride + r of phase r uses only the kernel elements k = j * stride + r (sub-pixel
// convolution: Shi et al., "Real-Time Single Image and Video Super-Resolution Using an Efficient
// Sub-Pixel Convolutional Neural Network", 2016).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph/op.h"

namespace tilewright::passes {

// A node of conv_transpose in numbers; lists have an entry for each spatial dimension.
struct TransposedConv {
  // Of w: [c, m, kernel...], known.
  int64_t group = 1, c = 1, m = 1;
  std::vector<int64_t> kernel, strides, dilations;
  // Between the kernel's elements that one phase reads. With a stride of 1 there is but one phase, and its convolution
  // is dilated as the node is; else the dilation is written out, as zeros.
  std::vector<int64_t> apart;
  std::vector<int64_t> reach;  // of the kernel, with zeros where its dilation is written out
  std::vector<int64_t> steps;  // kernel elements of one phase, rounded up
  std::vector<ir::Expr> in, begin,
      out;  // extents of x; cropped at the start; extents of the result
  size_t spatial() const { return kernel.size(); }
  // By how many elements of x the first and the last one that a result of dimension d reads lie apart.
  int64_t span(size_t d, int64_t steps_of_phase) const { return (steps_of_phase - 1) * apart[d]; }
};
// Nothing where an extent of w is not known, or weights or results of all phases would be of more
// than 2^32 elements: what is cropped may be any number of them.
std::optional<TransposedConv> transposed_conv(const ir::NodeView& node);

// One phase of one dimension: position q of its results is result q * stride + its number, made of
// x[q + shift - j * apart] and kernel element j * stride + first for each j below `steps`. Where strides are
// longer than the kernel there are phases of no step, of zeros.
struct Phase {
  int64_t first = 0, shift = 0, steps = 0;
  int64_t before = 0, after = 0;  // padding of x; negative: elements that it does not read
};
using Phases = std::vector<std::vector<Phase>>;  // by dimension

// Of convolutions of their own. Empty where there would be many, or extents are not known well enough.
Phases separate_phases(const TransposedConv& t);

// Do separate convolutions compute no more than a joint one, which takes as many kernel elements
// for each phase and computes what is cropped, too? Channels are computed in groups, some of it for
// nothing. Of phases that there are.
bool separation_pays(const TransposedConv& t, const Phases& phases);

}  // namespace tilewright::passes
