// A position in a list of tokens and the first error found. After an error the cursor stands at the
// end, so that every production returns by itself; what it returned is thrown away.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "ir/text/lexer.h"

namespace tilewright::ir {

class Cursor {
 public:
  // The last token is a kEnd, which stays ahead for ever.
  explicit Cursor(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  // Looking ahead, and taking a token. Recursive descent needs one or two tokens of lookahead.
  const Token& peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  Token next() {
    Token t = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return t;
  }
  // Tests without taking; accept_* takes the token if it is the one, expect_* fails if it is not.
  bool at_end() const { return peek().kind == TokenKind::kEnd; }
  bool at_symbol(std::string_view s, size_t ahead = 0) const {
    return is(peek(ahead), TokenKind::kSymbol, s);
  }
  bool at_word(std::string_view s, size_t ahead = 0) const {
    return is(peek(ahead), TokenKind::kWord, s);
  }
  bool accept_symbol(std::string_view s) { return at_symbol(s) && (next(), true); }
  bool accept_word(std::string_view s) { return at_word(s) && (next(), true); }
  void expect_symbol(std::string_view s) {
    if (!accept_symbol(s)) expected(quoted(s, '\''));
  }
  void expect_word(std::string_view s) {
    if (!accept_word(s)) expected(quoted(s, '\''));
  }

  // A non-negative number that fits.
  int64_t integer(std::string_view what);

  // For productions that must try two readings: back to where one began.
  size_t position() const { return at_; }
  void go_to(size_t position) {
    if (ok()) at_ = position;
  }

  // Keeps the first error alone.
  void fail(const Token& where, std::string message) {
    if (error_) return;
    error_ = invalid(std::move(message), place(where));
    at_ = tokens_.size() - 1;
  }
  // "expected ')', found 'x'"
  void expected(std::string_view what) {
    fail(peek(), "expected " + std::string(what) + ", found " + shown(peek()));
  }
  // error(): requires that there is one.
  bool ok() const { return !error_; }
  const Error& error() const { return *error_; }

  // Depth of nesting, bounded so that no input exhausts the stack. True when there is room; then
  // leave() must follow.
  bool enter() {
    if (++depth_ <= kMaxDepth) return true;
    --depth_;
    fail(peek(), "nesting is deeper than " + std::to_string(kMaxDepth));
    return false;
  }
  void leave() { --depth_; }
  // Levels of recursion: enough for the text of any pass, and few for the stack of a thread.
  static constexpr int kMaxDepth = 300;
  // Of what is not nested in the text but makes a deep tree: a + b + c + ..., let after let.
  static constexpr int kMaxChain = 4000;

 private:
  static bool is(const Token& t, TokenKind kind, std::string_view s) {
    return t.kind == kind && t.text == s;
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  std::optional<Error> error_;
};

}  // namespace tilewright::ir
