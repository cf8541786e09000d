// Dot products of short groups: sum[l] += a[g l] * b[g l] + ... + a[g l + g-1] * b[g l + g-1], for
// g = 4 bytes, 2 x i16 or 2 x bf16. One instruction with VNNI (VPDPBUSD, VPDPWSSD) or AVX512-BF16
// (VDPBF16PS). Without VNNI, bytes go through PMADDWD as two vectors of 16-bit pairs: PMADDUBSW
// would be one instruction less but saturates at 16 bits, so it is not exact.
//
// Below, the same for matrices: AMX tiles of up to 16 rows by 64 bytes (Intel SDM volume 1, chapter
// 18). LLVM's "internal" intrinsics carry each tile's shape, from which it configures the unit.
#include "codegen/cpu/emit_dot.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <cmath>

#include "codegen/cpu/vector_math.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"

namespace tilewright::cpu {

namespace {

using llvm::Value;

unsigned lanes_of(Value* v) {
  return llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements();
}
// The instruction that takes `lanes` sums at once, of bytes or of i16; 0 when there is none.
llvm::Intrinsic::ID dot_instruction(const ir::MachineDescription& m, unsigned lanes, bool bytes) {
  using namespace llvm::Intrinsic;
  const bool wide = m.has("avx512vnni");
  if (lanes == 16 && wide) return bytes ? x86_avx512_vpdpbusd_512 : x86_avx512_vpdpwssd_512;
  const bool narrow = m.has("avxvnni") || (wide && m.has("avx512vl"));
  if (lanes == 8 && narrow) return bytes ? x86_avx512_vpdpbusd_256 : x86_avx512_vpdpwssd_256;
  if (lanes == 4 && narrow) return bytes ? x86_avx512_vpdpbusd_128 : x86_avx512_vpdpwssd_128;
  return 0;
}
// VDPBF16PS, by lanes. It takes subnormal operands for zeros and flushes subnormal sums.
llvm::Intrinsic::ID float_instruction(const ir::MachineDescription& m, unsigned lanes) {
  using namespace llvm::Intrinsic;
  if (!m.has("avx512bf16")) return 0;
  if (lanes == 16) return x86_avx512bf16_dpbf16ps_512;
  if (!m.has("avx512vl")) return 0;
  if (lanes == 8) return x86_avx512bf16_dpbf16ps_256;
  if (lanes == 4) return x86_avx512bf16_dpbf16ps_128;
  return 0;
}
// PMADDWD: two products of i16 added in i32, exactly.
llvm::Intrinsic::ID pair_instruction(const ir::MachineDescription& m, unsigned lanes) {
  if (lanes == 16 && m.has("avx512bw")) return llvm::Intrinsic::x86_avx512_pmaddw_d_512;
  if (lanes == 8 && m.has("avx2")) return llvm::Intrinsic::x86_avx2_pmadd_wd;
  if (lanes == 4) return llvm::Intrinsic::x86_sse2_pmadd_wd;
  return 0;
}

class EmitDot {
 public:
  EmitDot(llvm::IRBuilderBase& builder, const ir::MachineDescription& machine)
      : b_(builder), machine_(machine) {}

  Value* run(Value* sum, Value* a, Value* w) {
    const unsigned lanes = lanes_of(sum), terms = lanes_of(a) / lanes;
    if (sum->getType()->isFPOrFPVectorTy()) return of_floats(sum, a, w, lanes);
    if (auto id = dot_instruction(machine_, lanes, terms == 4)) {
      auto* f = llvm::Intrinsic::getOrInsertDeclaration(b_.GetInsertBlock()->getModule(), id);
      llvm::Type* operand = f->getFunctionType()->getParamType(1);
      return b_.CreateCall(f, {sum, b_.CreateBitCast(a, operand), b_.CreateBitCast(w, operand)});
    }
    if (auto id = pair_instruction(machine_, lanes))
      return terms == 4 ? by_pairs(id, sum, a, w)
                        : b_.CreateAdd(sum, b_.CreateIntrinsic(id, {}, {a, w}));
    return by_terms(sum, a, w, terms);
  }

