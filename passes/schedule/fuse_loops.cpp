// Loop fusion, as compilers of Fortran call it and Halide's compute_with does it: each element is
// computed once, as before (compute_at is what recomputes). The nest of a block moves under the
// loops of another that match its own one by one, before or behind what is there:
//
//    for i: for j: A[i,j] = ...              for i:
//    for i: for j: B[i,j] = A[i,j] + 1   ->    for j: A[i,j] = ...
//                                              for j: B[i,j] = A[i,j] + 1
//
// Legal when every element that one writes and the other reads is written in the same iteration of
// the shared loops (`covered`), and no block between touches what either does.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/schedule/primitives.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// The indices of an access in terms of loops, and the extents that they stay below.
struct Access {
  std::vector<Expr> indices, shape;
};

// `once`: ranges of the loops that run once, so that their variables count as 0.
void accesses_of(const Block& b, const BufferNode* buffer, bool writes, const Ranges& once,
                 std::vector<Access>& out) {
  VarMap values;
  for (size_t i = 0; i < b.axes.size(); ++i) values[b.axes[i].var.get()] = b.bindings[i];
  auto add = [&](const std::vector<Expr>& indices) {
    Access a{{}, buffer->shape};
    for (const Expr& e : indices) a.indices.push_back(simplify(substitute(e, values), once));
    out.push_back(std::move(a));
  };
  auto visit = [&](const Stmt& s) {
    if (writes)
      for_each_stmt(s, [&](const Stmt& x) {
        if (const auto* st = x.as<Store>(); st && st->buffer.get() == buffer) add(st->indices);
      });
    else
      for_each_expr(s, [&](const Expr& e) {
        if (const auto* l = e.as<Load>(); l && l->buffer.get() == buffer) add(l->indices);
      });
  };
  visit(b.body);
  if (b.init) visit(b.init);
}

Ranges inner_ranges(const std::vector<const For*>& loops, size_t depth) {
  Ranges r;
  for (size_t i = depth; i < loops.size(); ++i) r.set(loops[i]->var, loops[i]->extent);
  return r;
}

// The loops inside that an access depends on, outermost first.
std::vector<const For*> used_loops(const Access& a, const std::vector<const For*>& loops,
                                   size_t depth) {
  std::vector<const For*> used;
  for (size_t i = depth; i < loops.size(); ++i)
    for (const Expr& e : a.indices)
      if (uses_var(e, loops[i]->var)) {
        used.push_back(loops[i]);
        break;
      }
  return used;
}
// Are two accesses the same function of loops of equal extents?
bool same_walk(const Access& r, const std::vector<const For*>& r_loops, const Access& w,
               const std::vector<const For*>& w_loops) {
  if (r_loops.size() != w_loops.size()) return false;
  VarMap rename;
  for (size_t i = 0; i < r_loops.size(); ++i) {
    if (!can_prove_equal(r_loops[i]->extent, w_loops[i]->extent)) return false;
    rename[r_loops[i]->var.get()] = w_loops[i]->var;
  }
  for (size_t d = 0; d < r.indices.size(); ++d)
    if (!can_prove_equal(substitute(r.indices[d], rename), w.indices[d])) return false;
  return true;
}

// Are these bounds those of the whole dimension, or beyond?
bool takes_all(const Expr& low, const Expr& high, const Expr& extent) {
  return low && high && can_prove(low <= Expr(0)) && can_prove(extent <= high + Expr(1));
}

// Do the accesses never meet, whatever the loops: does one dimension's range end before the other's begins?
bool apart(const Access& a, const Ranges& of_a, const Access& b, const Ranges& of_b) {
  for (size_t d = 0; d < a.indices.size(); ++d) {
    const Expr al = lower_bound(a.indices[d], of_a), ah = upper_bound(a.indices[d], of_a),
               bl = lower_bound(b.indices[d], of_b), bh = upper_bound(b.indices[d], of_b);
    if ((ah && bl && can_prove(ah < bl)) || (bh && al && can_prove(bh < al))) return true;
  }
  return false;
}
// Does each read lie, for every value of the shared loops, within what is written under the same
// values, or apart from all that is written?
bool covered(const std::vector<Access>& reads, const std::vector<const For*>& read_loops,
             size_t read_depth, const std::vector<Access>& writes,
             const std::vector<const For*>& write_loops, size_t write_depth) {
  const Ranges inner_of_reads = inner_ranges(read_loops, read_depth),
               inner_of_writes = inner_ranges(write_loops, write_depth),
               all_of_reads = inner_ranges(read_loops, 0),
               all_of_writes = inner_ranges(write_loops, 0);
  for (const Access& r : reads) {
    bool found = std::all_of(writes.begin(), writes.end(), [&](const Access& w) {
      return apart(r, all_of_reads, w, all_of_writes);
    });
    for (const Access& w : writes) {
      bool inside = true;
      found |= same_walk(r, used_loops(r, read_loops, read_depth), w,
                         used_loops(w, write_loops, write_depth));
      for (size_t d = 0; d < r.indices.size() && inside; ++d) {
        Expr rl = lower_bound(r.indices[d], inner_of_reads),
             rh = upper_bound(r.indices[d], inner_of_reads);
        Expr wl = lower_bound(w.indices[d], inner_of_writes),
             wh = upper_bound(w.indices[d], inner_of_writes);
        // Bounds know nothing of predicates: what is read may seem to end beyond the buffer.
        inside = takes_all(wl, wh, w.shape[d]) ||
                 (rl && rh && wl && wh && can_prove(wl <= rl) && can_prove(rh <= wh));
      }
      found |= inside;
    }
    if (!found) return false;
  }
  return true;
}

