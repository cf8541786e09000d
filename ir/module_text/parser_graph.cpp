#include "ir/module_text/parser_graph.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "ir/graph/op.h"
#include "ir/module_text/inline_constant.h"
#include "ir/module_text/parse_requirement.h"
#include "ir/module_text/printer_graph.h"
#include "ir/text/parser_exprs.h"

namespace tilewright::ir {

namespace {

class GraphParser {
 public:
  GraphParser(Cursor& cursor, Names& symbols, const FindConstant& find)
      : c_(cursor), exprs_(cursor, symbols), symbols_(symbols), find_(find) {}

  Graph graph();

 private:
  void statement();
  void output();
  void requirement();
  void constant();
  void node();
  void trailer(Node& n);
  ValueId define(std::string_view what);
  ValueId operand();
  TensorType type();
  std::string text(std::string_view what);
  ConstantRef elements(const Token& at, const TensorType& type);
  void element(std::vector<uint8_t>& bytes, DType dtype);
  Attribute attribute();
  template <typename T>
  Attribute list();
  int64_t signed_integer();
  double real();
  bool at_absent() const { return c_.at_word("_"); }
  // Words that begin a statement may also name values: then ':', ',' or '=' follows.
  bool at_keyword(std::string_view word) const {
    const Token& after = c_.peek(1);
    return c_.at_word(word) && (after.kind == TokenKind::kWord || after.kind == TokenKind::kName);
  }