 private:
  Value* of_floats(Value* sum, Value* a, Value* w, unsigned lanes) {
    if (auto id = float_instruction(machine_, lanes))
      return b_.CreateIntrinsic(id, {}, {sum, a, w});
    for (int q = 0; q < 2; ++q) {
      std::vector<int> at;
      for (unsigned l = 0; l < lanes; ++l) at.push_back(static_cast<int>(2 * l) + q);
      Value *x = widen_half(b_, b_.CreateShuffleVector(a, at), DType::kBFloat16),
            *y = widen_half(b_, b_.CreateShuffleVector(w, at), DType::kBFloat16);
      sum = b_.CreateFAdd(sum, b_.CreateFMul(x, y));
    }
    return sum;
  }
  // Bytes 0 and 2 of each i32 make one 16-bit pair, bytes 1 and 3 the other.
  Value* by_pairs(llvm::Intrinsic::ID id, Value* sum, Value* a, Value* w) {
    llvm::Type* halves = llvm::FixedVectorType::get(b_.getInt16Ty(), 2 * lanes_of(sum));
    Value *eight = llvm::ConstantInt::get(halves, 8), *x = b_.CreateBitCast(a, halves),
          *y = b_.CreateBitCast(w, halves);
    Value* even = b_.CreateIntrinsic(id, {},
                                     {b_.CreateAnd(x, llvm::ConstantInt::get(halves, 0xff)),
                                      b_.CreateAShr(b_.CreateShl(y, eight), eight)});
    Value* odd = b_.CreateIntrinsic(id, {}, {b_.CreateLShr(x, eight), b_.CreateAShr(y, eight)});
    return b_.CreateAdd(b_.CreateAdd(sum, even), odd);
  }
  Value* by_terms(Value* sum, Value* a, Value* w, unsigned terms) {
    const unsigned lanes = lanes_of(sum);
    for (unsigned q = 0; q < terms; ++q) {
      std::vector<int> at;
      for (unsigned l = 0; l < lanes; ++l) at.push_back(static_cast<int>(l * terms + q));
      Value* part = b_.CreateShuffleVector(a, at);
      Value *x = terms == 4 ? b_.CreateZExt(part, sum->getType())
                            : b_.CreateSExt(part, sum->getType()),
            *y = b_.CreateSExt(b_.CreateShuffleVector(w, at), sum->getType());
      sum = b_.CreateAdd(sum, b_.CreateMul(x, y));
    }
    return sum;
  }

