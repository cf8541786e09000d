// Lines of many processes in one output.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/descriptor.h"

namespace tilewright::distributed {

// Bytes that wait to be written to a descriptor of this process. Writing never blocks, though the descriptor may.
class OutputQueue {
 public:
  explicit OutputQueue(int descriptor) : descriptor_(descriptor) {}
  int descriptor() const { return descriptor_; }
  bool empty() const { return bytes_.empty(); }
  // No more should be added before some was written.
  bool is_full() const { return bytes_.size() >= kFull; }
  void add(std::string_view bytes) { bytes_.append(bytes); }
  void drop() { bytes_.clear(); }
  // To be called when poll() says that the descriptor takes bytes, or has an error: what waits is then dropped.
  void write_some();

 private:
  static constexpr size_t kFull = 1 << 20;
  const int descriptor_;
  std::string bytes_;
};

// Reads what a process writes, and passes it on line by line with a prefix. Lines of more than 1 MiB are cut.
class OutputLines {
 public:
  // pipe: its end for reading, which does not block.
  OutputLines(Descriptor pipe, std::string prefix)
      : pipe_(std::move(pipe)), prefix_(std::move(prefix)) {}
  int descriptor() const { return pipe_.get(); }
  bool is_open() const { return static_cast<bool>(pipe_); }
  // Reads what is there, at most some KiB; returns false when there is nothing, now or ever.
  bool read_some(OutputQueue& queue);
  // Passes on what is there and what lacks the end of its line, and closes the pipe.
  void finish(OutputQueue& queue);

 private:
  void pass_line_on(std::string_view line, OutputQueue& queue);

  static constexpr size_t kMostLine = 1 << 20;
  Descriptor pipe_;
  const std::string prefix_;
  std::string line_;  // without its end
};

}  // namespace tilewright::distributed
