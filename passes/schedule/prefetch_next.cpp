// prefetch_next: what the next iteration of a loop begins with is brought near while this one runs.
//
//    for i: for j: for k: ... A[i * 384 + k] ...        384 elements, read again for each j
//    -> for i: for j: for k:
//         prefetch(A[i * 384 + 384 + j * 96 + k * 2])   of the next 384, evenly over j and k
//
// Software prefetching as of Mowry, Lam and Gupta ("Design and evaluation of a compiler algorithm for
// prefetching", 1992), with hints spread over the steps instead of one for each access: as many at a time as
// memory answers to. The processor's own prefetchers see the first pass over a tile of rows alone, which is too
// late, and not that results are to be written.
#include <algorithm>

#include "ir/loops/rewrite.h"
#include "passes/loops/loop_passes.h"
#include "passes/schedule/primitives.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Where the block first accesses the buffer so many iterations later of the loop at `depth`, as the loops around it
// say.
Expr later_access(const BlockPlace& place, const std::string& buffer, size_t depth,
                  int64_t iterations) {
  const Block& b = *place.block;
  VarMap axes, first;
  for (size_t i = 0; i < b.axes.size(); ++i) axes[b.axes[i].var.get()] = b.bindings[i];
  for (size_t i = depth + 1; i < place.loops.size(); ++i)
    first[place.loops[i]->var.get()] = Expr(0);
  first[place.loops[depth]->var.get()] = place.loops[depth]->var + iterations;
  Expr found;
  const auto see = [&](const Buffer& accessed, const std::vector<Expr>& indices) {
    if (!found && accessed->name == buffer) found = flat_index(*accessed, indices);
  };
  for_each_stmt(b.body, [&](const Stmt& s) {
    if (const auto* st = s.as<Store>()) see(st->buffer, st->indices);
  });
  for_each_expr(b.body, [&](const Expr& e) {
    if (const auto* l = e.as<Load>()) see(l->buffer, l->indices);
  });
  return found ? substitute(substitute(found, axes), first) : Expr();
}

// Temporaries are placed and shrunk later on, but for those in panels.
bool stays(const BufferNode& b) {
  return b.scope == Scope::kWorkspace &&
         std::any_of(b.layout.begin(), b.layout.end(),
                     [](const LayoutAxis& a) { return a.divisor != 1 || a.modulus != 0; });
}

size_t depth_of(const BlockPlace& place, const std::string& loop) {
  const auto found = std::find_if(place.loops.begin(), place.loops.end(),
                                  [&](const For* f) { return f->var.name() == loop; });
  return static_cast<size_t>(found - place.loops.begin());
}

// The elements are shared out among the iterations of the loops inside, from the outermost one on: an inner loop
// may go on a little beyond its share, never stop before.
struct Spread {
  Expr at = 0;
  int64_t each = 1;  // elements of a step
};
std::optional<Spread> spread_over(const std::vector<const For*>& steps, int64_t elements) {
  Spread s{.each = elements};
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto n = as_int(steps[i]->extent);
    if (!n || *n < 1) return std::nullopt;
    s.each = i + 1 == steps.size() ? (s.each + *n - 1) / *n : std::max<int64_t>(s.each / *n, 1);
    s.at = s.at + Expr(steps[i]->var) * s.each;
  }
  return s;
}

// What both primitives begin with.
struct Hints {
  BlockPlace place;
  Buffer buffer;
  size_t depth = 0;               // of the loop
  Expr next;                      // where the reader begins
  std::vector<const For*> steps;  // loops inside
};
Result<Hints> find_hints(const Kernel& k, const Step& step, int64_t iterations) {
  const std::string &block = step.names[0], &reader = step.names[1], &loop = step.names[3];
  Hints h;
  TW_ASSIGN(h.place, find_block(k.body, block));
  TW_ASSIGN(const BlockPlace reads, find_block(k.body, reader));
  TW_ASSIGN(h.buffer, find_buffer(k, step.names[2]));
  if (h.buffer->scope != Scope::kParam && !stays(*h.buffer))
    return invalid("'" + h.buffer->name + "' is neither a parameter of the kernel nor in panels");
  const size_t there = depth_of(reads, loop);
  h.depth = depth_of(h.place, loop);
  if (h.depth == h.place.loops.size() || there == reads.loops.size() ||
      h.place.loops[h.depth] != reads.loops[there])
    return invalid("loop '" + loop + "' is not around '" + block + "' and '" + reader + "'");
  h.next = later_access(reads, h.buffer->name, there, iterations);
  if (!h.next) return invalid("block '" + reader + "' does not access '" + h.buffer->name + "'");
  for (size_t i = h.depth + 1; i < h.place.loops.size(); ++i)
    if (h.place.loops[i]->loop_kind == LoopKind::kSerial) h.steps.push_back(h.place.loops[i]);
  return h;
}

