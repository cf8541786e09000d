// Loops of arithmetic in registers, to be timed. Each uses the widest vectors this CPU has and
// returns the operations it made, after some 50 to 500 us.
#pragma once

namespace tilewright::measure {

double f32_multiply_adds();    // independent: as fast as the CPU can
double f32_dependent_chain();  // each needs the result before it; returns the vector instructions
double int8_dot_products();    // 8-bit products summed in 32 bits; VNNI where the CPU has it
double dependent_additions();  // of integers, one cycle each

// Elements of the vectors that the f32 loops use.
int f32_lanes();

}  // namespace tilewright::measure
