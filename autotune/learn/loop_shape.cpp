#include "autotune/learn/loop_shape.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "ir/loops/compare.h"
#include "ir/loops/rewrite.h"
#include "passes/analysis/extents.h"
#include "passes/cost/loop_counts.h"

namespace tilewright::autotune {

using namespace ir;

InstructionMix& InstructionMix::add(const InstructionMix& more, double times) {
  arithmetic += times * more.arithmetic, products += times * more.products;
  divisions += times * more.divisions, costly += times * more.costly;
  loads += times * more.loads, elements += times * more.elements;
  gathers += times * more.gathers, stores += times * more.stores;
  masked += times * more.masked, branches += times * more.branches;
  lanes += times * more.lanes;
  line_strides += times * more.line_strides, page_strides += times * more.page_strides;
  return *this;
}

namespace {

class Shape : public Visitor {
 public:
  explicit Shape(const MachineDescription& m) : m_(m) {}
  using Visitor::visit;

  LoopShape of(const Stmt& s) {
    visit(s);
    shape_.mix = here_.mix;
    const double all = std::max(here_.mix.all(), 1.0);
    shape_.shared = here_.shared / all;
    shape_.streamed = here_.streamed / std::max(here_.mix.stores, 1.0);
    return shape_;
  }

  void visit(const Stmt& s) override {
    if (const auto* f = s.as<For>()) return visit_loop(*f);
    if (const auto* i = s.as<If>()) return visit_if(*i);
    if (const auto* a = s.as<Allocate>()) {
      const auto bytes = static_cast<double>(passes::bytes_of(*a->buffer));
      (a->buffer->scope == Scope::kLocal ? shape_.register_bytes : shape_.workspace_bytes) += bytes;
    }
    if (const auto* t = s.as<DotTile>()) {
      here_.mix.arithmetic += weight_ * static_cast<double>(t->rows);
      here_.mix.products += weight_ * static_cast<double>(t->rows);
      here_.mix.lanes += weight_ * static_cast<double>(t->rows);
    }
    counted_.clear();
    if (const auto* st = s.as<Store>()) visit_store(*st);
    Visitor::visit(s);
  }
  void visit(const Expr& e) override {
    if (!counted_.insert(e.get()).second || e.as<Ramp>()) return;
    if (const auto* l = e.as<Load>()) {
      access(*l->buffer, l->indices[0], l->type, false);
      here_.mix.masked += l->mask ? weight_ : 0;
    } else if (e.type() != ScalarType{}) {
      count(e);
    }
    Visitor::visit(e);
  }

 private:
  // What is known of the body of one loop; of a whole kernel outside all loops.
  struct Region {
    InstructionMix mix;
    const For* loop = nullptr;
    bool has_loop = false;
    double runs = 1, shared = 0, streamed = 0, depth = 0, parallel_work = 0;
    // By place: what is added to, what stays the same, and what was read before.
    std::unordered_set<uint64_t> sums, held, read;
    double sum_vectors = 0, held_vectors = 0;
  };

