// Laws of base64: what was encoded is read back, and what is no encoding is refused.
#include "runtime/distributed/base64.h"

#include <gtest/gtest.h>

#include "tests/runtime/distributed/random_bytes.h"

namespace tilewright::distributed {
namespace {

TEST(Base64, Rfc4648) {
  EXPECT_EQ(encode_base64(""), "");
  EXPECT_EQ(encode_base64("f"), "Zg==");
  EXPECT_EQ(encode_base64("fo"), "Zm8=");
  EXPECT_EQ(encode_base64("foobar"), "Zm9vYmFy");
}

TEST(Base64, RoundTrip) {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::string bytes = random_bytes(random, below(random, 300));
    EXPECT_EQ(decode_base64(encode_base64(bytes)), bytes);
  }
}

// One text for each sequence of bytes: whatever is read at all is what would be written.
TEST(Base64, OnlyEncodingsAreRead) {
  Random random(2);
  int read = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string text =
        damaged(random, encode_base64(random_bytes(random, below(random, 12))));
    const auto bytes = decode_base64(text);
    if (!bytes) continue;
    ++read;
    EXPECT_EQ(encode_base64(*bytes), text);
  }
  EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace tilewright::distributed
