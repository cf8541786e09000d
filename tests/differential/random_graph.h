// Random graphs over the operators that fusion and schedules treat differently.
#pragma once

#include <cstdint>

#include "tests/ops/graph_oracle.h"

namespace tilewright {

// What a failing seed is printed and run again as.
struct RandomGraph {
  // Verified, with a value for each of its inputs.
  ir::Graph graph;
  Tensors inputs;
};
// The same graph for the same seed. Some have a symbolic first extent, some an extent of 0.
RandomGraph make_random_graph(uint64_t seed);

// How far each output of a graph of f32 may be from the interpreted one: its nodes round, and what
// they round may grow on the way.
std::vector<double> tolerances(const ir::Graph& graph, const Tensors& inputs,
                               const OracleRun& oracle);

// Expects of runs with one thread and with three that outputs are as interpreted, and the same bits.
void expect_as_interpreted(const std::vector<Tensors>& runs, const OracleRun& oracle,
                           const std::vector<double>& allowed);

// Checks a part of the seeds below TILEWRIGHT_GRAPHS, or `count`, until one fails; TILEWRIGHT_SEED alone, in the first.
void check_seeds(int part, int parts, uint64_t count, void (*check)(uint64_t seed));

// The number in an environment variable.
uint64_t from_environment(const char* name, uint64_t fallback);

// One node a line: results, operator, operands, as failures print it.
std::string describe_graph(const ir::Graph& graph);

}  // namespace tilewright