// Do two blocks under the same outer loops meet within an iteration of these alone?
bool meet_within(const BlockPlace& a, const BlockPlace& b, size_t depth, const Ranges& once) {
  const auto fits = [&](const BlockPlace& writer, const BlockPlace& reader) {
    const std::set<const BufferNode*> read = touched(reader.stmt).reads;
    for (const BufferNode* buffer : touched(writer.stmt).writes) {
      if (!read.count(buffer)) continue;
      std::vector<Access> w, r;
      accesses_of(*writer.block, buffer, true, once, w);
      accesses_of(*reader.block, buffer, false, once, r);
      if (!covered(r, reader.loops, depth, w, writer.loops, depth)) return false;
    }
    return true;
  };
  return fits(a, b) && fits(b, a);
}

bool share(const std::set<const BufferNode*>& a, const std::set<const BufferNode*>& b) {
  for (const BufferNode* x : a)
    if (b.count(x)) return true;
  return false;
}
// A block that the move would pass over and that must stay before or after the moved one; null when
// there is none.
const Block* block_in_the_way(const Stmt& body, const BlockPlace& moved,
                              const std::vector<BlockPlace>& below) {
  auto is_below = [&](const Block* b) {
    for (const BlockPlace& q : below)
      if (q.block == b) return true;
    return false;
  };
  const Touched mine = touched(moved.stmt);
  bool target_seen = false, moved_seen = false;
  for (const BlockPlace& p : all_blocks(body)) {
    if (is_below(p.block)) {
      if (moved_seen) return nullptr;
      target_seen = true;
    } else if (p.block == moved.block) {
      if (target_seen) return nullptr;
      moved_seen = true;
    } else if (target_seen || moved_seen) {
      const Touched theirs = touched(p.stmt);
      if (share(theirs.writes, mine.reads) || share(theirs.writes, mine.writes) ||
          share(theirs.reads, mine.writes))
        return p.block;
    }
  }
  return nullptr;
}

// Adds the loops that run once to the ranges.
void note_single(const std::vector<const For*>& loops, Ranges& once) {
  for (const For* f : loops)
    if (is_one(f->extent)) once.set(f->var, f->extent);
}

}  // namespace

Result<Kernel> fuse_loops(const Kernel& k, const Step& step) {
  TW_ASSIGN(BlockPlace moved, find_block(k.body, step.names[0]));
  TW_ASSIGN(const For* loop, find_loop(k.body, step.names[1]));
  // The loops from the outermost around `loop` down to it, within the statement that also holds the
  // moved nest.
  std::vector<const For*> target;
  std::vector<BlockPlace> below;
  for (const BlockPlace& p : all_blocks(k.body)) {
    auto it = std::find(p.loops.begin(), p.loops.end(), loop);
    if (it == p.loops.end()) continue;
    target.assign(p.loops.begin(), it + 1);
    below.push_back(p);
  }
  if (below.empty()) return invalid("loop '" + step.names[1] + "' holds no block");
  size_t common = 0;  // loops that already are around both
  while (common < target.size() && common < moved.loops.size() &&
         target[common] == moved.loops[common])
    ++common;
  if (common == target.size())
    return invalid("block '" + step.names[0] + "' is already inside loop '" + step.names[1] + "'");
  if (moved.loops.size() < target.size())
    return invalid("block '" + step.names[0] + "' has fewer loops than are around '" +
                   step.names[1] + "'");
  VarMap to_target;
  for (size_t i = common; i < target.size(); ++i) {
    if (!can_prove_equal(moved.loops[i]->extent, target[i]->extent))
      return invalid("loop '" + moved.loops[i]->var.name() + "' does not match '" +
                     target[i]->var.name() + "'");
    to_target[moved.loops[i]->var.get()] = target[i]->var;
  }
  Stmt nest = nest_of(k.body, step.names[0]);
  if (!nest || nest.as<For>() != moved.loops[common])
    return invalid("block '" + step.names[0] + "' shares its loops with another");

  if (const Block* b = block_in_the_way(k.body, moved, below))
    return invalid("block '" + step.names[0] + "' cannot pass over block '" + b->name + "'");

  // What one side writes and the other reads must meet within one iteration of the shared loops.
  Stmt inner = moved.loops[target.size() - 1]->body;
  inner = substitute(inner, to_target);
  BlockPlace fused = all_blocks(inner)[0];
  bool after = false;
  for (const BlockPlace& p : all_blocks(k.body)) {  // which comes first in the program?
    if (p.block == moved.block) break;
    for (const BlockPlace& q : below) after |= p.block == q.block;
  }
  Ranges once;
  note_single(target, once);
  note_single(fused.loops, once);
  std::vector<const For*> moved_loops = target;
  moved_loops.insert(moved_loops.end(), fused.loops.begin(), fused.loops.end());
  for (const BlockPlace& p : below) {
    note_single(p.loops, once);
    if (!meet_within(p, {fused.stmt, fused.block, moved_loops}, target.size(), once))
      return invalid("block '" + step.names[0] + "' and block '" + p.block->name +
                     "' meet in other iterations of loop '" + step.names[1] + "'");
  }
  Stmt body = replace_stmt(k.body, nest, seq({}));
  TW_ASSIGN(const For* again, find_loop(body, step.names[1]));
  return with_body(k, replace_loop(body, again, [&](const For& f) {
                     return for_loop(f.var, f.extent,
                                     after ? seq({f.body, inner}) : seq({inner, f.body}),
                                     f.loop_kind);
                   }));
}

}  // namespace tilewright::passes
