// The reader is made of lines: `case`, the graph's text up to a lone `}`, then `given` and `expect`
// with the elements below them, indented.
#include "tests/ops/reference_cases.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>

#include "ir/module_text/inline_constant.h"
#include "ir/module_text/parser_graph.h"
#include "ir/verify_graph.h"
#include "tests/ops/graph_oracle.h"

namespace tilewright {
namespace {

template <typename T>
std::optional<T> number(const std::string& word) {
  T value{};
  const char* end = word.data() + word.size();
  const auto [at, error] = std::from_chars(word.data(), end, value);
  return error == std::errc{} && at == end ? std::optional<T>(value) : std::nullopt;
}

// The bytes of an element; false when the word is none of the type.
bool append_word(std::vector<uint8_t>& bytes, DType dtype, const std::string& word) {
  if (is_float(dtype)) {
    const auto v = number<double>(word);
    if (v) ir::append_element(bytes, dtype, *v);
    return v.has_value();
  }
  if (dtype == DType::kUInt64) {
    const auto v = number<uint64_t>(word);
    if (v) ir::append_element(bytes, dtype, static_cast<int64_t>(*v));
    return v.has_value();
  }
  const auto v = number<int64_t>(word);
  if (!v) return false;
  const bool is_signed = is_signed_integer(dtype);
  const int bits = dtype == DType::kBool ? 1 : 8 * static_cast<int>(byte_size(dtype));
  const double low = is_signed ? -std::ldexp(1.0, bits - 1) : 0;
  const double high = std::ldexp(1.0, is_signed ? bits - 1 : bits);
  const bool fits =
      static_cast<double>(*v) >= low && (bits == 64 || static_cast<double>(*v) < high);
  if (fits) ir::append_element(bytes, dtype, *v);
  return fits;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : in_(std::string(text)) { next(); }

  Result<std::vector<ReferenceCase>> cases() {
    std::vector<ReferenceCase> all;
    while (more_) {
      if (line_.empty() || line_[0] == '#') {
        next();
        continue;
      }
      TW_ASSIGN(ReferenceCase c, one_case());
      all.push_back(std::move(c));
    }
    return all;
  }

 private:
  void next() {
    more_ = static_cast<bool>(std::getline(in_, line_));
    ++at_;
  }
  Error fail(const std::string& message) const {
    return invalid("line " + std::to_string(at_) + ": " + message);
  }
  // The line without its first word, which must be this one.
  std::optional<std::string> after(const std::string& word) const {
    if (!more_ || line_.rfind(word + " ", 0) != 0) return std::nullopt;
    return line_.substr(word.size() + 1);
  }

  Result<ReferenceCase> one_case() {
    const auto name = after("case");
    if (!name || name->empty()) return fail("expected 'case NAME', found '" + line_ + "'");
    ReferenceCase c;
    c.name = *name;
    next();
    std::string text;
    for (; more_ && line_ != "}"; next()) text += line_ + "\n";
    auto graph = ir::parse_graph(text + "}\n");
    if (!graph.ok()) return fail("case " + c.name + ": " + graph.error().to_string());
    c.graph = std::move(graph).value();
    if (const Status s = ir::verify(c.graph); !s.ok())
      return fail("case " + c.name + ": " + s.error().to_string());
    next();
    for (ir::ValueId v : c.graph.inputs) {
      TW_ASSIGN(ExpectedResult t, tensor("given", c.graph.value(v).name, false));
      c.operands.push_back(std::move(t.value));
    }
    for (const std::string& output : c.graph.output_names) {
      TW_ASSIGN(ExpectedResult t, tensor("expect", output, true));
      c.expected.push_back(std::move(t));
    }
    if (c.expected.empty()) return fail("case " + c.name + " expects nothing");
    return c;
  }

  // given NAME DTYPE EXTENT...; expect NAME DTYPE EXTENT... then `exact` or `terms N of M`.
  Result<ExpectedResult> tensor(const std::string& word, const std::string& name, bool result) {
    const auto rest = after(word);
    std::istringstream words(rest.value_or(""));
    std::string found, type, next_word;
    if (!rest || !(words >> found) || found != name)
      return fail("expected '" + word + " " + name + "', found '" + line_ + "'");
    words >> type;
    const auto dtype = dtype_from_name(type);
    if (!dtype) return fail("'" + type + "' is no element type");
    Shape shape;
    ExpectedResult t;
    bool compared = false;
    while (words >> next_word) {
      if (const auto extent = number<int64_t>(next_word); extent && *extent >= 0 && !compared) {
        shape.push_back(*extent);
      } else if (result && !compared && next_word == "exact") {
        compared = t.exact = true;
      } else if (result && !compared && next_word == "terms") {
        std::string terms, of, magnitude;
        words >> terms >> of >> magnitude;
        const auto n = number<double>(terms), m = number<double>(magnitude);
        if (!n || of != "of" || !m || !(*n >= 0) || !(*m >= 0) || !std::isfinite(*n * *m))
          return fail("expected 'terms N of M'");
        t.terms = *n;
        t.magnitude = *m;
        compared = true;
      } else {
        return fail("unknown word '" + next_word + "'");
      }
    }
    if (result && !compared) return fail("expected 'exact' or 'terms N of M'");
    next();
    TW_ASSIGN(t.value, elements(*dtype, shape));
    return t;
  }

  Result<HostTensor> elements(DType dtype, const Shape& shape) {
    std::vector<uint8_t> bytes;
    int64_t count = 0;
    for (; more_ && line_.rfind("  ", 0) == 0; next()) {
      std::istringstream words(line_);
      for (std::string w; words >> w; ++count)
        if (!append_word(bytes, dtype, w))
          return fail("'" + w + "' is no " + std::string(name(dtype)));
    }
    const auto wanted = element_count(shape);
    if (!wanted || *wanted != count)
      return fail("found " + std::to_string(count) + " elements of " + to_string(shape));
    HostTensor t(dtype, shape);
    std::copy(bytes.begin(), bytes.end(), t.bytes.begin());
    return t;
  }

  std::istringstream in_;
  std::string line_;
  bool more_ = false;
  int at_ = 0;
};

double smallest_normal(DType dtype) {
  switch (dtype) {
    case DType::kFloat64: return std::numeric_limits<double>::min();
    case DType::kFloat16: return std::ldexp(1.0, -14);
    default: return std::numeric_limits<float>::min();
  }
}

}  // namespace

Result<std::vector<ReferenceCase>> parse_reference_cases(std::string_view text) {
  return Reader(text).cases();
}

std::string mismatch(const HostTensor& got, const ExpectedResult& expected) {
  const HostTensor& want = expected.value;
  if (got.dtype != want.dtype || got.shape != want.shape)
    return "is " + std::string(name(got.dtype)) + to_string(got.shape) + ", expected " +
           std::string(name(want.dtype)) + to_string(want.shape);
  int64_t bad = -1;
  if (expected.exact || !is_float(want.dtype)) {
    bad = first_difference(got, want);
  } else {
    // What a function such as tanh may be off by, in codegen/cpu/vector_math.h: at most 4 ULPs.
    constexpr double kUlps = 4;
    for (int64_t i = 0; i < want.size() && bad < 0; ++i) {
      const double g = element(got, i), w = element(want, i);
      const double size = std::max(std::abs(w), smallest_normal(want.dtype));
      const double bound =
          epsilon(want.dtype) * (kUlps * size + expected.terms * expected.magnitude);
      const bool same = std::isfinite(g) && std::isfinite(w)
                            ? std::abs(g - w) <= bound
                            : g == w || (std::isnan(g) && std::isnan(w));
      if (!same) bad = i;
    }
  }
  if (bad < 0) return "";
  std::ostringstream s;
  s.precision(17);
  s << "element " << bad << " is " << element(got, bad) << ", expected " << element(want, bad);
  return s.str();
}

}  // namespace tilewright
