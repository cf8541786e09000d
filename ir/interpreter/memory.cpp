// Handlers that touch memory: finding the element, checking it, converting between storage and
// registers.
#include <array>
#include <cstring>
#include <utility>

#include "ir/interpreter/machine.h"

namespace tilewright::ir::interpreter {

namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 36;  // of one workspace

template <DType T>
struct StorageOf {
  using type = void;
};
template <>
struct StorageOf<DType::kFloat32> {
  using type = float;
};
template <>
struct StorageOf<DType::kFloat64> {
  using type = double;
};
template <>
struct StorageOf<DType::kFloat16> {
  using type = uint16_t;
};
template <>
struct StorageOf<DType::kBFloat16> {
  using type = uint16_t;
};
template <>
struct StorageOf<DType::kInt8> {
  using type = int8_t;
};
template <>
struct StorageOf<DType::kInt16> {
  using type = int16_t;
};
template <>
struct StorageOf<DType::kInt32> {
  using type = int32_t;
};
template <>
struct StorageOf<DType::kInt64> {
  using type = int64_t;
};
template <>
struct StorageOf<DType::kUInt8> {
  using type = uint8_t;
};
template <>
struct StorageOf<DType::kUInt16> {
  using type = uint16_t;
};
template <>
struct StorageOf<DType::kUInt32> {
  using type = uint32_t;
};
template <>
struct StorageOf<DType::kUInt64> {
  using type = uint64_t;
};
template <>
struct StorageOf<DType::kBool> {
  using type = uint8_t;
};

template <DType T>
Slot from_bytes(const void* bytes) {
  typename StorageOf<T>::type raw;
  std::memcpy(&raw, bytes, sizeof raw);
  Slot s;
  s.u = 0;
  if constexpr (T == DType::kFloat16)
    s.f = Half::to_float(raw);
  else if constexpr (T == DType::kBFloat16)
    s.f = BFloat::to_float(raw);
  else if constexpr (T == DType::kBool)
    s.i = raw != 0;
  else
    set<T>(s, raw);
  return s;
}
template <DType T>
void to_bytes(const Slot& s, void* bytes) {
  typename StorageOf<T>::type raw;
  if constexpr (T == DType::kFloat16)
    raw = Half::from_double(s.f);
  else if constexpr (T == DType::kBFloat16)
    raw = BFloat::from_double(s.f);
  else
    raw = static_cast<typename StorageOf<T>::type>(get<T>(s));
  std::memcpy(bytes, &raw, sizeof raw);
}

std::string describe(const Machine& m, const Access& access, const LiveBuffer& b, uint32_t lane,
                     const char* verb) {
  std::string s = std::string(verb) + " '" + b.name + "' [";
  for (size_t n = 0; n < access.indices.size(); ++n) {
    const Operand& o = access.indices[n];
    s += (n ? ", " : "") + std::to_string(m.r[o.reg + lane * o.lane_stride].i);
  }
  s += "]";
  for (size_t n = 0; n < access.scope.size(); ++n)
    s += (n ? ", " : " at ") + access.scope[n].first + " = " +
         std::to_string(m.r[access.scope[n].second].i);
  return s;
}
[[gnu::cold]] int64_t out_of_bounds(Machine& m, const Access& access, const LiveBuffer& b,
                                    uint32_t lane, size_t dim, int64_t index, int64_t extent,
                                    const char* verb) {
  m.fail("out of bounds: " + describe(m, access, b, lane, verb) + ": index " + std::to_string(dim) +
         " is " + std::to_string(index) + ", the extent is " + std::to_string(extent));
  return -1;
}

// The element an access touches, or -1 after an error.
// Every access is checked against the logical extents (the storage, when flat): the oracle finds
// what compiled code would silently read or overwrite.
inline int64_t locate(Machine& m, const Access& access, const LiveBuffer& b, uint32_t lane,
                      const char* verb) {
  if (access.flat) {
    const Operand& o = access.indices[0];
    const int64_t index = m.r[o.reg + lane * o.lane_stride].i;
    if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(b.elements))
      return out_of_bounds(m, access, b, lane, 0, index, b.elements, verb);
    return index;
  }
  int64_t logical[16];
  int64_t offset = 0;
  const size_t rank = access.indices.size();
  for (size_t d = 0; d < rank; ++d) {
    const Operand& o = access.indices[d];
    const int64_t index = m.r[o.reg + lane * o.lane_stride].i;
    if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(b.shape[d]))
      return out_of_bounds(m, access, b, lane, d, index, b.shape[d], verb);
    offset = offset * b.shape[d] + index;
    logical[d] = index;
  }
  return b.dense ? offset : storage_offset(b.axes, logical);
}

