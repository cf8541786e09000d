// Ranges of results that the caller has a use for before the run ends: each is started behind the last instruction
// that reads or writes any of it.
#include <algorithm>

#include "ir/program/buffer_ranges.h"
#include "passes/plan_program.h"

namespace tilewright::passes {

using namespace ir;

// The buffer in which the caller finds the result of that name: an output, or an input that the run updates. -1: none.
static int32_t result_named(const Program& p, const std::string& name) {
  const auto find = [&](const std::vector<int32_t>& among, bool updated) {
    const auto found = std::ranges::find_if(among, [&](int32_t b) {
      const ProgramBuffer& buffer = p.buffers[static_cast<size_t>(b)];
      return buffer.name == name && (!updated || buffer.updated);
    });
    return found == among.end() ? -1 : *found;
  };
  const int32_t output = find(p.outputs, false);
  return output >= 0 ? output : find(p.inputs, true);
}

Result<Program> start_ranges(Program program, const std::vector<ResultRange>& ranges) {
  if (ranges.empty()) return program;
  const BufferUses uses(program);
  std::vector<ProgramInstruction>& main = program.blocks[0];
  struct Start {
    size_t behind;  // so many instructions
    StartInstruction instruction;
  };
  std::vector<Start> starts;
  for (const ResultRange& r : ranges) {
    const int32_t buffer = result_named(program, r.result);
    if (buffer < 0) return invalid("there is no result '" + r.result + "' to start ranges of");
    BufferRange memory = range_of(program, buffer);
    memory.end = memory.begin + r.end;
    memory.begin += r.begin;
    size_t behind = main.size();
    while (behind > 0 && !touches(program, uses, main[behind - 1], memory, false)) --behind;
    starts.push_back({behind, {buffer, r.begin, r.end, 0}});
  }
  std::ranges::stable_sort(starts, {}, &Start::behind);
  std::vector<ProgramInstruction> all;
  size_t next = 0;
  for (size_t i = 0; i <= main.size(); ++i) {
    for (; next < starts.size() && starts[next].behind == i; ++next) {
      starts[next].instruction.number = static_cast<int64_t>(next);
      all.push_back(starts[next].instruction);
    }
    if (i < main.size()) all.push_back(std::move(main[i]));
  }
  main = std::move(all);
  return set_lifetimes(std::move(program));
}

}  // namespace tilewright::passes
