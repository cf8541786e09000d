// toml++ with rules that throw where they are broken: some of them are rules of the text that it reads.
#pragma once

#include <stdexcept>

namespace tilewright::train {

struct BrokenTomlRule : std::logic_error {
  using std::logic_error::logic_error;
};

constexpr void check_toml(bool holds, const char* rule) {
  if (!holds) throw BrokenTomlRule(rule);
}

}  // namespace tilewright::train

#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(rule) tilewright::train::check_toml(static_cast<bool>(rule), #rule)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")
