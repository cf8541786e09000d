// Two questions are answered of a temporary: between which numbers all lies that is stored there (by intervals), and
// whether all of it lies in a given extent (by proof, where extents are symbols). Both follow what is stored from
// other temporaries, in circles too: sorting moves positions to and fro between two buffers.
#include "passes/analysis/integer_elements.h"

#include <algorithm>
#include <utility>

#include "ir/loops/linear.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"

namespace tilewright::passes {

using namespace ir;

// Collects what a kernel stores to temporaries of integers, with the facts of loops and conditions around, and its
// lets.
class StoreCollector : public Visitor {
 public:
  StoreCollector(const Kernel& kernel, IntegerElements& to) : to_(to) {
    for (const Buffer& b : kernel.params) params_.insert(b.get());
  }
  using Visitor::visit;
  void visit(const Expr&) override {}
  void visit(const Stmt& s) override {
    const Facts::Mark mark = facts_.mark();
    const auto* block = s.as<Block>();
    if (block && block->init) {  // which runs where no loop of a reduction does
      const Facts facts = std::exchange(facts_, {});
      for (const BlockAxis& a : block->axes)
        if (a.kind != AxisKind::kReduce) facts_.enter_loop(a.var, a.extent);
      visit(block->init);
      facts_ = facts;
    }
    if (const auto* f = s.as<For>()) facts_.enter_loop(f->var, f->extent);
    if (const auto* b = s.as<Block>())
      for (const BlockAxis& a : b->axes) facts_.enter_loop(a.var, a.extent);
    if (const auto* l = s.as<Let>()) to_.lets_[l->var.get()] = l->value;
    if (const auto* st = s.as<Store>()) {
      to_.written_.insert(st->buffer.get());
      if (is_integer(st->buffer->dtype) && !params_.count(st->buffer.get()))
        to_.stored_[st->buffer.get()].push_back({st->value, facts_});
    }
    Visitor::visit(s);
    facts_.forget(mark);
  }

 private:
  IntegerElements& to_;
  std::unordered_set<const BufferNode*> params_;
  Facts facts_;
};

namespace {
// The range of a variable of type `t`, whose least value is of that type.
std::optional<Ranges::Range> bounded_range(const std::optional<Interval>& i, DType t) {
  if (!i || !i->low || !i->high) return std::nullopt;
  return Ranges::Range{int_imm(*i->low, t), Expr(*i->high - *i->low + 1)};
}
}  // namespace

// Puts names in the place of elements. A conversion to i64 belongs to its element, as sums of i64 are the ones that
// are compared.
class ElementNamer : public Rewriter {
 public:
  ElementNamer(IntegerElements& elements, Facts& facts) : elements_(elements), facts_(facts) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    if (e.lanes() != 1) return e;
    const auto* c = e.as<Cast>();
    const bool widens = c && e.dtype() == DType::kInt64 && is_integer(c->value.dtype());
    const Expr& given = widens ? c->value : e;
    const Expr element = elements_.value_of_let(given);
    if (!is_integer(element.dtype())) return Rewriter::rewrite(e);
    const Expr key = element.same_as(given) ? e : widens ? cast(e.dtype(), element) : element;
    if (element.as<Load>() || elements_.lets_.count(element.get()))
      return elements_.name_of(key, element, facts_);
    return Rewriter::rewrite(key);
  }

 private:
  IntegerElements& elements_;
  Facts& facts_;
};

IntegerElements::IntegerElements(const Kernel& kernel, const std::vector<CheckedElements>& checked)
    : checked_(checked) {
  StoreCollector(kernel, *this).visit(kernel.body);
}

// A let's value, if it reads nothing that the kernel writes, so that no store between changes it.
Expr IntegerElements::value_of_let(const Expr& e) const {
  const auto it = lets_.find(e.get());
  if (it == lets_.end()) return e;
  bool stays = true;
  for_each_expr(it->second, [&](const Expr& x) {
    const auto* l = x.as<Load>();
    stays &= !l || written_.count(l->buffer.get()) == 0;
  });
  return stays ? value_of_let(it->second) : e;
}
// The load that the expression or the let behind it is; null: none.
const Load* IntegerElements::load_behind(const Expr& e) const {
  const auto it = lets_.find(e.get());
  return it == lets_.end() ? e.as<Load>() : load_behind(it->second);
}

Expr IntegerElements::named(const Expr& e, Facts& facts) {
  return ElementNamer(*this, facts).rewrite(e);
}

// A free i64 variable counts as an extent, which is not negative: what may be is the conversion of another one.
Expr IntegerElements::name_of(const Expr& key, const Expr& element, Facts& facts) {
  for (const Element& known : elements_)
    if (same_expr(known.key, key)) {
      if (known.range) facts.set_range(Var(known.name), known.range->min, known.range->extent);
      return known.name;
    }
  const Load* load = load_behind(element);
  const auto range = load ? range_of(*load, key.dtype())
                          : range_of_value(lets_.at(element.get()), key.dtype(), facts);
  const bool unbounded = !range && key.dtype() == DType::kInt64;
  const Var variable("element", unbounded ? ScalarType{DType::kFloat64, 1} : key.type());
  names_.insert(variable.get());
  if (range) facts.set_range(variable, range->min, range->extent);
  const Expr name = unbounded ? cast(DType::kInt64, variable) : Expr(variable);
  elements_.push_back({key, name, load ? load->buffer.get() : nullptr, range});
  return name;
}

