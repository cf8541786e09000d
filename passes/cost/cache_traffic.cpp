#include "passes/cost/cache_traffic.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ir/loops/compare.h"
#include "ir/loops/rewrite.h"
#include "passes/analysis/extents.h"
#include "passes/cost/loop_counts.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr double kLine = kCacheLine;

// A load or store, over all iterations of the loops that were left so far.
struct Access {
  const BufferNode* buffer = nullptr;
  // Of the first lane, and how far the others reach beyond it.
  Expr index;
  double reach = 0;
  double count = 1;   // different elements, as if none were the same for two iterations
  double run = 1;     // of those, side by side
  bool known = true;  // no element index is read from memory
};
// Of the loops of a statement.
struct Part {
  std::vector<Access> accesses;
  CacheTraffic traffic{};
};

class Traffic : public Visitor {
 public:
  explicit Traffic(const MachineDescription& m)
      : room_{0.75 * static_cast<double>(m.l1_bytes), 0.75 * static_cast<double>(m.l2_bytes),
              0.5 * static_cast<double>(m.l3_bytes)} {}
  using Visitor::visit;

  CacheTraffic of(const Stmt& s) {
    visit(s);
    const double all = footprint(part_.accesses);
    for (size_t i = 0; i < room_.size(); ++i)
      if (all <= room_[i]) part_.traffic[i] = 0;
    return part_.traffic;
  }
  void visit(const Stmt& s) override {
    if (const auto* f = s.as<For>()) return visit_loop(*f);
    if (const auto* st = s.as<Store>()) add(*st->buffer, st->indices[0]);
    if (const auto* t = s.as<DotTile>())
      for (const TileOperand* x : {&t->sum, &t->a, &t->b}) add_tile(*x, *t);
    if (!s.as<Seq>() && !s.as<Allocate>() && !s.as<If>()) seen_.clear();
    Visitor::visit(s);
  }
  void visit(const Expr& e) override {
    if (const auto* l = e.as<Load>()) add(*l->buffer, l->indices[0]);
    Visitor::visit(e);
  }

 private:
  void add(const BufferNode& b, const Expr& index) {
    if (b.scope == Scope::kLocal) return;
    Access a{.buffer = &b, .index = index};
    if (const auto* r = index.as<Ramp>()) {
      const auto stride = as_int(r->stride);
      a.count = index.lanes();
      a.index = r->base;
      a.known = stride && r->base.lanes() == 1;
      a.reach = a.known ? static_cast<double>(std::abs(*stride) * (index.lanes() - 1)) : 0;
      a.run = a.known && *stride == 1 ? a.count : 1;
    } else if (index.lanes() > 1) {
      a.count = index.lanes();
      a.known = false;
    }
    keep(std::move(a));
  }
  void add_tile(const TileOperand& x, const DotTile& t) {
    const double bytes = byte_size(x.buffer->dtype), lines = static_cast<double>(t.rows);
    keep({.buffer = x.buffer.get(),
          .index = x.index,
          .count = lines * kLine / bytes,
          .run = kLine / bytes});
  }
  void keep(Access a) {
    const uint64_t key = structural_hash(a.index) * 31 + reinterpret_cast<uintptr_t>(a.buffer);
    if (seen_.insert(key).second) part_.accesses.push_back(std::move(a));
  }

  void visit_loop(const For& f) {
    const int64_t count = iterations(f, ranges_);
    Part outer = std::exchange(part_, {});
    auto seen = std::exchange(seen_, {});
    ranges_.set(f.var, 1);
    visit(f.body);
    const double body = footprint(part_.accesses);
    for (Access& a : part_.accesses) extend(a, f.var, count);
    ranges_.set(f.var, count);
    const double all = footprint(part_.accesses);
    for (size_t i = 0; i < room_.size(); ++i) {
      const bool once = body <= room_[i];
      part_.traffic[i] = once ? all : static_cast<double>(count) * part_.traffic[i];
      outer.traffic[i] += part_.traffic[i];
    }
    std::move(part_.accesses.begin(), part_.accesses.end(), std::back_inserter(outer.accesses));
    part_ = std::move(outer);
    seen_ = std::move(seen);
  }
  // Over one more loop.
  void extend(Access& a, const Var& v, int64_t count) {
    if (!uses_var(a.index, v)) return;
    ranges_.set(v, 1, 1);
    const auto second = interval(a.index, ranges_).low;
    ranges_.set(v, 1);
    const auto first = interval(a.index, ranges_).low;
    if (first && second && static_cast<double>(*second - *first) == a.run)
      a.run *= static_cast<double>(count);
    a.count *= static_cast<double>(count);
  }

  // Bytes of whole lines that the accesses touch together.
  double footprint(const std::vector<Access>& accesses) const {
    struct Touched {
      double low = 0, high = 0, bytes = 0, lines = 0;
      bool known = true;
    };
    std::unordered_map<const BufferNode*, Touched> buffers;
    for (const Access& a : accesses) {
      const Interval i = interval(a.index, ranges_);
      const double each = byte_size(a.buffer->dtype);
      auto [it, fresh] = buffers.try_emplace(a.buffer);
      Touched& t = it->second;
      t.known &= a.known && i.low && i.high;
      t.lines += a.count / a.run * std::max(kLine, a.run * each);
      if (!t.known) continue;
      const double low = static_cast<double>(*i.low), high = static_cast<double>(*i.high) + a.reach;
      t.low = fresh ? low : std::min(t.low, low);
      t.high = fresh ? high : std::max(t.high, high);
    }
    double bytes = 0;
    for (const auto& [b, t] : buffers) {
      const auto size = static_cast<double>(bytes_of(*b));
      double most = size > 0 ? std::min(t.lines, size + kLine) : t.lines;
      if (t.known) most = std::min(most, (t.high - t.low + 1) * byte_size(b->dtype) + kLine);
      bytes += most;
    }
    return bytes;
  }

  const CacheTraffic room_;  // what of each cache there is for data that is used again
  Ranges ranges_;            // loops that were left: all iterations; those around: the first
  Part part_;
  std::unordered_set<uint64_t> seen_;  // accesses of the part
};

}  // namespace

CacheTraffic cache_traffic(const MachineDescription& machine, const Stmt& flat_loops) {
  return Traffic(machine).of(flat_loops);
}

}  // namespace tilewright::passes
