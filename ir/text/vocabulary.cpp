#include "ir/text/vocabulary.h"

#include <charconv>

namespace tilewright::ir {

namespace {
template <typename Op, Op kLast>
std::optional<Op> op_named(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(kLast); ++i)
    if (name(static_cast<Op>(i)) == text) return static_cast<Op>(i);
  return std::nullopt;
}
}  // namespace

std::optional<BinaryOp> binary_named(std::string_view text) {
  return op_named<BinaryOp, BinaryOp::kGe>(text);
}
std::optional<UnaryOp> unary_named(std::string_view text) {
  return op_named<UnaryOp, UnaryOp::kIsInf>(text);
}

std::optional<ScalarType> type_named(std::string_view text) {
  if (auto t = dtype_from_name(text)) return ScalarType{*t, 1};
  const size_t x = text.rfind('x');
  if (x == std::string_view::npos) return std::nullopt;
  const auto t = dtype_from_name(text.substr(0, x));
  int lanes = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + x + 1, end, lanes);
  if (!t || error != std::errc() || stop != end || lanes < 2 || lanes > kMaxLanes)
    return std::nullopt;
  return ScalarType{*t, lanes};
}

}  // namespace tilewright::ir
