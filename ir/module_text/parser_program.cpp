#include "ir/module_text/parser_program.h"

#include <charconv>
#include <limits>

#include "ir/module_text/parse_requirement.h"
#include "ir/module_text/program_words.h"
#include "ir/text/parser_stmts.h"

namespace tilewright::ir {

namespace {

class ProgramParser {
 public:
  ProgramParser(Cursor& cursor, const std::vector<ConstantRef>& constants)
      : c_(cursor), exprs_(cursor, symbols_), constants_(constants) {}

  Program program();

 private:
  // Pieces.
  int32_t number(std::string_view what);
  int64_t signed_number(std::string_view what);
  int32_t buffer();
  std::string string(std::string_view what);
  Var symbol();
  std::vector<std::string> strings();
  template <typename Item>
  void list(Item&& item);  // (item, item, ...)
  std::vector<int32_t> buffers();
  std::vector<Expr> extents();

  void declare_buffer(StorageKind kind);
  void statement();
  ViewMap view();
  Kernel kernel();
  ProfileEntry profile();
  ProgramInstruction instruction();
  // The first of the alternatives whose word comes next; a missing `read` does not compile.
  template <typename... Instruction>
  ProgramInstruction one_of(const std::variant<Instruction...>*);

  CallInstruction read(Of<CallInstruction>);
  DefineSymbolInstruction read(Of<DefineSymbolInstruction>);
  AllocateInstruction read(Of<AllocateInstruction>) { return {buffer()}; }
  CopyInstruction read(Of<CopyInstruction>);
  IfInstruction read(Of<IfInstruction>);
  LoopInstruction read(Of<LoopInstruction>);
  FailInstruction read(Of<FailInstruction>) { return {string("a message")}; }
  CheckIndicesInstruction read(Of<CheckIndicesInstruction>);
  RequireInstruction read(Of<RequireInstruction>);
  StartInstruction read(Of<StartInstruction>);

