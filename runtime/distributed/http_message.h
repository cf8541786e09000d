// Messages of HTTP/1.1 (RFC 9112) out of a stream of bytes that nobody vouches for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/result.h"

namespace tilewright::distributed {

// A request or an answer.
struct HttpMessage {
  std::string first_line;  // "POST /v3/kv/put HTTP/1.1", "HTTP/1.1 200 OK"
  std::string body;
  bool keep_alive = true;  // more may follow on the connection
};

// Takes the bytes of a connection as they come, and finds the messages in them. It holds at most one message and what
// was added behind it: heads of at most 16 KiB, bodies up to a limit.
class HttpReader {
 public:
  // kAnswers: the body's length must be stated; a request without it has no body.
  enum class Side : uint8_t { kRequests, kAnswers };
  HttpReader(Side side, size_t most_body) : side_(side), most_body_(most_body) {}

  // Returns whether a message is complete; then it must be taken before more is added. Errors: kInvalid, and kLimit
  // for a size beyond what is held; nothing can be read from the stream after one.
  Result<bool> add(std::string_view bytes);
  // The complete message. What was added behind it is kept: add("") looks at it.
  HttpMessage take();
  // Bytes that are held.
  size_t size() const { return bytes_.size() + message_.body.size(); }

 private:
  enum class Stage : uint8_t { kHead, kBody, kChunkSize, kChunk, kChunkEnd, kTrailer, kDone };
  // One step; false: more bytes are needed.
  Result<bool> step();
  Result<bool> read_head();
  Status read_field(std::string_view line);
  Status choose_body();
  Result<bool> read_chunk_size();
  Result<bool> read_trailer();
  bool read_line(std::string_view& line);
  // Moves up to `left_` bytes into the body.
  void read_body();
  std::string_view rest() const { return std::string_view(bytes_).substr(position_); }

  const Side side_;
  const size_t most_body_;
  std::string bytes_;
  size_t position_ = 0;  // in bytes_, of what was not looked at
  Stage stage_ = Stage::kHead;
  HttpMessage message_;
  size_t left_ = 0;  // of the body or the chunk
  size_t trailer_bytes_ = 0;
  // Of the head.
  bool has_length_ = false, chunked_ = false;
  size_t length_ = 0;
};

}  // namespace tilewright::distributed
