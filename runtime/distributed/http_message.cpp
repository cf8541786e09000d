#include "runtime/distributed/http_message.h"

#include <algorithm>
#include <charconv>

namespace tilewright::distributed {

namespace {

constexpr size_t kMostHead = 16 << 10;
constexpr size_t kMostChunkLine = 1 << 10;  // a size in hexadecimal digits, and extensions

// Letters of ASCII alone, whatever the locale.
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = lower(c);
  return result;
}

std::string_view without_spaces(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// A number that makes up the whole text.
bool read_number(std::string_view text, int base, size_t& number) {
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number, base);
  return !text.empty() && error == std::errc() && stopped == end;
}

}  // namespace

Result<bool> HttpReader::add(std::string_view bytes) {
  bytes_.append(bytes);
  bool goes_on = true;
  while (goes_on && stage_ != Stage::kDone) { TW_ASSIGN(goes_on, step()); }
  bytes_.erase(0, position_);
  position_ = 0;
  return stage_ == Stage::kDone;
}

HttpMessage HttpReader::take() {
  HttpMessage message = std::move(message_);
  message_ = {};
  stage_ = Stage::kHead;
  has_length_ = chunked_ = false;
  left_ = trailer_bytes_ = length_ = 0;
  return message;
}

Result<bool> HttpReader::step() {
  switch (stage_) {
    case Stage::kHead: return read_head();
    case Stage::kBody:
      read_body();
      if (left_ != 0) return false;
      stage_ = Stage::kDone;
      return true;
    case Stage::kChunkSize: return read_chunk_size();
    case Stage::kChunk:
      read_body();
      if (left_ != 0) return false;
      stage_ = Stage::kChunkEnd;
      return true;
    case Stage::kChunkEnd:
      if (rest().size() < 2) return false;
      if (rest().substr(0, 2) != "\r\n") return invalid("a chunk is longer than its size says");
      position_ += 2;
      stage_ = Stage::kChunkSize;
      return true;
    case Stage::kTrailer: return read_trailer();
    case Stage::kDone: break;
  }
  return false;
}

void HttpReader::read_body() {
  const size_t count = std::min(left_, rest().size());
  message_.body.append(rest().substr(0, count));
  position_ += count;
  left_ -= count;
}

bool HttpReader::read_line(std::string_view& line) {
  const size_t end = rest().find("\r\n");
  if (end == std::string_view::npos) return false;
  line = rest().substr(0, end);
  position_ += end + 2;
  return true;
}

Result<bool> HttpReader::read_head() {
  const size_t end = rest().substr(0, kMostHead).find("\r\n\r\n");
  if (end == std::string_view::npos) {
    if (rest().size() < kMostHead) return false;
    return limit_error("the head of a message is longer than " + std::to_string(kMostHead) +
                       " bytes");
  }
  std::string_view line;
  read_line(line);
  message_.first_line = std::string(line);
  message_.keep_alive = line.find("HTTP/1.1") != std::string_view::npos;
  while (read_line(line) && !line.empty()) TW_RETURN_IF_ERROR(read_field(line));
  TW_RETURN_IF_ERROR(choose_body());
  return true;
}

Status HttpReader::read_field(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0)
    return invalid("a line of a head has no name and colon");
  const std::string name = lower(line.substr(0, colon));
  const std::string_view value = without_spaces(line.substr(colon + 1));
  if (name == "content-length") {
    size_t length = 0;
    if (!read_number(value, 10, length)) return invalid("the Content-Length is no number");
    if (has_length_ && length != length_) return invalid("a head has two Content-Lengths");
    has_length_ = true;
    length_ = length;
  } else if (name == "transfer-encoding") {
    if (chunked_ || lower(value) != "chunked")
      return invalid("the Transfer-Encoding is another than chunked");
    chunked_ = true;
  } else if (name == "connection") {
    if (lower(value).find("close") != std::string::npos) message_.keep_alive = false;
  }
  return {};
}

Status HttpReader::choose_body() {
  if (has_length_ && chunked_)
    return invalid("a head has both a Content-Length and a Transfer-Encoding");
  if (length_ > most_body_)
    return limit_error("a body of " + std::to_string(length_) + " bytes, at most " +
                       std::to_string(most_body_) + " are taken");
  if (side_ == Side::kAnswers && !has_length_ && !chunked_)
    return invalid("an answer states no length of its body");
  left_ = length_;
  stage_ = chunked_ ? Stage::kChunkSize : Stage::kBody;
  return {};
}

Result<bool> HttpReader::read_chunk_size() {
  std::string_view line;
  if (!read_line(line)) {
    if (rest().size() < kMostChunkLine) return false;
    return limit_error("the line of a chunk's size is longer than " +
                       std::to_string(kMostChunkLine) + " bytes");
  }
  size_t size = 0;
  if (!read_number(without_spaces(line.substr(0, line.find(';'))), 16, size))
    return invalid("the size of a chunk is no hexadecimal number");
  if (size > most_body_ - message_.body.size())
    return limit_error("a body of more than " + std::to_string(most_body_) + " bytes");
  left_ = size;
  stage_ = size == 0 ? Stage::kTrailer : Stage::kChunk;
  return true;
}

// Fields behind the last chunk say nothing that is asked for.
Result<bool> HttpReader::read_trailer() {
  std::string_view line;
  const bool complete = read_line(line);
  trailer_bytes_ += complete ? line.size() + 2 : 0;
  if (trailer_bytes_ + (complete ? 0 : rest().size()) > kMostHead)
    return limit_error("the trailer of a message is longer than " + std::to_string(kMostHead) +
                       " bytes");
  if (complete && line.empty()) stage_ = Stage::kDone;
  return complete;
}

}  // namespace tilewright::distributed
