#include "passes/cost/core_cycles.h"

#include <algorithm>
#include <cmath>
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

// Instructions by the ports that they take. A multiply-add is one, and so is a load that goes to
// all lanes.
struct Work {
  double arithmetic = 0, loads = 0, stores = 0;
  double count() const { return arithmetic + loads + stores; }
};

// What is known of the statements of one loop body, loops inside it apart.
struct Region {
  // Null: outside all loops.
  const For* loop = nullptr;
  Work work;
  double inner = 0;                            // cycles of the loops inside
  std::unordered_set<uint64_t> read;           // loads that are done once
  std::unordered_map<uint64_t, double> held;   // registers of what stays the same, by place
  std::unordered_map<uint64_t, double> steps;  // additions to a sum, one after the other
};

class CoreCycles : public Visitor {
 public:
  explicit CoreCycles(const MachineDescription& m) : m_(m) {}
  using Visitor::visit;

  double of(const Stmt& s) {
    Region outermost;
    region_ = &outermost;
    visit(s);
    return outermost.inner + throughput(outermost.work);
  }
  void visit(const Stmt& s) override {
    if (const auto* f = s.as<For>()) return visit_loop(*f);
    if (const auto* st = s.as<Store>()) return visit_store(*st);
    if (const auto* w = s.as<While>()) return visit_while(*w);
    if (const auto* i = s.as<If>()) return visit_if(*i);
    // A matrix unit takes a cycle for each row of a tile, whatever its width.
    if (const auto* t = s.as<DotTile>()) {
      region_->work.arithmetic += weight_ * static_cast<double>(t->rows) * m_.speed.fma_ports;
      return;
    }
    if (s.as<Prefetch>()) return;  // a hint, in a slot that is free
    counted_.clear();
    Visitor::visit(s);
  }
  void visit(const Expr& e) override {
    if (!counted_.insert(e.get()).second) return;
    if (const auto* l = e.as<Load>()) return visit_load(*l);
    if (e.as<Ramp>()) return;  // an address, or made before the loop
    region_->work.arithmetic += weight_ * instructions(e);
    Visitor::visit(e);
  }

 private:
  static constexpr double kSeries = 12;  // instructions of a costly operation, about
  static constexpr double kDivision = 4;

  double vectors(ScalarType t) const {
    return std::ceil(static_cast<double>(t.lanes) * byte_size(t.dtype) / m_.vector_bytes);
  }
  // Of the node alone.
  double instructions(const Expr& e) const {
    const double n = vectors(e.type());
    // Addresses and counters go through ports of their own.
    if (e.type() == ScalarType{}) return 0;
    if (const auto* u = e.as<Unary>()) return n * (is_costly(u->op) ? kSeries : 1);
    if (const auto* b = e.as<Binary>()) {
      const bool divides = b->op == BinaryOp::kDiv || b->op == BinaryOp::kFloorMod;
      if (b->op == BinaryOp::kPow) return n * 2 * kSeries;
      if (b->op == BinaryOp::kMul && fused_.count(e.get())) return 0;
      return n * (divides ? kDivision : 1);
    }
    if (const auto* r = e.as<ReduceLanes>())
      return vectors(r->value.type()) + 2 * std::log2(std::max(m_.lanes(byte_size(e.dtype())), 1));
    if (const auto* d = e.as<Dot>())
      return n * (d->a.dtype() == DType::kUInt8 && !m_.has_byte_dots() ? 3 : 1);
    if (e.as<Select>() || e.as<Cast>() || e.as<EveryLane>() || e.as<Interleave>()) return n;
    return 0;
  }
  // Cycles of straight-line code: ports, and what a core decodes.
  double throughput(const Work& w) const {
    constexpr double kLoads = 2, kStores = 1, kDecoded = 4;
    return std::max({w.arithmetic / m_.speed.fma_ports, w.loads / kLoads, w.stores / kStores,
                     w.count() / kDecoded});
  }

  static uint64_t place(const BufferNode* b, const Expr& index) {
    return structural_hash(index) * 31 + reinterpret_cast<uintptr_t>(b);
  }
  bool moves(const Expr& index) const {
    return !region_->loop || uses_var(index, region_->loop->var);
  }
  // What stays the same is held in registers, and read once for all iterations.
  bool hold(const BufferNode* b, const Expr& index, ScalarType t) {
    if (moves(index)) return false;
    region_->held.emplace(place(b, index), vectors(t));
    return true;
  }

