#include "runtime/distributed/output_lines.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace tilewright::distributed {

namespace {

constexpr size_t kPiece = 16 << 10;
constexpr int kMostPieces = 64;

}  // namespace

// A pipe that poll() reports takes PIPE_BUF bytes without blocking.
void OutputQueue::write_some() {
  const ssize_t n = ::write(descriptor_, bytes_.data(), std::min<size_t>(bytes_.size(), PIPE_BUF));
  if (n >= 0)
    bytes_.erase(0, static_cast<size_t>(n));
  else if (errno != EINTR && errno != EAGAIN)
    bytes_.clear();
}

bool OutputLines::read_some(OutputQueue& queue) {
  if (!pipe_) return false;
  char piece[kPiece];
  const ssize_t n = ::read(pipe_.get(), piece, sizeof piece);
  if (n < 0 && errno == EINTR) return true;
  if (n <= 0) {
    if (n == 0 || errno != EAGAIN) pipe_.reset();
    return false;
  }
  std::string_view rest(piece, static_cast<size_t>(n));
  for (size_t end; (end = rest.find('\n')) != std::string_view::npos; rest.remove_prefix(end + 1)) {
    line_.append(rest.substr(0, end));
    pass_line_on(line_, queue);
    line_.clear();
  }
  line_.append(rest);
  if (line_.size() > kMostLine) {
    pass_line_on(line_, queue);
    line_ = std::string();
  }
  return true;
}

void OutputLines::finish(OutputQueue& queue) {
  // As much as a pipe can hold: who left the process group may write on for ever.
  for (int i = 0; i < kMostPieces && read_some(queue); ++i) {}
  pipe_.reset();
  if (!line_.empty()) pass_line_on(line_, queue);
  line_.clear();
}

void OutputLines::pass_line_on(std::string_view line, OutputQueue& queue) {
  queue.add(prefix_);
  queue.add(line);
  queue.add("\n");
}

}  // namespace tilewright::distributed
