// Runs compiled register code (compiler.h, machine.h): a loop that calls the next instruction's
// handler. Compiling first keeps it fast enough to be the oracle of every test; it is not meant to
// be faster than that takes.
#include "ir/interpreter/interpreter.h"

#include <algorithm>

#include "ir/interpreter/compiler.h"

namespace tilewright::ir {

using namespace interpreter;

Status interpret(const Kernel& kernel, const std::vector<void*>& params,
                 const std::vector<int64_t>& scalars, const InterpretOptions& options) {
  if (params.size() != kernel.params.size() || scalars.size() != kernel.scalars.size())
    return internal_error("kernel '" + kernel.name + "' takes " +
                          std::to_string(kernel.params.size()) + " buffers and " +
                          std::to_string(kernel.scalars.size()) + " scalars, found " +
                          std::to_string(params.size()) + " and " + std::to_string(scalars.size()));
  Compiler compiler(kernel);
  if (Status s = compiler.compile(kernel); !s.ok()) {
    s.error().location = "kernel '" + kernel.name + "'";
    return s;
  }
  MachineCode program = compiler.take();
  for (size_t n = 0; n < params.size(); ++n)
    program.buffers[n].data = static_cast<uint8_t*>(params[n]);
  Slot zero;
  zero.u = 0;
  std::vector<Slot> registers(compiler.height() + program.constants.size() + 1, zero);
  for (size_t n = 0; n < scalars.size(); ++n) registers[n].i = scalars[n];
  std::copy(program.constants.begin(), program.constants.end(),
            registers.begin() + program.first_constant);

  Machine m;
  m.r = registers.data();
  m.program = &program;
  m.pc = program.code.data();
  m.halt = &program.code.back();
  m.check_uninitialised = options.check_uninitialised;
  while (m.running) {
    const Inst& i = *m.pc++;
    i.handler(m, i);
  }
  if (!m.error) return {};
  m.error->location = "kernel '" + kernel.name + "'";
  return *m.error;
}

}  // namespace tilewright::ir
