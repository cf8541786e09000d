#include "tests/ops/graph_oracle.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "codegen/assemble_executable.h"
#include "codegen/backend.h"
#include "ir/graph/infer.h"
#include "ir/graph/op.h"
#include "ir/interpreter/evaluate.h"
#include "ir/interpreter/interpreter.h"
#include "ir/loops/rewrite.h"
#include "ir/module_text/parser_program.h"
#include "ir/module_text/printer_program.h"
#include "ir/text/printer_loops.h"
#include "ir/verify_graph.h"
#include "ir/verify_loops.h"
#include "ir/verify_program.h"
#include "passes/build_loops.h"
#include "passes/decisions/decisions.h"
#include "passes/lower.h"
#include "runtime/session.h"

namespace tilewright {

ir::ValueId GraphCall::input(HostTensor t) {
  const std::vector<ir::Expr> dims(t.shape.begin(), t.shape.end());
  const ir::ValueId v = graph.add_value("input" + std::to_string(inputs.size()), {t.dtype, dims});
  graph.inputs.push_back(v);
  inputs.push_back(std::move(t));
  return v;
}
ir::ValueId GraphCall::constant(const HostTensor& t) {
  return graph.add_constant(
      "constant" + std::to_string(graph.values.size()),
      ir::make_constant(t.dtype, t.shape, std::vector<uint8_t>(t.bytes.begin(), t.bytes.end())));
}
ir::ValueId GraphCall::op(std::string_view name, std::vector<ir::ValueId> operands,
                          ir::Attributes attributes) {
  auto made = ir::add_node(graph, name, std::move(operands), std::move(attributes), 1,
                           std::string(name) + std::to_string(graph.values.size()), {"test"});
  TW_CHECK(made.ok());
  return made->at(0);
}
void GraphCall::output(ir::ValueId v) {
  graph.outputs.push_back(v);
  graph.output_names.push_back(graph.value(v).name);
}

namespace {

class Interpretation {
 public:
  Interpretation(const ir::Graph& graph, double change)
      : graph_(graph),
        change_(change),
        uses_(graph.values.size(), 1 << 20),
        tensors_(graph.values.size()) {}

  Result<OracleRun> run(const Tensors& inputs) {
    TW_RETURN_IF_ERROR(ir::verify(graph_));
    TW_RETURN_IF_ERROR(bind_inputs(inputs));
    for (size_t n = 0; n < graph_.nodes.size(); ++n) TW_RETURN_IF_ERROR(run_node(n));
    for (ir::ValueId v : graph_.outputs) run_.outputs.push_back(tensor(v));
    return std::move(run_);
  }

 private:
  HostTensor& tensor(ir::ValueId v) {
    HostTensor& t = tensors_[static_cast<size_t>(v)];
    if (const ir::ConstantRef& c = graph_.value(v).constant; c && t.bytes.empty()) {
      t = HostTensor(c->dtype, c->shape);
      if (c->bytes) std::memcpy(t.bytes.data(), c->data, c->bytes);
      measure(t);
    }
    return t;
  }
  void disturb(HostTensor& t) {
    if (change_ == 0 || t.dtype != DType::kFloat32) return;
    for (int64_t i = 0; i < t.size(); ++i)
      t.data<float>()[i] *= static_cast<float>(random_() % 2 ? 1 + change_ : 1 - change_);
  }
  void measure(const HostTensor& t) {
    for (int64_t i = 0; i < t.size(); ++i)
      if (const double v = std::abs(element(t, i)); std::isfinite(v))
        run_.largest = std::max(run_.largest, v);
  }
  Status bind_inputs(const Tensors& inputs) {
    TW_CHECK(inputs.size() == graph_.inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto& dims = graph_.value(graph_.inputs[i]).type.dims;
      for (size_t d = 0; d < dims.size(); ++d)
        if (dims[d].kind() == ir::NodeKind::kVar) symbols_[dims[d].get()] = inputs[i].shape[d];
      HostTensor& t = tensors_[static_cast<size_t>(graph_.inputs[i])] = inputs[i];
      disturb(t);
      measure(t);
    }
    return {};
  }
  Status run_node(size_t n) {
    const ir::Node& node = graph_.nodes[n];
    if (!node.op->compute) return unsupported(ir::describe(node) + " has no loops");
    if (!node.defined_symbols.empty()) {
      HostTensor values(DType::kInt64, {static_cast<int64_t>(node.defined_symbols.size())});
      TW_RETURN_IF_ERROR(run_kernel(passes::build_symbol_kernel(graph_, n), &values));
      for (size_t s = 0; s < node.defined_symbols.size(); ++s)
        symbols_[node.defined_symbols[s].get()] = values.data<int64_t>()[s];
    }
    return run_kernel(passes::build_group_kernel(graph_, {n}, uses_), nullptr);
  }
  Status run_kernel(const passes::GroupKernel& g, HostTensor* symbols) {
    TW_RETURN_IF_ERROR(ir::verify(g.kernel, ir::Stage::kBlocks));
    std::vector<void*> params;
    for (size_t p = 0; p < g.params.size(); ++p) {
      if (g.params[p] == ir::kNone) {
        params.push_back(symbols->bytes.data());
        continue;
      }
      if (p >= g.num_inputs) TW_RETURN_IF_ERROR(allocate(g.params[p]));
      params.push_back(tensor(g.params[p]).bytes.data());
    }
    std::vector<int64_t> scalars;
    for (const ir::Var& v : g.kernel.scalars) {
      auto value = ir::evaluate_int(v, symbols_);
      if (!value) return internal_error("symbol '" + v.name() + "' has no value");
      scalars.push_back(*value);
    }
    TW_RETURN_IF_ERROR(ir::interpret(g.kernel, params, scalars));
    for (size_t p = g.num_inputs; p < g.params.size(); ++p)
      if (g.params[p] != ir::kNone) {
        disturb(tensor(g.params[p]));
        measure(tensor(g.params[p]));
      }
    run_.steps += reduction_steps(g.kernel);
    return {};
  }
  Status allocate(ir::ValueId v) {
    const ir::TensorType& type = graph_.value(v).type;
    Shape shape;
    for (const ir::Expr& d : type.dims) {
      auto extent = ir::evaluate_int(d, symbols_);
      if (!extent) return internal_error("extent " + ir::to_text(d) + " has no value");
      shape.push_back(*extent);
    }
    tensors_[static_cast<size_t>(v)] = HostTensor(type.dtype, shape);
    return {};
  }
  // The longest chain of dependent steps that a block of the kernel makes, summed over its blocks.
  double reduction_steps(const ir::Kernel& kernel) {
    double steps = 0;
    ir::for_each_stmt(kernel.body, [&](const ir::Stmt& s) {
      const auto* b = s.as<ir::Block>();
      if (!b) return;
      double n = 1;
      for (const ir::BlockAxis& a : b->axes)
        if (a.kind != ir::AxisKind::kParallel)
          n *= static_cast<double>(ir::evaluate_int(a.extent, symbols_).value_or(1));
      steps += n;
    });
    return steps;
  }

