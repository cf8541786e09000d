// Sums that wait in a workspace stay in registers where LLVM knows that no operand is read from there.
//
// A workspace is an address that was loaded. That it does not lie in a NoAlias argument follows only if the argument
// was captured nowhere, and LLVM looks for that at no more than a hundred uses of it: less than an unrolled register
// tile has. Then every sum would be stored, and every operand loaded anew, in each step. Scopes say the same at each
// access, as LLVM writes them itself where it inlines (llvm/lib/Transforms/Utils/InlineFunction.cpp).
#include "codegen/cpu/alias_scopes.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <vector>

namespace tilewright::cpu {
namespace {

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
  explicit AliasScopes(llvm::Function& f) : f_(f), md_(f.getContext()), scope_of_(f.arg_size()) {
    llvm::MDNode* domain = md_.createAnonymousAliasScopeDomain(f.getName());
    for (const llvm::Argument& a : f.args())
      if (a.hasNoAliasAttr()) scope_of_[a.getArgNo()] = md_.createAnonymousAliasScope(domain);
    for (size_t n = 0; n <= f.arg_size(); ++n) others_.push_back(all_but(n));
  }

  void add_to(llvm::Instruction& access, llvm::Value* address) {
    const llvm::Value* base = llvm::getUnderlyingObject(address, 0);
    const auto* argument = llvm::dyn_cast<llvm::Argument>(base);
    const bool has_scope = argument && scope_of_[argument->getArgNo()];
    if (!argument && !llvm::isa<llvm::AllocaInst, llvm::LoadInst>(base)) return;
    const size_t n = has_scope ? argument->getArgNo() : f_.arg_size();
    if (has_scope)
      access.setMetadata(llvm::LLVMContext::MD_alias_scope,
                         llvm::MDNode::get(f_.getContext(), {scope_of_[n]}));
    if (others_[n]) access.setMetadata(llvm::LLVMContext::MD_noalias, others_[n]);
  }

 private:
  // The scopes of all arguments but the n-th.
  llvm::MDNode* all_but(size_t n) {
    llvm::SmallVector<llvm::Metadata*, 8> scopes;
    for (size_t k = 0; k < scope_of_.size(); ++k)
      if (k != n && scope_of_[k]) scopes.push_back(scope_of_[k]);
    return scopes.empty() ? nullptr : llvm::MDNode::get(f_.getContext(), scopes);
  }

  llvm::Function& f_;
  llvm::MDBuilder md_;
  // By argument; the last of others_ is of no argument.
  std::vector<llvm::MDNode*> scope_of_, others_;
};

}  // namespace

void add_alias_scopes(llvm::Module& module) {
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    AliasScopes scopes(f);
    for (llvm::Instruction& i : llvm::instructions(f))
      if (llvm::Value* address = address_of(i)) scopes.add_to(i, address);
  }
}

}  // namespace tilewright::cpu
