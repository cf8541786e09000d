// Finding interleaved access groups among stores (AoS results of SoA computations, such as phases
// of a transposed convolution), see group_accesses.cpp.
#include "passes/loops/strided_stores.h"

#include "ir/loops/linear.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"

namespace tilewright::passes {

using namespace ir;

namespace {

const Ramp* ramp_of(const Store& s) { return s.indices[0].as<Ramp>(); }
bool reads(const Store& s, const Buffer& buffer) {
  bool found = false;
  for_each_expr(s.value, [&](const Expr& e) {
    const auto* l = e.as<Load>();
    found |= l && l->buffer == buffer;
  });
  return found;
}

}  // namespace

int stores_of_stretch(const std::vector<Stmt>& statements, size_t first) {
  const auto* head = statements[first].as<Store>();
  const Ramp* along = head ? ramp_of(*head) : nullptr;
  const int64_t n = along ? as_int(along->stride).value_or(0) : 0;
  const int64_t bytes = head ? n * byte_size(head->buffer->dtype) : 0;
  if (n < 2 || bytes > kWidestGroup || (bytes > 8 && n > along->type.lanes) ||
      head->buffer->dtype == DType::kBool || first + static_cast<size_t>(n) > statements.size())
    return 0;
  for (int64_t k = 0; k < n; ++k) {
    const auto* st = statements[first + static_cast<size_t>(k)].as<Store>();
    const Ramp* r = st ? ramp_of(*st) : nullptr;
    if (!r || st->buffer != head->buffer || r->type.lanes != along->type.lanes ||
        as_int(r->stride) != n || !can_prove_equal(r->base, along->base + Expr(k)) ||
        !same_mask(st->mask, head->mask) || reads(*st, head->buffer))
      return 0;
  }
  return static_cast<int>(n);
}

}  // namespace tilewright::passes
