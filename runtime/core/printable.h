// Text of unknown origin, such as a model's names, as it may be shown.
#pragma once

#include <string>
#include <string_view>

namespace tilewright {

// Makes text valid UTF-8 that moves no cursor and hides nothing: control characters but newline and tab, and those that
// change the direction of writing, become \u001b and the like, which JSON strings may hold, too; bytes that are no
// UTF-8 become \xff.
class PrintableText {
 public:
  // What can be shown of the text so far; the begin of a character stays until its end comes.
  std::string add(std::string_view text);
  // What is left.
  std::string end();

 private:
  std::string begun_;  // of a character
};

// The same of a whole text.
std::string printable(std::string_view text);

}  // namespace tilewright