std::optional<Ranges::Range> IntegerElements::range_of(const Load& load, DType type) {
  if (auto checked = checked_range(load, type)) return checked;
  return bounded_range(range_of_stored(*load.buffer), type);
}
std::optional<Ranges::Range> IntegerElements::range_of_value(const Expr& value, DType type,
                                                             Facts& facts) {
  return bounded_range(interval(named(value, facts), facts.ranges()), type);
}
std::optional<Ranges::Range> IntegerElements::checked_range(const Load& load, DType type) const {
  for (const CheckedElements& c : checked_) {
    if (c.buffer != load.buffer) continue;
    size_t place = 0;
    if (c.dims.size() > 1) {
      const auto last = load.indices.empty() ? std::nullopt : as_int(load.indices.back());
      if (!last || *last < 0 || *last >= static_cast<int64_t>(c.dims.size())) return std::nullopt;
      place = static_cast<size_t>(*last);
    }
    const IndexedDim& d = c.dims[place];
    if (d.dim == kNoIndices) return Ranges::Range{int_imm(0, type), d.extent};
    return Ranges::Range{simplify(Expr(0) - d.extent), simplify(d.extent * Expr(2))};
  }
  return std::nullopt;
}

// By intervals; nothing where no store adds to it.
std::optional<Interval> IntegerElements::range_of_stored(const BufferNode& buffer) {
  const auto it = stored_.find(&buffer);
  if (it == stored_.end() || !open_ranges_.insert(&buffer).second) return std::nullopt;
  const size_t names = elements_.size();
  std::optional<Interval> all;
  for (Stored& s : it->second) {
    const Load* l = load_behind(s.value);
    if (l && open_ranges_.count(l->buffer.get())) continue;
    const Interval i = interval(named(s.value, s.facts), s.facts.ranges());
    if (!all) all = i;
    all->low = all->low && i.low ? std::optional(std::min(*all->low, *i.low)) : std::nullopt;
    all->high = all->high && i.high ? std::optional(std::max(*all->high, *i.high)) : std::nullopt;
  }
  elements_.resize(names);
  open_ranges_.erase(&buffer);
  return all;
}

// By proof for each store, with the facts of its place. A conversion to fewer bits keeps numbers that lie in an
// extent which these bits can hold.
bool IntegerElements::all_stored_within(const BufferNode& buffer, const Expr& extent) {
  const auto it = stored_.find(&buffer);
  if (it == stored_.end() || !open_extents_.insert(&buffer).second) return false;
  bool within = true;
  for (Stored& s : it->second) {
    const Load* l = load_behind(s.value);
    if (l && open_extents_.count(l->buffer.get())) continue;
    const auto* c = s.value.as<Cast>();
    const bool narrows = c && s.value.dtype() == DType::kInt32 && c->value.dtype() == DType::kInt64;
    within &= !narrows || as_int(extent).value_or(INT64_MAX) <= INT32_MAX;
    const Expr value = named(narrows ? c->value : s.value, s.facts);
    const Facts::Mark mark = s.facts.mark();
    assume_stored_within(value, extent, s.facts);
    within = within && value.type() == ScalarType{} && s.facts.proves_nonnegative(value) &&
             s.facts.proves_less(value, extent);
    s.facts.forget(mark);
    if (!within) break;
  }
  open_extents_.erase(&buffer);
  return within;
}

void IntegerElements::assume_stored_within(const Expr& named, const Expr& extent, Facts& facts) {
  std::vector<Element> used;
  for (const Element& known : elements_)
    if (known.buffer && known.name.type() == ScalarType{} && stored_.count(known.buffer))
      for_each_expr(named, [&](const Expr& e) {
        if (e.same_as(known.name)) used.push_back(known);
      });
  for (const Element& e : used) {
    const bool by_induction = open_extents_.count(e.buffer) != 0;
    if (!by_induction && !all_stored_within(*e.buffer, extent)) continue;
    facts.assume_nonnegative(e.name);
    facts.assume_nonnegative(extent - Expr(1) - e.name);
  }
}

Expr IntegerElements::lasting(const Expr& condition, const Stmt& s) const {
  const auto* both = condition.as<Binary>();
  if (both && both->op == BinaryOp::kAnd && condition.dtype() == DType::kBool) {
    const Expr a = lasting(both->a, s), b = lasting(both->b, s);
    return a && b ? logical_and(a, b) : a ? a : b;
  }
  if (const auto* chosen = condition.as<Select>(); chosen && is_zero(chosen->b))
    return lasting(logical_and(chosen->condition, chosen->a), s);
  std::unordered_set<const BufferNode*> read;
  for_each_expr(condition, [&](const Expr& e) {
    if (const auto* l = e.as<Load>()) read.insert(l->buffer.get());
  });
  bool lasts = true;
  if (!read.empty())
    for_each_stmt(s, [&](const Stmt& inner) {
      if (const auto* st = inner.as<Store>()) lasts &= read.count(st->buffer.get()) == 0;
    });
  return lasts ? condition : Expr();
}

}  // namespace tilewright::passes
