#pragma once

namespace llvm {
class Module;
}

namespace tilewright::cpu {

// Marks each access to memory with the NoAlias argument that it goes by (alias.scope) and those that it does not
// (noalias). Says nothing that the arguments' attribute does not.
void add_alias_scopes(llvm::Module& module);

}  // namespace tilewright::cpu
