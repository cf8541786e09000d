// The structure of programs: indices in range, types and counts of operands, the tree of blocks.
// What depends on the order of instructions follows in verify_program_order.cpp, only where this
// holds.
#include "ir/verify_program.h"

#include <algorithm>
#include <set>

#include "ir/graph/view_layouts.h"
#include "ir/loops/layout.h"
#include "ir/loops/rewrite.h"
#include "ir/module_text/printer_graph.h"
#include "ir/program/buffer_uses.h"
#include "ir/program_verifier.h"
#include "ir/text/printer_loops.h"
#include "runtime/core/memory.h"

namespace tilewright::ir {

void ProgramVerifier::report(std::string text) {
  ++found_;
  constexpr size_t kMost = 50;
  if (violations_.size() < kMost) violations_.push_back(std::move(text) + place_);
}
std::string ProgramVerifier::who(int32_t b) const {
  return "b" + std::to_string(b) + " '" + p_.buffers[static_cast<size_t>(b)].name + "'";
}
bool ProgramVerifier::is_buffer(int32_t b, const char* what) {
  const bool exists = b >= 0 && static_cast<size_t>(b) < p_.buffers.size();
  if (!exists) report(std::string(what) + " is b" + std::to_string(b) + ", which does not exist");
  return exists;
}
void ProgramVerifier::size(const Expr& e, const std::string& what) {
  if (!e) return report(what + " is missing");
  if (!(e.type() == ScalarType{})) report(what + " is a " + to_text(e.type()) + ", expected i64");
  for (const Var& v : free_vars_in_order(e))
    if (!symbols_.count(v.get()))
      report(what + " names '" + v.name() + "', which is no symbol of the program");
}

void ProgramVerifier::buffer(int32_t number) {
  const ProgramBuffer& b = p_.buffers[static_cast<size_t>(number)];
  for (const Expr& d : b.type.dims) size(d, "an extent of " + who(number));
  size(b.elements, "the storage size of " + who(number));
  if (b.alias_of >= 0) {
    if (storage_root(p_, number) < 0)
      return report(who(number) + " is a view of no buffer's storage");
    view_layout(number);
    if (b.kind == StorageKind::kInput || b.kind == StorageKind::kConstant || b.dynamic)
      report(who(number) + " is a view and an input, a constant or dynamic");
  }
  if (b.alias_offset != 0 || b.alias_of >= 0) offset(number);
  if (b.updated && b.kind != StorageKind::kInput) report(who(number) + " is updated and no input");
  const bool is_constant = b.kind == StorageKind::kConstant;
  if (is_constant != (b.constant != nullptr))
    report(who(number) +
           (is_constant ? " is a constant without contents" : " has contents and is no constant"));
  if (b.constant &&
      (b.constant->dtype != b.type.dtype || constant_shape(b.type) != b.constant->shape))
    report("the contents of " + who(number) + " are " + std::string(name(b.constant->dtype)) +
           tilewright::to_string(b.constant->shape) + ", expected " + to_text(b.type));
}

// Of a view that does not begin where what it views does.
void ProgramVerifier::offset(int32_t number) {
  const ProgramBuffer& b = p_.buffers[static_cast<size_t>(number)];
  const std::string what = who(number) + " begins at byte " + std::to_string(b.alias_offset);
  if (b.alias_of < 0) return report(what + " and is no view");
  if (b.alias_offset < 0 || b.alias_offset % static_cast<int64_t>(kHostAlignment) != 0)
    report(what + ", which is no multiple of " + std::to_string(kHostAlignment));
  const ProgramBuffer& whole = at(b.alias_of);
  const auto all = as_int(whole.elements), own = as_int(b.elements);
  if (!all || !own) {
    if (b.alias_offset != 0) report(what + " of what has no size that is known");
    return;
  }
  const int64_t bytes = *all * byte_size(whole.type.dtype);
  if (b.alias_offset + *own * byte_size(b.type.dtype) > bytes)
    report(what + " and ends behind " + who(b.alias_of) + " of " + std::to_string(bytes) +
           " bytes");
}

// Inputs and outputs.
void ProgramVerifier::signature() {
  std::set<int32_t> inputs;
  for (const int32_t b : p_.inputs) {
    if (!is_buffer(b, "an input")) continue;
    if (at(b).kind != StorageKind::kInput) report(who(b) + " is listed as an input and is none");
    row_major(b, "is an input");
    if (!inputs.insert(b).second) report(who(b) + " is listed as an input twice");
  }
  for (size_t b = 0; b < p_.buffers.size(); ++b)
    if (p_.buffers[b].kind == StorageKind::kInput && !inputs.count(static_cast<int32_t>(b)))
      report(who(static_cast<int32_t>(b)) + " is an input that is not listed");
  for (const int32_t b : p_.outputs)
    if (is_buffer(b, "an output")) {
      row_major(b, "is an output");
      if (at(b).alias_offset != 0) report(who(b) + " is an output and begins within what it views");
    }
}

namespace {
// Returns whether a parameter of this type and layout addresses the buffer's elements in their memory
// order. If the ranks differ, both must be row-major.
bool is_laid_out_as(const ProgramBuffer& b, const TensorType& type, const Layout& layout) {
  if (b.layout == layout) return true;
  return b.type.rank() == type.rank()
             ? is_same_order(layout, b.layout, type)
             : is_row_major(layout, type) && is_row_major(b.layout, b.type);
}
}  // namespace

void ProgramVerifier::call(const CallInstruction& x) {
  if (x.kernel < 0 || static_cast<size_t>(x.kernel) >= p_.kernels.size())
    return report("a call of kernel " + std::to_string(x.kernel) + ", which does not exist");
  if (x.profile >= static_cast<int32_t>(p_.profile.size()))
    report("a call names profile " + std::to_string(x.profile) + ", which does not exist");
  const Kernel& k = p_.kernels[static_cast<size_t>(x.kernel)];
  if (x.scalars.size() != k.scalars.size() || x.buffers.size() != k.params.size())
    return report("a call of " + k.name + " with " + std::to_string(x.buffers.size()) +
                  " buffers and " + std::to_string(x.scalars.size()) + " scalars, expected " +
                  std::to_string(k.params.size()) + " and " + std::to_string(k.scalars.size()));
  for (const Expr& e : x.scalars) size(e, "a scalar of " + k.name);
  const std::vector<BufferUse> uses = param_uses(k);
  for (size_t p = 0; p < k.params.size(); ++p) {
    if (!is_buffer(x.buffers[p], "an argument")) continue;
    const int32_t root = storage_root(p_, x.buffers[p]);
    const std::string param = "parameter '" + k.params[p]->name + "' of " + k.name;
    if (at(x.buffers[p]).type.dtype != k.params[p]->dtype)
      report(who(x.buffers[p]) + " is given to " + param + ", whose element type is " +
             std::string(name(k.params[p]->dtype)));
    const StorageKind kind = root < 0 ? StorageKind::kTemporary : at(root).kind;
    if (uses[p] == BufferUse::kWritten && kind != StorageKind::kTemporary &&
        kind != StorageKind::kOutput && !at(root).updated)
      report(k.name + " stores to " + who(root) + ", which cannot be written");
    Shape extents;
    for (const Expr& d : k.params[p]->shape) extents.push_back(as_int(d).value_or(-1));
    const TensorType stored{k.params[p]->dtype, k.params[p]->shape};
    if (!is_laid_out_as(at(x.buffers[p]), stored, k.params[p]->layout))
      report(who(x.buffers[p]) + ", " + layout_text(at(x.buffers[p]).layout) + ", is given to " +
             param + ", " + layout_text(k.params[p]->layout));
    const auto elements = as_int(at(x.buffers[p]).elements);
    if (elements && std::count(extents.begin(), extents.end(), -1) == 0 &&
        storage_elements(k.params[p]->layout, extents) != *elements)
      report(who(x.buffers[p]) + " of " + std::to_string(*elements) + " elements is given to " +
             param + " of " + std::to_string(storage_elements(k.params[p]->layout, extents)));
  }
}

// Indices of the instructions, and that blocks form a tree below the main one. False where what an
// instruction names does not exist: nothing more can be said then.
bool ProgramVerifier::structure() {
  const size_t before = found_;
  std::vector<int> entered(p_.blocks.size());
  if (p_.schedules.size() != p_.kernels.size())
    report("there are " + std::to_string(p_.kernels.size()) + " kernels and " +
           std::to_string(p_.schedules.size()) + " schedules");
  if (p_.blocks.empty())
    report("there is no main block");
  else
    entered[0] = 1;
  for (size_t b = 0; b < p_.blocks.size(); ++b)
    for (size_t i = 0; i < p_.blocks[b].size(); ++i) {
      stand_at(b, i);
      const ProgramInstruction& x = p_.blocks[b][i];
      if (const auto* c = std::get_if<CallInstruction>(&x)) call(*c);
      for (const int32_t inner : inner_blocks(x)) {
        if (inner < 0 || static_cast<size_t>(inner) >= p_.blocks.size())
          report("block " + std::to_string(inner) + " does not exist");
        else if (++entered[static_cast<size_t>(inner)] > 1)
          report("block " + std::to_string(inner) + " is entered more than once");
      }
      if (!std::holds_alternative<CallInstruction>(x))
        uses_.of(x, [&](int32_t buffer, BufferUse) { is_buffer(buffer, "an operand"); });
    }
  place_.clear();
  for (size_t b = 0; b < entered.size(); ++b)
    if (!entered[b]) report("block " + std::to_string(b) + " is never entered");
  return found_ == before;
}

Status ProgramVerifier::run() {
  for (const Var& s : p_.symbols)
    if (!symbols_.insert(s.get()).second) report("symbol '" + s.name() + "' is listed twice");
  for (size_t b = 0; b < p_.buffers.size(); ++b) buffer(static_cast<int32_t>(b));
  signature();
  if (structure() && found_ == 0) {
    for (size_t b = 0; b < p_.blocks.size(); ++b)
      for (size_t i = 0; i < p_.blocks[b].size(); ++i) {
        stand_at(b, i);
        layouts(p_.blocks[b][i]);
      }
    place_.clear();
    order();
    lifetimes();
    starts();
  }
  if (found_ == 0) return {};
  Error e = internal_error(
      "the program breaks " + std::to_string(found_) + (found_ == 1 ? " rule" : " rules"),
      "program '" + p_.name + "'");
  e.notes = std::move(violations_);
  return e;
}

Status verify(const Program& program) { return ProgramVerifier(program).run(); }

}  // namespace tilewright::ir
