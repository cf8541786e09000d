// Kinds of graphs whose size is a parameter.
#pragma once

#include <span>

#include "tests/frontends/growth/graph_maker.h"

namespace tilewright::growth {

struct Kind {
  // What grows, as the tests' names say it.
  const char* name;
  // Appends a graph of size n, results included.
  void (*make)(GraphMaker&, int n);
  int n;         // the smallest size that is timed, a quarter of the largest
  int most = 0;  // the largest size of which there is a model; 0: any
};

std::span<const Kind> chains();      // one value after the other
std::span<const Kind> joins();       // values that are read more than once, or many that meet
std::span<const Kind> layers();      // what networks repeat
std::span<const Kind> movements();   // elements that move, and shapes that are computed
std::span<const Kind> regions();     // bodies of control flow, sequences
std::span<const Kind> interfaces();  // inputs, outputs, initialisers, symbols, ranks, attributes

}  // namespace tilewright::growth
