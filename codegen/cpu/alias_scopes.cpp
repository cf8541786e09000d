// Sums that wait in a workspace stay in registers where LLVM knows that no operand is read from there.
//
// A workspace is an address that was loaded. That it does not lie in a NoAlias argument follows only if the argument
// was captured nowhere, and LLVM looks for that at no more than a hundred uses of it: less than an unrolled register
// tile has. Then every sum would be stored, and every operand loaded anew, in each step. Scopes say the same at each
// access, as LLVM writes them itself where it inlines (llvm/lib/Transforms/Utils/InlineFunction.cpp). Buffers of one
// workspace lie one behind the other (passes/loops/plan_workspace.cpp): each has a scope of its own, too.
#include "codegen/cpu/alias_scopes.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

namespace tilewright::cpu {
namespace {

constexpr const char* kBuffer = "tilewright.buffer";

// The one address that an access goes by; null where there is none, or several.
llvm::Value* address_of(llvm::Instruction& i) {
  if (llvm::Value* p = llvm::getLoadStorePointerOperand(&i)) return p;
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
  if (!call) return nullptr;
  switch (call->getIntrinsicID()) {
    case llvm::Intrinsic::masked_load:
    case llvm::Intrinsic::prefetch: return call->getArgOperand(0);
    case llvm::Intrinsic::masked_store: return call->getArgOperand(1);
    default: return nullptr;
  }
}

class AliasScopes {
 public:
  explicit AliasScopes(llvm::Function& f)
      : f_(f), md_(f.getContext()), domain_(md_.createAnonymousAliasScopeDomain(f.getName())) {
    for (llvm::Argument& a : f.args())
      if (a.hasNoAliasAttr()) add_scope(a);
    for (llvm::Instruction& i : llvm::instructions(f))
      if (i.hasMetadata(kBuffer)) add_scope(i);
  }

  void add_to(llvm::Instruction& access, llvm::Value* address) {
    const llvm::Value* base = base_of(address);
    const auto own = scope_of_.find(base);
    if (own == scope_of_.end() &&
        !llvm::isa<llvm::Argument, llvm::AllocaInst, llvm::LoadInst>(base))
      return;
    // What is no buffer of the function may be a place in the workspace, but no argument.
    const bool is_buffer = own != scope_of_.end() && llvm::isa<llvm::Instruction>(base);
    llvm::SmallVector<llvm::Metadata*, 8> others;
    for (const auto& [object, scope] : scope_of_)
      if (object != base && (is_buffer || llvm::isa<llvm::Argument>(object)))
        others.push_back(scope);
    if (own != scope_of_.end())
      access.setMetadata(llvm::LLVMContext::MD_alias_scope,
                         llvm::MDNode::get(f_.getContext(), {own->second}));
    if (!others.empty())
      access.setMetadata(llvm::LLVMContext::MD_noalias, llvm::MDNode::get(f_.getContext(), others));
  }

 private:
  void add_scope(const llvm::Value& object) {
    scope_of_[&object] = md_.createAnonymousAliasScope(domain_);
  }
  const llvm::Value* base_of(const llvm::Value* address) const {
    while (const auto* element = llvm::dyn_cast<llvm::GetElementPtrInst>(address)) {
      if (element->hasMetadata(kBuffer)) return element;
      address = element->getPointerOperand();
    }
    return llvm::getUnderlyingObject(address, 0);
  }

  llvm::Function& f_;
  llvm::MDBuilder md_;
  llvm::MDNode* domain_;
  // In the order of the program, so that modules are the same each time.
  llvm::MapVector<const llvm::Value*, llvm::MDNode*> scope_of_;
};

}  // namespace

void mark_workspace_buffer(llvm::Value* address) {
  if (auto* i = llvm::dyn_cast<llvm::GetElementPtrInst>(address))
    i->setMetadata(kBuffer, llvm::MDNode::get(i->getContext(), {}));
}

void add_alias_scopes(llvm::Module& module) {
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    AliasScopes scopes(f);
    for (llvm::Instruction& i : llvm::instructions(f))
      if (llvm::Value* address = address_of(i)) scopes.add_to(i, address);
  }
}

}  // namespace tilewright::cpu
