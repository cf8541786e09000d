// Splits the text form of graphs and kernels into tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/result.h"

namespace tilewright::ir {

enum class TokenKind : uint8_t {
  kWord,     // a name or keyword: letters, digits, '_' and '.', not beginning with a digit or '.'
  kName,     // a name in single quotes: any characters
  kString,   // in double quotes
  kInteger,  // digits
  kFloat,    // digits with a fraction or an exponent
  kSymbol,   // an operator or punctuation
  kEnd,
};

// A piece of text and where it began, counted from 1 in bytes.
struct Token {
  // Says how `text` was written; `line` and `column` are for errors.
  TokenKind kind = TokenKind::kEnd;
  std::string text;  // quotes and escapes removed
  int line = 1, column = 1;
};

// The tokens, a kEnd last. White space and comments (from // to the end of the line) separate.
Result<std::vector<Token>> lex(std::string_view text);

// "3:14", and how an error shows what was found: 'x', string "x", the end.
std::string place(const Token& t);
std::string shown(const Token& t);

// Can the text stand without quotes (kWord)? Reserved words are a matter of the parser.
bool is_word(std::string_view text);
// Text between the given quotes, with \ before quotes and backslashes, \n, \t and \xNN for other
// control characters.
std::string quoted(std::string_view text, char quote);

}  // namespace tilewright::ir