  void visit_load(const Load& l) {
    const Expr& index = l.indices[0];
    const auto* ramp = index.as<Ramp>();
    if (l.mask) visit(l.mask);
    if (hold(l.buffer.get(), index, l.type) ||
        !region_->read.insert(place(l.buffer.get(), index)).second)
      return;
    if (l.type.lanes == 1 || (ramp && is_one(ramp->stride))) {
      region_->work.loads += weight_ * vectors(l.type);
    } else {  // a gather reads lane by lane
      region_->work.loads += weight_ * l.type.lanes;
      if (!ramp) visit(index);
    }
  }
  void visit_store(const Store& s) {
    counted_.clear();
    fused_.clear();
    for_each_expr(s.value, [&](const Expr& e) {  // a product and the sum that takes it are one
      const auto* sum = e.as<Binary>();
      if (!sum || (sum->op != BinaryOp::kAdd && sum->op != BinaryOp::kSub)) return;
      const Expr& product = sum->b.as<Binary>() ? sum->b : sum->a;
      if (m_.has_fma && is_float(e.dtype())) fused_.insert(product.get());
    });
    const Expr& index = s.indices[0];
    const auto* ramp = index.as<Ramp>();
    visit(s.value);
    if (s.mask) visit(s.mask);
    if (const uint64_t at = place(s.buffer.get(), index); !moves(index)) {
      hold(s.buffer.get(), index, s.value.type());
      const auto* sum = s.value.as<Binary>();
      const auto* before = sum ? sum->a.as<Load>() : nullptr;
      if (before && before->buffer == s.buffer) ++region_->steps[at];
      return;
    }
    region_->work.stores +=
        weight_ * (s.value.lanes() == 1 || (ramp && is_one(ramp->stride)) ? vectors(s.value.type())
                                                                          : s.value.lanes());
  }
  void visit_if(const If& i) {
    const double outer = weight_, part = likelihood(i.condition, ranges_);
    weight_ = outer * part;
    visit(i.then);
    weight_ = outer * (1 - part);
    if (i.otherwise) visit(i.otherwise);
    weight_ = outer;
  }
  void visit_while(const While& w) {
    Region* outer = region_;
    Region inside;
    region_ = &inside;
    visit(w.condition);
    visit(w.body);
    region_ = outer;
    region_->inner += weight_ * kUnknownExtent * (throughput(inside.work) + inside.inner);
  }
  void visit_loop(const For& f) {
    Region* outer = region_;
    Region body;
    body.loop = &f;
    region_ = &body;
    const auto count = static_cast<double>(iterations(f, ranges_));
    ranges_.set(f.var, static_cast<int64_t>(count));
    const double weight = std::exchange(weight_, 1);
    visit(f.body);
    weight_ = weight;
    region_ = outer;
    double held = 0, chain = 0;
    for (const auto& [at, n] : body.held) held += n;
    for (const auto& [at, n] : body.steps) chain = std::max(chain, n * m_.speed.fma_latency_cycles);
    constexpr double kSpare = 4;  // registers for what passes by
    const double spilled = std::max(0.0, held - (m_.vector_registers - kSpare));
    body.work.loads += spilled;
    body.work.stores += std::min(spilled, static_cast<double>(body.steps.size()));
    constexpr double kLoopControl = 1;  // an addition, and a branch that goes with its comparison
    body.work.arithmetic += kLoopControl / m_.speed.fma_ports;
    // Sums of short loops overlap with those of the next run of the loop.
    constexpr double kWindow = 256;  // instructions that a core looks ahead
    const double overlap = std::max(1.0, kWindow / (count * std::max(body.work.count(), 1.0)));
    const double each = std::max(throughput(body.work), chain / overlap) + body.inner;
    const double share = f.loop_kind == LoopKind::kParallel
                             ? std::ceil(count / std::min(count, std::max<double>(m_.threads, 1)))
                             : count;
    outer->inner += weight_ * share * each;
    outer->work.loads += weight_ * std::min(held, static_cast<double>(m_.vector_registers));
  }

  const MachineDescription& m_;
  Ranges ranges_;
  Region* region_ = nullptr;
  double weight_ = 1;  // how often a statement runs for each time that its region does
  std::unordered_set<const ExprNode*> counted_, fused_;  // of one statement
};

}  // namespace

double core_cycles(const MachineDescription& machine, const Stmt& flat_loops) {
  return CoreCycles(machine).of(flat_loops);
}

}  // namespace tilewright::passes
