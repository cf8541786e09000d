// Text that is shown: valid, visible, and as it was where it could be.
#include "runtime/core/printable.h"

#include <gtest/gtest.h>

#include <random>

namespace tilewright {
namespace {

// Random texts of whole characters, of pieces of them, and of any bytes.
std::string some_text(std::mt19937& random) {
  const std::vector<std::string> pieces = {"a",
                                           "node_1",
                                           "\n",
                                           "\t",
                                           "é",
                                           "€",
                                           "\U0001f600",
                                           "\x1b[2J",
                                           "\r",
                                           "\b",
                                           "\x7f",
                                           "\xc2\x9b",
                                           "\xe2\x80\xae",
                                           "\xff",
                                           "\xc0\xaf",
                                           "\xe2",
                                           "\x80",
                                           "\xf4\x90\x80\x80",
                                           "\xed\xa0\x80",
                                           "\\",
                                           "\"",
                                           "%s"};
  std::string text;
  for (size_t n = random() % 12; n > 0; --n)
    text += random() % 3 ? pieces[random() % pieces.size()]
                         : std::string(1, static_cast<char>(random() % 256));
  return text;
}

TEST(Printable, ShowsWhatIsHidden) {
  EXPECT_EQ(printable("a\x1b[31m\r\n\tb"), "a\\u001b[31m\\u000d\n\tb");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("\xc2\x9b|\xe2\x80\xae|\xed\xa0\x80"), "\\u009b|\\u202e|\\xed\\xa0\\x80");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\u0000");
  const std::string visible = "größe €, \U0001f600 \\ \" \n\t";
  EXPECT_EQ(printable(visible), visible);
}

TEST(Printable, IsAlikeInPiecesAndTwice) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    const std::string text = some_text(random), shown = printable(text);
    EXPECT_EQ(printable(shown), shown);
    for (const char c : shown)
      EXPECT_TRUE(static_cast<uint8_t>(c) >= 0x20 || c == '\n' || c == '\t');
    PrintableText filter;
    std::string pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t n = 1 + random() % 3;
      pieces += filter.add(std::string_view(text).substr(at, n));
      at += n;
    }
    EXPECT_EQ(pieces + filter.end(), shown);
  }
}

}  // namespace
}  // namespace tilewright
