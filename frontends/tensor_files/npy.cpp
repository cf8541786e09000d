#include "frontends/tensor_files/npy.h"

#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

namespace tilewright {
namespace {

constexpr std::string_view kMagic{"\x93NUMPY", 6};
constexpr size_t kMaxRank = 64;     // NumPy's own limit
constexpr size_t kNpyV1Start = 10;  // of the text: after magic, version and a 2-byte length

struct NpyType {
  std::string_view code;  // kind and size, without the byte order
  DType dtype;
};
constexpr NpyType kNpyTypes[] = {
    {"f4", DType::kFloat32}, {"f8", DType::kFloat64}, {"f2", DType::kFloat16},
    {"i1", DType::kInt8},    {"i2", DType::kInt16},   {"i4", DType::kInt32},
    {"i8", DType::kInt64},   {"u1", DType::kUInt8},   {"u2", DType::kUInt16},
    {"u4", DType::kUInt32},  {"u8", DType::kUInt64},  {"b1", DType::kBool},
};

// Reads the few forms of Python literal that a header may hold.
class LiteralReader {
 public:
  explicit LiteralReader(std::string_view text) : rest_(text) {}

  bool take(char c) {
    skip_blanks();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take_word(std::string_view word) {
    skip_blanks();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  std::optional<std::string_view> take_string() {
    skip_blanks();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) return std::nullopt;
    size_t end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string_view text = rest_.substr(1, end - 1);
    if (text.find('\\') != std::string_view::npos) return std::nullopt;
    rest_.remove_prefix(end + 1);
    return text;
  }
  std::optional<int64_t> take_extent() {
    skip_blanks();
    int64_t value = 0;
    auto [end, code] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (code != std::errc() || value < 0 || rest_.front() == '-') return std::nullopt;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }
  bool at_end() {
    skip_blanks();
    return rest_.empty();
  }
  char peek() {
    skip_blanks();
    return rest_.empty() ? '\0' : rest_.front();
  }

 private:
  void skip_blanks() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n'))
      rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

Status parse_descr(LiteralReader& in, NpyHeader& out) {
  if (in.peek() == '[') return unsupported("npy: structured arrays are not supported");
  auto descr = in.take_string();
  if (!descr) return invalid("npy header: descr is not a string");
  std::string_view code = *descr;
  char order = code.empty() ? '\0' : code.front();
  if (order == '<' || order == '>' || order == '|' || order == '=') code.remove_prefix(1);
  if (code.starts_with('O'))
    return unsupported("npy: object arrays hold Python pickles, which are never run");
  for (const NpyType& t : kNpyTypes) {
    if (t.code != code) continue;
    out.dtype = t.dtype;
    out.big_endian = order == '>' && byte_size(t.dtype) > 1;
    return {};
  }
  return unsupported("npy: element type '" + std::string(descr->substr(0, 40)) +
                     "' is not supported");
}

Status parse_shape(LiteralReader& in, NpyHeader& out) {
  if (!in.take('(')) return invalid("npy header: shape is not a tuple");
  while (!in.take(')')) {
    auto extent = in.take_extent();
    if (!extent)
      return invalid("npy header: shape holds something other than non-negative integers");
    if (out.shape.size() == kMaxRank) return limit_error("npy header: more than 64 dimensions");
    out.shape.push_back(*extent);
    // A comma must follow the only extent of a 1-d shape: without it Python sees a plain number.
    bool comma = in.take(',');
    if (!comma && (out.shape.size() == 1 || in.peek() != ')'))
      return invalid("npy header: shape is not a tuple");
  }
  return {};
}

Status parse_entry(LiteralReader& in, std::string_view key, NpyHeader& out) {
  if (key == "descr") return parse_descr(in, out);
  if (key == "shape") return parse_shape(in, out);
  if (key != "fortran_order")
    return invalid("npy header: unknown key '" + std::string(key.substr(0, 40)) + "'");
  if (in.take_word("True")) {
    out.fortran_order = true;
  } else if (!in.take_word("False")) {
    return invalid("npy header: fortran_order is neither True nor False");
  }
  return {};
}

Status parse_dictionary(std::string_view text, NpyHeader& out) {
  LiteralReader in(text);
  if (!in.take('{')) return invalid("npy header: not a dictionary");
  std::vector<std::string_view> seen;
  while (!in.take('}')) {
    auto key = in.take_string();
    if (!key || !in.take(':')) return invalid("npy header: expected 'key': value");
    for (std::string_view s : seen)
      if (s == *key) return invalid("npy header: key '" + std::string(*key) + "' twice");
    seen.push_back(*key);
    TW_RETURN_IF_ERROR(parse_entry(in, *key, out));
    if (!in.take(',') && in.peek() != '}') return invalid("npy header: expected ',' or '}'");
  }
  if (!in.at_end()) return invalid("npy header: text after the dictionary");
  if (seen.size() != 3) return invalid("npy header: descr, fortran_order and shape are needed");
  return {};
}

}  // namespace

Result<size_t> npy_header_length(std::span<const uint8_t> prefix) {
  if (prefix.size() < kNpyV1Start || std::memcmp(prefix.data(), kMagic.data(), kMagic.size()) != 0)
    return invalid("not a .npy array (no NUMPY magic)");
  int major = prefix[6];
  if (major < 1 || major > 3 || prefix[7] != 0)
    return unsupported("npy format " + std::to_string(major) + "." + std::to_string(prefix[7]) +
                       ": only 1.0, 2.0 and 3.0 are known");
  size_t start = major == 1 ? kNpyV1Start : 12;
  if (prefix.size() < start) return invalid("npy header is truncated");
  size_t length = 0;
  for (size_t i = start; i > 8; --i) length = length << 8 | prefix[i - 1];
  if (length > kMaxNpyHeaderBytes)
    return limit_error("npy header of " + std::to_string(length) + " bytes, at most " +
                       std::to_string(kMaxNpyHeaderBytes) + " are read");
  return start + length;
}

Result<NpyHeader> parse_npy_header(std::span<const uint8_t> header) {
  TW_ASSIGN(size_t length, npy_header_length(header));
  if (header.size() != length) return invalid("npy header is truncated");
  size_t start = header[6] == 1 ? kNpyV1Start : 12;
  NpyHeader out;
  std::string_view text(reinterpret_cast<const char*>(header.data()) + start, length - start);
  TW_RETURN_IF_ERROR(parse_dictionary(text, out));
  auto count = element_count(out.shape);
  size_t width = static_cast<size_t>(byte_size(out.dtype));
  if (!count || __builtin_mul_overflow(static_cast<size_t>(*count), width, &out.data_bytes))
    return invalid("npy header: shape " + to_string(out.shape) + " is too large");
  return out;
}

Result<std::string> format_npy_header(DType dtype, const Shape& shape) {
  if (shape.size() > kMaxRank) return limit_error("npy: more than 64 dimensions");
  std::string_view code;
  for (const NpyType& t : kNpyTypes)
    if (t.dtype == dtype) code = t.code;
  if (code.empty()) return unsupported("npy has no element type " + std::string(name(dtype)));
  std::string text = std::string("{'descr': '") + (byte_size(dtype) == 1 ? '|' : '<') +
                     std::string(code) + "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]) + (shape.size() == 1 ? "," : "");
  text += "), }";
  size_t length = (kNpyV1Start + text.size() + 1 + 63) / 64 * 64 - kNpyV1Start;
  text.resize(length - 1, ' ');
  text += '\n';
  std::string header(kMagic);
  header += {'\1', '\0', static_cast<char>(length & 0xFF), static_cast<char>(length >> 8)};
  return header + text;
}

}  // namespace tilewright