  double vectors(ScalarType t) const {
    return std::ceil(static_cast<double>(t.lanes) * byte_size(t.dtype) / m_.vector_bytes);
  }
  void count(const Expr& e) {
    const auto* b = e.as<Binary>();
    const auto* u = e.as<Unary>();
    if (!b && !u && !e.as<Select>() && !e.as<Cast>() && !e.as<Dot>() && !e.as<ReduceLanes>() &&
        !e.as<EveryLane>() && !e.as<Interleave>())
      return;
    const double n = weight_ * vectors(e.type());
    here_.mix.arithmetic += n;
    here_.mix.lanes += weight_ * e.lanes() * byte_size(e.dtype()) / m_.vector_bytes;
    if ((b && b->op == BinaryOp::kMul) || e.as<Dot>()) here_.mix.products += n;
    if (b && (b->op == BinaryOp::kDiv || b->op == BinaryOp::kFloorMod)) here_.mix.divisions += n;
    if ((u && is_costly(u->op)) || (b && b->op == BinaryOp::kPow)) here_.mix.costly += n;
  }
  // Of a load or store; what does not move with the loop is held in a register.
  void access(const BufferNode& buffer, const Expr& index, ScalarType type, bool is_store) {
    const double n = vectors(type);
    const uint64_t place = structural_hash(index) * 31 + reinterpret_cast<uintptr_t>(&buffer);
    if (here_.loop && !uses_var(index, here_.loop->var)) {
      if ((is_store ? here_.sums : here_.held).insert(place).second)
        (is_store ? here_.sum_vectors : here_.held_vectors) += n;
      return;
    }
    if (!is_store && !here_.read.insert(place).second) return;
    const auto* ramp = index.as<Ramp>();
    InstructionMix& mix = here_.mix;
    if (is_store)
      mix.stores += weight_ * n;
    else if (type.lanes == 1)
      mix.elements += weight_;
    else if (ramp && is_one(ramp->stride))
      mix.loads += weight_ * n;
    else
      mix.gathers += weight_ * type.lanes;
    const double step = here_.loop ? stride(index) * byte_size(buffer.dtype) : 0;
    mix.line_strides += step >= 64 ? weight_ : 0;
    mix.page_strides += step >= 4096 ? weight_ : 0;
  }
  // Elements from one iteration of the loop to the next; 0 where not known.
  double stride(const Expr& index) {
    const Expr& base = index.as<Ramp>() ? index.as<Ramp>()->base : index;
    ranges_.set(here_.loop->var, 1, 1);
    const auto second = interval(base, ranges_).low;
    ranges_.set(here_.loop->var, 1);
    const auto first = interval(base, ranges_).low;
    ranges_.set(here_.loop->var, passes::iterations(*here_.loop, ranges_));
    return first && second ? std::abs(static_cast<double>(*second - *first)) : 0;
  }
  void visit_store(const Store& s) {
    ++shape_.statements;
    access(*s.buffer, s.indices[0], s.value.type(), true);
    here_.mix.masked += s.mask ? weight_ : 0;
    here_.streamed += s.store_kind == StoreKind::kCached ? 0 : weight_ * vectors(s.value.type());
  }
  void visit_if(const If& i) {
    here_.mix.branches += weight_;
    const double outer = weight_, part = passes::likelihood(i.condition, ranges_);
    weight_ = outer * part;
    visit(i.then);
    weight_ = outer * (1 - part);
    if (i.otherwise) visit(i.otherwise);
    weight_ = outer;
  }
  void visit_loop(const For& f) {
    const auto count = static_cast<double>(passes::iterations(f, ranges_));
    Region outer = std::exchange(here_, {});
    here_.loop = &f;
    here_.runs = outer.runs * weight_ * count;
    ranges_.set(f.var, static_cast<int64_t>(count));
    const double weight = std::exchange(weight_, 1);
    visit(f.body);
    weight_ = weight;
    outer.has_loop = true;
    if (!here_.has_loop) {
      ++shape_.innermost_loops;
      const InnermostLoop loop{here_.mix, count, here_.runs, here_.sum_vectors, here_.held_vectors};
      if (loop.weight() > shape_.hottest.weight()) shape_.hottest = loop;
    }
    if (f.loop_kind == LoopKind::kParallel) {
      ++shape_.parallel_loops;
      here_.shared = here_.mix.all();
      if (const double work = here_.runs * here_.mix.all(); work > most_parallel_)
        most_parallel_ = work, shape_.tasks = count;
    }
    outer.depth = std::max(outer.depth, here_.depth + 1);
    shape_.depth = std::max(shape_.depth, outer.depth);
    outer.mix.add(here_.mix, weight_ * count);
    outer.shared += weight_ * count * here_.shared;
    outer.streamed += weight_ * count * here_.streamed;
    here_ = std::move(outer);
  }

  const MachineDescription& m_;
  LoopShape shape_;
  Ranges ranges_;
  Region here_;
  double weight_ = 1;  // how often a statement runs for each time that its region does
  double most_parallel_ = 0;
  std::unordered_set<const ExprNode*> counted_;  // of one statement
};

}  // namespace

LoopShape shape_of(const MachineDescription& machine, const Stmt& flat_loops) {
  return Shape(machine).of(flat_loops);
}

}  // namespace tilewright::autotune
