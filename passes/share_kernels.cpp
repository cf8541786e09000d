// Kernels that differ in numbers alone become one: the numbers, such as the scales of a quantized
// model's layers, are read from their constants instead of standing in the code.
#include <cmath>
#include <map>

#include "ir/loops/compare.h"
#include "ir/loops/rewrite.h"
#include "passes/planner.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// The buffers that are read other than as an operand of plain arithmetic in a block that sums
// nothing: in an index, a condition, a power or a product that a schedule may make tiles of, the
// number decides what code there is.
class FindFixed : public Visitor {
 public:
  using Visitor::visit;
  void visit(const Stmt& s) override {
    if (const auto* st = s.as<Store>()) {
      visit_in(st->value, !sums_);
      for (const Expr& i : st->indices) visit_in(i, false);
      if (st->mask) visit_in(st->mask, false);
      return;
    }
    const auto* b = s.as<Block>();
    const bool before = sums_;
    sums_ |= b && b->init;
    Visitor::visit(s);
    sums_ = before;
  }
  void visit(const Expr& e) override {
    const bool here = operand_;
    if (const auto* l = e.as<Load>()) {
      if (!here) fixed.insert(l->buffer.get());
      for (const Expr& i : l->indices) visit_in(i, false);
      if (l->mask) visit_in(l->mask, false);
    } else if (const auto* b = e.as<Binary>(); b && is_plain(*b)) {
      visit_in(b->a, !sums_);
      visit_in(b->b, !sums_);
      Expr by = b->b;
      while (const auto* c = by.as<Cast>()) by = c->value;
      if (const auto* l = b->op == BinaryOp::kDiv ? by.as<Load>() : nullptr)
        divisors.insert(l->buffer.get());
    } else if (e.kind() == NodeKind::kCast) {
      Visitor::visit(e);
    } else {
      operand_ = false;
      Visitor::visit(e);
    }
    operand_ = here;
  }

  std::set<const BufferNode*> fixed, divisors;

 private:
  static bool is_plain(const Binary& b) {
    return b.op == BinaryOp::kAdd || b.op == BinaryOp::kSub || b.op == BinaryOp::kMul ||
           (b.op == BinaryOp::kDiv && is_float(b.a.dtype()));
  }
  void visit_in(const Expr& e, bool operand) {
    const bool before = operand_;
    operand_ = operand;
    visit(e);
    operand_ = before;
  }

  bool sums_ = false, operand_ = false;
};

// A step with all of its numbers as parameters.
struct OpenStep {
  PlanStep* step;
  GroupKernel group;
  std::vector<std::optional<double>> numbers;  // of each parameter that is one
  std::vector<bool> constants;                 // is the parameter's content known?
};

class ShareKernels {
 public:
  explicit ShareKernels(GraphPlan& g) : g_(g) {}

  void run() {
    std::multimap<uint64_t, size_t> by_hash;
    std::vector<std::vector<OpenStep>> alike;
    for (PlanStep& s : g_.steps) {
      if (s.kind != PlanStep::kKernel) continue;
      OpenStep open = opened(s);
      if (open.numbers.empty()) continue;
      const uint64_t hash = structural_hash(open.group.kernel);
      size_t found = alike.size();
      for (auto [it, end] = by_hash.equal_range(hash); it != end; ++it) {
        const OpenStep& other = alike[it->second][0];
        if (other.constants == open.constants &&
            structurally_equal(other.group.kernel, open.group.kernel))
          found = it->second;
      }
      if (found == alike.size()) {
        alike.emplace_back();
        by_hash.emplace(hash, found);
      }
      alike[found].push_back(std::move(open));
    }
    for (std::vector<OpenStep>& steps : alike)
      if (steps.size() > 1) share(steps);
  }

 private:
  OpenStep opened(PlanStep& s) const {
    std::set<ValueId> all;
    for (size_t n : s.nodes)
      for (ValueId v : g_.graph.nodes[n].inputs)
        if (v != kNone && is_number(v)) all.insert(v);
    if (all.empty()) return {&s, {}, {}, {}};
    OpenStep open{&s, build_group_kernel(g_.graph, s.nodes, g_.uses, g_.aliases, all), {}, {}};
    for (ValueId v : open.group.params) {
      open.constants.push_back(g_.graph.value(v).constant != nullptr);
      open.numbers.push_back(all.count(v) ? std::optional(number_at(*g_.graph.value(v).constant, 0))
                                          : std::nullopt);
    }
    return open;
  }
  bool is_number(ValueId v) const {
    const Value& value = g_.graph.value(v);
    return value.constant && tilewright::element_count(value.constant->shape) == 1 &&
           value.type.dtype != DType::kInt64 && value.type.dtype != DType::kUInt64;
  }
  // Arithmetic with it is left out or, where it divides, is a product.
  static bool is_special(double number, bool divides) {
    int exponent;
    return !std::isfinite(number) || number == 0 || number == 1 ||
           (divides && std::abs(std::frexp(number, &exponent)) == 0.5);
  }

  void share(const std::vector<OpenStep>& steps) {
    FindFixed find;
    find.visit(steps[0].group.kernel.body);
    // Equal in all numbers that decide.
    std::map<std::vector<double>, std::vector<const OpenStep*>> groups;
    const std::vector<Buffer>& params = steps[0].group.kernel.params;
    for (const OpenStep& s : steps) {
      std::vector<double> key;
      for (size_t p = 0; p < params.size(); ++p) {
        if (!s.numbers[p]) continue;
        const BufferNode* b = params[p].get();
        const bool decides =
            find.fixed.count(b) || is_special(*s.numbers[p], find.divisors.count(b));
        key.push_back(decides ? 1 : 0);
        key.push_back(decides ? *s.numbers[p] : 0);
      }
      groups[key].push_back(&s);
    }
    for (const auto& [key, members] : groups) {
      std::vector<size_t> differ;
      for (size_t p = 0; p < params.size(); ++p)
        for (const OpenStep* m : members)
          if (m->numbers[p] != members[0]->numbers[p]) {
            differ.push_back(p);
            break;
          }
      if (differ.empty()) continue;
      for (const OpenStep* m : members) {
        std::set<ValueId> apart;
        for (size_t p : differ) apart.insert(m->group.params[p]);
        m->step->group = build_group_kernel(g_.graph, m->step->nodes, g_.uses, g_.aliases, apart);
      }
    }
  }

  GraphPlan& g_;
};

}  // namespace

void share_kernels(GraphPlan& g) { ShareKernels(g).run(); }

}  // namespace tilewright::passes
