// Pointwise producers into their consumers, where that does not repeat costly work.
#include <set>
#include <unordered_map>

#include "ir/loops/rewrite.h"
#include "passes/cost/fork_cost.h"
#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Operations of many cycles (divisions, square roots, elementary functions): not to be repeated.
bool has_costly(const Expr& value) {
  bool costly = false;
  for_each_expr(value, [&](const Expr& e) {
    if (const auto* u = e.as<Unary>()) costly |= is_costly(u->op);
    if (const auto* b = e.as<Binary>())
      costly |= is_float(e.dtype()) && (b->op == BinaryOp::kPow || b->op == BinaryOp::kDiv);
  });
  return costly;
}
// A chain of values that are each read twice doubles with every step, be the second place in another
// block: beyond this a buffer stays.
constexpr double kLargestTree = 1500;
double places_of(const Expr& reader, const BufferNode* b) {
  return tree_size(reader, b, 1) - tree_size(reader, b, 0);
}

// The blocks of a kernel between two decisions, and what each touches: of those that the last one left
// alone, that is known.
class KernelBlocks {
 public:
  void look_at(const Stmt& body) {
    body_ = body;
    all_ = all_blocks(body);
    std::unordered_map<const StmtNode*, std::pair<Stmt, Touched>> facts;
    for (const BlockPlace& p : all_) {
      const auto it = facts_.find(p.stmt.get());
      if (it != facts_.end())
        facts.insert(facts_.extract(it));
      else
        facts.try_emplace(p.stmt.get(), p.stmt, touched(p.stmt));
    }
    facts_ = std::move(facts);
  }
  const std::vector<BlockPlace>& all() const { return all_; }
  bool reads(const BlockPlace& p, const Buffer& b) const {
    return touches(p).reads.count(b.get()) != 0;
  }
  bool writes(const BlockPlace& p, const Buffer& b) const {
    return touches(p).writes.count(b.get()) != 0;
  }

 private:
  const Touched& touches(const BlockPlace& p) const { return facts_.at(p.stmt.get()).second; }

  Stmt body_;  // kept alive for the places
  std::vector<BlockPlace> all_;
  std::unordered_map<const StmtNode*, std::pair<Stmt, Touched>> facts_;
};

// Is it what follows a contraction, element by element? It belongs into the contraction's tile.
bool is_epilogue(const KernelBlocks& blocks, const BlockPlace& p) {
  for (const BlockPlace& q : blocks.all())
    if (const auto* st = q.block->body.as<Store>(); st && q.block->init &&
                                                    blocks.reads(p, st->buffer) &&
                                                    instances(*q.block) > instances(*p.block))
      return true;
  return false;
}

// What a block that looks addresses up finds in a buffer, where that differs from one of the
// results that lie side by side to the next.
enum class TableUse { kNone, kValues, kPlaces };
TableUse table_use(const Block& b, const BufferNode* table) {
  const auto accesses = block_accesses(b);
  bool looks_up = false, places = false, varies = false;
  size_t inner = b.axes.size();
  for (const BlockAccess& a : accesses) {
    for (const Expr& i : a.indices)
      for_each_expr(i, [&](const Expr& e) {
        const auto* l = e.as<Load>();
        looks_up |= l != nullptr;
        places |= l && l->buffer.get() == table;
      });
    if (!a.write) continue;
    for (size_t k = 0; k < b.axes.size(); ++k)
      if (a.strides[k] && is_one(a.strides[k]) && !is_one(b.axes[k].extent)) inner = k;
  }
  if (!looks_up || inner == b.axes.size()) return TableUse::kNone;
  for (const BlockAccess& a : accesses)
    varies |= a.buffer.get() == table && !(a.strides[inner] && is_zero(a.strides[inner]));
  return !varies ? TableUse::kNone : places ? TableUse::kPlaces : TableUse::kValues;
}
// Is it a table of places, or of values that many results share? Each would work it out again, and
// places once more for every element that is read there on a condition.
bool is_lookup_table(const Store& st, const Block& reader, int64_t mine) {
  constexpr double kLittleWork = 6;  // nodes: no more than loading the value from a table
  if (tree_size(st.value) <= kLittleWork || instances(reader) < mine) return false;
  const TableUse use = table_use(reader, st.buffer.get());
  return use == TableUse::kPlaces || (use == TableUse::kValues && instances(reader) >= 2 * mine);
}

