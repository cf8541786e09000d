#include "frontends/cli/progress.h"

#include <unistd.h>

#include <cstdio>

#include "frontends/cli/standard_streams.h"

namespace tilewright::cli {

namespace {

constexpr const char* kNewLine = "\r\033[K";  // back to the begin, and nothing there

}  // namespace

Progress::Progress()
    : terminal_(isatty(STDERR_FILENO) == 1), start_(Clock::now()), shown_(start_) {}

Progress::~Progress() { clear(); }

void Progress::clear() {
  std::lock_guard lock(mutex_);
  if (visible_) control_terminal(kNewLine);
  visible_ = false;
}

bool Progress::is_due() {
  using namespace std::chrono_literals;
  const auto now = Clock::now();
  if (!terminal_ || now - start_ < 1s || (visible_ && now - shown_ < 100ms)) return false;
  shown_ = now;
  return visible_ = true;
}

void Progress::show(const std::string& line) {
  std::lock_guard lock(mutex_);
  if (!is_due()) return;
  control_terminal(kNewLine);
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
}

void Progress::update(const std::string& stage, size_t done, size_t total) {
  std::lock_guard lock(mutex_);
  if (!is_due()) return;
  constexpr size_t kWidth = 30;
  std::string bar;
  if (total > 0) {
    const size_t filled = kWidth * done / total;
    bar = " [" + std::string(filled, '#') + std::string(kWidth - filled, ' ') + "]";
  }
  control_terminal(kNewLine);
  std::fprintf(stderr, "%-10s%s %zu", stage.c_str(), bar.c_str(), done);
  if (total > 0) std::fprintf(stderr, "/%zu", total);
  std::fprintf(stderr, " kernels, %.0f s", std::chrono::duration<double>(shown_ - start_).count());
  std::fflush(stderr);
}

std::function<void(const std::string&, size_t, size_t)> Progress::callback() {
  return
      [this](const std::string& stage, size_t done, size_t total) { update(stage, done, total); };
}

}  // namespace tilewright::cli
