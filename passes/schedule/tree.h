// Looking things up in, and editing, the loop tree of a kernel by name.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "ir/loops/nodes.h"
#include "ir/loops/simplify.h"
#include "runtime/core/result.h"

namespace tilewright::passes {

struct BlockPlace {
  ir::Stmt stmt;  // the block
  // Points into `stmt`, as loops point into the tree that was searched.
  const ir::Block* block = nullptr;
  std::vector<const ir::For*> loops;  // around it, outermost first
};
// The one of that name: none, or two, are an error. Loops inside a block's own body have no say.
Result<BlockPlace> find_block(const ir::Stmt& root, const std::string& name);
std::vector<BlockPlace> all_blocks(const ir::Stmt& root);  // innermost blocks, in order
Result<const ir::For*> find_loop(const ir::Stmt& root, const std::string& name);
Result<ir::Buffer> find_buffer(const ir::Kernel& k, const std::string& name);
// `name`, or with a number behind it where a block has it already.
std::string fresh_block_name(const ir::Stmt& root, const std::string& name);
// A name that two loops, two blocks or two buffers have, as "loop 'i'"; empty where there is none.
std::string repeated_name(const ir::Kernel& k);

// Puts edit(loop) in the place of the loop.
ir::Stmt replace_loop(const ir::Stmt& root, const ir::For* loop,
                      const std::function<ir::Stmt(const ir::For&)>& edit);
ir::Stmt replace_stmt(const ir::Stmt& root, const ir::Stmt& old, const ir::Stmt& replacement);

// The largest statement around a block that holds no other block: loops and nothing else.
ir::Stmt nest_of(const ir::Stmt& root, const std::string& block);
// The outermost loop around the block, whatever else is in it, or the block.
ir::Stmt outermost_nest_of(const ir::Stmt& root, const std::string& block);

// Buffers that a statement reads and writes.
struct Touched {
  std::set<const ir::BufferNode*> reads, writes;
};
Touched touched(const ir::Stmt& s);

// The product (reduce or parallel) kinds of axes that a loop variable feeds, over all blocks below.
bool feeds_only_parallel_axes(const ir::Stmt& body, const ir::Var& loop);

// Replaces a buffer everywhere, in params too.
ir::Kernel with_buffer_replaced(const ir::Kernel& k, const ir::BufferNode* old,
                                const ir::Buffer& replacement);
// The kernel with another body.
ir::Kernel with_body(const ir::Kernel& k, ir::Stmt body);

}  // namespace tilewright::passes
