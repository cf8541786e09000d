#include "codegen/cpu/features_used.h"

#include <algorithm>
#include <array>

#include "ir/loops/rewrite.h"

namespace tilewright::cpu {

namespace {

// Instruction sets that serve some element types only. A kernel without these types is compiled
// without the feature, so that its file runs on CPUs that lack it. An expression that is emitted
// with an instruction of such a set has an operand of a type listed here.
struct SpecialFeature {
  const char* name;
  bool (*serves)(DType);
  bool of_tiles = false;  // for kernels that hold a DotTile alone; the type is then that of its `a`
};
constexpr bool is_byte(DType t) { return t == DType::kInt8 || t == DType::kUInt8; }
constexpr bool is_short(DType t) { return t == DType::kInt16 || t == DType::kUInt16; }
constexpr bool is_tile_operand(DType t) { return t == DType::kUInt8 || t == DType::kBFloat16; }
constexpr std::array<SpecialFeature, 8> kSpecial{{
    {"amx-bf16", [](DType t) { return t == DType::kBFloat16; }, true},
    {"amx-int8", [](DType t) { return t == DType::kUInt8; }, true},
    {"amx-tile", is_tile_operand, true},
    {"avx512bf16", [](DType t) { return t == DType::kBFloat16; }},
    {"avx512fp16", [](DType t) { return t == DType::kFloat16; }},
    {"avx512vbmi", is_byte},
    {"avx512vnni", [](DType t) { return is_byte(t) || is_short(t); }},
    {"avxvnni", [](DType t) { return is_byte(t) || is_short(t); }},
}};

// Features outside the table serve every kernel; one inside, those that `wanted` says.
template <typename Wanted>
std::vector<std::string> select(const std::vector<std::string>& available, Wanted wanted) {
  std::vector<std::string> features;
  for (const std::string& f : available) {
    const auto* special = std::find_if(kSpecial.begin(), kSpecial.end(),
                                       [&](const SpecialFeature& s) { return f == s.name; });
    if (special == kSpecial.end() || wanted(*special)) features.push_back(f);
  }
  return features;
}

}  // namespace

std::vector<std::string> features_used(const ir::Kernel& kernel,
                                       const std::vector<std::string>& available) {
  std::vector<DType> types, of_tiles;
  auto add = [](std::vector<DType>& to, DType t) {
    if (std::find(to.begin(), to.end(), t) == to.end()) to.push_back(t);
  };
  for (const ir::Buffer& b : kernel.params) add(types, b->dtype);
  ir::for_each_expr(kernel.body, [&](const ir::Expr& e) { add(types, e.dtype()); });
  ir::for_each_stmt(kernel.body, [&](const ir::Stmt& s) {
    if (const auto* tile = s.as<ir::DotTile>()) add(of_tiles, tile->a.buffer->dtype);
  });
  return select(available, [&](const SpecialFeature& s) {
    const std::vector<DType>& from = s.of_tiles ? of_tiles : types;
    return std::any_of(from.begin(), from.end(), s.serves);
  });
}

std::vector<std::string> base_features(const std::vector<std::string>& available) {
  return select(available, [](const SpecialFeature&) { return false; });
}

}  // namespace tilewright::cpu
