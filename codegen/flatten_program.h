// The program's symbolic sizes and instructions as the executable's plain tables.
#pragma once

#include <unordered_map>
#include <vector>

#include "ir/program/program.h"
#include "runtime/core/result.h"
#include "runtime/executable.h"

namespace tilewright::codegen {

// The bytes of all constants, equal ones stored once, at 64-byte aligned offsets.
class ConstantSection {
 public:
  // Reserves its bytes, as `layout` arranges them, and returns their offset; the same offset for
  // equal bytes in the same layout. Nothing is copied before move_to.
  int64_t add(const ir::ConstantRef& constant, const ir::Layout& layout);
  int64_t bytes() const { return bytes_; }
  // `bytes()` of them; gaps for alignment stay as they are. Each constant is let go once it is
  // written, so that not all are held twice.
  void move_to(uint8_t* at);

 private:
  struct Item {
    ir::ConstantRef constant;
    ir::Layout layout;
    int64_t offset, size;
  };
  std::vector<Item> items_;
  std::unordered_multimap<size_t, size_t> by_hash_;  // positions in items_, by contents
  int64_t bytes_ = 0;
};

// Kernels keep their names; workspaces and functions are filled in by who assembles. Errors: an
// extent that no SizeExpr can say (below).
Result<Variant> flatten_program(const ir::Program& program, ConstantSection& constants);
// Postfix form; `symbols`: in the order that indices of kSymbol mean. Errors: unsupported for what
// no session evaluates (floats, divisions that truncate), internal for a symbol that is none of
// these.
Result<SizeExpr> flatten_size(const ir::Expr& e, const std::vector<ir::Var>& symbols);

}  // namespace tilewright::codegen
