#include "ir/ops/known_ops.h"

namespace tilewright::ir::ops {

namespace {

const OpDef* existing(std::string_view name) {
  const OpDef* op = find_op(name);
  TW_CHECK(op);
  return op;
}

}  // namespace

// Looked up once: a comparison of a node's operator with one of these is one of pointers.
#define OP_AS(function, name)                      \
  const OpDef* function() {                        \
    static const OpDef* const op = existing(name); \
    return op;                                     \
  }
#define OP(name) OP_AS(name, #name)
#include "ir/ops/known_ops.def"
#undef OP
#undef OP_AS

}  // namespace tilewright::ir::ops