  llvm::IRBuilderBase& b_;
  const ir::MachineDescription& machine_;
};

}  // namespace

Value* emit_dot(llvm::IRBuilderBase& b, const ir::MachineDescription& machine, Value* sum, Value* a,
                Value* b_operand) {
  return EmitDot(b, machine).run(sum, a, b_operand);
}

namespace {

bool same_place(const ir::TileOperand& x, const ir::TileOperand& y) {
  return x.buffer == y.buffer && ir::same_expr(x.stride, y.stride) &&
         ir::can_prove_equal(x.index, y.index);
}
// Does the statement store zeros to the buffer and nothing else?
bool stores_zeros(const ir::Stmt& s, const ir::Buffer& buffer) {
  if (const auto* f = s.as<ir::For>()) return stores_zeros(f->body, buffer);
  if (const auto* q = s.as<ir::Seq>())
    return std::all_of(q->stmts.begin(), q->stmts.end(),
                       [&](const ir::Stmt& x) { return stores_zeros(x, buffer); });
  const auto* st = s.as<ir::Store>();
  if (!st || st->buffer != buffer || st->mask) return false;
  const auto* same = st->value.as<ir::Broadcast>();
  const ir::Expr& value = same ? same->value : st->value;
  const auto* number = value.as<ir::FloatImm>();
  return number ? number->value == 0 && !std::signbit(number->value) : ir::is_zero(value);
}
// Have the sums of two tiles no element in common?
bool apart(const ir::DotTile& x, const ir::DotTile& y) {
  if (x.sum.buffer != y.sum.buffer) return true;
  const auto stride = ir::as_int(x.sum.stride), other = ir::as_int(y.sum.stride),
             by = ir::as_int(ir::simplify(y.sum.index - x.sum.index));
  if (!stride || stride != other || !by || *stride < x.columns) return false;
  const int64_t distance = std::abs(*by), columns = distance % *stride;
  return distance >= x.rows * *stride || (columns >= x.columns && columns <= *stride - x.columns);
}

}  // namespace

bool has_matrix_unit(const ir::MachineDescription& machine, const ir::DotTile& tile) {
  return machine.has_matrix_unit(tile.a.buffer->dtype);
}

Value* MatrixUnit::stride_in_bytes(const ir::TileOperand& x) {
  return b_.CreateMul(value_(x.stride),
                      b_.getInt64(static_cast<uint64_t>(byte_size(x.buffer->dtype))));
}
// Tiles are rows of elements of 4 bytes: sums, or the terms of one sum.
Value* MatrixUnit::load(const ir::TileOperand& from, int64_t rows, int64_t columns) {
  return b_.CreateIntrinsic(
      llvm::Intrinsic::x86_tileloadd64_internal, {},
      {b_.getInt16(static_cast<uint16_t>(rows)), b_.getInt16(static_cast<uint16_t>(4 * columns)),
       address_(from.buffer, from.index), stride_in_bytes(from)});
}
void MatrixUnit::store(const ir::DotTile& tile, Value* sum) {
  b_.CreateIntrinsic(llvm::Intrinsic::x86_tilestored64_internal, {},
                     {b_.getInt16(static_cast<uint16_t>(tile.rows)),
                      b_.getInt16(static_cast<uint16_t>(4 * tile.columns)),
                      address_(tile.sum.buffer, tile.sum.index), stride_in_bytes(tile.sum), sum});
}
Value* MatrixUnit::operand(const ir::TileOperand& from, int64_t rows, int64_t columns) {
  for (const Operand& o : operands_)
    if (same_place(o.from, from)) return o.tile;
  operands_.push_back({from, load(from, rows, columns)});
  return operands_.back().tile;
}
MatrixUnit::Held* MatrixUnit::held(const ir::DotTile& tile) {
  for (Held& h : held_)
    if (same_place(h.tile.sum, tile.sum)) return &h;
  return nullptr;
}

void MatrixUnit::emit(const ir::DotTile& tile) {
  Held* h = held(tile);
  Value *sum = h ? h->sum : load(tile.sum, tile.rows, tile.columns),
        *a = operand(tile.a, tile.rows, tile.groups),
        *b = operand(tile.b, tile.groups, tile.columns);
  const auto size = [&](int64_t n) { return b_.getInt16(static_cast<uint16_t>(n)); };
  sum = b_.CreateIntrinsic(
      tile.a.buffer->dtype == DType::kUInt8 ? llvm::Intrinsic::x86_tdpbusd_internal
                                            : llvm::Intrinsic::x86_tdpbf16ps_internal,
      {}, {size(tile.rows), size(4 * tile.columns), size(4 * tile.groups), sum, a, b});
  if (h)
    h->sum = sum;
  else
    store(tile, sum);
}

// All tiles of the loop whose sums stay in one place while it runs; false where something else
// stands in it, or where two sums overlap, which registers would not see.
bool MatrixUnit::collect(const ir::Stmt& s, std::vector<ir::Var>& inside,
                         std::vector<Held>& found) const {
  if (const auto* f = s.as<ir::For>()) {
    inside.push_back(f->var);
    return f->loop_kind != ir::LoopKind::kParallel && collect(f->body, inside, found);
  }
  if (const auto* q = s.as<ir::Seq>())
    return std::all_of(q->stmts.begin(), q->stmts.end(),
                       [&](const ir::Stmt& x) { return collect(x, inside, found); });
  const auto* tile = s.as<ir::DotTile>();
  if (!tile || !has_matrix_unit(machine_, *tile)) return false;
  for (const ir::Var& v : inside)
    if (ir::uses_var(tile->sum.index, v) || ir::uses_var(tile->sum.stride, v)) return false;
  for (const Held& h : found) {
    const ir::DotTile& t = h.tile;
    const bool same_size = t.rows == tile->rows && t.columns == tile->columns;
    if (same_size && same_place(t.sum, tile->sum)) return true;
    if (!same_size || !apart(t, *tile)) return false;
  }
  found.push_back({*tile, nullptr, {}});
  return true;
}
std::vector<MatrixUnit::Held> MatrixUnit::sums_of(const ir::For& loop) const {
  constexpr size_t kMostSums = 4;  // of 8 tile registers; operands take the others
  std::vector<ir::Var> inside{loop.var};
  std::vector<Held> found;
  if (!held_.empty() || loop.loop_kind == ir::LoopKind::kParallel ||
      !collect(loop.body, inside, found) || found.size() > kMostSums)
    return {};
  return found;
}
bool MatrixUnit::starts_from_zero(const ir::Buffer& sums, const std::vector<ir::Stmt>& stmts) {
  const auto* loop = stmts.size() > 1 ? stmts[1].as<ir::For>() : nullptr;
  if (!loop || sums->scope != ir::Scope::kLocal || !stores_zeros(stmts[0], sums)) return false;
  int64_t elements = 1, of_tiles = 0;
  for (const ir::Expr& e : sums->shape) elements *= ir::as_int(e).value_or(0);
  for (const Held& h : sums_of(*loop))
    of_tiles += h.tile.sum.buffer == sums ? h.tile.rows * h.tile.columns : 0;
  from_zero_ = of_tiles == elements;
  return from_zero_;
}
bool MatrixUnit::hold_sums(const ir::For& loop) {
  if (!held_.empty()) return false;
  held_ = sums_of(loop);
  for (Held& h : held_)
    h.sum = from_zero_
                ? b_.CreateIntrinsic(llvm::Intrinsic::x86_tilezero_internal, {},
                                     {b_.getInt16(static_cast<uint16_t>(h.tile.rows)),
                                      b_.getInt16(static_cast<uint16_t>(4 * h.tile.columns))})
                : load(h.tile.sum, h.tile.rows, h.tile.columns);
  from_zero_ = false;
  return !held_.empty();
}
void MatrixUnit::store_sums() {
  for (const Held& h : held_) store(h.tile, h.sum);
  held_.clear();
}
// A sum that lives in a register across iterations is a phi, as in SSA construction.
void MatrixUnit::enter_loop(llvm::BasicBlock* before) {
  operands_.clear();
  for (Held& h : held_) {
    auto* phi = b_.CreatePHI(h.sum->getType(), 2, h.tile.sum.buffer->name);
    phi->addIncoming(h.sum, before);
    h.phis.push_back(phi);
    h.sum = phi;
  }
}
void MatrixUnit::leave_loop(llvm::BasicBlock* latch, llvm::BasicBlock* exit,
                            llvm::BasicBlock* skip) {
  operands_.clear();
  b_.SetInsertPoint(exit);
  for (Held& h : held_) {
    llvm::PHINode* phi = h.phis.back();
    h.phis.pop_back();
    phi->addIncoming(h.sum, latch);
    if (!skip) continue;
    auto* either = b_.CreatePHI(h.sum->getType(), 2);
    either->addIncoming(h.sum, latch);
    either->addIncoming(phi->getIncomingValue(0), skip);
    h.sum = either;
  }
}

}  // namespace tilewright::cpu
