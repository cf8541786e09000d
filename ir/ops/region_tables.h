// Where the bins of regions of an image lie, and the samples that they take of it.
#pragma once

#include "ir/graph/compute.h"

namespace tilewright::ir {

// A roi_align or its gradient: the extents of x and y, the regions [r, 4], and the image of each.
struct RegionCall {
  const ComputeContext& node;
  std::vector<Expr> x, y;
  Buffer rois, batch;
};

// One direction of a region: where its bins begin, how long they are, samples per bin.
struct RegionSide {
  Expr start, bin, samples;
};
RegionSide region_side(const RegionCall& c, const Expr& roi, int direction, DType t);

// The neighbours of a sample along one direction, with their weights; outside x by more than one
// element: nothing.
struct Neighbours {
  Expr low, high, low_weight, high_weight, outside;
};
Neighbours neighbours(const Expr& position, const Expr& extent);
// Position of sample k of a bin.
Expr sample_position(const RegionSide& s, const Expr& bin, const Expr& k);
// The image that a region is one of.
Expr batch_of(const RegionCall& c, const Expr& roi);

// What all channels read alike along one direction of the regions: bin b of region r sums up
// count[r, b] elements, at place[r, b, ...] with weights. The samples of a bin share elements.
struct BinTables {
  Buffer count, place, weight;
};
struct MeanTables {
  BinTables side[2];
  Buffer columns;  // [r, 2]: first column that any bin reads, and the one behind the last
};
// For the mean of samples; the blocks that fill them go to the node's loops.
MeanTables fill_means(const RegionCall& c, DType t);

}  // namespace tilewright::ir
