// Encodings and operation: Intel SDM volume 2, chapter "Intel AMX"; volume 1, chapter on tile
// state.
#include "tests/ops/amx_emulator.h"

#include <sys/ucontext.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#include "runtime/core/check.h"

namespace tilewright {
namespace {

constexpr int kTiles = 8, kRows = 16, kRowBytes = 64;

struct Tile {
  uint8_t rows = 0;
  uint16_t row_bytes = 0;
  std::array<std::array<uint8_t, kRowBytes>, kRows> data{};

  template <typename T>
  T get(int row, int element) const {
    T x;
    std::memcpy(&x, &data[static_cast<size_t>(row)][static_cast<size_t>(element) * sizeof(T)],
                sizeof x);
    return x;
  }
  template <typename T>
  void set(int row, int element, T x) {
    std::memcpy(&data[static_cast<size_t>(row)][static_cast<size_t>(element) * sizeof(T)], &x,
                sizeof x);
  }
};
thread_local std::array<Tile, kTiles> tiles;
std::atomic<int64_t> products_done, stores_done;

enum Prefix : uint8_t { kNone, k66, kF3, kF2 };  // the field pp of VEX

struct Instruction {
  Prefix prefix = kNone;
  uint8_t opcode = 0, reg = 0, rm = 0, vvvv = 0;
  bool memory = false, has_index = false;
  uint64_t base = 0, index = 0;  // address without the scaled index, and that
  size_t length = 0;
};

uint64_t general_register(const ucontext_t& c, int number) {
  static constexpr int kOrder[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                   REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                   REG_R12, REG_R13, REG_R14, REG_R15};
  return static_cast<uint64_t>(c.uc_mcontext.gregs[kOrder[number]]);
}

// VEX with three bytes, opcode, ModRM, maybe SIB and displacement.
bool decode(const uint8_t* at, const ucontext_t& c, Instruction& i) {
  const uint8_t* p = at;
  if (p[0] != 0xc4 || (p[1] & 0x1f) != 2 || (p[2] & 0x84) != 0) return false;  // 0F38, W0, 128 bits
  const int r = p[1] & 0x80 ? 0 : 8, x = p[1] & 0x40 ? 0 : 8, b = p[1] & 0x20 ? 0 : 8;
  i.prefix = static_cast<Prefix>(p[2] & 3);
  i.vvvv = static_cast<uint8_t>(~p[2] >> 3 & 15);
  i.opcode = p[3];
  const int mod = p[4] >> 6, low = p[4] & 7;
  i.reg = static_cast<uint8_t>((p[4] >> 3 & 7) | r);
  i.rm = static_cast<uint8_t>(low | b);
  p += 5;
  i.memory = mod != 3;
  if (i.memory) {
    bool relative = mod == 0 && low == 5, absolute = false;
    if (low == 4) {
      const int index = (*p >> 3 & 7) | x, base = (*p & 7) | b;
      i.has_index = index != 4;
      if (i.has_index) i.index = general_register(c, index) << (*p >> 6);
      absolute = mod == 0 && (*p & 7) == 5;
      if (!absolute) i.base = general_register(c, base);
      ++p;
    } else if (!relative) {
      i.base = general_register(c, low | b);
    }
    if (mod == 1) {
      i.base += static_cast<uint64_t>(int64_t{static_cast<int8_t>(*p++)});
    } else if (mod == 2 || relative || absolute) {
      int32_t displacement;
      std::memcpy(&displacement, p, 4);
      p += 4;
      i.base += static_cast<uint64_t>(int64_t{displacement});
    }
    if (relative) i.base += reinterpret_cast<uint64_t>(p);
  }
  i.length = static_cast<size_t>(p - at);
  return true;
}

bool configure(const uint8_t* memory) {
  if (memory[0] > 1) return false;
  for (size_t t = 0; t < kTiles; ++t) {
    tiles[t] = {};
    if (memory[0] == 0) continue;
    std::memcpy(&tiles[t].row_bytes, memory + 16 + 2 * t, 2);
    tiles[t].rows = memory[48 + t];
    if (tiles[t].rows > kRows || tiles[t].row_bytes > kRowBytes) return false;
    if ((tiles[t].rows == 0) != (tiles[t].row_bytes == 0)) return false;
  }
  return true;
}

template <bool kLoad>
bool move_tile(const Instruction& i) {
  if (i.reg >= kTiles || tiles[i.reg].rows == 0) return false;
  Tile& t = tiles[i.reg];
  if (kLoad) t.data = {};
  for (size_t r = 0; r < t.rows; ++r) {
    auto* row = reinterpret_cast<uint8_t*>(i.base + r * i.index);
    if (kLoad)
      std::memcpy(t.data[r].data(), row, t.row_bytes);
    else
      std::memcpy(row, t.data[r].data(), t.row_bytes);
  }
  if (!kLoad) ++stores_done;
  return true;
}

float widen(uint16_t bf16) { return std::bit_cast<float>(uint32_t{bf16} << 16); }

// Sums of products of bytes: unsigned of a by signed of b.
void add_bytes(Tile& sum, const Tile& a, const Tile& b) {
  for (int m = 0; m < sum.rows; ++m)
    for (int n = 0; n < sum.row_bytes / 4; ++n) {
      auto s = sum.get<uint32_t>(m, n);
      for (int k = 0; k < a.row_bytes / 4; ++k)
        for (int q = 0; q < 4; ++q)
          s += static_cast<uint32_t>(int{a.get<uint8_t>(m, 4 * k + q)} *
                                     int{b.get<int8_t>(k, 4 * n + q)});
      sum.set(m, n, s);
    }
}
// Even and odd terms are summed apart.
void add_bf16(Tile& sum, const Tile& a, const Tile& b) {
  for (int m = 0; m < sum.rows; ++m)
    for (int n = 0; n < sum.row_bytes / 4; ++n) {
      float part[2] = {};
      for (int k = 0; k < a.row_bytes / 4; ++k)
        for (int q = 0; q < 2; ++q)
          part[q] += widen(a.get<uint16_t>(m, 2 * k + q)) * widen(b.get<uint16_t>(k, 2 * n + q));
      sum.set(m, n, sum.get<float>(m, n) + (part[0] + part[1]));
    }
}
bool multiply(const Instruction& i) {
  if (i.reg >= kTiles || i.rm >= kTiles || i.vvvv >= kTiles) return false;
  Tile &sum = tiles[i.reg], &a = tiles[i.rm], &b = tiles[i.vvvv];
  if (i.reg == i.rm || i.reg == i.vvvv || i.rm == i.vvvv || sum.rows == 0 || a.rows != sum.rows ||
      a.row_bytes / 4 != b.rows || b.row_bytes != sum.row_bytes)
    return false;
  if (i.opcode == 0x5e && i.prefix == k66)
    add_bytes(sum, a, b);
  else if (i.opcode == 0x5c && i.prefix == kF3)
    add_bf16(sum, a, b);
  else
    return false;
  ++products_done;
  return true;
}

bool execute(const Instruction& i) {
  if (i.opcode == 0x49 && i.memory && i.prefix == kNone && i.reg == 0)
    return configure(reinterpret_cast<const uint8_t*>(i.base + i.index));
  if (i.opcode == 0x49 && !i.memory && i.prefix == kNone && i.reg == 0) {
    tiles = {};
    return true;
  }
  if (i.opcode == 0x49 && !i.memory && i.prefix == kF2 && i.reg < kTiles) {
    tiles[i.reg].data = {};
    return tiles[i.reg].rows > 0;
  }
  if (i.opcode == 0x4b && i.memory && (i.prefix == kF2 || i.prefix == k66))
    return move_tile<true>(i);
  if (i.opcode == 0x4b && i.memory && i.prefix == kF3) return move_tile<false>(i);
  return !i.memory && multiply(i);
}

void on_invalid_opcode(int, siginfo_t*, void* context) {
  auto& c = *static_cast<ucontext_t*>(context);
  Instruction i;
  const auto at = static_cast<uint64_t>(c.uc_mcontext.gregs[REG_RIP]);
  if (decode(reinterpret_cast<const uint8_t*>(at), c, i) && execute(i)) {
    c.uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(at + i.length);
    return;
  }
  std::signal(SIGILL, SIG_DFL);  // the instruction is met once more
}

}  // namespace

AmxEmulator::AmxEmulator() {
  products_done = stores_done = 0;
  struct sigaction action{};
  action.sa_sigaction = on_invalid_opcode;
  action.sa_flags = SA_SIGINFO;
  TW_CHECK(sigaction(SIGILL, &action, &before_) == 0);
}
AmxEmulator::~AmxEmulator() { sigaction(SIGILL, &before_, nullptr); }
int64_t AmxEmulator::products() const { return products_done; }
int64_t AmxEmulator::stores() const { return stores_done; }

}  // namespace tilewright
