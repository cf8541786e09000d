// Running a graph in two ways: its kernels as they are defined, in the interpreter, and compiled.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/program/program.h"
#include "passes/decisions/decision.h"
#include "passes/lower.h"
#include "runtime/core/host_tensor.h"
#include "runtime/core/result.h"
#include "runtime/executable.h"

namespace tilewright {

// Inputs or outputs, in the graph's order.
using Tensors = std::vector<HostTensor>;

// Elements of a type in a range where operators are defined: floats in [-1, 1], integers from -5 to
// 5 but not 0, unsigned ones from 1 to 5.
HostTensor random_tensor(DType dtype, const Shape& shape, std::mt19937_64& random);
// Elements over the whole range of an integer type.
HostTensor random_bytes(DType dtype, const Shape& shape, std::mt19937_64& random);
// values[i % n] at element i.
HostTensor repeated(DType dtype, const Shape& shape, const std::vector<double>& values);
// Element i of a tensor.
double element(const HostTensor& t, int64_t i);

// A graph that is being made, with a value for each of its inputs. Fails the process when an
// operator does not take its operands.
struct GraphCall {
  ir::Graph graph;
  Tensors inputs;

  // Operands by value, nodes with their first result, and what the graph returns.
  ir::ValueId input(HostTensor t);
  ir::ValueId constant(const HostTensor& t);
  ir::ValueId op(std::string_view name, std::vector<ir::ValueId> operands,
                 ir::Attributes attributes = {});
  void output(ir::ValueId v);
};

// What the oracle found out on the way.
struct OracleRun {
  // In the graph's order.
  Tensors outputs;
  double largest = 0;  // magnitude of any finite element of an operand or result
  double steps = 0;    // reduction steps behind one element, over all nodes
};
// Interprets one unfused, unscheduled kernel per node; the graph and every kernel are verified
// first. `change`: each float of type f32 that is given or computed is raised or lowered by this
// part of it, at random, to see what rounding on the way may grow to.
Result<OracleRun> interpret_graph(const ir::Graph& graph, const Tensors& inputs, double change = 0);

// The ways of compiling one graph that must agree with the interpreter.
struct CompiledForm {
  // As in CompileOptions.
  bool fuse = true, schedule = true;
  bool fold = false;           // false: kernels compute what depends on constants alone
  std::string cpu = "native";  // as describe_machine takes it; runs_here must hold
  bool small_caches = false;   // schedules assume caches that hold next to nothing,
  int64_t l2_bytes = 0;        // or a second one of this size, and none beyond it
  std::vector<std::string> more_features = {};  // that `cpu` lacks
  Numerics numerics = Numerics::kRelaxed;       // at others, compiled kernels fold constants
  passes::FindSchedule find_schedule = {};      // asked before the rules choose
  passes::Answers answers = {};                 // to decisions of graph passes
};
// The program of flat kernels that run_compiled compiles.
Result<ir::Program> lower_graph_for(const ir::Graph& graph, const CompiledForm& form);
// What graph passes decide for it; kInvalid where an answer is not followed.
Result<std::vector<passes::Decision>> graph_decisions(const ir::Graph& graph,
                                                      const CompiledForm& form);
// The machine that the form is scheduled for.
ir::MachineDescription machine_for(const CompiledForm& form);
// Has this machine all that code for `cpu` may use?
bool runs_here(const std::string& cpu);
// The name of a CPU as part of a test's name.
std::string as_test_name(std::string cpu);
// Compiles what the text of the program says, so that each test is one of the text form too.
Result<std::shared_ptr<Executable>> compile_graph(const ir::Graph& graph, const CompiledForm& form);
// Compiles a graph once and runs it with each number of threads. With one, temporaries lie at pages
// that may not be touched.
Result<std::vector<Tensors>> run_compiled(const ir::Graph& graph, const Tensors& inputs,
                                          CompiledForm form, const std::vector<int>& threads);

// Compiles and runs each node of a graph with fixed extents by itself, in a graph of its own, with
// one thread; the outputs of the whole.
Result<Tensors> run_nodes_apart(const ir::Graph& graph, const Tensors& inputs,
                                const CompiledForm& form);

// The first element whose bits differ, NaN being one value; -1: none. Types and shapes are alike.
int64_t first_difference(const HostTensor& a, const HostTensor& b);
// The largest difference between finite elements; nothing when types, shapes, infinities or NaNs
// differ.
std::optional<double> difference(const HostTensor& a, const HostTensor& b);
// Distance between 1 and the next number of a type; 0 for integers.
double epsilon(DType dtype);

}  // namespace tilewright
