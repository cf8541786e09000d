// Names, numbers and types as the text forms write them.
#include <array>
#include <charconv>
#include <cmath>

#include "ir/text/printer_loops.h"
#include "ir/text/lexer.h"

namespace tilewright::ir {
namespace {

template <typename Float>
std::string shortest(Float value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string s(buffer, end);
  return s.find_first_of(".e") == std::string::npos ? s + ".0" : s;
}

}  // namespace

std::string float_to_text(double value, DType dtype) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return dtype == DType::kFloat32 ? shortest(static_cast<float>(value)) : shortest(value);
}

bool is_reserved(std::string_view word) {
  static constexpr std::array<std::string_view, 22> kReserved{
      "true",  "false", "inf",  "nan",    "and",    "or",     "where",     "for",
      "in",    "while", "if",   "else",   "let",    "local",  "workspace", "param",
      "block", "init",  "body", "kernel", "layout", "scalars"};
  for (std::string_view r : kReserved)
    if (r == word) return true;
  return dtype_from_name(word).has_value();
}
std::string name_to_text(const std::string& name) {
  return is_word(name) && !is_reserved(name) ? name : quoted(name, '\'');
}

std::string NameTable::unique(const void* object, const std::string& wanted) {
  if (auto it = names_.find(object); it != names_.end()) return it->second;
  std::string chosen = wanted;
  while (!taken_.insert(chosen).second)
    chosen = wanted + "_" + std::to_string(++next_suffix_[wanted]);
  return names_[object] = name_to_text(chosen);
}
std::string NameTable::of(const Expr& var) {
  return unique(var.get(), static_cast<const VarNode*>(var.get())->name);
}
std::string NameTable::of(const Buffer& buffer) { return unique(buffer.get(), buffer->name); }

std::string to_text(ScalarType t) {
  return std::string(name(t.dtype)) + (t.lanes == 1 ? "" : "x" + std::to_string(t.lanes));
}
std::string to_text(const Layout& layout) {
  if (layout.empty()) return "";
  std::string s;
  for (const LayoutAxis& a : layout) {
    s += (s.empty() ? "layout(d" : ", d") + std::to_string(a.dim);
    if (a.divisor != 1) s += "/" + std::to_string(a.divisor);
    if (a.modulus != 0) s += "%" + std::to_string(a.modulus);
    if (a.padded != 0) s += ":" + std::to_string(a.padded);
  }
  return s + ")";
}

}  // namespace tilewright::ir
