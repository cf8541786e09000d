#include "tests/runtime/distributed/comm_suite.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace tilewright::distributed {

namespace {

// What a rank gives for an element of a call: any rank can say it.
int64_t given(uint64_t call, int rank, int64_t i) {
  uint64_t z = call * 0x9E3779B97F4A7C15 + static_cast<uint64_t>(rank) * 0xBF58476D1CE4E5B9 +
               static_cast<uint64_t>(i) * 0x94D049BB133111EB;
  z = (z ^ (z >> 31)) * 0xD6E8FEB86659FD93;
  return static_cast<int64_t>(z >> 44) - (1 << 19);  // 20 bits: sums of floats are exact
}
// The same as a float whose sums depend on their order.
float rough(uint64_t call, int part, int64_t i) {
  return static_cast<float>(given(call, part, i)) * 1.1f +
         1.0f / static_cast<float>(1 + (given(call, part, i + 1) & 1023));
}

class Suite {
 public:
  Suite(Comm& comm, uint64_t seed, int64_t most)
      : comm_(comm), random_(seed), most_(most), ranks_(comm.size()) {}

  std::string run(int calls) {
    for (call_ = 0; call_ < static_cast<uint64_t>(calls) && wrong_.empty(); ++call_) {
      const Status status = one();
      if (!status.ok()) wrong_ = status.error().to_string();
      if (!wrong_.empty()) wrong_ = "call " + std::to_string(call_) + ": " + wrong_;
    }
    return wrong_;
  }

 private:
  int64_t draw(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_() % static_cast<uint64_t>(most - least + 1));
  }
  int64_t draw_count() {
    switch (draw(0, 5)) {
      case 0: return draw(0, 1);
      case 1: return 16 * draw(1, std::max<int64_t>(most_ / 16, 1));
      case 2: return draw(1, most_);
      default: return draw(1, 64);
    }
  }
  Status one() {
    switch (draw(0, 7)) {
      case 0: return reduce(true);
      case 1: return reduce(false);
      case 2: return gather();
      case 3: return exchange();
      case 4: return broadcast();
      case 5: return exact();
      case 6: return messages();
      default: return texts();
    }
  }
  void expect(bool right, const std::string& what) {
    if (!right && wrong_.empty()) wrong_ = what;
  }

