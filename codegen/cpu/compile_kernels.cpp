// One LLVM module per kernel: emit, verify, a short pipeline, code generation. LLVM's loop and SLP
// vectorisers and its unroller stay off, since vectors, unrolling and their order are the
// schedule's; what is left for it is what a schedule does not see: redundant address arithmetic,
// loop-invariant code, instruction selection, register allocation.
#include "codegen/cpu/alias_scopes.h"
#include "codegen/cpu/compile_kernels.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "codegen/cache/build_id.h"
#include "codegen/cpu/emit_llvm.h"
#include "codegen/cpu/emit_object.h"
#include "codegen/cpu/features_used.h"
#include "codegen/cpu/llvm_faults.h"

namespace tilewright::cpu {

namespace {

void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
}

// AllowFPOpFusion::Standard: only operations that the IR marks `contract` become FMA, so that
// `exact` kernels keep each rounding.
std::unique_ptr<llvm::TargetMachine> target_machine(const ir::MachineDescription& machine) {
  initialize_llvm();
  std::string error, features;
  // Each kernel's functions name the features that they use beyond these.
  for (const std::string& f : base_features(machine.features))
    features += (features.empty() ? "+" : ",+") + f;
  const llvm::Triple triple("x86_64-unknown-linux-gnu");
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  TW_CHECK(target);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(triple, "x86-64", features, options, llvm::Reloc::PIC_,
                                  std::nullopt, llvm::CodeGenOptLevel::Default));
}

// What this code needs and no more: scalars out of memory, redundant address arithmetic and stores
// that others replace away, invariants out of loops. The schedule has decided on vectors and
// unrolling.
constexpr const char* kPipeline =
    "function(sroa,early-cse<memssa>,keep-masked-loads,instcombine<no-verify-fixpoint>,simplifycfg,"
    "loop-mssa(licm<allowspeculation>),"
    "early-cse<memssa>,sroa,dse,keep-masked-loads,instcombine<no-verify-fixpoint>,"
    "loop(indvars,loop-deletion),simplifycfg,adce,split-masked-stores,copy-signs-by-bits)";

Status optimize(llvm::Module& module, llvm::TargetMachine& target) {
  llvm::LoopAnalysisManager lam;
  llvm::FunctionAnalysisManager fam;
  llvm::CGSCCAnalysisManager cgam;
  llvm::ModuleAnalysisManager mam;
  llvm::PassBuilder pb(&target);
  register_fault_passes(pb);
  pb.registerModuleAnalyses(mam);
  pb.registerCGSCCAnalyses(cgam);
  pb.registerFunctionAnalyses(fam);
  pb.registerLoopAnalyses(lam);
  pb.crossRegisterProxies(lam, fam, cgam, mam);
  llvm::ModulePassManager passes;
  if (auto error = pb.parsePassPipeline(passes, kPipeline))
    return internal_error(llvm::toString(std::move(error)));
  add_alias_scopes(module);
  passes.run(module, mam);
  return {};
}

// A module that breaks LLVM's rules is a bug of the emitter: an error here instead of a crash
// there.
Status verify_module(llvm::Module& module, const std::string& name) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (llvm::verifyModule(module, &os))
    return internal_error("LLVM IR of kernel '" + name + "' is not valid: " + os.str());
  return {};
}

std::unique_ptr<llvm::Module> new_module(llvm::LLVMContext& context, const std::string& name,
                                         llvm::TargetMachine& target) {
  auto module = std::make_unique<llvm::Module>(name, context);
  module->setTargetTriple(target.getTargetTriple());
  module->setDataLayout(target.createDataLayout());
  return module;
}

// The machine as the kernel's code may use it.
ir::MachineDescription machine_for(const ir::Kernel& kernel, ir::MachineDescription machine) {
  machine.features = features_used(kernel, machine.features);
  return machine;
}

