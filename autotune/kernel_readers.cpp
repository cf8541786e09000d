#include "autotune/kernel_readers.h"

#include "ir/program/buffer_uses.h"

namespace tilewright::autotune {

KernelReaders kernel_readers(const ir::Program& program) {
  std::map<int32_t, std::set<std::string>> written, read;  // by storage
  std::vector<std::vector<ir::BufferUse>> uses;
  for (const ir::Kernel& k : program.kernels) uses.push_back(ir::param_uses(k));
  for (const auto& block : program.blocks)
    for (const ir::ProgramInstruction& i : block) {
      const auto* call = std::get_if<ir::CallInstruction>(&i);
      if (!call) continue;
      const auto k = static_cast<size_t>(call->kernel);
      for (size_t p = 0; p < call->buffers.size(); ++p) {
        auto& users = uses[k][p] == ir::BufferUse::kWritten ? written : read;
        users[ir::storage_root(program, call->buffers[p])].insert(program.kernels[k].name);
      }
    }
  KernelReaders readers;
  for (const auto& [storage, writers] : written)
    for (const std::string& w : writers)
      for (const std::string& r : read[storage])
        if (r != w) readers[w].insert(r);
  return readers;
}

}  // namespace tilewright::autotune
