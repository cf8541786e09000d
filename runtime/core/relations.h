// How two extents are required to stand to each other, as errors say it, by the number that instructions hold
// (ir::Relation).
#pragma once

#include <string_view>

namespace tilewright {

inline constexpr std::string_view kExpectedRelations[] = {
    "them to be equal", "the first to be at most the second",
    "them to be equal or one of them to be 1"};

}  // namespace tilewright
