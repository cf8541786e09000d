// In-memory loading (ORC) and linking (lld) of compiled objects.
#include <lld/Common/Driver.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>

#include <mutex>

#include "codegen/cpu/compile_kernels.h"

LLD_HAS_DRIVER(elf)

namespace tilewright::cpu {

namespace {

// Objects linked in this process by LLVM's ORC JIT (JITLink or RuntimeDyld); symbols resolve
// lazily.
class OrcCode : public LoadedCode {
 public:
  explicit OrcCode(std::unique_ptr<llvm::orc::LLJIT> jit) : jit_(std::move(jit)) {}
  void* find(const std::string& symbol) override {
    auto address = jit_->lookup(symbol);
    if (!address) {
      llvm::consumeError(address.takeError());
      return nullptr;
    }
    return address->toPtr<void*>();
  }
  llvm::orc::LLJIT& jit() { return *jit_; }

 private:
  std::unique_ptr<llvm::orc::LLJIT> jit_;
};

}  // namespace

Result<std::shared_ptr<LoadedCode>> load_code(const std::vector<std::vector<uint8_t>>& objects) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit) return internal_error(llvm::toString(jit.takeError()));
  auto code = std::make_shared<OrcCode>(std::move(*jit));
  for (const auto& object : objects) {
    llvm::StringRef bytes(reinterpret_cast<const char*>(object.data()), object.size());
    if (auto error = code->jit().addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(bytes)))
      return internal_error(llvm::toString(std::move(error)));
  }
  return std::static_pointer_cast<LoadedCode>(code);
}

Status link_shared_object(const std::vector<std::string>& object_paths,
                          const std::string& output_path) {
  static std::mutex one_at_a_time;  // lld keeps global state
  static bool usable = true;
  std::lock_guard lock(one_at_a_time);
  if (!usable)
    return internal_error("the linker failed before and cannot run again in this process");
  std::vector<const char*> args{"ld.lld",         "-shared",          "--build-id=none",
                                "--no-undefined", "--gc-sections",    "-z",
                                "noexecstack",    "--hash-style=gnu", "-s"};
  for (const std::string& p : object_paths) args.push_back(p.c_str());
  args.push_back("-o");
  args.push_back(output_path.c_str());
  std::string errors;
  llvm::raw_string_ostream err(errors);
  const lld::Result r = lld::lldMain(args, llvm::nulls(), err, {{lld::Gnu, &lld::elf::link}});
  usable = r.canRunAgain;
  if (r.retCode) return io_error("cannot link '" + output_path + "': " + err.str());
  return {};
}

}  // namespace tilewright::cpu
