#include "tests/differential/random_answers.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "ir/module_text/parser_graph.h"
#include "tests/differential/random_graph.h"

namespace tilewright {

using passes::Answers;
using passes::Choice;
using passes::Decision;

template <typename Decide>
Answers RandomAnswers::some_answers(const std::string& of, const Decide& decide) {
  constexpr int kMostAnswers = 4;
  Answers given;
  Result<std::vector<Decision>> made = decide(given);
  TW_CHECK(made.ok());
  // One after the other: which decisions come up depends on the answers before.
  for (int n = 0; n < kMostAnswers && !made->empty(); ++n) {
    const Decision& d = (*made)[random_() % made->size()];
    const int64_t value = d.values[random_() % d.values.size()];
    if (value == d.answer) continue;
    Answers more = given;
    more[d.name] = value;
    Result<std::vector<Decision>> next = decide(more);
    if (!next.ok()) {
      TW_CHECK(next.error().kind == ErrorKind::kInvalid);
      ++refused;
      continue;
    }
    ++followed;
    keep_bits &= d.bits == passes::Bits::kKept;
    answers += of + ": " + d.name + " = " + std::to_string(value) + " (usually " +
               std::to_string(d.usual) + ")\n";
    given = std::move(more);
    made = std::move(next);
  }
  return given;
}

passes::Trace RandomAnswers::schedule(const ir::Kernel& kernel,
                                      const std::set<std::string>& constants) {
  passes::Trace trace;
  some_answers(kernel.name, [&](const Answers& a) -> Result<std::vector<Decision>> {
    TW_ASSIGN(
        Choice choice,
        passes::choose_trace(kernel, {.machine = &machine_, .constants = constants, .answers = a}));
    trace = std::move(choice.trace);
    return choice.decisions;
  });
  auto replayed = passes::parse_trace(passes::to_string(trace));
  TW_CHECK(replayed.ok() && *replayed == trace);
  return std::move(*replayed);
}

Answers RandomAnswers::graph(const ir::Graph& graph, CompiledForm form) {
  return some_answers(graph.name, [&](const Answers& a) {
    form.answers = a;
    return graph_decisions(graph, form);
  });
}

Reference reference_of(const ir::Graph& graph, const Tensors& inputs, const CompiledForm& form) {
  auto oracle = interpret_graph(graph, inputs);
  TW_CHECK(oracle.ok());
  auto usual = run_compiled(graph, inputs, form, {1});
  TW_CHECK(usual.ok());
  return {*oracle, tolerances(graph, inputs, *oracle), (*usual)[0]};
}

void check_form(const ir::Graph& graph, const Tensors& inputs, const Reference& reference,
                const CompiledForm& form, const RandomAnswers& answers) {
  auto runs = run_compiled(graph, inputs, form, {1, 3});
  SCOPED_TRACE(answers.answers);
  ASSERT_TRUE(runs.ok()) << runs.error().to_string();
  for (size_t k = 0; k < reference.usual.size(); ++k) {
    const HostTensor& found = (*runs)[0][k];
    const auto d = difference(found, reference.oracle.outputs[k]);
    ASSERT_TRUE(d.has_value()) << "output " << k << ": type, shape, infinities or NaNs differ";
    EXPECT_LE(*d, reference.tolerances[k]) << "output " << k;
    EXPECT_EQ((*runs)[1][k].bytes, found.bytes) << "output " << k << " depends on the threads";
    if (answers.keep_bits)
      EXPECT_EQ(first_difference(found, reference.usual[k]), -1)
          << "output " << k << " has other bits";
  }
}

Layer layer_of(const std::string& lines) {
  std::mt19937_64 random(5);
  std::vector<ir::ConstantRef> constants;
  for (size_t at = lines.find("const "); at != std::string::npos;
       at = lines.find("const ", at + 1)) {
    const size_t colon = lines.find(": ", at), open = lines.find('[', at),
                 close = lines.find(']', at);
    const auto dtype = dtype_from_name(lines.substr(colon + 2, open - colon - 2));
    Shape shape;
    std::istringstream extents(lines.substr(open + 1, close - open - 1));
    for (std::string e; std::getline(extents, e, ',');) shape.push_back(std::stoll(e));
    const HostTensor t = *dtype == DType::kInt64 ? repeated(*dtype, shape, {1, 5, 45, 71})
                                                 : random_tensor(*dtype, shape, random);
    constants.push_back(
        ir::make_constant(*dtype, shape, std::vector<uint8_t>(t.bytes.begin(), t.bytes.end())));
  }
  auto graph = ir::parse_graph("graph layer {" + lines + "  output y as \"y\"\n}", constants);
  TW_CHECK(graph.ok());
  Layer layer{std::move(*graph), {}};
  for (const ir::ValueId v : layer.graph.inputs) {
    const ir::TensorType& t = layer.graph.value(v).type;
    layer.inputs.push_back(random_tensor(t.dtype, *ir::constant_shape(t), random));
  }
  return layer;
}

namespace {

// Each fourth set of answers is for exact numerics, where answers keep bits.
CompiledForm form_for(uint64_t seed, bool fold) {
  CompiledForm form{true, true, fold};
  form.numerics = seed % 4 == 0 ? Numerics::kExact : Numerics::kStandard;
  return form;
}
bool is_wanted(uint64_t seed) { return from_environment("TILEWRIGHT_SEED", seed) == seed; }

}  // namespace

AnswerCount check_layer(const std::string& lines, uint64_t count, bool fold, const Ask& ask) {
  const Layer layer = layer_of(lines);
  std::map<Numerics, Reference> references;
  AnswerCount found;
  count = from_environment("TILEWRIGHT_ANSWERS", count);
  for (uint64_t seed = 0; seed < count && !testing::Test::HasFailure(); ++seed) {
    if (!is_wanted(seed)) continue;
    SCOPED_TRACE("TILEWRIGHT_SEED=" + std::to_string(seed));
    CompiledForm form = form_for(seed, fold);
    if (!references.count(form.numerics))
      references.emplace(form.numerics, reference_of(layer.graph, layer.inputs, form));
    const Reference& reference = references.at(form.numerics);
    RandomAnswers answers(machine_for(form), seed);
    ask(layer.graph, form, answers);
    check_form(layer.graph, layer.inputs, reference, form, answers);
    found.followed += answers.followed;
    found.refused += answers.refused;
  }
  testing::Test::RecordProperty("followed", static_cast<int>(found.followed));
  testing::Test::RecordProperty("refused", static_cast<int>(found.refused));
  return found;
}

void check_random_graphs(uint64_t part, uint64_t parts, uint64_t count, const Ask& ask) {
  count = from_environment("TILEWRIGHT_ANSWERS", count);
  for (uint64_t seed = part; seed < count && !testing::Test::HasFailure(); seed += parts) {
    if (!is_wanted(seed)) continue;
    const RandomGraph r = make_random_graph(seed);
    SCOPED_TRACE("TILEWRIGHT_SEED=" + std::to_string(seed) + "\n" + describe_graph(r.graph));
    CompiledForm form = form_for(seed, false);
    const Reference reference = reference_of(r.graph, r.inputs, form);
    RandomAnswers answers(machine_for(form), seed);
    ask(r.graph, form, answers);
    check_form(r.graph, r.inputs, reference, form, answers);
  }
}

}  // namespace tilewright