template <DType T, bool kVector>
void run_load(Machine& m, const Inst& i) {
  const Access& access = m.program->accesses[i.a];
  const LiveBuffer& b = m.program->buffers[access.buffer];
  const uint32_t n = kVector ? static_cast<uint32_t>(i.n) : 1;
  for (uint32_t l = 0; l < n; ++l) {
    if (i.c != kNoReg && !m.r[i.c + l].i) {
      m.r[i.dst + l].u = 0;
      continue;
    }
    const int64_t at = locate(m, access, b, l, "load from");
    if (at < 0) return;
    if (!b.written.empty() && !b.written[static_cast<size_t>(at)])
      return m.fail("uninitialised: " + describe(m, access, b, l, "load from") +
                    ": the element was never stored");
    m.r[i.dst + l] = from_bytes<T>(b.data + at * byte_size(T));
  }
}
template <DType T, bool kVector>
void run_store(Machine& m, const Inst& i) {
  const Access& access = m.program->accesses[i.a];
  LiveBuffer& b = m.program->buffers[access.buffer];
  const uint32_t n = kVector ? static_cast<uint32_t>(i.n) : 1;
  for (uint32_t l = 0; l < n; ++l) {
    if (i.c != kNoReg && !m.r[i.c + l].i) continue;
    const int64_t at = locate(m, access, b, l, "store to");
    if (at < 0) return;
    if (!b.written.empty()) b.written[static_cast<size_t>(at)] = 1;
    to_bytes<T>(m.r[i.b + l], b.data + at * byte_size(T));
  }
}

template <DType From, DType To>
void run_bitcast(Machine& m, const Inst& i) {
  for (int l = 0; l < i.n; ++l) {
    uint8_t bytes[8];
    to_bytes<From>(m.r[i.a + static_cast<uint32_t>(l)], bytes);
    m.r[i.dst + static_cast<uint32_t>(l)] = from_bytes<To>(bytes);
  }
}
template <DType From, DType To>
constexpr Handler bitcast_or_null() {
  if constexpr (byte_size(From) == byte_size(To))
    return run_bitcast<From, To>;
  else
    return nullptr;
}

constexpr size_t kTypes = kDTypes.size();
using AllTypes = std::make_index_sequence<kTypes>;
template <bool kVector, size_t... I>
constexpr auto load_table(std::index_sequence<I...>) {
  return std::array<Handler, kTypes>{run_load<static_cast<DType>(I), kVector>...};
}
template <bool kVector, size_t... I>
constexpr auto store_table(std::index_sequence<I...>) {
  return std::array<Handler, kTypes>{run_store<static_cast<DType>(I), kVector>...};
}
template <size_t... I>
constexpr auto decode_table(std::index_sequence<I...>) {
  return std::array<Slot (*)(const void*), kTypes>{from_bytes<static_cast<DType>(I)>...};
}
template <size_t... I>
constexpr auto bitcast_table(std::index_sequence<I...>) {
  return std::array<Handler, sizeof...(I)>{
      bitcast_or_null<static_cast<DType>(I / kTypes), static_cast<DType>(I % kTypes)>()...};
}

}  // namespace