  Cursor& c_;
  Names symbols_;
  ExprParser exprs_;
  const std::vector<ConstantRef>& constants_;
  Program p_;
};

int32_t ProgramParser::number(std::string_view what) {
  const Token at = c_.peek();
  const int64_t n = c_.integer(what);
  if (n > std::numeric_limits<int32_t>::max()) c_.fail(at, "the number is too large: " + at.text);
  return c_.ok() ? static_cast<int32_t>(n) : 0;
}
int64_t ProgramParser::signed_number(std::string_view what) {
  const bool negative = c_.accept_symbol("-");
  const int64_t n = c_.integer(what);
  return negative ? -n : n;
}
// b12
int32_t ProgramParser::buffer() {
  const Token at = c_.peek();
  int32_t n = 0;
  const char* end = at.text.data() + at.text.size();
  if (at.kind != TokenKind::kWord || at.text.size() < 2 || at.text[0] != 'b' ||
      std::from_chars(at.text.data() + 1, end, n).ptr != end || n < 0)
    c_.expected("a buffer");
  else
    c_.next();
  return n;
}
std::string ProgramParser::string(std::string_view what) {
  if (c_.peek().kind == TokenKind::kString) return c_.next().text;
  c_.expected(what);
  return "";
}
Var ProgramParser::symbol() {
  const Token at = c_.peek();
  const auto known = symbols_.vars.find(exprs_.name("a symbol"));
  if (known != symbols_.vars.end()) return known->second;
  c_.fail(at, "symbol " + shown(at) + " is not declared");
  return Var("missing");
}
std::vector<std::string> ProgramParser::strings() {
  std::vector<std::string> all;
  do all.push_back(string("a string"));
  while (c_.ok() && c_.accept_symbol(","));
  return all;
}
template <typename Item>
void ProgramParser::list(Item&& item) {
  c_.expect_symbol("(");
  for (bool first = true; c_.ok() && !c_.at_symbol(")"); first = false) {
    if (!first) c_.expect_symbol(",");
    item();
  }
  c_.expect_symbol(")");
}
std::vector<int32_t> ProgramParser::buffers() {
  std::vector<int32_t> all;
  list([&] { all.push_back(buffer()); });
  return all;
}
std::vector<Expr> ProgramParser::extents() {
  std::vector<Expr> all;
  list([&] { all.push_back(exprs_.expression()); });
  return all;
}

void ProgramParser::declare_buffer(StorageKind kind) {
  const Token at = c_.peek();
  if (buffer() != static_cast<int32_t>(p_.buffers.size()))
    c_.fail(at, "expected b" + std::to_string(p_.buffers.size()) + ", found " + shown(at));
  ProgramBuffer b;
  b.kind = kind;
  b.name = string("the name of a buffer");
  c_.expect_symbol(":");
  b.type.dtype = exprs_.dtype();
  b.type.dims = exprs_.extents();
  b.layout = exprs_.layout(b.type.dims.size());
  c_.expect_word("elements");
  b.elements = exprs_.expression();
  if (c_.accept_word("of")) {
    b.alias_of = buffer();
    if (c_.accept_word("at")) b.alias_offset = signed_number("the byte where a view begins");
    b.view = view();
  }
  b.dynamic = c_.accept_word("dynamic");
  b.updated = c_.accept_word("updated");
  c_.expect_word("live");
  b.first_use = number("the first instruction");
  c_.expect_symbol("..");
  b.last_use = number("the last instruction");
  if (c_.accept_symbol("=")) {
    c_.expect_symbol("#");
    const Token which = c_.peek();
    const auto n = static_cast<size_t>(number("the number of a constant"));
    if (c_.ok() && (n >= constants_.size() || !constants_[n]))
      c_.fail(which, "constant #" + which.text + " is not given: there are " +
                         std::to_string(constants_.size()));
    if (c_.ok()) b.constant = constants_[n];
  }
  p_.buffers.push_back(std::move(b));
}

ViewMap ProgramParser::view() {
  ViewMap v;
  if (c_.accept_word("reshaped")) v.kind = ViewMap::Kind::kReshaped;
  if (c_.accept_word("transposed")) {
    v.kind = ViewMap::Kind::kTransposed;
    list([&] { v.dims.push_back(number("a dimension")); });
  } else if (c_.accept_word("by")) {
    v.kind = ViewMap::Kind::kPart;
    list([&] {
      v.steps.push_back(signed_number("a step in elements"));
      c_.expect_word("of");
      v.dims.push_back(number("a dimension"));
    });
  }
  return v;
}

Kernel ProgramParser::kernel() {
  Names own;  // the kernel's names are no symbols of the program
  return LoopsParser(c_, own).kernel();
}
ProfileEntry ProgramParser::profile() {
  ProfileEntry e;
  e.kernel = string("the name of a kernel");
  if (c_.accept_word("from")) e.nodes = strings();
  c_.expect_word("flops");
  e.flops = exprs_.expression();
  c_.expect_word("bytes");
  e.bytes = exprs_.expression();
  return e;
}

CallInstruction ProgramParser::read(Of<CallInstruction>) {
  CallInstruction x;
  x.kernel = number("the number of a kernel");
  x.buffers = buffers();
  if (c_.accept_word("scalars")) x.scalars = extents();
  if (c_.accept_word("profile")) x.profile = number("the number of a profile");
  return x;
}
DefineSymbolInstruction ProgramParser::read(Of<DefineSymbolInstruction>) {
  DefineSymbolInstruction x{symbol(), 0, 0, 0, ""};
  c_.expect_symbol("=");
  x.buffer = buffer();
  c_.expect_symbol("[");
  x.index = c_.integer("an index");
  c_.expect_symbol("]");
  c_.expect_word("limit");
  x.limit = c_.integer("a limit");
  if (c_.peek().kind == TokenKind::kString) x.what = string("what a value below 0 means");
  return x;
}
CopyInstruction ProgramParser::read(Of<CopyInstruction>) {
  CopyInstruction x{buffer(), 0};
  c_.expect_symbol("=");
  x.from = buffer();
  return x;
}
IfInstruction ProgramParser::read(Of<IfInstruction>) {
  IfInstruction x{buffer(), 0, 0};
  c_.expect_word("then");
  x.then_block = number("the number of a block");
  c_.expect_word("else");
  x.else_block = number("the number of a block");
  return x;
}
CheckIndicesInstruction ProgramParser::read(Of<CheckIndicesInstruction>) {
  CheckIndicesInstruction x{buffer(), 0, {}, 0, ""};
  c_.expect_word("farthest");
  x.farthest = buffer();
  c_.expect_word("extents");
  x.extents = extents();
  c_.expect_word("dim");
  x.dim = signed_number("a dimension");
  x.node = string("a node");
  return x;
}
RequireInstruction ProgramParser::read(Of<RequireInstruction>) {
  const Requirement r = parse_relation(c_, [&] { return extents(); });
  return {r.a, r.b, r.relation, string("what requires it")};
}
StartInstruction ProgramParser::read(Of<StartInstruction>) {
  StartInstruction x{};
  x.number = c_.integer("a number");
  x.buffer = buffer();
  c_.expect_word("from");
  x.begin = c_.integer("the first byte");
  c_.expect_word("to");
  x.end = c_.integer("the last byte");
  return x;
}
LoopInstruction ProgramParser::read(Of<LoopInstruction>) {
  LoopInstruction x;
  auto named = [&](const char* word, int32_t& b) {
    if (c_.accept_word(word)) b = buffer();
  };
  named("trips", x.trip_count);
  named("while", x.initial_condition);
  named("iteration", x.iteration);
  c_.expect_word("body");
  x.body = number("the number of a block");
  named("until", x.body_condition);
  auto pairs = [&](const char* word, auto&& add) {
    if (!c_.accept_word(word)) return;
    list([&] {
      const int32_t result = buffer();
      c_.expect_symbol("=");
      add(result, buffer());
    });
  };
  pairs("carried", [&](int32_t state, int32_t by) { x.carried.emplace_back(state, by); });
  pairs("scans", [&](int32_t result, int32_t of) { x.scans.emplace_back(of, result); });
  if (c_.accept_word("count")) x.count = symbol();
  return x;
}

template <typename... Instruction>
ProgramInstruction ProgramParser::one_of(const std::variant<Instruction...>*) {
  std::optional<ProgramInstruction> found;
  ((!found && c_.accept_word(word_of(Of<Instruction>()))
        ? void(found.emplace(read(Of<Instruction>())))
        : void()),
   ...);
  if (found) return *found;
  c_.expected("an instruction");
  return FailInstruction{};
}
ProgramInstruction ProgramParser::instruction() {
  return one_of(static_cast<const ProgramInstruction*>(nullptr));
}

void ProgramParser::statement() {
  for (const StorageKind kind : kStorageKinds)
    if (c_.accept_word(word_of(kind))) return declare_buffer(kind);
  if (c_.accept_word("inputs")) {
    p_.inputs = buffers();
  } else if (c_.accept_word("outputs")) {
    p_.outputs = buffers();
  } else if (c_.at_word("kernel")) {
    p_.kernels.push_back(kernel());
    p_.schedules.emplace_back();
    if (c_.accept_word("schedule")) do
        p_.schedules.back() += string("a line of a schedule");
      while (c_.peek().kind == TokenKind::kString);
  } else if (c_.accept_word("profile")) {
    p_.profile.push_back(profile());
  } else if (c_.accept_word("block")) {
    c_.expect_symbol("{");
    p_.blocks.emplace_back();
    while (c_.ok() && !c_.at_symbol("}")) p_.blocks.back().push_back(instruction());
    c_.expect_symbol("}");
  } else {
    c_.expected("a statement");
  }
}
Program ProgramParser::program() {
  c_.expect_word("program");
  p_.name = exprs_.name("the name of a program");
  const Token level = c_.next();
  const auto numerics = numerics_from_name(level.text);
  if (numerics)
    p_.numerics = *numerics;
  else
    c_.fail(level, "expected exact, standard or relaxed, found " + shown(level));
  if (c_.accept_word("symbols"))
    list([&] {
      p_.symbols.emplace_back(exprs_.name("a symbol"));
      symbols_.vars[p_.symbols.back().name()] = p_.symbols.back();
    });
  c_.expect_symbol("{");
  while (c_.ok() && !c_.at_symbol("}")) statement();
  c_.expect_symbol("}");
  return std::move(p_);
}

}  // namespace

Result<Program> parse_program(std::string_view text, const std::vector<ConstantRef>& constants) {
  TW_ASSIGN(std::vector<Token> tokens, lex(text));
  Cursor cursor(std::move(tokens));
  Program p = ProgramParser(cursor, constants).program();
  if (cursor.ok() && !cursor.at_end()) cursor.expected("the end");
  if (!cursor.ok()) return cursor.error();
  return p;
}

}  // namespace tilewright::ir
