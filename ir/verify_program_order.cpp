// What holds of a program in the order in which its instructions run: definitions before uses, and
// lifetimes. One walk keeps what is stored, allocated and defined; branches are walked apart, and
// what both have done holds behind them.
#include <algorithm>
#include <iterator>

#include "ir/loops/rewrite.h"
#include "ir/program_verifier.h"

namespace tilewright::ir {

namespace {

template <typename T>
std::set<T> common(const std::set<T>& a, const std::set<T>& b) {
  std::set<T> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(both, both.end()));
  return both;
}

}  // namespace

void ProgramVerifier::known(const Expr& e, const State& state, const std::string& what) {
  for (const Var& v : free_vars_in_order(e))
    if (!state.symbols.count(v.get()))
      report(what + " names symbol '" + v.name() + "' before it is defined");
}
void ProgramVerifier::sizes_known(int32_t b, const State& state) {
  for (const Expr& d : at(b).type.dims) known(d, state, "an extent of " + who(b));
  known(at(b).elements, state, "the size of " + who(b));
}
void ProgramVerifier::reads(int32_t b, const State& state) {
  const int32_t root = storage_root(p_, b);
  sizes_known(b, state);
  const StorageKind kind = at(root).kind;
  // Of nothing no kernel keeps a load or a store.
  const bool given = kind == StorageKind::kInput || kind == StorageKind::kConstant ||
                     kind == StorageKind::kRunKey || as_int(at(root).elements) == 0;
  if (!given && !state.stored.count(root)) report(who(b) + " is read before it is stored to");
}
void ProgramVerifier::stores(int32_t b, State& state) {
  const int32_t root = storage_root(p_, b);
  sizes_known(b, state);
  if (at(root).dynamic && !state.allocated.count(root))
    report(who(b) + " is dynamic and stored to before it is allocated");
  state.stored.insert(root);
}

void ProgramVerifier::branch(const IfInstruction& x, State& state) {
  reads(x.condition, state);
  State then = state, otherwise = state;
  walk(static_cast<size_t>(x.then_block), then);
  walk(static_cast<size_t>(x.else_block), otherwise);
  if (then.fails || otherwise.fails) {
    const bool fails = then.fails && otherwise.fails;
    state = then.fails ? std::move(otherwise) : std::move(then);
    state.fails = fails;
    return;
  }
  state.stored = common(then.stored, otherwise.stored);
  state.allocated = common(then.allocated, otherwise.allocated);
  state.symbols = common(then.symbols, otherwise.symbols);
}

void ProgramVerifier::loop(const LoopInstruction& x, State& state) {
  for (const int32_t b : {x.trip_count, x.initial_condition})
    if (b >= 0) reads(b, state);
  for (const auto& [current, computed] : x.carried) reads(current, state);
  State inside = state;
  if (x.iteration >= 0) stores(x.iteration, inside);
  walk(static_cast<size_t>(x.body), inside);
  if (!inside.fails) {
    if (x.body_condition >= 0) reads(x.body_condition, inside);
    for (const auto& [current, computed] : x.carried) reads(computed, inside);
    for (const auto& [element, result] : x.scans) reads(element, inside);
  }
  if (x.count) state.symbols.insert(x.count.get());
  for (const auto& [element, result] : x.scans) {
    state.allocated.insert(storage_root(p_, result));
    stores(result, state);
  }
}

void ProgramVerifier::walk(size_t block, State& state) {
  for (size_t i = 0; i < p_.blocks[block].size() && !state.fails; ++i) {
    stand_at(block, i);
    const ProgramInstruction& x = p_.blocks[block][i];
    if (const auto* b = std::get_if<IfInstruction>(&x)) {
      branch(*b, state);
    } else if (const auto* l = std::get_if<LoopInstruction>(&x)) {
      loop(*l, state);
    } else {
      if (const auto* c = std::get_if<CallInstruction>(&x))
        for (const Expr& e : c->scalars) known(e, state, "a scalar of the call");
      if (const auto* r = std::get_if<RequireInstruction>(&x))
        for (const Expr& e : {r->a, r->b}) known(e, state, "a requirement");
      if (const auto* c = std::get_if<CheckIndicesInstruction>(&x))
        for (const Expr& e : c->extents) known(e, state, "a check of indices");
      // What is read must be there before the same instruction stores.
      uses_.of(x, [&](int32_t b, BufferUse use) {
        if (use == BufferUse::kRead) reads(b, state);
      });
      uses_.of(x, [&](int32_t b, BufferUse use) {
        if (use == BufferUse::kAllocated) {
          sizes_known(b, state);
          state.allocated.insert(storage_root(p_, b));
        }
        if (use == BufferUse::kWritten || use == BufferUse::kUntouched) stores(b, state);
      });
      if (const auto* d = std::get_if<DefineSymbolInstruction>(&x))
        state.symbols.insert(d->symbol.get());
      state.fails |= std::holds_alternative<FailInstruction>(x);
    }
  }
}

void ProgramVerifier::order() {
  State state;
  for (const int32_t b : p_.inputs)
    for (const Expr& d : at(b).type.dims)
      for (const Var& v : free_vars_in_order(d)) state.symbols.insert(v.get());
  walk(0, state);
  place_ = " (at the end)";
  if (!state.fails)
    for (const int32_t b : p_.outputs) reads(b, state);
  place_.clear();
}

void ProgramVerifier::lives_at(const ProgramInstruction& x, int32_t main_instruction) {
  uses_.of(x, [&](int32_t b, BufferUse) {
    for (const int32_t of : std::set<int32_t>{b, storage_root(p_, b)})
      if (at(of).first_use > main_instruction || at(of).last_use < main_instruction)
        report(who(of) + " is used at " + std::to_string(main_instruction) +
               ", outside of its life " + std::to_string(at(of).first_use) + ".." +
               std::to_string(at(of).last_use));
  });
  for (const int32_t inner : inner_blocks(x))
    for (const ProgramInstruction& i : p_.blocks[static_cast<size_t>(inner)])
      lives_at(i, main_instruction);
}
void ProgramVerifier::lifetimes() {
  const auto count = static_cast<int32_t>(p_.blocks[0].size());
  for (int32_t i = 0; i < count; ++i) lives_at(p_.blocks[0][static_cast<size_t>(i)], i);
  for (const int32_t b : p_.outputs)
    if (at(storage_root(p_, b)).last_use < count - 1)
      report(who(b) + " is a result and does not live to the end");
}

}  // namespace tilewright::ir
