// A line on standard error that shows how far a compilation is.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>

namespace tilewright::cli {

// Shows nothing in the first second, and nothing at all when standard error is no terminal. The
// line goes away with the object. Updates may come from any thread.
class Progress {
 public:
  // Time runs from here on.
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` of `total` kernels are ready; total 0: not known how many. Draws at most ten times a
  // second.
  void update(const std::string& stage, size_t done, size_t total);
  // Any line, likewise.
  void show(const std::string& line);
  void clear();  // the line goes away

  // update() as CompileOptions::progress takes it; it must not outlive the object.
  std::function<void(const std::string&, size_t, size_t)> callback();

 private:
  using Clock = std::chrono::steady_clock;
  bool is_due();

  const bool terminal_;
  const Clock::time_point start_;
  Clock::time_point shown_;
  bool visible_ = false;
  std::mutex mutex_;
};

}  // namespace tilewright::cli
