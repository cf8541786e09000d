// What a schedule rule or a graph pass could have done otherwise. A schedule follows from a kernel, a
// machine and the answers to its decisions, a graph from a model and the answers to its own; which
// decisions come up may depend on the answers before.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tilewright::passes {

enum class Bits : uint8_t {
  kKept,     // results have the same bits whatever the answer
  kChanged,  // sums in another order, or roundings in other places
};

struct Decision {
  std::string name;               // "matmul.rows": the block, and what of it
  std::vector<int64_t> values;    // the answers that there are
  int64_t answer = 0, usual = 0;  // what was done, and what is done where nobody asks otherwise
  // Whether a tuner may change the answer without changing results.
  Bits bits = Bits::kKept;
  // What each value was expected to cost, NaN where it cannot be had; empty: nobody has said.
  std::vector<double> microseconds;
  std::vector<std::string> labels;  // of the values, where these are no quantities
  // On a graph: what is asked, and of which operator with which types. Decisions that are alike in
  // this are about nodes that a model repeats.
  std::string alike;
};

// How a decision is called, and Decision::alike.
struct DecisionName {
  DecisionName(std::string n, std::string a = {}) : name(std::move(n)), alike(std::move(a)) {}
  std::string name, alike;
};

// By the decision's name. Those that are not answered go as usual.
using Answers = std::map<std::string, int64_t>;

// Values of decisions: first, 2 first, ... and the last one; an ascending list with one more, where
// it is not there.
std::vector<int64_t> powers_of_two(int64_t first, int64_t last);
std::vector<int64_t> with(std::vector<int64_t> values, int64_t usual);

// One line a decision: "matmul.rows = 6 of 1..14, kept bits; 6: 12.3 us, ...".
std::string to_string(const std::vector<Decision>& decisions);

}  // namespace tilewright::passes