Result<CompiledKernel> compile_one(const ir::Kernel& kernel, const ir::MachineDescription& machine,
                                   llvm::TargetMachine& target) {
  llvm::LLVMContext context;
  auto module = new_module(context, kernel.name, target);
  const ir::MachineDescription own = machine_for(kernel, machine);
  CompiledKernel result;
  result.features = own.features;
  TW_RETURN_IF_ERROR(emit_kernel(kernel, own, *module));
  TW_RETURN_IF_ERROR(verify_module(*module, kernel.name));
  TW_RETURN_IF_ERROR(optimize(*module, target));
  TW_ASSIGN(result.object, emit_object(*module, target, FileType::kObject));
  return result;
}

}  // namespace

std::string compiler_version() {
  const std::string ours = cache::build_id(reinterpret_cast<const void*>(&compiler_version)),
                    llvm = cache::build_id(reinterpret_cast<const void*>(&llvm::verifyModule));
  return ours.empty() || llvm.empty() ? "" : ours + " " + llvm;
}

Result<std::vector<CompiledKernel>> compile_kernels(
    const std::vector<const ir::Kernel*>& kernels, const ir::MachineDescription& machine,
    int threads, const std::function<void(size_t, size_t)>& progress) {
  initialize_llvm();
  std::vector<Result<CompiledKernel>> results(
      kernels.size(), Result<CompiledKernel>(internal_error("not compiled")));
  std::atomic<size_t> next{0}, done{0};
  auto work = [&] {
    auto target = target_machine(machine);
    for (size_t i = next++; i < kernels.size(); i = next++) {
      results[i] = catch_failures([&] { return compile_one(*kernels[i], machine, *target); });
      if (progress) progress(++done, kernels.size());
    }
  };
  std::vector<std::thread> workers;
  for (int t = 1; t < threads && static_cast<size_t>(t) < kernels.size(); ++t)
    workers.emplace_back(work);
  work();
  for (std::thread& t : workers) t.join();
  std::vector<CompiledKernel> all;
  for (auto& r : results) {
    if (!r.ok()) return std::move(r.error());
    all.push_back(std::move(*r));
  }
  return all;
}

Result<std::string> print_code(const ir::Kernel& kernel, const ir::MachineDescription& machine,
                               CodeForm form) {
  auto target = target_machine(machine);
  llvm::LLVMContext context;
  auto module = new_module(context, kernel.name, *target);
  TW_RETURN_IF_ERROR(emit_kernel(kernel, machine_for(kernel, machine), *module));
  TW_RETURN_IF_ERROR(verify_module(*module, kernel.name));
  TW_RETURN_IF_ERROR(optimize(*module, *target));
  if (form == CodeForm::kLlvm) {
    std::string text;
    llvm::raw_string_ostream os(text);
    module->print(os, nullptr);
    return os.str();
  }
  TW_ASSIGN(std::vector<uint8_t> text, emit_object(*module, *target, FileType::kAssembly));
  return std::string(text.begin(), text.end());
}

// Functions are declared hidden, so that the linker resolves the pointers to relative relocations,
// the only ones that a compiled model may have (check_passive_object).
Result<std::vector<uint8_t>> emit_function_table(const std::vector<std::string>& functions,
                                                 const std::string& name,
                                                 const std::string& count_name,
                                                 const ir::MachineDescription& machine) {
  auto target = target_machine(machine);
  llvm::LLVMContext context;
  auto module = new_module(context, name, *target);
  auto* pointer = llvm::PointerType::get(context, 0);
  auto* type =
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, pointer, pointer}, false);
  std::vector<llvm::Constant*> entries;
  for (const std::string& f : functions) {
    llvm::Function* fn = module->getFunction(f);  // equal kernels are one function
    if (!fn) fn = llvm::Function::Create(type, llvm::Function::ExternalLinkage, f, *module);
    fn->setVisibility(llvm::GlobalValue::HiddenVisibility);
    entries.push_back(fn);
  }
  auto* array = llvm::ArrayType::get(pointer, entries.size());
  new llvm::GlobalVariable(*module, array, true, llvm::GlobalValue::ExternalLinkage,
                           llvm::ConstantArray::get(array, entries), name);
  auto* i64 = llvm::Type::getInt64Ty(context);
  new llvm::GlobalVariable(*module, i64, true, llvm::GlobalValue::ExternalLinkage,
                           llvm::ConstantInt::get(i64, entries.size()), count_name);
  return emit_object(*module, *target, FileType::kObject);
}

}  // namespace tilewright::cpu
