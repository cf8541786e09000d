// Random answers to the decisions of schedule rules and graph passes, and the layers and checks of
// the tests that give them.
#pragma once

#include <functional>
#include <random>
#include <set>
#include <string>

#include "ir/machine.h"
#include "passes/schedule/rules/choose_trace.h"
#include "tests/ops/graph_oracle.h"

namespace tilewright {

// Gives answers one after the other, at most four, and keeps count.
class RandomAnswers {
 public:
  // The machine is that of the form to be compiled; seeds give the same answers each time.
  RandomAnswers(ir::MachineDescription machine, uint64_t seed)
      : machine_(std::move(machine)), random_(seed) {}
  // A trace that went through its text; the usual one where every answer tried was refused.
  passes::Trace schedule(const ir::Kernel& kernel, const std::set<std::string>& constants);
  // What graph passes are asked for.
  passes::Answers graph(const ir::Graph& graph, CompiledForm form);

  bool keep_bits = true;  // may no answer change any?
  std::string answers;    // given and followed: "kernel: matmul.rows = 3 (usually 6)" a line
  size_t followed = 0, refused = 0;  // answers, over all kernels and graphs so far

 private:
  // decide(answers): the decisions that come up then.
  template <typename Decide>
  passes::Answers some_answers(const std::string& of, const Decide& decide);
  ir::MachineDescription machine_;
  std::mt19937_64 random_;
};

// A graph, and what it gives by the interpreter and by the form as it is usually compiled.
struct Reference {
  // The interpreter's results, how far from them each output may be, and the outputs of the form
  // without any answer.
  OracleRun oracle;
  std::vector<double> tolerances;
  Tensors usual;
};
Reference reference_of(const ir::Graph& graph, const Tensors& inputs, const CompiledForm& form);

// The form that follows the answers gives the same results, of the same bits where none may change
// any, and on any number of threads.
void check_form(const ir::Graph& graph, const Tensors& inputs, const Reference& reference,
                const CompiledForm& form, const RandomAnswers& answers);

// A graph of one layer, with values for its inputs.
struct Layer {
  // Ready to be compiled.
  ir::Graph graph;
  Tensors inputs;
};
// The lines of a graph's text whose result is y, without the head: "const w: f32[3, 4] = #0" and
// inputs are of random elements; a constant of i64 says how large a result is: 1, 5, 45, 71.
Layer layer_of(const std::string& lines);

// Writes random answers into the form of a graph.
using Ask = std::function<void(const ir::Graph&, CompiledForm&, RandomAnswers&)>;
struct AnswerCount {
  size_t followed = 0, refused = 0;
};
// Checks sets of answers, one a seed, over a layer: `count` or TILEWRIGHT_ANSWERS of them, or that
// of TILEWRIGHT_SEED alone. The counts are properties of the test, too.
AnswerCount check_layer(const std::string& lines, uint64_t count, bool fold, const Ask& ask);
// One set over each of so many random graphs, of which every `parts`th, from `part` on, is done.
void check_random_graphs(uint64_t part, uint64_t parts, uint64_t count, const Ask& ask);

}  // namespace tilewright
