// The rules of planned kernels: workspace, and the way of a team (verify_loops.h).
#include "ir/loops/simplify.h"
#include "ir/loops_verifier.h"

namespace tilewright::ir {

void LoopsVerifier::workspace() {
  const Workspace& w = kernel_.workspace;
  for (const Expr& bytes : {w.call, w.worker}) {
    scalar_index(bytes, "the size of a workspace");
    if (bytes)
      TW_REQUIRE(stage_ == Stage::kPlanned || is_zero(bytes),
                 "a workspace of '" + text(bytes) + "' bytes before it is planned");
  }
}

// Placement: a multiple of the alignment, inside the workspace, apart from what lives around it.
void LoopsVerifier::place(const Allocate& n) {
  const bool planned = stage_ == Stage::kPlanned && n.buffer->scope == Scope::kWorkspace;
  const std::string who = "buffer '" + names_.of(n.buffer) + "'";
  if (!TW_REQUIRE(
          static_cast<bool>(n.offset) == planned,
          planned ? who + " has no place in the workspace" : who + " has a place in a workspace") ||
      !planned)
    return;
  scalar_index(n.offset, "the place of " + who);
  TW_REQUIRE(is_multiple(n.offset, kWorkspaceAlignment),
             "the place of " + who + ", '" + text(n.offset) + "', is no multiple of " +
                 std::to_string(kWorkspaceAlignment));
  Expr bytes = byte_size(n.buffer->dtype);
  for (const Expr& extent : n.buffer->shape)
    if (extent) bytes = bytes * extent;
  apart(n, simplify(n.offset + bytes));
}
// Of the workspace's end, and of the buffers whose allocations are around.
void LoopsVerifier::apart(const Allocate& n, const Expr& end) {
  const std::string who = "buffer '" + names_.of(n.buffer) + "'";
  const Placed own{n.buffer.get(), n.offset, end, parallel_ > 0};
  const Expr& room = own.of_worker ? kernel_.workspace.worker : kernel_.workspace.call;
  if (room)
    TW_REQUIRE(!can_prove(end > room),
               who + " ends at '" + text(end) + "' of a workspace of '" + text(room) + "' bytes");
  for (const Placed& p : placed_)
    TW_REQUIRE(p.of_worker != own.of_worker || !can_prove(p.begin < own.end) ||
                   !can_prove(own.begin < p.end),
               who + " shares bytes of the workspace with '" + p.buffer->name + "'");
  placed_.push_back(own);
}

// Members of a team all execute what stands outside of parallel loops, so nothing there may touch
// memory.
void LoopsVerifier::of_team(const Buffer& b) {
  if (!kernel_.team || !b) return;
  TW_REQUIRE(parallel_ > 0, "a team accesses '" + names_.of(b) + "' outside of parallel loops");
  TW_REQUIRE(b->scope != Scope::kLocal || !of_walkers_.count(b.get()) || !shared_,
             "a parallel loop accesses the local '" + names_.of(b) + "' of the team's member");
}

}  // namespace tilewright::ir
