// Ring algorithms for what is large (Patarasuk and Yuan, 2009), in segments of which two are under way at a time, so
// that adding and copying overlap with the network.
#include "runtime/distributed/collectives.h"

#include <algorithm>
#include <cstring>

namespace tilewright::distributed {

namespace {

constexpr int64_t kSegment = 512 << 10;      // bytes
constexpr int64_t kMostMessage = 256 << 20;  // bytes: counts of some engines have 31 bits

enum Phase : uint64_t { kReduce, kGather, kExchange, kBroadcast, kBarrier, kPhases };
static_assert(kPhases <= kTagsOfCall);

uint64_t tag_of(const Round& round, Phase phase) { return round.number * kTagsOfCall + phase; }

template <typename T>
void combine_as(ReduceOp op, T* into, const T* from, int64_t count) {
  switch (op) {
    case ReduceOp::kSum:
      for (int64_t i = 0; i < count; ++i) into[i] += from[i];
      return;
    case ReduceOp::kMin:
      for (int64_t i = 0; i < count; ++i) into[i] = std::min(into[i], from[i]);
      return;
    case ReduceOp::kMax:
      for (int64_t i = 0; i < count; ++i) into[i] = std::max(into[i], from[i]);
      return;
  }
}

// Messages of one step of a ring: a chunk leaves for the next rank while one comes from the rank before.
class RingStep {
 public:
  RingStep(const Round& round, Phase phase) : round_(round), tag_(tag_of(round, phase)) {}

  // Calls done(offset, bytes) for each segment of `in` when it is there. A segment lies at its place in `in`, or in
  // `in` repeated every two segments where that is scratch memory (`scratch`).
  Status run(std::span<const std::byte> out, std::span<std::byte> in, int64_t in_bytes,
             bool scratch, const std::function<void(int64_t offset, std::span<std::byte>)>& done) {
    const int64_t out_bytes = static_cast<int64_t>(out.size());
    const int64_t segments = (std::max(out_bytes, in_bytes) + kSegment - 1) / kSegment;
    Transport& t = round_.transport;
    const int next = (t.rank() + 1) % t.size(), before = (t.rank() + t.size() - 1) % t.size();
    for (int64_t k = 0; k <= segments; ++k) {
      if (k < segments) {
        const auto [b, e] = cut(k, in_bytes);
        arriving_[k % 2] = scratch ? in.subspan((k % 2) * kSegment, e - b) : in.subspan(b, e - b);
        const auto [ob, oe] = cut(k, out_bytes);
        if (e > b) { TW_ASSIGN(receives_[k % 2], t.receive(before, tag_, arriving_[k % 2])); }
        if (oe > ob) { TW_ASSIGN(sends_[k % 2], t.send(next, tag_, out.subspan(ob, oe - ob))); }
      }
      if (k > 0) TW_RETURN_IF_ERROR(finish(k - 1, in_bytes, done));
    }
    return {};
  }

 private:
  static std::pair<int64_t, int64_t> cut(int64_t k, int64_t bytes) {
    return {std::min(k * kSegment, bytes), std::min((k + 1) * kSegment, bytes)};
  }
  Status finish(int64_t k, int64_t in_bytes,
                const std::function<void(int64_t, std::span<std::byte>)>& done) {
    if (auto& receive = receives_[k % 2]) {
      TW_RETURN_IF_ERROR(receive->wait(round_.deadline));
      receive.reset();
      done(cut(k, in_bytes).first, arriving_[k % 2]);
    }
    if (auto& send = sends_[k % 2]) {
      TW_RETURN_IF_ERROR(send->wait(round_.deadline));
      send.reset();
    }
    return {};
  }

  const Round& round_;
  const uint64_t tag_;
  std::span<std::byte> arriving_[2];
  std::unique_ptr<Transfer> receives_[2], sends_[2];
};

// Sends and receives any number of messages at once.
class Exchange {
 public:
  explicit Exchange(const Round& round, Phase phase) : round_(round), tag_(tag_of(round, phase)) {}
  Status send(int to, std::span<const std::byte> data) {
    for (const auto piece : pieces(data)) {
      TW_ASSIGN(auto transfer, round_.transport.send(to, tag_, piece));
      under_way_.push_back(std::move(transfer));
    }
    return {};
  }
  Status receive(int from, std::span<std::byte> data) {
    for (const auto piece : pieces(data)) {
      TW_ASSIGN(auto transfer, round_.transport.receive(from, tag_, piece));
      under_way_.push_back(std::move(transfer));
    }
    return {};
  }
  Status finish() {
    for (auto& transfer : under_way_) TW_RETURN_IF_ERROR(transfer->wait(round_.deadline));
    under_way_.clear();
    return {};
  }

