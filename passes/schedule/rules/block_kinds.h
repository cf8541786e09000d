// What kind of work a block is: what the driver of the rules and several rules ask.
#pragma once

#include <string>
#include <vector>

#include "passes/schedule/rules/rule.h"

namespace tilewright::passes {

// Has it a reduce axis?
bool is_reduction(const ir::Block& b);
// One plain store, or a reduction of one value: what most rules know how to move.
bool is_simple(const ir::Block& b);
Applies kind_of(const ir::Block& b);

// Does the innermost reduction axis run along memory in what is read, rather than the results' last
// axis?
bool reduces_along_rows(const ir::Block& b);
// A product of two reads, each used for many results.
bool worth_a_tile(const ScheduleState& s, const ir::Block& b);
// Results side by side would be read from places apart, and no result shares what is read.
bool gathers_for_nothing(const ScheduleState& s, const ir::Block& b);
// Do equal bits come out in whatever order the values are combined? So they do for integers and for
// extrema.
Bits bits_of_order(const ir::Block& b);

// The pointwise block that alone reads what a reduction writes, one of `names`; empty: none.
std::string epilogue_of(const ScheduleState& s, const std::string& block,
                        const std::vector<std::string>& names);
std::vector<std::string> block_names(const ScheduleState& s);

}  // namespace tilewright::passes