  const ir::Graph& graph_;
  const double change_;
  std::mt19937_64 random_{7};
  std::vector<int> uses_;  // every result is wanted
  std::vector<HostTensor> tensors_;
  ir::IntValues symbols_;
  OracleRun run_;
};

}  // namespace

Result<OracleRun> interpret_graph(const ir::Graph& graph, const Tensors& inputs, double change) {
  return Interpretation(graph, change).run(inputs);
}

namespace {
std::vector<ir::ConstantRef> as_constants(const Tensors& tensors) {
  std::vector<ir::ConstantRef> constants;
  for (const HostTensor& t : tensors)
    constants.push_back(
        ir::make_constant(t.dtype, t.shape, std::vector<uint8_t>(t.bytes.begin(), t.bytes.end())));
  return constants;
}
Result<std::vector<ir::ConstantRef>> interpret_constants(const ir::Graph& graph) {
  TW_ASSIGN(OracleRun run, interpret_graph(graph, {}));
  return as_constants(run.outputs);
}
Result<std::vector<ir::ConstantRef>> run_constants(const ir::Graph& graph, CompiledForm form) {
  form.fold = false;
  TW_ASSIGN(std::vector<Tensors> runs, run_compiled(graph, {}, form, {1}));
  return as_constants(runs[0]);
}
}  // namespace

bool runs_here(const std::string& cpu) {
  const auto backend = codegen::open_backend();
  if (!backend.ok()) return false;
  const auto machine = (*backend)->describe(cpu), host = (*backend)->describe("native");
  if (!machine.ok() || !host.ok()) return false;
  const std::vector<std::string>& has = host->features;
  return std::all_of(machine->features.begin(), machine->features.end(), [&](const auto& f) {
    return std::find(has.begin(), has.end(), f) != has.end();
  });
}

namespace {
Result<passes::LowerOptions> lower_options(const CompiledForm& form) {
  passes::LowerOptions options;
  TW_ASSIGN(const codegen::Backend* backend, codegen::open_backend());
  TW_ASSIGN(options.machine, backend->describe(form.cpu));
  options.machine.threads = 3;
  // So that small graphs are shared out, too.
  options.machine.speed.fork_join_us = 0.05;
  options.machine.speed.handed_over = 1e4;
  for (const std::string& f : form.more_features)
    if (!options.machine.has(f)) options.machine.features.push_back(f);
  if (form.small_caches) {
    options.machine.l1_bytes = 1 << 10;
    options.machine.l2_bytes = 4 << 10;
    options.machine.l3_bytes = 0;
  }
  if (form.l2_bytes > 0) {
    options.machine.l1_bytes = std::min(options.machine.l1_bytes, form.l2_bytes / 4);
    options.machine.l2_bytes = form.l2_bytes;
    options.machine.l3_bytes = 0;
  }
  options.fuse = form.fuse;
  options.schedule = form.schedule;
  options.fold = form.fold;
  options.numerics = form.numerics;
  options.find_schedule = form.find_schedule;
  options.run_constants = interpret_constants;
  if (form.numerics != Numerics::kRelaxed)
    options.run_constants = [form](const ir::Graph& graph) { return run_constants(graph, form); };
  return options;
}
}  // namespace

ir::MachineDescription machine_for(const CompiledForm& form) {
  const auto options = lower_options(form);
  TW_CHECK(options.ok());
  return options->machine;
}

Result<ir::Program> lower_graph_for(const ir::Graph& graph, const CompiledForm& form) {
  TW_ASSIGN(passes::LowerOptions options, lower_options(form));
  passes::Decisions decisions(form.answers);
  options.decisions = &decisions;
  return passes::lower(graph, options);
}
Result<std::vector<passes::Decision>> graph_decisions(const ir::Graph& graph,
                                                      const CompiledForm& form) {
  TW_ASSIGN(passes::LowerOptions options, lower_options(form));
  passes::Decisions decisions(form.answers, form.numerics != Numerics::kExact);
  options.decisions = &decisions;
  TW_ASSIGN(const ir::Graph lowered, passes::lower_graph(graph, options));
  TW_RETURN_IF_ERROR(decisions.check_answers("graph '" + graph.name + "'"));
  return decisions.made();
}

std::string as_test_name(std::string cpu) {
  for (char& c : cpu) c = c == '-' ? '_' : c;
  return cpu;
}

static Result<ir::Program> through_text(const ir::Program& program) {
  std::vector<ir::ConstantRef> constants;
  const std::string text = ir::to_text(program, &constants);
  TW_ASSIGN(ir::Program read, ir::parse_program(text, constants));
  if (ir::to_text(read) != text) return internal_error("the program's text does not round-trip");
  TW_RETURN_IF_ERROR(ir::verify(read));
  return read;
}

Result<std::shared_ptr<Executable>> compile_graph(const ir::Graph& graph,
                                                  const CompiledForm& form) {
  TW_ASSIGN(const passes::LowerOptions options, lower_options(form));
  TW_ASSIGN(ir::Program program, passes::lower(graph, options));
  TW_ASSIGN(program, through_text(program));
  return codegen::assemble_in_memory({std::move(program)}, {options.machine, 1, graph.name});
}

Result<std::vector<Tensors>> run_compiled(const ir::Graph& graph, const Tensors& inputs,
                                          CompiledForm form, const std::vector<int>& threads) {
  TW_ASSIGN(std::shared_ptr<Executable> executable, compile_graph(graph, form));
  std::vector<Tensor> given;
  for (const HostTensor& t : inputs)
    given.push_back(Tensor::borrow(t.dtype, t.shape, const_cast<uint8_t*>(t.bytes.data())));
  std::vector<Tensors> runs;
  for (int n : threads) {
    SessionOptions session_options;
    session_options.threads = n;
    session_options.guard = n == 1 ? Guard::kBehind : Guard::kNone;
    TW_ASSIGN(std::unique_ptr<Session> session, Session::create(executable, session_options));
    std::vector<Tensor> outputs;
    TW_RETURN_IF_ERROR(session->run(given, outputs));
    Tensors& kept = runs.emplace_back();
    for (const Tensor& t : outputs) {
      HostTensor& copy = kept.emplace_back(t.dtype(), t.shape());
      if (!copy.bytes.empty()) std::memcpy(copy.bytes.data(), t.data(), copy.bytes.size());
    }
  }
  return runs;
}

Result<Tensors> run_nodes_apart(const ir::Graph& graph, const Tensors& inputs,
                                const CompiledForm& form) {
  Tensors tensors(graph.values.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    tensors[static_cast<size_t>(graph.inputs[i])] = inputs[i];
  for (const ir::Node& node : graph.nodes) {
    GraphCall call;
    std::vector<ir::ValueId> operands;
    for (ir::ValueId v : node.inputs) {
      const auto& constant = v == ir::kNone ? nullptr : graph.value(v).constant;
      operands.push_back(v == ir::kNone ? v
                         : constant     ? call.graph.add_constant("", constant)
                                        : call.input(tensors[static_cast<size_t>(v)]));
    }
    TW_ASSIGN(std::vector<ir::ValueId> results,
              ir::add_node(call.graph, node.op->name, std::move(operands), node.attributes,
                           static_cast<int>(node.outputs.size()), "node", {"test"}));
    for (ir::ValueId v : results) call.output(v);
    TW_ASSIGN(std::vector<Tensors> runs, run_compiled(call.graph, call.inputs, form, {1}));
    for (size_t k = 0; k < node.outputs.size(); ++k)
      if (node.outputs[k] != ir::kNone)
        tensors[static_cast<size_t>(node.outputs[k])] = std::move(runs[0][k]);
  }
  Tensors outputs;
  for (ir::ValueId v : graph.outputs) outputs.push_back(tensors[static_cast<size_t>(v)]);
  return outputs;
}

}  // namespace tilewright
