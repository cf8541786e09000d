#include "frontends/train/part_sums.h"

#include <algorithm>

#include "frontends/train/step_graph.h"

namespace tilewright::train {

using distributed::Elements;
using distributed::PartRange;
using distributed::ReduceOp;
using passes::ResultRange;

namespace {

constexpr int64_t kBytes = sizeof(float);
// Bounds the number of ranges, so that most communication overlaps with computing, and their size, so that
// bandwidth rather than latency determines the time of a call.
constexpr int64_t kMostRanges = 32, kLeastBytes = 1 << 20;

// Joins the last two of the subtrees that are complete, where they are the children of one: a node of the tree is
// complete with its right child.
bool join_last(std::vector<PartRange>& complete, int parts) {
  if (complete.size() < 2) return false;
  const PartRange both{complete[complete.size() - 2].begin, complete.back().end};
  if (distributed::subtrees_of(both, parts).size() != 1) return false;
  complete.pop_back();
  complete.back() = both;
  return true;
}

}  // namespace

ExactPrice price_of_exact(int parts, int ranks) {
  ExactPrice price;
  size_t most = 1, sent = 0;
  for (int r = 0; r < ranks; ++r) {
    const PartRange run = distributed::parts_of_rank(r, ranks, parts);
    std::vector<PartRange> complete;
    for (int part = run.begin; part < run.end; ++part) {
      complete.push_back({part, part + 1});
      most = std::max(most, complete.size());
      while (join_last(complete, parts)) {}
    }
    sent += complete.size();
  }
  price.buffers = static_cast<int>(most);
  // Each rank sends its subtrees to the owners of ranges and gets their sums; a ring all-reduce sends a buffer twice.
  if (ranks > 1) price.traffic = (static_cast<double>(sent) / ranks + 1) / 2;
  return price;
}

std::vector<ResultRange> ranges_to_sum(const std::string& name, const Parameters& members,
                                       int64_t least) {
  if (least == 0) least = std::max(members.elements * kBytes / kMostRanges, kLeastBytes);
  std::vector<ResultRange> ranges;
  int64_t begin = 0;
  for (size_t k = 0; k < members.members.size(); ++k) {
    const bool is_last = k + 1 == members.members.size();
    const int64_t end = kBytes * (is_last ? members.elements : members.members[k + 1].offset);
    if (!is_last && end - begin < least) continue;
    ranges.push_back({name, begin, end});
    begin = end;
  }
  return ranges;
}

std::vector<ResultRange> ranges_of_part(const Job& job, const Trained& trained) {
  if (!job.has_ranks) return {};
  const int64_t least = job.distributed.bucket_bytes;
  std::vector<ResultRange> ranges = ranges_to_sum(kGradients, trained.parameters, least);
  if (!job.averages_statistics() || trained.statistics.members.empty()) return ranges;
  for (ResultRange& r : ranges_to_sum(kNewStatistics, trained.statistics, least))
    ranges.push_back(std::move(r));
  return ranges;
}

std::vector<ResultRange> starts_of(const Executable& executable) {
  std::vector<ResultRange> starts;
  const Variant& variant = executable.variants.at(0);
  for (const Instruction& i : variant.blocks.at(0))
    if (i.op == Op::kStart)
      starts.push_back({variant.buffers[static_cast<size_t>(i.buffers[0])].name, i.index, i.limit});
  return starts;
}

PartSums::PartSums(std::vector<SummedBuffer> sums, bool exact,
                   const std::vector<ResultRange>& starts)
    : exact_(exact), levels_(1) {
  for (const SummedBuffer& b : sums) levels_[0].push_back(b.sum);
  for (const ResultRange& r : starts) {
    const auto buffer = std::ranges::find(sums, r.result, &SummedBuffer::name);
    TW_CHECK(buffer != sums.end());
    starts_.push_back({static_cast<size_t>(buffer - sums.begin()), r.begin / kBytes, r.end / kBytes,
                       r.result + ", range " + std::to_string(starts_.size() + 1) + " of " +
                           std::to_string(starts.size())});
  }
}

Status PartSums::begin_step(PartRange run, int parts, distributed::Comm* comm) {
  comm_ = comm;
  run_ = run;
  parts_ = parts;
  next_ = run.begin;
  complete_.clear();
  last_adds_.clear();
  started_ = 0;
  // What a rank without parts adds to the sums of the others. Exact ones do not look at it.
  if (run.count() == 0 && !exact_)
    for (const Tensor& t : levels_[0]) std::fill_n(t.data_as<float>(), t.element_count(), 0.0f);
  if (!exact_) return {};
  const size_t subtrees = distributed::subtrees_of(run, parts).size();
  while (levels_.size() < subtrees) TW_RETURN_IF_ERROR(add_level());
  return {};
}

Status PartSums::add_level() {
  std::vector<Tensor> buffers;
  for (const Tensor& sum : levels_[0]) {
    TW_ASSIGN(Tensor t, Tensor::allocate(sum.dtype(), sum.shape()));
    buffers.push_back(std::move(t));
  }
  levels_.push_back(std::move(buffers));
  return {};
}

Result<std::vector<Tensor>> PartSums::begin_part() {
  const size_t level = complete_.size();
  if (level == levels_.size()) TW_RETURN_IF_ERROR(add_level());
  return levels_[level];
}

Collectives* PartSums::collectives() {
  if (!comm_ || next_ + 1 < run_.end) return nullptr;
  complete_part(last_adds_);
  return this;
}

void PartSums::end_part() {
  if (comm_ && next_ == run_.end) return start_rest();
  std::vector<Add> adds;
  complete_part(adds);
  for (const Add& a : adds)
    for (size_t b = 0; b < levels_[a.into].size(); ++b)
      distributed::combine(ReduceOp::kSum,
                           {DType::kFloat32, values(a.into, b), levels_[a.into][b].element_count()},
                           values(a.from, b));
}

void PartSums::complete_part(std::vector<Add>& adds) {
  const PartRange part{next_, next_ + 1};
  ++next_;
  if (!exact_) return;
  complete_.push_back(part);
  while (join_last(complete_, parts_)) adds.push_back({complete_.size() - 1, complete_.size()});
}

void PartSums::start(int32_t number, std::byte*, int64_t) {
  start_sum(starts_.at(static_cast<size_t>(number)));
  ++started_;
}

void PartSums::start_rest() {
  if (!comm_) return;
  for (; started_ < starts_.size(); ++started_) start_sum(starts_[started_]);
}

void PartSums::start_sum(const Start& s) {
  const int64_t count = s.end - s.begin;
  float* const sum = values(0, s.buffer) + s.begin;
  if (!exact_) {
    const Elements elements{DType::kFloat32, sum, count};
    return comm_->start("all_reduce of " + s.name, count * kBytes,
                        [=](const distributed::Round& round) {
                          return distributed::all_reduce(round, ReduceOp::kSum, elements);
                        });
  }
  const size_t subtrees = distributed::subtrees_of(run_, parts_).size();
  if (levels_.size() < subtrees)  // this rank has no memory for them, and says so
    return comm_->start("exact_sum of " + s.name, 0, [](const distributed::Round&) -> Status {
      return limit_error("no memory for the sums of parts");
    });
  std::vector<float*> levels;  // parts of the last one, too
  for (size_t level = 0; level < levels_.size(); ++level)
    levels.push_back(values(level, s.buffer) + s.begin);
  const auto work = [=, adds = last_adds_, parts = parts_](const distributed::Round& round) {
    for (const Add& a : adds)
      distributed::combine(ReduceOp::kSum, {DType::kFloat32, levels[a.into], count},
                           levels[a.from]);
    const std::vector<const float*> own(levels.begin(),
                                        levels.begin() + static_cast<std::ptrdiff_t>(subtrees));
    return distributed::exact_sum(round, own, {sum, static_cast<size_t>(count)}, parts);
  };
  comm_->start("exact_sum of " + s.name, count * kBytes, work);
}

float* PartSums::values(size_t level, size_t buffer) const {
  return levels_[level][buffer].data_as<float>();
}

}  // namespace tilewright::train
