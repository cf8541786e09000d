// Messages are read alike however their bytes arrive, and damaged ones neither crash nor grow.
#include "runtime/distributed/http_message.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "tests/runtime/distributed/random_bytes.h"

namespace tilewright::distributed {
namespace {

constexpr size_t kMostBody = 1000;

struct Written {
  std::string bytes, body;
};

std::string in_chunks(Random& random, const std::string& body) {
  std::string bytes;
  for (size_t at = 0; at < body.size();) {
    const size_t size = std::min(body.size() - at, 1 + below(random, 100));
    char line[40];
    std::snprintf(line, sizeof line, below(random, 2) ? "%zx\r\n" : "%zX ;name=value\r\n", size);
    bytes += line + body.substr(at, size) + "\r\n";
    at += size;
  }
  bytes += "0\r\n";
  if (below(random, 2)) bytes += "Grpc-Trailer-Content-Type: application/grpc\r\n";
  return bytes + "\r\n";
}

Written answer(Random& random) {
  Written w{"HTTP/1.1 200 OK\r\nDate: today\r\n", random_bytes(random, below(random, kMostBody))};
  if (below(random, 2))
    w.bytes += "Content-length:" + std::to_string(w.body.size()) + " \r\n\r\n" + w.body;
  else
    w.bytes += "Transfer-Encoding: chunked\r\n\r\n" + in_chunks(random, w.body);
  return w;
}

TEST(HttpReader, ArrivalDoesNotMatter) {
  Random random(3);
  for (int i = 0; i < 500; ++i) {
    std::vector<Written> written{answer(random), answer(random), answer(random)};
    std::string stream;
    for (const Written& w : written) stream += w.bytes;
    HttpReader reader(HttpReader::Side::kAnswers, kMostBody);
    size_t count = 0;
    while (count < written.size()) {
      const size_t size = std::min(stream.size(), below(random, 200));
      auto complete = reader.add(stream.substr(0, size));
      stream.erase(0, size);
      ASSERT_TRUE(complete) << complete.error().message;
      for (; *complete; complete = reader.add("")) {
        const HttpMessage message = reader.take();
        EXPECT_EQ(message.first_line, "HTTP/1.1 200 OK");
        ASSERT_EQ(message.body, written[count++].body);
      }
    }
    EXPECT_EQ(reader.size(), 0u);
  }
}

TEST(HttpReader, DamageIsBounded) {
  Random random(4);
  int complete = 0, refused = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string stream = damaged(random, answer(random).bytes);
    HttpReader reader(below(random, 2) ? HttpReader::Side::kAnswers : HttpReader::Side::kRequests,
                      kMostBody);
    for (size_t at = 0; at < stream.size();) {
      const size_t size = std::min(stream.size() - at, 1 + below(random, 600));
      const auto added = reader.add(stream.substr(at, size));
      at += size;
      refused += !added;
      if (!added) break;
      complete += *added;
      if (*added) { EXPECT_LE(reader.take().body.size(), kMostBody); }
    }
  }
  EXPECT_GT(complete, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(HttpReader, Refused) {
  const std::string head = "HTTP/1.1 200 OK\r\n";
  for (const std::string& bytes : {
           head + "Content-Length: 1001\r\n\r\n",
           head + "Content-Length: -1\r\n\r\n",
           head + "Content-Length: 99999999999999999999999\r\n\r\n",
           head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
           head + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
           head + "Transfer-Encoding: gzip\r\n\r\n",
           head + "\r\n",
           head + "nothing\r\n\r\n",
           head + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
           head + "Transfer-Encoding: chunked\r\n\r\n3e9\r\n",
           head + "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
           head + "Transfer-Encoding: chunked\r\n\r\n" + std::string(5000, '0'),
           head + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + std::string(20000, 'a'),
           std::string(20000, 'a'),
       })
    EXPECT_FALSE(HttpReader(HttpReader::Side::kAnswers, kMostBody).add(bytes))
        << bytes.substr(0, 100);
}

}  // namespace
}  // namespace tilewright::distributed
