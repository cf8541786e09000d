// A few planes whose elements lie side by side in what is stored or in what is read: images that
// change between planar and channels last.
#include <bit>

#include "ir/loops/rewrite.h"
#include "passes/loops/vector_width.h"
#include "passes/schedule/rules/memory.h"
#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// NCHW <-> NHWC of 2 to 16 bytes per pixel, stereo samples, phases of a transposed convolution, up to nine
// positions of a window of weights: per group of planes, vectors along each plane and one interleaved access
// (group_accesses makes it).
//
//    planar   rrrrrrrr gggggggg bbbbbbbb   <->   packed  rgbrgbrgb...
class InterleaveRule : public BlockRule {
 public:
  using BlockRule::BlockRule;

 private:
  // plane_: the few elements that lie side by side, in what is stored or read; along_: the axis
  // that steps over such groups there, and over elements elsewhere.
  bool applies() override {
    constexpr int64_t kMostBytes = 16;  // of a group: larger ones are squares
    constexpr int64_t kMostPlanes = 9;
    accesses_ = block_accesses(block_);
    int bytes = 1;
    for (const BlockAccess& a : accesses_) bytes = std::max(bytes, byte_size(a.buffer->dtype));
    for (size_t i = 0; i < block_.axes.size(); ++i)
      if (loop_of_axis(block_, i).empty()) return false;
    for (plane_ = 0; plane_ < block_.axes.size(); ++plane_) {
      planes_ = as_int(block_.axes[plane_].extent).value_or(0);
      const bool binary = std::has_single_bit(static_cast<uint64_t>(planes_));
      if (planes_ < 2 || planes_ > kMostPlanes || (binary && planes_ * bytes > kMostBytes))
        continue;
      for (along_ = 0; along_ < block_.axes.size(); ++along_)
        if (along_ != plane_ && extent(along_) > planes_ && is_interleaved()) return true;
    }
    return false;
  }
  // Are the planes side by side in some accesses, and apart in others?
  bool is_interleaved() const {
    bool together = false, apart = false;
    for (const BlockAccess& a : accesses_) {
      const auto step = a.stride(along_), next = a.stride(plane_);
      if (step == planes_ && next == 1)
        together = true;
      else if (step == 1 && next != 1)
        apart = true;
      else if (step != 0 || a.write)
        return false;
    }
    return together && apart;
  }

  void decide() override {
    std::vector<bool> used(block_.axes.size());
    used[plane_] = used[along_] = true;
    bool conditional = false;
    for_each_expr(block_.body, [&](const Expr& e) { conditional |= e.as<Select>() != nullptr; });
    // Joined axes would have to be divided out again in each condition.
    joined_ = conditional ? std::vector{along_} : with_outer(along_, used, accesses_);
    for (size_t i = 0; i < block_.axes.size(); ++i)
      if (!used[i]) outer_.push_back(loop_of_axis(block_, i));
    int bytes = 1;
    int64_t elements = 1;
    for (const BlockAccess& a : accesses_) bytes = std::max(bytes, byte_size(a.buffer->dtype));
    for (size_t i : joined_) elements *= extent(i);
    const int64_t widest = s_.machine().lanes(bytes), lanes = fitting_lanes(widest, elements);
    lanes_ = s_.decide(loop("lanes"), powers_of_two(kFewestLanes, widest), lanes, Bits::kKept);
  }

  bool write() override {
    std::vector<std::string> order = outer_;
    std::vector<std::string> tasks = order;
    tasks.push_back(loop("o"));
    for (size_t k = joined_.size(); k-- > 0;) order.push_back(loop_of_axis(block_, joined_[k]));
    order.push_back(loop_of_axis(block_, plane_));
    if (!s_.apply("reorder", order)) return false;
    const std::string elements = fuse(joined_, "a"), plane = loop_of_axis(block_, plane_);
    if (elements.empty() || !s_.apply("split", {elements, loop("o"), loop("v")}, {lanes_}) ||
        !s_.apply("reorder", {loop("o"), plane, loop("v")}) || !s_.apply("unroll", {plane}) ||
        !s_.apply("vectorize", {loop("v")}))
      return false;
    s_.note(name_ + ": " + std::to_string(planes_) +
            " planes, vectors along each, which lie side by side");
    share_out(tasks);
    // Planes, in whole lines.
    const BlockAccess& store = accesses_.back();
    if (store.stride(plane_) != 1 && lanes_ * byte_size(store.buffer->dtype) == kCacheLine)
      store_copy_past_caches(s_, name_);
    return true;
  }
  std::vector<BlockAccess> accesses_;
  size_t plane_ = 0, along_ = 0;
  int64_t planes_ = 0, lanes_ = 1;
  std::vector<size_t> joined_;      // axes of one loop: along_ and those that it runs on to
  std::vector<std::string> outer_;  // loops of the others
};

}  // namespace

std::optional<Taken> take_interleave(ScheduleState& s, const Work& work) {
  return take_block<InterleaveRule>(s, work);
}

}  // namespace tilewright::passes
