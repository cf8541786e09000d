// A mask that LLVM 22.1's last pass would drop is still made. The function is given as LLVM IR, as
// no kernel is known in whose code the pattern comes about.
#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>

#include <optional>

#include "codegen/cpu/emit_object.h"

namespace tilewright::cpu {
namespace {

std::string assembly_of(const std::string& text) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  const llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, "x86-64-v4", "", llvm::TargetOptions(), llvm::Reloc::PIC_,
                                  std::nullopt, llvm::CodeGenOptLevel::Default));
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  auto module = llvm::parseAssemblyString(text, diagnostic, context);
  EXPECT_TRUE(module) << diagnostic.getMessage().str();
  module->setTargetTriple(triple);
  module->setDataLayout(machine->createDataLayout());
  auto code = emit_object(*module, *machine, FileType::kAssembly);
  EXPECT_TRUE(code.ok()) << code.error().to_string();
  return code.ok() ? std::string(code->begin(), code->end()) : "";
}
bool contains(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

// The gather writes its mask, as shifts do; without it, lanes would be chosen by what lay there.
TEST(EmitObject, MaskReadAsAnIntegerAndThenByAGather) {
  const std::string code = assembly_of(
      "define i8 @f(<8 x i32> %x, <8 x ptr> %from, ptr %to) \"prefer-vector-width\"=\"512\" {\n"
      "  %negative = icmp slt <8 x i32> %x, zeroinitializer\n"
      "  %bits = bitcast <8 x i1> %negative to i8\n"
      "  %v = call <8 x i64> @llvm.masked.gather.v8i64.v8p0(<8 x ptr> align 8 %from, "
      "<8 x i1> %negative, <8 x i64> zeroinitializer)\n"
      "  store <8 x i64> %v, ptr %to\n"
      "  ret i8 %bits\n"
      "}\n"
      "declare <8 x i64> @llvm.masked.gather.v8i64.v8p0(<8 x ptr>, <8 x i1>, <8 x i64>)\n");
  ASSERT_TRUE(contains(code, "vpgatherqq")) << code;
  EXPECT_TRUE(contains(code, "vpmovd2m")) << code;
}

}  // namespace
}  // namespace tilewright::cpu
