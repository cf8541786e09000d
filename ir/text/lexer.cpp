#include "ir/text/lexer.h"

#include <algorithm>
#include <array>

namespace tilewright::ir {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool continues_word(char c) { return begins_word(c) || is_digit(c) || c == '.'; }

// Longer symbols first.
constexpr std::array<std::string_view, 25> kSymbols{
    "..", "->", "==", "!=", "<=", ">=", "<", ">", "=", "+", "-", "*", "/",
    "%",  "(",  ")",  "[",  "]",  "{",  "}", ",", ":", "#", "@", "?"};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<std::vector<Token>> run() {
    std::vector<Token> tokens;
    for (;;) {
      skip_space();
      Token t;
      t.line = line_;
      t.column = static_cast<int>(at_ - line_begin_) + 1;
      const char c = peek();
      if (at_ >= text_.size()) {
        tokens.push_back(std::move(t));
        return tokens;
      }
      if (begins_word(c))
        word(t);
      else if (is_digit(c))
        number(t);
      else if (c == '\'' || c == '"') {
        TW_RETURN_IF_ERROR(quoted_text(t));
      } else {
        TW_RETURN_IF_ERROR(symbol(t));
      }
      tokens.push_back(std::move(t));
    }
  }

 private:
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  void skip_space() {
    for (; at_ < text_.size(); ++at_) {
      const char c = peek();
      if (c == '\n') {
        ++line_;
        line_begin_ = at_ + 1;
      } else if (c == '/' && peek(1) == '/') {
        while (at_ + 1 < text_.size() && peek(1) != '\n') ++at_;
      } else if (c != ' ' && c != '\t' && c != '\r')
        return;
    }
  }
  void word(Token& t) {
    const size_t begin = at_;
    // A dot belongs to the word only between its characters, so that a range "m..n" splits.
    while (continues_word(peek()) &&
           !(peek() == '.' && (peek(1) == '.' || !continues_word(peek(1)))))
      ++at_;
    t.kind = TokenKind::kWord;
    t.text = text_.substr(begin, at_ - begin);
  }
  void number(Token& t) {
    const size_t begin = at_;
    t.kind = TokenKind::kInteger;
    while (is_digit(peek())) ++at_;
    if (peek() == '.' && is_digit(peek(1))) {
      t.kind = TokenKind::kFloat;
      for (++at_; is_digit(peek());) ++at_;
    }
    const bool sign = peek(1) == '+' || peek(1) == '-';
    if (peek() == 'e' && is_digit(peek(sign ? 2 : 1))) {
      t.kind = TokenKind::kFloat;
      for (at_ += sign ? 2 : 1; is_digit(peek());) ++at_;
    }
    t.text = text_.substr(begin, at_ - begin);
  }
  Status quoted_text(Token& t) {
    const char quote = peek();
    t.kind = quote == '"' ? TokenKind::kString : TokenKind::kName;
    for (++at_; peek() != quote;) {
      if (at_ >= text_.size() || peek() == '\n')
        return invalid("expected a closing quote, found the end of the line", place(t));
      if (peek() != '\\') {
        t.text += text_[at_++];
        continue;
      }
      TW_RETURN_IF_ERROR(escape(t));
    }
    ++at_;
    return {};
  }
  Status escape(Token& t) {
    const char c = peek(1);
    auto hex = [](char h) {
      return is_digit(h) ? h - '0' : h >= 'a' && h <= 'f' ? h - 'a' + 10 : -1;
    };
    if (c == 'x') {
      const int high = hex(peek(2)), low = hex(peek(3));
      if (high < 0 || low < 0)
        return invalid("expected two hexadecimal digits after \\x", place(t));
      t.text += static_cast<char>(high * 16 + low);
      at_ += 4;
      return {};
    }
    if (c != 'n' && c != 't' && c != '\\' && c != '\'' && c != '"')
      return invalid("an unknown escape in quotes", place(t));
    t.text += c == 'n' ? '\n' : c == 't' ? '\t' : c;
    at_ += 2;
    return {};
  }
  Status symbol(Token& t) {
    const auto it = std::find_if(kSymbols.begin(), kSymbols.end(), [&](std::string_view s) {
      return text_.substr(at_, s.size()) == s;
    });
    if (it == kSymbols.end()) {
      t.text = peek();
      return invalid("a character that begins no token: " + quoted(t.text, '\''), place(t));
    }
    t.kind = TokenKind::kSymbol;
    t.text = *it;
    at_ += it->size();
    return {};
  }

  std::string_view text_;
  size_t at_ = 0, line_begin_ = 0;
  int line_ = 1;
};

}  // namespace

Result<std::vector<Token>> lex(std::string_view text) { return Lexer(text).run(); }

std::string place(const Token& t) {
  return std::to_string(t.line) + ":" + std::to_string(t.column);
}
std::string shown(const Token& t) {
  if (t.kind == TokenKind::kEnd) return "the end";
  return t.kind == TokenKind::kString ? "string " + quoted(t.text, '"') : quoted(t.text, '\'');
}

bool is_word(std::string_view text) {
  if (text.empty() || !begins_word(text[0]) || text.back() == '.' ||
      text.find("..") != std::string_view::npos)
    return false;
  return std::all_of(text.begin(), text.end(), continues_word);
}

std::string quoted(std::string_view text, char quote) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string s(1, quote);
  for (char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == quote || c == '\\')
      s += std::string("\\") + c;
    else if (c == '\n')
      s += "\\n";
    else if (c == '\t')
      s += "\\t";
    else if (u < 32 || u == 127)
      s += std::string("\\x") + kHex[u >> 4] + kHex[u & 15];
    else
      s += c;
  }
  return s + quote;
}

}  // namespace tilewright::ir