  template <typename T>
  Status reduce_as(DType dtype, bool whole) {
    const int64_t count = draw_count();
    const auto op = static_cast<ReduceOp>(draw(0, 2));
    std::vector<T> values(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
      values[static_cast<size_t>(i)] = static_cast<T>(given(call_, comm_.rank(), i));
    const Elements all{dtype, values.data(), count};
    if (whole) {
      TW_RETURN_IF_ERROR(comm_.all_reduce(op, all, "suite"));
    } else {
      TW_RETURN_IF_ERROR(comm_.run(
          "reduce_scatter", 0, [=](const Round& round) { return reduce_scatter(round, op, all); }));
    }
    const ElementRange mine =
        whole ? ElementRange{0, count} : range_of_rank(count, comm_.rank(), ranks_);
    for (int64_t i = mine.begin; i < mine.end; ++i) {
      int64_t is = given(call_, 0, i);
      for (int r = 1; r < ranks_; ++r) {
        const int64_t g = given(call_, r, i);
        is = op == ReduceOp::kSum   ? is + g
             : op == ReduceOp::kMin ? std::min(is, g)
                                    : std::max(is, g);
      }
      expect(values[static_cast<size_t>(i)] == static_cast<T>(is),
             std::string(whole ? "all_reduce" : "reduce_scatter") + " of " + std::to_string(count) +
                 " " + std::string(name(dtype)) + ", element " + std::to_string(i));
    }
    return {};
  }
  Status reduce(bool whole) {
    switch (draw(0, 3)) {
      case 0: return reduce_as<float>(DType::kFloat32, whole);
      case 1: return reduce_as<double>(DType::kFloat64, whole);
      case 2: return reduce_as<int32_t>(DType::kInt32, whole);
      default: return reduce_as<int64_t>(DType::kInt64, whole);
    }
  }
  Status gather() {
    const int64_t count = draw_count();
    std::vector<int64_t> values(static_cast<size_t>(count), -1);
    const ElementRange mine = range_of_rank(count, comm_.rank(), ranks_);
    for (int64_t i = mine.begin; i < mine.end; ++i)
      values[static_cast<size_t>(i)] = given(call_, 0, i);
    TW_RETURN_IF_ERROR(comm_.all_gather({DType::kInt64, values.data(), count}, "suite"));
    for (int64_t i = 0; i < count; ++i)
      expect(values[static_cast<size_t>(i)] == given(call_, 0, i),
             "all_gather of " + std::to_string(count) + ", element " + std::to_string(i));
    return {};
  }
  Status exchange() {
    const int64_t piece = draw_count() / ranks_;
    std::vector<int64_t> from(static_cast<size_t>(piece * ranks_)), to(from.size());
    for (int64_t i = 0; i < piece * ranks_; ++i)
      from[static_cast<size_t>(i)] = given(call_, comm_.rank(), i);
    TW_RETURN_IF_ERROR(comm_.run("all_to_all", 0, [&](const Round& round) {
      return all_to_all(round, std::as_bytes(std::span(from)),
                        std::as_writable_bytes(std::span(to)));
    }));
    for (int64_t i = 0; i < piece * ranks_; ++i)
      expect(to[static_cast<size_t>(i)] ==
                 given(call_, static_cast<int>(i / std::max<int64_t>(piece, 1)),
                       comm_.rank() * piece + i % std::max<int64_t>(piece, 1)),
             "all_to_all of " + std::to_string(piece) + ", element " + std::to_string(i));
    return {};
  }
  Status broadcast() {
    const int64_t count = draw_count();
    const int root = static_cast<int>(draw(0, ranks_ - 1));
    std::vector<int64_t> values(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
      values[static_cast<size_t>(i)] = given(call_, comm_.rank(), i);
    TW_RETURN_IF_ERROR(comm_.broadcast(std::as_writable_bytes(std::span(values)), root, "suite"));
    for (int64_t i = 0; i < count; ++i)
      expect(values[static_cast<size_t>(i)] == given(call_, root, i),
             "broadcast of " + std::to_string(count) + ", element " + std::to_string(i));
    return {};
  }

  // The sum by the tree, written once more: whole subtrees from halves.
  std::vector<float> by_tree(PartRange node, int64_t count) const {
    std::vector<float> sum(static_cast<size_t>(count));
    if (node.count() == 1) {
      for (int64_t i = 0; i < count; ++i) sum[static_cast<size_t>(i)] = rough(call_, node.begin, i);
      return sum;
    }
    int left = 1;
    while (left * 2 < node.count()) left *= 2;
    sum = by_tree({node.begin, node.begin + left}, count);
    const std::vector<float> right = by_tree({node.begin + left, node.end}, count);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += right[i];
    return sum;
  }
  Status exact() {
    const int parts = static_cast<int>(draw(1, 9));
    const int64_t count = std::min<int64_t>(draw_count(), most_ / 8 + 1);
    std::vector<std::vector<float>> subtrees;
    for (const PartRange& node : subtrees_of(parts_of_rank(comm_.rank(), ranks_, parts), parts))
      subtrees.push_back(by_tree(node, count));
    std::vector<const float*> pointers;
    for (const auto& s : subtrees) pointers.push_back(s.data());
    // In place of the first subtree, or elsewhere.
    std::vector<float> other(static_cast<size_t>(count));
    const std::span<float> sum = draw(0, 1) == 1 && !subtrees.empty() ? subtrees[0] : other;
    TW_RETURN_IF_ERROR(comm_.run("exact_sum", 0, [&](const Round& round) {
      return exact_sum(round, pointers, sum, parts);
    }));
    const std::vector<float> is = by_tree({0, parts}, count);
    expect(count == 0 || std::memcmp(sum.data(), is.data(), sum.size_bytes()) == 0,
           "exact_sum of " + std::to_string(count) + " over " + std::to_string(parts) + " parts");
    return {};
  }

  // Everybody sends one message to rank 0, which takes them as they come.
  Status messages() {
    int64_t mine = given(call_, comm_.rank(), 0);
    std::vector<int64_t> got(static_cast<size_t>(ranks_));
    got[0] = given(call_, 0, 0);
    TW_RETURN_IF_ERROR(comm_.run("messages", 8, [&](const Round& round) -> Status {
      Transport& t = round.transport;
      const uint64_t tag = round.number * 5 + 2;
      if (t.rank() != 0) {
        TW_ASSIGN(const auto sent, t.send(0, tag, std::as_bytes(std::span(&mine, 1))));
        TW_ASSIGN(const int to, sent->wait(round.deadline));
        expect(to == 0, "send to rank 0 returns " + std::to_string(to));
        return {};
      }
      for (int k = 1; k < t.size(); ++k) {
        int64_t value = 0;
        TW_ASSIGN(const auto arriving,
                  t.receive(kAnyRank, tag, std::as_writable_bytes(std::span(&value, 1))));
        TW_ASSIGN(const int from, arriving->wait(round.deadline));
        got[static_cast<size_t>(from)] = value;
      }
      return {};
    }));
    for (int r = 0; comm_.rank() == 0 && r < ranks_; ++r)
      expect(got[static_cast<size_t>(r)] == given(call_, r, 0),
             "message of rank " + std::to_string(r));
    return comm_.barrier("suite");
  }
  Status texts() {
    const auto text = [&](int rank) {
      const int64_t length = (given(call_, rank, 7) & 63) - 8;
      return std::string(static_cast<size_t>(std::max<int64_t>(length, 0)),
                         static_cast<char>('a' + rank));
    };
    TW_ASSIGN(const auto all, comm_.gather_texts(text(comm_.rank()), "suite"));
    for (int r = 0; r < ranks_; ++r)
      expect(all.at(static_cast<size_t>(r)) == text(r), "text of rank " + std::to_string(r));
    return {};
  }

  Comm& comm_;
  std::mt19937_64 random_;
  const int64_t most_;
  const int ranks_;
  uint64_t call_ = 0;
  std::string wrong_;
};

}  // namespace

std::string run_comm_suite(Comm& comm, uint64_t seed, int calls, int64_t most_elements) {
  return Suite(comm, seed, most_elements).run(calls);
}

}  // namespace tilewright::distributed
