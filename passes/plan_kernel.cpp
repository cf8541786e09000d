#include "passes/plan_kernel.h"

#include <set>

#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "ir/program/kernel_name.h"
#include "passes/count_operations.h"
#include "passes/loops/loop_passes.h"
#include "passes/lower.h"

namespace tilewright::passes {

using namespace ir;

namespace {

struct Accesses {
  std::set<const BufferNode*> loaded, stored;
};
Accesses accesses_of(const Kernel& k) {
  Accesses a;
  for_each_expr(k.body, [&](const Expr& e) {
    if (const auto* l = e.as<Load>()) a.loaded.insert(l->buffer.get());
  });
  for_each_stmt(k.body, [&](const Stmt& s) {
    if (const auto* st = s.as<Store>()) a.stored.insert(st->buffer.get());
  });
  return a;
}

ProgramBuffer buffer_of(const Buffer& param) {
  ProgramBuffer b;
  b.name = param->name;
  b.type = {param->dtype, param->shape};
  b.layout = param->layout;
  return b;
}

// Extents that a run finds out of its inputs are extents of one by themselves.
Status check_scalars(const Kernel& k, const Program& program) {
  for (const Var& s : k.scalars) {
    bool found = false;
    for (const int32_t b : program.inputs)
      for (const Expr& d : program.buffers[static_cast<size_t>(b)].type.dims) found |= d.same_as(s);
    if (!found) return invalid("no input has extent '" + s.name() + "'", k.name);
  }
  return {};
}

}  // namespace

std::vector<Buffer> inputs_of(const Kernel& kernel) {
  const Accesses accesses = accesses_of(kernel);
  std::vector<Buffer> inputs;
  for (const Buffer& p : kernel.params)
    if (!accesses.stored.count(p.get())) inputs.push_back(p);
  return inputs;
}

Result<Program> plan_kernel(Kernel kernel, const std::map<std::string, ConstantRef>& constants,
                            const LowerOptions& options, const LowerKernel& lower_kernel) {
  Program program;
  program.name = kernel.name;
  program.symbols = kernel.scalars;
  const Accesses accesses = accesses_of(kernel);
  CallInstruction call{.kernel = 0, .profile = 0};
  std::set<std::string> known;
  Expr bytes = 0;
  for (const Buffer& p : kernel.params) {
    const bool reads = accesses.loaded.count(p.get()) != 0,
               writes = accesses.stored.count(p.get()) != 0;
    if (reads && writes)
      return invalid("parameter '" + p->name + "' is read and written", kernel.name);
    const auto id = static_cast<int32_t>(program.buffers.size());
    ProgramBuffer b = buffer_of(p);
    if (const auto it = constants.find(p->name); it != constants.end() && !writes) {
      b.kind = StorageKind::kConstant;
      b.constant = it->second;
      known.insert(p->name);
    } else {
      b.kind = writes ? StorageKind::kOutput : StorageKind::kInput;
      (writes ? program.outputs : program.inputs).push_back(id);
    }
    bytes = bytes + element_count(b.type) * Expr(byte_size(p->dtype));
    program.buffers.push_back(std::move(b));
    call.buffers.push_back(id);
  }
  TW_RETURN_IF_ERROR(check_scalars(kernel, program));
  for (const Var& s : kernel.scalars) call.scalars.push_back(s);
  const std::string source = unnumbered_name(kernel.name);
  kernel.name = numbered_name(0, source);
  kernel.exact = options.numerics == Numerics::kExact;
  program.profile.push_back({{source}, kernel.name, count_flops(kernel), simplify(bytes)});
  TW_ASSIGN(LoweredKernel lowered, lower_kernel(std::move(kernel), known));
  for (size_t p = 0; p < lowered.kernel.params.size(); ++p) {
    ProgramBuffer& b = program.buffers[p];
    if (b.kind == StorageKind::kConstant) b.layout = lowered.kernel.params[p]->layout;
    b.elements = simplify(
        storage_elements(BufferNode{b.name, b.type.dtype, b.type.dims, b.layout, Scope::kParam}));
  }
  program.kernels.push_back(std::move(lowered.kernel));
  program.schedules.push_back(std::move(lowered.schedule));
  program.blocks.emplace_back().push_back(std::move(call));
  program.numerics = options.numerics;
  return run_pipeline(program_passes(), std::move(program), options);
}

}  // namespace tilewright::passes
