// How an operand of a product is copied into panels: before the product, or by the tasks that read it.
#include <algorithm>

#include "passes/analysis/accesses.h"
#include "passes/schedule/rules/copied_operands.h"
#include "passes/schedule/rules/memory.h"
#include "passes/schedule/rules/share_out.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// The steps of one copy. A nest has a loop i0, i1, ... for each dimension, and s0, s1, ... where it was moved into
// another one.
class OperandCopy {
 public:
  OperandCopy(ScheduleState& s, const Panels& panels, const char* loops)
      : s_(s), p_(panels), name_(panels.block()), loops_(loops) {}

  // The outermost loops, which may be shared out; none: it is not legal.
  std::vector<std::string> write() { return p_.transposes ? by_squares() : by_pieces(); }

 private:
  std::string part(const char* name) const { return name_ + "." + name; }
  std::string of_dim(int d) const { return name_ + "." + loops_ + std::to_string(d); }

  // Pieces of rows as wide as some panels, or a few lines.
  std::vector<std::string> by_pieces() {
    std::vector<std::string> order{part("g")};
    for (int d : p_.across) order.push_back(of_dim(d));
    const std::vector<std::string> outer(order.begin(), order.end() - 1);
    if (!split_columns()) return {};
    std::vector<std::string> inside{part("s")};
    if (p_.rows > 1) {
      if (!s_.apply("split", {order.back(), part("o"), part("r")}, {p_.rows})) return {};
      order.back() = part("o");
      inside.push_back(part("r"));
    }
    if (vectors() > 1) inside.push_back(part("c"));
    inside.push_back(part("v"));
    order.insert(order.end(), inside.begin(), inside.end());
    if (!s_.apply("reorder", order) || !s_.apply("vectorize", {part("v")})) return {};
    prefetch_rows();
    return outer;
  }
  // Groups of panels, these, and vectors of them.
  bool split_columns() {
    const std::string panel = vectors() > 1 ? part("p") : part("v");
    return s_.apply("split", {of_dim(p_.dim), part("l"), panel}, {p_.width}) &&
           s_.apply("split", {part("l"), part("g"), part("s")},
                    {std::max<int64_t>(p_.streams / vectors(), 1)}) &&
           (vectors() == 1 || s_.apply("split", {panel, part("c"), part("v")}, {p_.lanes}));
  }
  int64_t vectors() const { return (p_.width + p_.lanes - 1) / p_.lanes; }  // of a panel

  // Pieces of rows are read, of rows that lie apart: hints go whole rows ahead.
  void prefetch_rows() {
    constexpr int64_t kFewest = 16;
    for (const BlockAccess& a : block_accesses(*s_.place(name_).block)) {
      const auto row = a.stride(static_cast<size_t>(p_.across.back()));
      if (a.write || !row || *row <= 0 || bytes_of(*a.buffer) <= s_.machine().l2_bytes) continue;
      const int64_t bytes = *row * byte_size(a.buffer->dtype),
                    rows = std::max(kFewest, kRowsAhead / bytes);
      if (!s_.decide_whether(name_ + ".ahead", true, Bits::kKept)) return;
      s_.attempt("prefetch", {name_, a.buffer->name}, {rows * *row});
      s_.note(name_ + ": prefetches what lies " + std::to_string(rows) + " rows further on");
    }
  }

  // Transposed in registers: see PanelsRule.
  std::vector<std::string> by_squares() {
    constexpr int64_t kLine = 16;
    const std::string down = of_dim(p_.across.back());
    std::vector<std::string> outer;  // each of several matrices for itself
    for (size_t k = 0; k + 1 < p_.across.size(); ++k) outer.push_back(of_dim(p_.across[k]));
    outer.push_back(part("panel"));
    std::vector<std::string> order = outer;
    for (const char* inner : {"line", "vector", "square", "row", "lane"})
      order.push_back(part(inner));
    const bool done =
        s_.apply("split", {of_dim(p_.dim), part("panel"), part("column")}, {p_.width}) &&
        s_.apply("split", {part("column"), part("vector"), part("lane")}, {p_.lanes}) &&
        s_.apply("split", {down, part("line"), part("of_line")}, {std::max(kLine, p_.lanes)}) &&
        s_.apply("split", {part("of_line"), part("square"), part("row")}, {p_.lanes}) &&
        s_.apply("reorder", order) && s_.apply("vectorize", {part("lane")}) &&
        s_.apply("unroll", {part("row")});
    return done ? outer : std::vector<std::string>{};
  }

  ScheduleState& s_;
  const Panels& p_;
  const std::string name_;
  const char* const loops_;
};

}  // namespace

std::vector<int64_t> layout_of(const Panels& p) {
  std::vector<int64_t> layout{p.dim, p.width, 0};
  for (int d : p.across) layout.insert(layout.end(), {d, 1, 0});
  layout.insert(layout.end(), {p.dim, 1, p.width});
  return layout;
}

bool schedule_copy(ScheduleState& s, const Panels& p) {
  const std::string name = p.block();
  const bool tasks = forks(s, name);
  const std::vector<std::string> outer = OperandCopy(s, p, "i").write();
  if (outer.empty()) return false;
  if (!tasks) return true;
  // Images, too, where there are several; rows of a matrix are no tasks.
  std::string task = outer[0];
  for (size_t k = 1; k < outer.size(); ++k) {
    const std::string both = name + ".t" + std::to_string(k - 1);
    if (!s.apply("collapse", {task, outer[k], both})) return false;
    task = both;
  }
  return s.apply("parallelize", {task});
}

bool stage_copy(ScheduleState& s, const Panels& p, const std::string& around) {
  if (!s.apply("compute_at", {p.block(), around})) return false;
  constexpr int64_t kMostStreams = 64;
  Panels part = p;
  for (const For* f : s.place(p.block()).loops)
    if (f->var.name() == p.block() + ".s" + std::to_string(p.dim))
      part.streams = std::clamp<int64_t>(extent_or(f->extent, p.width) / p.lanes, 1, kMostStreams);
  return !OperandCopy(s, part, "s").write().empty();
}

}  // namespace tilewright::passes
