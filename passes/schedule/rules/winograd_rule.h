// Winograd convolutions: what the parts of the rule share. Included by winograd_*.cpp alone.
#pragma once

#include "passes/cost/winograd_cost.h"
#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

// The five blocks of winograd_conv fused by tiles (as oneDNN's W_S_GEMM_D variant), so that
// transformed inputs and products stay in L2:
//
//    for task (image, block of tiles, group of panels) parallel:
//      input transform of the block           its first half is shared by tiles side by side
//      for panel of output channels:
//        for each of the (m+2)^2 points:      a GEMM of [tiles, c] by [c, panel], in register tiles
//        output transform and epilogue
class WinogradRule {
 public:
  explicit WinogradRule(ScheduleState& s) : s_(s) {}
  bool run();

 private:
  static std::string name(const std::string& block, const char* part) { return block + "." + part; }
  std::string loop(const std::string& block, size_t axis) const {
    return loop_of_axis(*s_.place(block).block, axis);
  }
  bool split(const std::string& loop, const std::string& outer, const std::string& inner,
             int64_t factor) {
    return s_.apply("split", {loop, outer, inner}, {factor});
  }

  // The block that writes the results: the epilogue, when one block alone reads those of the
  // convolution.
  bool find_results();
  bool find_sizes();

  void decide();
  // All of their tiles, and as many images as divide all.
  int64_t decide_images();
  void note_plan();

  // Where only the run knows how many tiles there are, all blocks of them are whole.
  bool align_tiles();
  bool write();
  void schedule_pointwise(const std::string& block);

  // [p, p, c, o]: panels of output channels, each in the order in which the tile reads it.
  bool pack_weights();
  // Channels of results into groups of panels, panels and, if wanted, vectors.
  bool split_channels(const std::string& b, size_t axis);
  bool split_panel(const std::string& b);
  // Images that share a task: the loop around them, and that inside, which there may not be.
  bool split_images(const std::string& b, size_t axis);
  std::string around_images(const std::string& b, size_t axis) const;
  std::vector<std::string> with_images(const std::string& b, std::vector<std::string> order,
                                       const std::string& before) const;
  // The tiles, axes 3 and 4, into blocks and those of a block.
  bool split_tiles(const std::string& b);
  // Results: [n, o, h, w].
  bool tile_results();
  bool tile_results_of(const std::string& b);
  // columns: [m, p, n, down, across, o], made for each tile and vector of channels.
  bool tile_columns();
  // products and their sums: [p, p, n, down, across, o], made for each panel.
  bool place_products();
  // Images, blocks of tiles and groups of panels are the tasks.
  bool share_out();
  // Each task transforms its input: a vector of channels and a row of tiles at a time.
  bool stage_input();
  // Sums of a tile of rows by vectors stay in registers over all input channels.
  bool tile_products();
  // Those of the next point, while the products with these are made, where they come from beyond the second cache.
  void prefetch_weights();
  bool annotate_tile(const std::string& b, const char* init);

  static constexpr const char* kSums = "winograd_sums";
  ScheduleState& s_;
  WindowedProduct sizes_;
  AssumedProduct assumed_;
  WinogradPlan plan_;
  int64_t m_ = 4;          // results of a tile along one dimension
  int64_t width_ = 1;      // of a panel
  bool any_size_ = false;  // of results: blocks are of a size that suits all, and whole ones
  std::string y_, task_;
};

}  // namespace tilewright::passes
