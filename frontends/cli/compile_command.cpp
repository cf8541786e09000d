// tilewright compile, info, lower, ops and devices.
#include <iostream>

#include "codegen/cpu/compile_kernels.h"
#include "frontends/cli/cli.h"
#include "ir/graph/op.h"
#include "runtime/device_cpu.h"

namespace tilewright::cli {

int compile_command(const ModelOptions& options, const std::vector<std::vector<std::string>>& variants, const std::string& output) {
  auto model = open_model(options.model);
  if (!model.ok()) return report(model.error());
  std::vector<Binding> bindings;
  for (const auto& v : variants) {
    auto b = parse_shapes(**model, v);
    if (!b.ok()) return report(b.error());
    bindings.push_back(std::move(*b));
  }
  if (bindings.empty()) bindings.emplace_back();
  CompileOptions compile;
  compile.cpu = options.cpu;
  compile.schedule_threads = options.threads > 0 ? options.threads : available_cpus();
  if (Status s = compile_to_file(**model, bindings, compile, output); !s.ok()) return report(s.error());
  return kOk;
}

}  // namespace tilewright::cli