  Cursor& c_;
  ExprParser exprs_;
  Names& symbols_;
  const FindConstant& find_;
  Graph g_;
  std::unordered_map<std::string, ValueId> values_;
};

std::string GraphParser::text(std::string_view what) {
  if (c_.peek().kind == TokenKind::kString) return c_.next().text;
  c_.expected(what);
  return "";
}
TensorType GraphParser::type() {
  TensorType t;
  t.dtype = exprs_.dtype();
  t.dims = exprs_.extents();
  return t;
}

// name: f32[m, 4] layout(...) known [...]
ValueId GraphParser::define(std::string_view what) {
  const Token at = c_.peek();
  const std::string name = exprs_.name(what);
  c_.expect_symbol(":");
  const ValueId id = g_.add_value(name, type());
  Value& v = g_.value(id);
  v.layout = exprs_.layout(v.type.dims.size());
  if (c_.at_word("known") && c_.at_symbol("[", 1)) {
    c_.next();
    v.known = exprs_.extents();
  }
  if (c_.ok() && !values_.emplace(name, id).second)
    c_.fail(at, "value " + shown(at) + " is defined twice");
  return id;
}
ValueId GraphParser::operand() {
  if (at_absent()) {
    c_.next();
    return kNone;
  }
  const Token at = c_.peek();
  const auto it = values_.find(exprs_.name("a value"));
  if (it != values_.end()) return it->second;
  c_.fail(at, "value " + shown(at) + " is not defined");
  return kNone;
}

int64_t GraphParser::signed_integer() {
  const bool negative = c_.accept_symbol("-");
  const Token at = c_.peek();
  uint64_t value = 0;
  const char* end = at.text.data() + at.text.size();
  if (at.kind != TokenKind::kInteger) {
    c_.expected("an integer");
    return 0;
  }
  c_.next();
  if (std::from_chars(at.text.data(), end, value).ec != std::errc() ||
      value > (uint64_t{1} << 63) - !negative)
    c_.fail(at, "the number is too large: " + at.text);
  return static_cast<int64_t>(negative ? 0 - value : value);
}
double GraphParser::real() {
  const bool negative = c_.accept_symbol("-");
  const Token at = c_.next();
  double value = 0;
  if (at.kind == TokenKind::kWord && at.text == "inf")
    value = HUGE_VAL;
  else if (at.kind == TokenKind::kWord && at.text == "nan")
    value = std::nan("");
  else if (at.kind != TokenKind::kFloat)
    c_.fail(at, "expected a number with a fraction, found " + shown(at));
  else if (std::from_chars(at.text.data(), at.text.data() + at.text.size(), value).ec !=
           std::errc())
    c_.fail(at, "the number is outside the range of f64: " + at.text);
  return negative ? -value : value;
}

void GraphParser::element(std::vector<uint8_t>& bytes, DType dtype) {
  if (dtype == DType::kFloat32 &&
      c_.peek(c_.at_symbol("-")).kind == TokenKind::kFloat) {  // rounded once, not by way of double
    const bool negative = c_.accept_symbol("-");
    const Token at = c_.next();
    float value = 0;
    if (std::from_chars(at.text.data(), at.text.data() + at.text.size(), value).ec != std::errc())
      c_.fail(at, "the number is outside the range of f32: " + at.text);
    return append_element(bytes, dtype, static_cast<double>(negative ? -value : value));
  }
  if (is_float(dtype)) return append_element(bytes, dtype, real());
  const Token at = c_.peek();
  if (dtype == DType::kUInt64) {
    uint64_t value = 0;
    if (at.kind != TokenKind::kInteger) return c_.expected("an integer");
    if (std::from_chars(at.text.data(), at.text.data() + at.text.size(), value).ec != std::errc())
      return c_.fail(at, "the number is too large: " + at.text);
    c_.next();
    return append_element(bytes, dtype, static_cast<int64_t>(value));
  }
  const int64_t value = signed_integer();
  if (as_int(int_imm(value, dtype)) != value)
    c_.fail(at, std::to_string(value) + " is outside the range of " + std::string(name(dtype)));
  append_element(bytes, dtype, value);
}
// #3, or [1, 2]
ConstantRef GraphParser::elements(const Token& at, const TensorType& type) {
  const auto shape = c_.ok() ? constant_shape(type) : std::nullopt;
  const auto count = shape ? tilewright::element_count(*shape) : std::nullopt;
  if (!count) {
    c_.fail(at, "expected constant extents of a constant");
    return nullptr;
  }
  if (c_.accept_symbol("#")) {
    const Token which = c_.peek();
    const int64_t n = c_.integer("the number of a constant");
    if (!c_.ok()) return nullptr;
    const ConstantRef c = find_(n, type.dtype, *shape);
    if (!c) {
      c_.fail(which, "constant #" + which.text + " is not given");
      return nullptr;
    }
    if (c->dtype != type.dtype || c->shape != *shape)
      c_.fail(which, "constant #" + which.text + " is " + std::string(name(c->dtype)) +
                         tilewright::to_string(c->shape) + ", expected " + to_text(type));
    return c;
  }
  std::vector<uint8_t> bytes;
  int64_t found = 0;
  c_.expect_symbol("[");
  for (; c_.ok() && !c_.at_symbol("]"); ++found) {
    if (found) c_.expect_symbol(",");
    if (c_.ok()) element(bytes, type.dtype);
  }
  c_.expect_symbol("]");
  if (c_.ok() && found != *count)
    c_.fail(at, "expected " + std::to_string(*count) + " elements, found " + std::to_string(found));
  return c_.ok() ? make_constant(type.dtype, *shape, std::move(bytes)) : nullptr;
}

template <typename T>
Attribute GraphParser::list() {
  std::vector<T> items;
  while (c_.ok() && !c_.at_symbol("]")) {
    if (!items.empty()) c_.expect_symbol(",");
    if constexpr (std::is_same_v<T, int64_t>)
      items.push_back(signed_integer());
    else if constexpr (std::is_same_v<T, double>)
      items.push_back(real());
    else
      items.push_back(text("a string"));
  }
  c_.expect_symbol("]");
  return items;
}
Attribute GraphParser::attribute() {
  auto is_integer = [&](size_t at) {
    return c_.peek(at + c_.at_symbol("-", at)).kind == TokenKind::kInteger;
  };
  if (c_.peek().kind == TokenKind::kString) return c_.next().text;
  if (is_integer(0)) return signed_integer();
  if (c_.accept_word("const")) {
    const Token at = c_.peek();
    const TensorType t = type();
    c_.expect_symbol("=");
    return elements(at, t);
  }
  if (c_.at_word("extents") && c_.at_symbol("[", 1)) {
    c_.next();
    return Extents{exprs_.extents()};
  }
  for (int kind = 0; kind < 3; ++kind) {
    static constexpr const char* kEmpty[] = {"ints", "floats", "strings"};
    if (!c_.at_word(kEmpty[kind]) || !c_.at_symbol("[", 1)) continue;
    c_.next();
    c_.next();
    c_.expect_symbol("]");
    if (kind == 0) return std::vector<int64_t>{};
    if (kind == 1) return std::vector<double>{};
    return std::vector<std::string>{};
  }
  if (c_.accept_symbol("[")) {
    if (c_.peek().kind == TokenKind::kString) return list<std::string>();
    if (is_integer(0)) return list<int64_t>();
    if (c_.at_symbol("]"))
      c_.expected("an element (an empty list is written ints[], floats[] or strings[])");
    return list<double>();
  }
  return real();
}

void GraphParser::trailer(Node& n) {
  if (c_.accept_word("with")) {
    c_.expect_symbol("[");
    while (c_.ok() && !c_.at_symbol("]")) {
      if (!c_.enter()) return;
      n.regions.push_back(std::make_shared<const Graph>(GraphParser(c_, symbols_, find_).graph()));
      c_.leave();
    }
    c_.expect_symbol("]");
  }
  if (c_.at_word("defines") && c_.at_symbol("(", 1)) {
    c_.next();
    c_.next();
    while (c_.ok() && !c_.at_symbol(")")) {
      if (!n.defined_symbols.empty()) c_.expect_symbol(",");
      const std::string symbol = exprs_.name("a symbol");
      Var& v = symbols_.vars[symbol];
      if (!v) v = Var(symbol);
      n.defined_symbols.push_back(v);
    }
    c_.expect_symbol(")");
  }
  if (c_.at_word("from") && c_.peek(1).kind == TokenKind::kString) {
    c_.next();
    do n.sources.push_back(text("the name of a source node"));
    while (c_.ok() && c_.accept_symbol(","));
  }
  if (c_.at_word("group") && c_.peek(1).kind == TokenKind::kInteger) {
    c_.next();
    const int64_t group = c_.integer("the number of a group");
    n.group = static_cast<int32_t>(std::min<int64_t>(group, INT32_MAX));
  }
}

void GraphParser::node() {
  Node n;
  const auto number = static_cast<int32_t>(g_.nodes.size());
  std::vector<ValueId> outputs;
  while (c_.ok() && !c_.at_symbol("=")) {
    if (!outputs.empty()) c_.expect_symbol(",");
    if (at_absent()) {
      c_.next();
      outputs.push_back(kNone);
      continue;
    }
    outputs.push_back(define("a statement"));
    g_.value(outputs.back()).producer = number;
  }
  c_.expect_symbol("=");
  const Token op = c_.next();
  n.op = op.kind == TokenKind::kWord ? find_op(op.text) : nullptr;
  if (!n.op) c_.fail(op, "unknown operator " + shown(op));
  c_.expect_symbol("(");
  while (c_.ok() && !c_.at_symbol(")")) {
    if (!n.inputs.empty()) c_.expect_symbol(",");
    n.inputs.push_back(operand());
    for (ValueId v : outputs)
      if (v != kNone && v == n.inputs.back())
        c_.fail(op, "the node uses its own output '" + g_.value(v).name + "'");
  }
  c_.expect_symbol(")");
  if (c_.accept_symbol("{")) {
    while (c_.ok() && !c_.at_symbol("}")) {
      if (!n.attributes.empty()) c_.expect_symbol(",");
      const Token key = c_.next();
      if (key.kind != TokenKind::kWord && key.kind != TokenKind::kName)
        c_.fail(key, "expected the name of an attribute, found " + shown(key));
      c_.expect_symbol("=");
      if (!n.attributes.emplace(key.text, attribute()).second)
        c_.fail(key, "attribute " + shown(key) + " is given twice");
    }
    c_.expect_symbol("}");
  }
  trailer(n);
  n.outputs = std::move(outputs);
  g_.nodes.push_back(std::move(n));
}
void GraphParser::constant() {
  const Token at = c_.peek();
  const ValueId id = define("the name of a constant");
  c_.expect_symbol("=");
  g_.value(id).constant = elements(at, g_.value(id).type);
}
void GraphParser::output() {
  const Token at = c_.peek();
  g_.outputs.push_back(operand());
  if (c_.at_word("as") && c_.peek(1).kind == TokenKind::kString) {
    c_.next();
    if (g_.output_names.size() + 1 != g_.outputs.size())
      c_.fail(at, "the outputs before this one have no names");
    g_.output_names.push_back(text("a name"));
  }
  if (at_keyword("updates")) {
    c_.next();
    const Token name = c_.peek();
    const auto input = std::find(g_.inputs.begin(), g_.inputs.end(), operand());
    if (input == g_.inputs.end()) return c_.fail(name, shown(name) + " is no input");
    g_.updates.push_back({static_cast<int32_t>(input - g_.inputs.begin()),
                          static_cast<int32_t>(g_.outputs.size()) - 1});
  }
}
// require at_most[4, n] "top_k 'y': the axis must have k elements"
void GraphParser::requirement() {
  Requirement r = parse_relation(c_, [&] { return exprs_.extents(); });
  if (!c_.ok()) return;
  r.what = text("what requires it");
  g_.requirements.push_back(std::move(r));
}
void GraphParser::statement() {
  if (at_keyword("input")) {
    c_.next();
    g_.inputs.push_back(define("the name of an input"));
  } else if (at_keyword("const")) {
    c_.next();
    constant();
  } else if (at_keyword("stated")) {
    c_.next();
    const Token at = c_.peek();
    if (!g_.value(define("the name of a value")).known)
      c_.fail(at, "a stated value has known elements");
  } else if (at_keyword("require")) {
    c_.next();
    requirement();
  } else if (at_keyword("output")) {
    c_.next();
    output();
  } else {
    node();
  }
}
Graph GraphParser::graph() {
  c_.expect_word("graph");
  g_.name = exprs_.name("the name of a graph");
  c_.expect_symbol("{");
  while (c_.ok() && !c_.at_symbol("}")) statement();
  c_.expect_symbol("}");
  return std::move(g_);
}

}  // namespace

Result<Graph> parse_graph(std::string_view text, const std::vector<ConstantRef>& constants) {
  return parse_graph(text, [&](int64_t n, DType, const Shape&) {
    return n < static_cast<int64_t>(constants.size()) ? constants[static_cast<size_t>(n)] : nullptr;
  });
}

Result<Graph> parse_graph(std::string_view text, const FindConstant& find) {
  TW_ASSIGN(std::vector<Token> tokens, lex(text));
  Cursor cursor(std::move(tokens));
  Names symbols;
  symbols.create_symbols = true;
  Graph g = GraphParser(cursor, symbols, find).graph();
  if (cursor.ok() && !cursor.at_end()) cursor.expected("the end");
  if (!cursor.ok()) return cursor.error();
  return g;
}

}  // namespace tilewright::ir
