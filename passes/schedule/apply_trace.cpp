// The interpreter of schedules. A schedule that is data can be stored in the executable, printed,
// searched over and replayed elsewhere (Halide's and TVM's schedules are calls; Exo and TVM's
// traces are the nearest relatives). Each primitive checks its own legality; here names are kept
// unique.
#include <array>
#include <charconv>
#include <sstream>

#include "passes/schedule/primitives.h"
#include "passes/schedule/tree.h"

namespace tilewright::passes {

namespace {
constexpr std::array<Primitive, 25> kPrimitives{{
    {"split", "names: loop, outer, inner; numbers: factor", 3, 1, split},
    {"reorder", "names: loops, outermost first", kAny, 0, reorder},
    {"collapse", "names: outer, inner, joined", 3, 0, collapse},
    {"join_axes", "names: block; numbers: outer axis, inner axis", 1, 2, join_axes},
    {"split_axis", "names: block, outer loop, inner loop; numbers: axis, factor", 3, 2, split_axis},
    {"inline", "names: block", 1, 0, inline_block},
    {"fuse_loops", "names: block, loop", 2, 0, fuse_loops},
    {"compute_at", "names: block, loop", 2, 0, compute_at},
    {"align_bounds", "names: block; numbers: axis, multiple", 1, 2, align_bounds},
    {"tile_attention", "names: block of the weights; numbers: rows, keys", 1, 2, tile_attention},
    {"cache_read", "names: block, buffer, new buffer", 3, 0, cache_read},
    {"cache_write", "names: block, new buffer, new block", 3, 0, cache_write},
    {"transform_layout",
     "names: buffer; numbers: dim, divisor, modulus of each physical axis, extent of the last one",
     1, kAny, transform_layout},
    {"decompose_reduction", "names: block, loop", 2, 0, decompose_reduction},
    {"compose_init", "names: block, init block", 2, 0, compose_init},
    {"rfactor", "names: block, partial block; numbers: axis, factor", 2, 2, rfactor},
    {"split_reduction", "names: block, partial block; numbers: axis, parts", 2, 2, split_reduction},
    {"unroll", "names: loop", 1, 0, unroll},
    {"vectorize", "names: loop", 1, 0, vectorize},
    {"parallelize", "names: loop", 1, 0, parallelize},
    {"tensorize", "names: loop, instruction", 2, 0, tensorize},
    {"stream", "names: block", 1, 0, stream},
    {"prefetch", "names: block, buffer; numbers: elements ahead", 2, 1, prefetch},
    {"prefetch_next",
     "names: block, reader, buffer, loop; numbers: elements, kind, iterations ahead", 4, 3,
     prefetch_next},
    {"prefetch_rows", "names: block, reader, buffer, loop; numbers: elements, rows, apart", 4, 3,
     prefetch_rows},
}};

bool fits(size_t given, size_t wanted) { return wanted == kAny ? given > 0 : given == wanted; }

}  // namespace

std::span<const Primitive> primitives() { return kPrimitives; }

Result<ir::Kernel> apply_trace(ir::Kernel kernel, const Trace& trace) {
  for (size_t i = 0; i < trace.size(); ++i) {
    const Primitive* found = nullptr;
    for (const Primitive& p : kPrimitives)
      if (p.name == trace[i].primitive) found = &p;
    const std::string where = "kernel '" + kernel.name + "', step " + std::to_string(i) + ": " +
                              to_string(Trace{trace[i]});
    if (!found) return invalid("unknown primitive", where);
    if (!fits(trace[i].names.size(), found->names) ||
        !fits(trace[i].numbers.size(), found->numbers))
      return invalid("expected " + std::string(found->parameters), where);
    auto next = found->apply(kernel, trace[i]);
    if (!next.ok()) {
      next.error().location = where;
      return std::move(next.error());
    }
    kernel = std::move(next).value();
    if (const std::string twice = repeated_name(kernel); !twice.empty())
      return invalid("the kernel has a second " + twice + " then", where);
  }
  return kernel;
}

Status check_inits(const ir::Kernel& kernel) {
  for (const BlockPlace& p : all_blocks(kernel.body))
    for (const ir::BlockAxis& a : p.block->axes)
      if (p.block->init && a.kind == ir::AxisKind::kReduce && !ir::as_int(a.extent))
        return internal_error("block '" + p.block->name +
                              "' may be over nothing and keeps its init");
  return {};
}

std::string to_string(const Trace& trace) {
  std::string text;
  for (const Step& s : trace) {
    text += s.primitive + "(";
    for (size_t i = 0; i < s.names.size(); ++i) text += (i ? " " : "") + s.names[i];
    if (!s.numbers.empty()) text += ";";
    for (int64_t n : s.numbers) text += " " + std::to_string(n);
    text += ")\n";
  }
  return text;
}

Result<Trace> parse_trace(const std::string& text) {
  Trace trace;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.empty()) continue;
    const size_t open = line.find('('), close = line.rfind(')'),
                 semicolon = std::min(line.find(';'), close);
    if (open == std::string::npos || close == std::string::npos || close < open ||
        line.find_first_not_of(" \t\r", close + 1) != std::string::npos)
      return invalid("expected primitive(names; numbers)", "line " + std::to_string(number));
    Step s{line.substr(0, open), {}, {}};
    std::istringstream names(line.substr(open + 1, semicolon - open - 1));
    for (std::string word; names >> word;) s.names.push_back(word);
    if (semicolon < close) {
      std::istringstream numbers(line.substr(semicolon + 1, close - semicolon - 1));
      for (std::string word; numbers >> word;) {
        int64_t n = 0;
        const char* end = word.data() + word.size();
        if (const auto read = std::from_chars(word.data(), end, n);
            read.ec != std::errc() || read.ptr != end)
          return invalid("expected numbers after ';'", "line " + std::to_string(number));
        s.numbers.push_back(n);
      }
    }
    trace.push_back(std::move(s));
  }
  return trace;
}

}  // namespace tilewright::passes