bool finds_places(const Load& l) {
  bool found = false;
  for (const Expr& i : l.indices)
    for_each_expr(i, [&](const Expr& e) { found |= e.kind() == NodeKind::kLoad; });
  return found;
}
// Sums of looked up elements that are themselves looked up more than once: inlined, all the taps of
// one would be read for each tap of the other.
bool multiplies_lookups(const Store& st, const Block& reader) {
  bool own = false;
  for_each_expr(st.value, [&](const Expr& e) {
    if (const auto* l = e.as<Load>()) own |= finds_places(*l);
  });
  std::vector<const Load*> places;
  if (own)
    for_each_expr(reader.body, [&](const Expr& e) {
      const auto* l = e.as<Load>();
      if (!l || l->buffer != st.buffer || !finds_places(*l)) return;
      for (const Load* other : places)
        if (same_expr(load(l->buffer, l->indices), load(other->buffer, other->indices))) return;
      places.push_back(l);
    });
  return places.size() > 1;
}

// Is it the only store to a temporary that others read?
bool may_inline(const KernelBlocks& blocks, const BlockPlace& p) {
  const auto* st = p.block->body.as<Store>();
  if (!st || p.block->init || p.block->predicate || st->buffer->scope == Scope::kParam)
    return false;
  bool read = false, written = false;
  for (const BlockPlace& q : blocks.all()) {
    if (q.block == p.block) continue;
    read |= blocks.reads(q, st->buffer);
    written |= blocks.writes(q, st->buffer);
  }
  return read && !written;
}

// Is the block's value computed at each of its uses rather than stored?
// Inlining trades memory traffic for recomputation. Always for cheap values with one reader; for
// several readers only if cheap and no epilogue of a contraction, which belongs on that tile; never
// where it multiplies work, table look-ups or the size of the code.
bool should_inline(const KernelBlocks& blocks, const BlockPlace& p) {
  const auto* st = p.block->body.as<Store>();
  const int64_t mine = instances(*p.block);
  const bool costly = has_costly(st->value);
  size_t readers = 0;
  double places = 0, largest = 0;
  for (const BlockPlace& q : blocks.all()) {
    if (q.block == p.block || !blocks.reads(q, st->buffer)) continue;
    ++readers;
    const bool reduction = static_cast<bool>(q.block->init);
    const auto* body = q.block->body.as<Store>();
    if (!body) return false;
    places += places_of(body->value, st->buffer.get());
    largest = std::max(largest, tree_size(body->value, st->buffer.get(), tree_size(st->value)));
    if (places > 1 && largest > kLargestTree) return false;
    // A contraction reads each element many times: what it reads is laid out once.
    if (reduction && instances(*q.block) > 2 * mine) return false;
    if (costly && (reduction || 2 * instances(*q.block) > 3 * mine)) return false;
    if (is_lookup_table(*st, *q.block, mine) || multiplies_lookups(*st, *q.block)) return false;
  }
  return readers > 0 && (readers == 1 || (!costly && !is_epilogue(blocks, p)));
}

}  // namespace

void inline_producers(ScheduleState& s, const std::set<std::string>& kept) {
  // A product that is inlined into a sum is rounded with it, but in exact kernels.
  const Bits bits = s.kernel().exact ? Bits::kKept : Bits::kChanged;
  std::set<std::string> tried = kept;
  KernelBlocks blocks;
  // Decides on one block that nothing was decided on; false when there is none.
  const auto decide_next = [&](bool pays) {
    blocks.look_at(s.kernel().body);
    for (const BlockPlace& p : blocks.all()) {
      const std::string name = p.block->name;
      if (tried.count(name) || !may_inline(blocks, p) || should_inline(blocks, p) != pays) continue;
      tried.insert(name);
      const std::string decision = name + ".inline";
      if (s.decide_whether(decision, pays, bits) && !s.apply("inline", {name})) {
        if (s.answer(decision)) s.refuse(s.obstacle());
        s.lose_step();
      }
      return true;
    }
    return false;
  };
  // One that goes may leave another with a single reader.
  while (decide_next(true) || decide_next(false)) {}
}

}  // namespace tilewright::passes