Handler load_handler(DType t, bool vector) {
  static constexpr auto kScalar = load_table<false>(AllTypes());
  static constexpr auto kVector = load_table<true>(AllTypes());
  return vector ? kVector[static_cast<size_t>(t)] : kScalar[static_cast<size_t>(t)];
}
Handler store_handler(DType t, bool vector) {
  static constexpr auto kScalar = store_table<false>(AllTypes());
  static constexpr auto kVector = store_table<true>(AllTypes());
  return vector ? kVector[static_cast<size_t>(t)] : kScalar[static_cast<size_t>(t)];
}
Handler bitcast_handler(DType from, DType to) {
  static constexpr auto kTable = bitcast_table(std::make_index_sequence<kTypes * kTypes>());
  return kTable[static_cast<size_t>(from) * kTypes + static_cast<size_t>(to)];
}
Slot decode(DType t, const void* bytes) {
  static constexpr auto kTable = decode_table(AllTypes());
  return kTable[static_cast<size_t>(t)](bytes);
}

void workspaces_handler(Machine& m, const Inst& i) {
  int number = 0;
  for (const uint32_t reg : {i.a, i.b}) {
    const int64_t bytes = m.r[reg].i;
    if (bytes < 0 || bytes > kMaxBytes)
      return m.fail("a workspace of " + std::to_string(bytes) + " bytes");
    m.program->workspaces[number++].assign(static_cast<size_t>(bytes + 7) / 8, 0);
  }
}

namespace {

// Makes the buffer the part of a workspace that begins at `offset`.
void place(Machine& m, LiveBuffer& b, std::vector<uint64_t>& workspace, int64_t offset) {
  const int64_t bytes = b.elements * byte_size(b.dtype);
  const auto room = static_cast<int64_t>(8 * workspace.size());
  if (offset < 0 || offset % kWorkspaceAlignment != 0 || offset > room || bytes > room - offset)
    return m.fail("buffer '" + b.name + "' of " + std::to_string(bytes) + " bytes at " +
                  std::to_string(offset) + " is not in its workspace of " + std::to_string(room));
  b.data = reinterpret_cast<uint8_t*>(workspace.data()) + offset;
  if (bytes) std::memset(b.data, 0xff, static_cast<size_t>(bytes));
}

}  // namespace

void allocate_handler(Machine& m, const Inst& i) {
  LiveBuffer& b = m.program->buffers[i.a];
  const auto [first, count] = m.program->shapes[i.a];
  b.shape.resize(count);
  for (uint32_t d = 0; d < count; ++d) {
    b.shape[d] = m.r[m.program->shape_regs[first + d]].i;
    if (b.shape[d] < 0)
      return m.fail("buffer '" + b.name + "': extent " + std::to_string(d) +
                    " is negative: " + std::to_string(b.shape[d]));
  }
  // Checked in floating point first: the exact product may overflow.
  double bytes = byte_size(b.dtype);
  b.axes = physical_axes(b.layout, b.shape);
  for (const PhysicalAxis& a : b.axes) bytes *= static_cast<double>(a.extent);
  if (bytes > static_cast<double>(kMaxBytes))
    return m.fail("buffer '" + b.name + "' is too large: shape " + to_string(b.shape));
  b.elements = storage_elements(b.layout, b.shape);
  b.dense = b.layout.empty();
  if (i.c != kNoReg) {  // a parameter: memory is given
    if (!b.data && b.elements) m.fail("parameter '" + b.name + "' is null");
    return;
  }
  const auto size = static_cast<size_t>(b.elements);
  if (i.b != kNoReg) {
    place(m, b, m.program->workspaces[i.n], m.r[i.b].i);
  } else {
    b.storage.assign((size * static_cast<size_t>(byte_size(b.dtype)) + 7) / 8,
                     ~uint64_t{0});  // NaN, -1: not a useful value
    b.data = reinterpret_cast<uint8_t*>(b.storage.data());
  }
  if (m.check_uninitialised) b.written.assign(size, 0);
}

}  // namespace tilewright::ir::interpreter
