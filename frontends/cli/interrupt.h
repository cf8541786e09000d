// Commands that end early and keep what they have.
#pragma once

#include <csignal>
#include <initializer_list>
#include <vector>

namespace tilewright::cli {

// While it lives, the first of these signals (SIGINT is Ctrl-C) only makes is_set() true; a second one
// ends the process. One at a time.
class Interrupt {
 public:
  explicit Interrupt(std::initializer_list<int> signals = {SIGINT});
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  static bool is_set();

 private:
  std::vector<std::pair<int, struct sigaction>> before_;
};

}  // namespace tilewright::cli
