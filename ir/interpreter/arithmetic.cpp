// Handlers of arithmetic: one instantiation of scalar_ops.h per operation and type, found through
// tables.
#include <array>
#include <cstring>
#include <utility>

#include "ir/interpreter/machine.h"

namespace tilewright::ir::interpreter {

namespace {

constexpr size_t kBinaryOps = static_cast<size_t>(BinaryOp::kGe) + 1;
constexpr size_t kUnaryOps = static_cast<size_t>(UnaryOp::kIsInf) + 1;
constexpr size_t kTypes = kDTypes.size();

template <BinaryOp Op, DType T, bool kVector>
void run_binary(Machine& m, const Inst& i) {
  const int n = kVector ? i.n : 1;
  Slot* dst = m.r + i.dst;
  const Slot *a = m.r + i.a, *b = m.r + i.b;
  for (int l = 0; l < n; ++l) {
    if constexpr (is_comparison(Op)) {
      dst[l].i = compare<Op, T>(get<T>(a[l]), get<T>(b[l]));
    } else {
      if constexpr (is_division(Op) && !is_float(T)) {
        if (get<T>(b[l]) == 0) {
          dst[l].i = 0;
          if (i.c != kNoReg && !m.r[i.c + static_cast<uint32_t>(l)].i) continue;
          return m.fail("integer division by zero");
        }
      }
      set<T>(dst[l], apply<Op, T>(get<T>(a[l]), get<T>(b[l])));
    }
  }
}
template <UnaryOp Op, DType T, bool kVector>
void run_unary(Machine& m, const Inst& i) {
  const int n = kVector ? i.n : 1;
  Slot* dst = m.r + i.dst;
  const Slot* a = m.r + i.a;
  for (int l = 0; l < n; ++l) {
    const ValueOf<T> x = get<T>(a[l]);
    if constexpr (Op == UnaryOp::kIsNan)
      dst[l].i = x != x;
    else if constexpr (Op == UnaryOp::kIsInf)
      dst[l].i = is_float(T) && std::isinf(static_cast<double>(x));
    else
      set<T>(dst[l], apply<Op, T>(x));
  }
}
template <DType From, DType To>
void run_cast(Machine& m, const Inst& i) {
  for (int l = 0; l < i.n; ++l)
    set<To>(m.r[i.dst + static_cast<uint32_t>(l)],
            converted<From, To>(get<From>(m.r[i.a + static_cast<uint32_t>(l)])));
}

template <BinaryOp Op, DType T, bool kVector>
constexpr Handler binary_or_null() {
  if constexpr (has_meaning(Op, T))
    return run_binary<Op, T, kVector>;
  else
    return nullptr;
}
template <UnaryOp Op, DType T, bool kVector>
constexpr Handler unary_or_null() {
  if constexpr (has_meaning(Op, T))
    return run_unary<Op, T, kVector>;
  else
    return nullptr;
}

// Row-major tables [operation, type] and [from, to].
template <bool kVector, size_t... I>
constexpr auto binary_table(std::index_sequence<I...>) {
  return std::array<Handler, sizeof...(I)>{
      binary_or_null<static_cast<BinaryOp>(I / kTypes), static_cast<DType>(I % kTypes),
                     kVector>()...};
}
template <bool kVector, size_t... I>
constexpr auto unary_table(std::index_sequence<I...>) {
  return std::array<Handler, sizeof...(I)>{
      unary_or_null<static_cast<UnaryOp>(I / kTypes), static_cast<DType>(I % kTypes),
                    kVector>()...};
}
template <size_t... I>
constexpr auto cast_table(std::index_sequence<I...>) {
  return std::array<Handler, sizeof...(I)>{
      run_cast<static_cast<DType>(I / kTypes), static_cast<DType>(I % kTypes)>...};
}

}  // namespace

Handler binary_handler(BinaryOp op, DType t, bool vector) {
  static constexpr auto kScalar =
      binary_table<false>(std::make_index_sequence<kBinaryOps * kTypes>());
  static constexpr auto kVector =
      binary_table<true>(std::make_index_sequence<kBinaryOps * kTypes>());
  const size_t n = static_cast<size_t>(op) * kTypes + static_cast<size_t>(t);
  return vector ? kVector[n] : kScalar[n];
}
Handler unary_handler(UnaryOp op, DType t, bool vector) {
  static constexpr auto kScalar =
      unary_table<false>(std::make_index_sequence<kUnaryOps * kTypes>());
  static constexpr auto kVector = unary_table<true>(std::make_index_sequence<kUnaryOps * kTypes>());
  const size_t n = static_cast<size_t>(op) * kTypes + static_cast<size_t>(t);
  return vector ? kVector[n] : kScalar[n];
}
Handler cast_handler(DType from, DType to) {
  static constexpr auto kTable = cast_table(std::make_index_sequence<kTypes * kTypes>());
  return kTable[static_cast<size_t>(from) * kTypes + static_cast<size_t>(to)];
}

void halt_handler(Machine& m, const Inst&) { m.running = false; }
void jump_handler(Machine& m, const Inst& i) { m.jump(i.c); }
void jump_if_false_handler(Machine& m, const Inst& i) {
  if (!m.r[i.a].i) m.jump(i.c);
}
void for_begin_handler(Machine& m, const Inst& i) {
  m.r[i.dst].i = 0;
  if (m.r[i.a].i <= 0) m.jump(i.c);
}
void for_next_handler(Machine& m, const Inst& i) {
  if (++m.r[i.dst].i < m.r[i.a].i) m.jump(i.c);
}

void check_axes_handler(Machine& m, const Inst& i) {
  const BlockAxes& block = m.program->blocks[i.a];
  for (const BlockAxes::Axis& a : block.axes) {
    const int64_t value = m.r[a.value].i, extent = m.r[a.extent].i;
    if (value >= 0 && value < extent) continue;
    return m.fail("block '" + block.name + "': axis '" + a.name + "' is bound to " +
                  std::to_string(value) + ", its extent is " + std::to_string(extent));
  }
}
void jump_if_not_first_handler(Machine& m, const Inst& i) {
  for (const BlockAxes::Axis& a : m.program->blocks[i.a].axes)
    if (a.reduce && m.r[a.value].i != 0) return m.jump(i.c);
}

void copy_handler(Machine& m, const Inst& i) {
  for (int l = 0; l < i.n; ++l)
    m.r[i.dst + static_cast<uint32_t>(l)] = m.r[i.a + static_cast<uint32_t>(l)];
}
void broadcast_handler(Machine& m, const Inst& i) {
  for (int l = 0; l < i.n; ++l) m.r[i.dst + static_cast<uint32_t>(l)] = m.r[i.a];
}
void repeat_handler(Machine& m, const Inst& i) {
  for (int l = 0; l < i.n; ++l)
    m.r[i.dst + static_cast<uint32_t>(l)] = m.r[i.a + static_cast<uint32_t>(l) % i.b];
}
template <uint32_t terms>
void dot_handler(Machine& m, const Inst& i) {
  for (uint32_t l = 0; l < static_cast<uint32_t>(i.n); ++l) {
    uint64_t sum = m.r[i.c + l].u;
    for (uint32_t q = terms * l; q < terms * (l + 1); ++q) sum += m.r[i.a + q].u * m.r[i.b + q].u;
    m.r[i.dst + l].i = static_cast<int32_t>(sum);
  }
}
void float_dot_handler(Machine& m, const Inst& i) {
  for (uint32_t l = 0; l < static_cast<uint32_t>(i.n); ++l) {
    double sum = m.r[i.c + l].f;  // products of bf16 are exact
    for (uint32_t q = 2 * l; q < 2 * (l + 1); ++q)
      sum = static_cast<float>(sum + m.r[i.a + q].f * m.r[i.b + q].f);
    m.r[i.dst + l].f = sum;
  }
}
template void dot_handler<2>(Machine&, const Inst&);
template void dot_handler<4>(Machine&, const Inst&);

void ramp_handler(Machine& m, const Inst& i) {
  for (uint32_t l = 0; l < static_cast<uint32_t>(i.n); ++l)
    m.r[i.dst + l].u = m.r[i.a + l % i.c].u + l / i.c * m.r[i.b].u;
}
void every_handler(Machine& m, const Inst& i) {
  for (uint32_t l = 0; l < static_cast<uint32_t>(i.n); ++l)
    m.r[i.dst + l] = m.r[i.a + i.b + l * i.c];
}
void spread_handler(Machine& m, const Inst& i) {
  for (uint32_t l = 0; l < static_cast<uint32_t>(i.n); ++l) m.r[i.dst + l * i.b] = m.r[i.a + l];
}
void select_handler(Machine& m, const Inst& i) {
  for (int l = 0; l < i.n; ++l) {
    const auto k = static_cast<uint32_t>(l);
    m.r[i.dst + k] = m.r[i.c + k].i ? m.r[i.a + k] : m.r[i.b + k];
  }
}
void any_handler(Machine& m, const Inst& i) {
  int64_t any = 0;
  for (int l = 0; l < i.n; ++l) any |= m.r[i.a + static_cast<uint32_t>(l)].i;
  m.r[i.dst].i = any;
}

}  // namespace tilewright::ir::interpreter