 private:
  template <typename T>
  static std::vector<std::span<T>> pieces(std::span<T> data) {
    std::vector<std::span<T>> all;
    for (; data.size() > kMostMessage; data = data.subspan(kMostMessage))
      all.push_back(data.first(kMostMessage));
    if (!data.empty()) all.push_back(data);
    return all;
  }
  const Round& round_;
  const uint64_t tag_;
  std::vector<std::unique_ptr<Transfer>> under_way_;
};

Elements chunk(const Elements& all, int rank, int ranks) {
  const ElementRange r = range_of_rank(all.count, rank, ranks);
  return all.part(r.begin, r.end);
}

}  // namespace

Elements Elements::part(int64_t begin, int64_t end) const {
  return {dtype, static_cast<std::byte*>(data) + begin * byte_size(dtype), end - begin};
}
std::span<std::byte> Elements::bytes() const {
  return {static_cast<std::byte*>(data), static_cast<size_t>(count * byte_size(dtype))};
}

ElementRange range_of_rank(int64_t count, int rank, int ranks) {
  // Borders at multiples of 16 elements keep slices aligned as vectors are.
  const auto border = [&](int64_t r) {
    return r == ranks ? count : std::min(count, (count / ranks * r + 15) / 16 * 16);
  };
  return {border(rank), border(rank + 1)};
}

void combine(ReduceOp op, Elements into, const void* from) {
  switch (into.dtype) {
    case DType::kFloat32:
      return combine_as(op, static_cast<float*>(into.data), static_cast<const float*>(from),
                        into.count);
    case DType::kFloat64:
      return combine_as(op, static_cast<double*>(into.data), static_cast<const double*>(from),
                        into.count);
    case DType::kInt32:
      return combine_as(op, static_cast<int32_t*>(into.data), static_cast<const int32_t*>(from),
                        into.count);
    case DType::kInt64:
      return combine_as(op, static_cast<int64_t*>(into.data), static_cast<const int64_t*>(from),
                        into.count);
    default: TW_CHECK(false);
  }
}

Status reduce_scatter(const Round& round, ReduceOp op, Elements all) {
  const int size = round.transport.size(), rank = round.transport.rank();
  std::vector<std::byte> scratch(2 * kSegment);
  // After step s a rank has added up chunk rank - 2 - s of s + 2 ranks; the last one is its own.
  for (int s = 0; s < size - 1; ++s) {
    const Elements out = chunk(all, (rank + 2 * size - 1 - s) % size, size),
                   in = chunk(all, (rank + 2 * size - 2 - s) % size, size);
    TW_RETURN_IF_ERROR(RingStep(round, kReduce)
                           .run(out.bytes(), scratch, static_cast<int64_t>(in.bytes().size()), true,
                                [&](int64_t offset, std::span<std::byte> segment) {
                                  const int64_t bytes = byte_size(all.dtype),
                                                begin = offset / bytes;
                                  const auto n = static_cast<int64_t>(segment.size()) / bytes;
                                  combine(op, in.part(begin, begin + n), segment.data());
                                }));
  }
  return {};
}

Status all_gather(const Round& round, Elements all) {
  const int size = round.transport.size(), rank = round.transport.rank();
  for (int s = 0; s < size - 1; ++s) {
    const Elements out = chunk(all, (rank + size - s) % size, size),
                   in = chunk(all, (rank + 2 * size - 1 - s) % size, size);
    TW_RETURN_IF_ERROR(RingStep(round, kGather)
                           .run(out.bytes(), in.bytes(), static_cast<int64_t>(in.bytes().size()),
                                false, [](int64_t, std::span<std::byte>) {}));
  }
  return {};
}

Status all_reduce(const Round& round, ReduceOp op, Elements all) {
  if (round.transport.size() == 1 || all.count == 0) return {};
  if (auto own = round.transport.all_reduce(op, all.dtype, all.data, all.count,
                                            tag_of(round, kReduce), round.deadline))
    return *own;
  TW_RETURN_IF_ERROR(reduce_scatter(round, op, all));
  return all_gather(round, all);
}

Status all_to_all(const Round& round, std::span<const std::byte> from, std::span<std::byte> to) {
  const int size = round.transport.size(), rank = round.transport.rank();
  const size_t piece = from.size() / static_cast<size_t>(size);
  Exchange exchange(round, kExchange);
  for (int k = 1; k < size; ++k) {
    const auto source = static_cast<size_t>((rank + size - k) % size),
               target = static_cast<size_t>((rank + k) % size);
    TW_RETURN_IF_ERROR(
        exchange.receive(static_cast<int>(source), to.subspan(source * piece, piece)));
    TW_RETURN_IF_ERROR(
        exchange.send(static_cast<int>(target), from.subspan(target * piece, piece)));
  }
  const size_t own = static_cast<size_t>(rank) * piece;
  if (piece > 0) std::memcpy(to.data() + own, from.data() + own, piece);
  return exchange.finish();
}

// A chain in segments, root first: each rank passes a segment on while the next one comes.
Status broadcast(const Round& round, std::span<std::byte> data, int root) {
  Transport& t = round.transport;
  const int place = (t.rank() + t.size() - root) % t.size();
  const int next = (t.rank() + 1) % t.size(), before = (t.rank() + t.size() - 1) % t.size();
  const bool receives = place > 0, sends = place + 1 < t.size();
  const uint64_t tag = tag_of(round, kBroadcast);
  std::unique_ptr<Transfer> passing;
  for (size_t at = 0; at < data.size(); at += kSegment) {
    const auto segment = data.subspan(at, std::min<size_t>(kSegment, data.size() - at));
    if (receives) {
      TW_ASSIGN(const auto arriving, t.receive(before, tag, segment));
      TW_RETURN_IF_ERROR(arriving->wait(round.deadline));
    }
    if (!sends) continue;
    if (passing) TW_RETURN_IF_ERROR(passing->wait(round.deadline));
    TW_ASSIGN(passing, t.send(next, tag, segment));
  }
  if (passing) TW_RETURN_IF_ERROR(passing->wait(round.deadline));
  return {};
}

// Dissemination (Hensgen, Finkel and Manber, 1988): after round k a rank has heard of 2^k others.
Status barrier(const Round& round) {
  const int size = round.transport.size(), rank = round.transport.rank();
  for (int distance = 1; distance < size; distance *= 2) {
    std::byte out{1}, in{};
    Exchange exchange(round, kBarrier);
    TW_RETURN_IF_ERROR(exchange.receive((rank + size - distance) % size, {&in, 1}));
    TW_RETURN_IF_ERROR(exchange.send((rank + distance) % size, {&out, 1}));
    TW_RETURN_IF_ERROR(exchange.finish());
  }
  return {};
}

// Returns the place of the node's sum among the leaves: that of its first one.
static size_t add_node(PartRange node, const std::vector<PartRange>& leaves, size_t& next,
                       const std::function<void(size_t, size_t)>& add) {
  if (leaves.at(next) == node) return next++;
  const auto [left, right] = children_of(node);
  const size_t into = add_node(left, leaves, next, add), from = add_node(right, leaves, next, add);
  add(into, from);
  return into;
}

void add_by_tree(const std::vector<PartRange>& leaves, int parts,
                 const std::function<void(size_t, size_t)>& add) {
  size_t next = 0;
  add_node({0, parts}, leaves, next, add);
  TW_CHECK(next == leaves.size());
}

// Each rank adds up its own range of all ranks' subtrees, in the order of the tree, then gives it to all.
Status exact_sum(const Round& round, std::span<const float* const> subtrees, std::span<float> sum,
                 int parts) {
  const int size = round.transport.size(), rank = round.transport.rank();
  const auto count = static_cast<int64_t>(sum.size());
  const Elements all{DType::kFloat32, sum.data(), count};
  const ElementRange own = range_of_rank(count, rank, size);
  const auto own_count = static_cast<size_t>(own.end - own.begin);
  std::vector<PartRange> leaves;
  std::vector<int> owners;  // by leaf
  for (int r = 0; r < size; ++r)
    for (const PartRange& node : subtrees_of(parts_of_rank(r, size, parts), parts))
      leaves.push_back(node), owners.push_back(r);
  std::vector<float> values(leaves.size() * own_count);
  const auto leaf = [&](size_t k) { return std::span(values).subspan(k * own_count, own_count); };
  Exchange exchange(round, kExchange);
  size_t mine = 0;
  for (size_t k = 0; k < leaves.size(); ++k)
    if (owners[k] != rank)
      TW_RETURN_IF_ERROR(exchange.receive(owners[k], std::as_writable_bytes(leaf(k))));
  for (size_t k = 0; k < leaves.size(); ++k) {
    if (owners[k] != rank) continue;
    const float* from = subtrees[mine++];
    std::copy(from + own.begin, from + own.end, leaf(k).begin());
    for (int r = 0; r < size; ++r) {
      const ElementRange theirs = range_of_rank(count, r, size);
      if (r != rank)
        TW_RETURN_IF_ERROR(
            exchange.send(r, std::as_bytes(std::span(from + theirs.begin, from + theirs.end))));
    }
  }
  TW_RETURN_IF_ERROR(exchange.finish());
  add_by_tree(leaves, parts, [&](size_t into, size_t from) {
    combine(ReduceOp::kSum, {DType::kFloat32, leaf(into).data(), static_cast<int64_t>(own_count)},
            leaf(from).data());
  });
  if (!leaves.empty()) std::copy(leaf(0).begin(), leaf(0).end(), sum.begin() + own.begin);
  return all_gather(round, all);
}

}  // namespace tilewright::distributed
