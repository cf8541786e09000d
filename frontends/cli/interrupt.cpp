#include "frontends/cli/interrupt.h"

#include <atomic>

namespace tilewright::cli {

namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set by a handler of signals");

}  // namespace

Interrupt::Interrupt(std::initializer_list<int> signals) {
  interrupted = false;
  for (const int s : signals) {
    struct sigaction action{}, before{};
    action.sa_handler = [](int) { interrupted = true; };
    // What is being written meanwhile is written on.
    action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
    ::sigaction(s, &action, &before);
    before_.emplace_back(s, before);
  }
}

Interrupt::~Interrupt() {
  for (const auto& [s, before] : before_) ::sigaction(s, &before, nullptr);
}

bool Interrupt::is_set() { return interrupted; }

}  // namespace tilewright::cli
