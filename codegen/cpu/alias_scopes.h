#pragma once

namespace llvm {
class Module;
class Value;
}

namespace tilewright::cpu {

// The address of a buffer in a workspace, which no other buffer of it overlaps.
void mark_workspace_buffer(llvm::Value* address);
// Marks each access to memory with the NoAlias argument, or the buffer in a workspace, that it goes by (alias.scope)
// and those that it does not (noalias). Says nothing that the arguments' attribute and plan_workspace do not.
void add_alias_scopes(llvm::Module& module);

}  // namespace tilewright::cpu
