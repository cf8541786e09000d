#include "tests/codegen/vector_math_jit.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>

namespace tilewright::cpu {
using namespace llvm;

struct MathKernel::Code {
  std::unique_ptr<orc::LLJIT> jit;
};
MathKernel::MathKernel() = default;
MathKernel::MathKernel(MathKernel&&) noexcept = default;
MathKernel::~MathKernel() = default;

namespace {

ExitOnError exit_on_error;

// void f(x, z, y, n): a loop in steps of `width`.
void build_loop(Module& m, std::optional<MathOp> op, bool is_double, int width,
                const MathOptions& options) {
  IRBuilder<> b(m.getContext());
  Type *ptr = b.getPtrTy(), *element = is_double ? b.getDoubleTy() : b.getFloatTy();
  Type* lanes = width == 1 ? element : FixedVectorType::get(element, width);
  auto* f =
      Function::Create(FunctionType::get(b.getVoidTy(), {ptr, ptr, ptr, b.getInt64Ty()}, false),
                       Function::ExternalLinkage, "f", m);
  for (unsigned i = 0; i < 3; ++i) f->addParamAttr(i, Attribute::NoAlias);
  auto *entry = BasicBlock::Create(m.getContext(), "entry", f),
       *loop = BasicBlock::Create(m.getContext(), "loop", f),
       *exit = BasicBlock::Create(m.getContext(), "exit", f);
  b.SetInsertPoint(entry);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  auto* i = b.CreatePHI(b.getInt64Ty(), 2);
  i->addIncoming(b.getInt64(0), entry);
  const Align align(is_double ? 8 : 4);
  auto load = [&](int arg) {
    return b.CreateAlignedLoad(lanes, b.CreateGEP(element, f->getArg(arg), i), align);
  };
  Value* x = load(0);
  FastMathFlags fast;
  fast.setFast();
  b.setFastMathFlags(fast);  // the emitted code must not inherit the flags of its surroundings
  Value* y = op ? emit_math(b, *op, x, options) : emit_pow(b, x, load(1), options);
  b.CreateAlignedStore(y, b.CreateGEP(element, f->getArg(2), i), align);
  auto* next = b.CreateAdd(i, b.getInt64(width));
  i->addIncoming(next, loop);
  b.CreateCondBr(b.CreateICmpULT(next, f->getArg(3)), loop, exit);
  b.SetInsertPoint(exit);
  b.CreateRetVoid();
}

void optimise(Module& m, TargetMachine& tm) {
  for (auto& f : m) {
    if (f.isDeclaration()) continue;
    f.addFnAttr("target-cpu", tm.getTargetCPU());
    f.addFnAttr("target-features", tm.getTargetFeatureString());
    f.addFnAttr("prefer-vector-width", "512");
  }
  LoopAnalysisManager lam;
  FunctionAnalysisManager fam;
  CGSCCAnalysisManager cgam;
  ModuleAnalysisManager mam;
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = false;  // width 1 is to stay scalar
  PassBuilder pb(&tm, tuning);
  pb.registerModuleAnalyses(mam);
  pb.registerCGSCCAnalyses(cgam);
  pb.registerFunctionAnalyses(fam);
  pb.registerLoopAnalyses(lam);
  pb.crossRegisterProxies(lam, fam, cgam, mam);
  pb.buildPerModuleDefaultPipeline(OptimizationLevel::O2).run(m, mam);
}

}  // namespace

MathKernel compile_math(std::optional<MathOp> op, bool is_double, int width,
                        const MathOptions& options, std::string_view cpu) {
  static const bool initialised = [] {
    return !InitializeNativeTarget() && !InitializeNativeTargetAsmPrinter();
  }();
  if (!initialised) report_fatal_error("no native target");
  auto host = exit_on_error(orc::JITTargetMachineBuilder::detectHost());
  if (!cpu.empty()) host.setCPU(std::string(cpu)).getFeatures() = SubtargetFeatures();
  host.setCodeGenOptLevel(CodeGenOptLevel::Default);
  auto tm = exit_on_error(host.createTargetMachine());
  auto context = std::make_unique<LLVMContext>();
  auto m = std::make_unique<Module>("math", *context);
  m->setTargetTriple(tm->getTargetTriple());
  m->setDataLayout(tm->createDataLayout());
  build_loop(*m, op, is_double, width, options);
  if (verifyModule(*m, &errs())) report_fatal_error("invalid IR");
  optimise(*m, *tm);

  MathKernel kernel;
  kernel.code = std::make_unique<MathKernel::Code>();
  kernel.code->jit = exit_on_error(orc::LLJITBuilder()
                                       .setJITTargetMachineBuilder(std::move(host))
                                       .setPlatformSetUp(orc::setUpInactivePlatform)
                                       .setLinkProcessSymbolsByDefault(false)
                                       .create());
  exit_on_error(
      kernel.code->jit->addIRModule(orc::ThreadSafeModule(std::move(m), std::move(context))));
  using Run = void (*)(const void*, const void*, void*, int64_t);
  kernel.run = exit_on_error(kernel.code->jit->lookup("f")).toPtr<Run>();
  return kernel;
}

}  // namespace tilewright::cpu