// Before what the loop has in an iteration.
Kernel with_hints(const Kernel& k, const For* loop, std::vector<Stmt> hints) {
  hints.push_back(loop->body);
  return with_body(k, replace_loop(k.body, loop, [&](const For& f) {
                     return for_loop(f.var, f.extent, seq(std::move(hints)), f.loop_kind);
                   }));
}

}  // namespace

Result<Kernel> prefetch_next(const Kernel& k, const Step& step) {
  constexpr int64_t kMostLines = 4, kMostAtOnce = 16;
  const std::string& loop = step.names[3];
  const int64_t elements = step.numbers[0], kind = step.numbers[1], iterations = step.numbers[2];
  if (elements < 1 || kind < 0 || kind > static_cast<int64_t>(PrefetchKind::kWrite) ||
      iterations < 1)
    return invalid(std::to_string(elements) + " elements, kind " + std::to_string(kind) + ", " +
                   std::to_string(iterations) + " iterations");
  TW_ASSIGN(Hints h, find_hints(k, step, iterations));
  const auto& [place, buffer, depth, next, steps_inside] = h;
  std::vector<const For*> steps = steps_inside;
  const auto spread = spread_over(steps, elements);
  if (!spread) return invalid("no loops of known extents inside '" + loop + "'");
  const bool at_once = steps.empty();
  if (at_once) steps.push_back(place.loops[depth]);
  const int64_t line = kCacheLine / byte_size(buffer->dtype),
                lines = (spread->each + line - 1) / line;
  if (lines > (at_once ? kMostAtOnce : kMostLines))
    return invalid(std::to_string(lines) + " lines for each step inside '" + loop + "'");
  std::vector<Stmt> body;
  for (int64_t n = 0; n < lines; ++n)
    body.push_back(prefetch_line(buffer, simplify(next + spread->at + Expr(n * line)),
                                 static_cast<PrefetchKind>(kind)));
  return with_hints(k, steps.back(), std::move(body));
}

// Lines are numbered along the rows. Each iteration of the loops around the innermost one has as many of them, and each
// step of that a share: several steps one, or one step several.
Result<Kernel> prefetch_rows(const Kernel& k, const Step& step) {
  constexpr int64_t kMostLines = 4;
  const int64_t elements = step.numbers[0], rows = step.numbers[1], apart = step.numbers[2];
  if (elements < 1 || rows < 1 || apart < elements)
    return invalid(std::to_string(rows) + " rows of " + std::to_string(elements) + " elements, " +
                   std::to_string(apart) + " apart");
  TW_ASSIGN(Hints h, find_hints(k, step, 1));
  int64_t tiles = 1;
  Expr tile = 0;
  for (const For* f : h.steps) {
    const auto n = as_int(f->extent);
    if (!n || *n < 1) return invalid("the extent of loop '" + f->var.name() + "' is not known");
    if (f == h.steps.back()) break;
    tiles *= *n;
    tile = tile * *n + f->var;
  }
  if (h.steps.empty()) return invalid("no loops inside '" + step.names[3] + "'");
  const int64_t line = kCacheLine / byte_size(h.buffer->dtype), n = *as_int(h.steps.back()->extent),
                of_a_row = (elements + line - 1) / line + (apart % line != 0),
                of_a_tile = (rows * of_a_row + tiles - 1) / tiles,
                at_once = (of_a_tile + n - 1) / n;
  if (at_once > kMostLines)
    return invalid(std::to_string(at_once) + " lines for each step inside '" + step.names[3] + "'");
  int64_t steps = 1;  // for one line: a power of two
  while (2 * steps * of_a_tile <= n) steps *= 2;
  std::vector<Stmt> hints;
  for (int64_t m = 0; m < at_once; ++m) {
    const Var& inner = h.steps.back()->var;
    const Expr number = tile * of_a_tile + (at_once > 1 ? inner * at_once + m : inner / steps);
    const Expr row = number / of_a_row;
    hints.push_back(prefetch_line(h.buffer,
                                  simplify(h.next + row * apart + (number - row * of_a_row) * line),
                                  PrefetchKind::kOuter));
  }
  return with_hints(k, h.steps.back(), std::move(hints));
}

}  // namespace tilewright::passes
