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

constexpr int64_t kLine = 64;

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

}  // namespace

Result<Kernel> prefetch_next(const Kernel& k, const Step& step) {
  constexpr int64_t kMostLines = 4, kMostAtOnce = 16;
  const std::string &block = step.names[0], &reader = step.names[1], &loop = step.names[3];
  const int64_t elements = step.numbers[0], kind = step.numbers[1], iterations = step.numbers[2];
  TW_ASSIGN(const BlockPlace place, find_block(k.body, block));
  TW_ASSIGN(const BlockPlace reads, find_block(k.body, reader));
  TW_ASSIGN(const Buffer buffer, find_buffer(k, step.names[2]));
  if (elements < 1 || kind < 0 || kind > static_cast<int64_t>(PrefetchKind::kWrite) ||
      iterations < 1)
    return invalid(std::to_string(elements) + " elements, kind " + std::to_string(kind) + ", " +
                   std::to_string(iterations) + " iterations");
  if (buffer->scope != Scope::kParam && !stays(*buffer))
    return invalid("'" + buffer->name + "' is neither a parameter of the kernel nor in panels");
  const size_t depth = depth_of(place, loop), there = depth_of(reads, loop);
  if (depth == place.loops.size() || there == reads.loops.size() ||
      place.loops[depth] != reads.loops[there])
    return invalid("loop '" + loop + "' is not around '" + block + "' and '" + reader + "'");
  const Expr next = later_access(reads, buffer->name, there, iterations);
  if (!next) return invalid("block '" + reader + "' does not access '" + buffer->name + "'");
  std::vector<const For*> steps;
  for (size_t i = depth + 1; i < place.loops.size(); ++i)
    if (place.loops[i]->loop_kind == LoopKind::kSerial) steps.push_back(place.loops[i]);
  const auto spread = spread_over(steps, elements);
  if (!spread) return invalid("no loops of known extents inside '" + loop + "'");
  const bool at_once = steps.empty();
  if (at_once) steps.push_back(place.loops[depth]);
  const int64_t line = kLine / byte_size(buffer->dtype), lines = (spread->each + line - 1) / line;
  if (lines > (at_once ? kMostAtOnce : kMostLines))
    return invalid(std::to_string(lines) + " lines for each step inside '" + loop + "'");
  std::vector<Stmt> body;
  for (int64_t n = 0; n < lines; ++n)
    body.push_back(prefetch_line(buffer, simplify(next + spread->at + Expr(n * line)),
                                 static_cast<PrefetchKind>(kind)));
  body.push_back(steps.back()->body);
  return with_body(k, replace_loop(k.body, steps.back(), [&](const For& f) {
                     return for_loop(f.var, f.extent, seq(std::move(body)), f.loop_kind);
                   }));
}

}  // namespace tilewright::passes
