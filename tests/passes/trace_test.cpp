// Schedules as data: text form, replay, and the default schedules of usual kernels.
#include "passes/schedule/trace.h"

#include <gtest/gtest.h>

#include "ir/loops/compare.h"
#include "ir/module_text/parser_graph.h"
#include "ir/text/parser_loops.h"
#include "ir/text/printer_loops.h"
#include "ir/verify_loops.h"
#include "passes/build_loops.h"
#include "passes/lower.h"
#include "passes/schedule/rules/choose_trace.h"
#include "tests/passes/kernel_run.h"

namespace tilewright::passes {
namespace {

std::string trace_error(const std::string& text) {
  auto trace = parse_trace(text);
  return trace.ok() ? "no error" : trace.error().to_string();
}
void expect_phrase(const std::string& found, const std::string& phrase) {
  EXPECT_NE(found.find(phrase), std::string::npos) << "found: " << found;
}

// Spaces at line ends and empty lines are allowed, as editors leave them.
TEST(Trace, RoundTrips) {
  const Trace trace{{"split", {"matmul.i0", "a", "b"}, {14}},
                    {"reorder", {"x", "y", "z"}, {}},
                    {"transform_layout", {"w"}, {0, 4, 0, 1, 1, -7}}};
  const std::string text = to_string(trace);
  EXPECT_EQ(text, "split(matmul.i0 a b; 14)\nreorder(x y z)\ntransform_layout(w; 0 4 0 1 1 -7)\n");
  auto parsed = parse_trace(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().to_string();
  EXPECT_EQ(*parsed, trace);
  auto spaced = parse_trace("unroll(i) \r\n");
  ASSERT_TRUE(spaced.ok()) << spaced.error().to_string();
  EXPECT_EQ(*spaced, (Trace{{"unroll", {"i"}, {}}}));
  auto empty = parse_trace("\n\n");
  ASSERT_TRUE(empty.ok());
  EXPECT_TRUE(empty->empty());
}

// Of the text, which people write and change.
TEST(Trace, ErrorsNameTheLine) {
  expect_phrase(trace_error("split(i; 4)\nsplit i"), "line 2: expected primitive(names; numbers)");
  expect_phrase(trace_error(")("), "line 1: expected primitive");
  expect_phrase(trace_error("split(i a b; 4) -> j"), "line 1: expected primitive");
  expect_phrase(trace_error("unroll(i)\nunroll(j) unroll"), "line 2: expected primitive");
  expect_phrase(trace_error("split(i; four)"), "line 1: expected numbers after ';'");
  expect_phrase(trace_error("split(i; 4 x)"), "line 1: expected numbers after ';'");
  expect_phrase(trace_error("split(i; 99999999999999999999)"), "expected numbers after ';'");
}

// Names say which loop, block or buffer: none may be there twice.
TEST(Trace, NamesAreFreshAndNotAmbiguous) {
  const std::string loops =
      "kernel k(A: f32[4], B: f32[4]) {\n"
      "  for i in 0..4 { block \"a\" (v: parallel 4 = i) { A[v] = 0.0 } }\n"
      "  for j in 0..4 { block \"b\" (v: parallel 4 = j) { B[v] = 0.0 } }\n}";
  auto kernel = ir::parse_kernel(loops);
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  auto taken = apply_trace(*kernel, {{"split", {"i", "j", "k"}, {2}}});
  ASSERT_FALSE(taken.ok());
  expect_phrase(taken.error().to_string(), "the kernel has a second loop 'j' then");
  auto own = apply_trace(*kernel, {{"split", {"i", "o", "i"}, {2}}});
  EXPECT_TRUE(own.ok()) << own.error().to_string();
  auto block = apply_trace(*kernel, {{"cache_write", {"a", "C", "b"}, {}}});
  ASSERT_FALSE(block.ok());
  expect_phrase(block.error().to_string(), "the kernel has a second block 'b' then");
  auto buffer = apply_trace(*kernel, {{"cache_write", {"a", "B", "c"}, {}}});
  ASSERT_FALSE(buffer.ok());
  expect_phrase(buffer.error().to_string(), "the kernel has a second buffer 'B' then");
  auto twice = ir::parse_kernel(
      "kernel k(A: f32[4]) {\n  for i in 0..4 { block \"a\" (v: parallel 4 = i) { A[v] = 0.0 } }\n"
      "  for i in 0..4 { block \"b\" (v: parallel 4 = i) { A[v] = 1.0 } }\n}");
  ASSERT_TRUE(twice.ok()) << twice.error().to_string();
  auto ambiguous = apply_trace(*twice, {{"unroll", {"i"}, {}}});
  ASSERT_FALSE(ambiguous.ok());
  expect_phrase(ambiguous.error().to_string(), "2 loops are called 'i'");
}

// Of the trace, when it is applied; the kernel given is left as it was.
TEST(Trace, ErrorsNameTheStep) {
  auto kernel = ir::parse_kernel("kernel k(A: f32[4]) { for i in 0..4 { A[i] = 0.0 } }");
  ASSERT_TRUE(kernel.ok());
  auto unknown = apply_trace(*kernel, {{"unroll", {"i"}, {}}, {"shuffle", {"i"}, {}}});
  ASSERT_FALSE(unknown.ok());
  expect_phrase(unknown.error().to_string(), "step 1: shuffle(i)");
  expect_phrase(unknown.error().to_string(), "unknown primitive");
  auto missing = apply_trace(*kernel, {{"unroll", {"j"}, {}}});
  ASSERT_FALSE(missing.ok());
  expect_phrase(missing.error().to_string(), "step 0: unroll(j)");
  expect_phrase(missing.error().to_string(), "no loop 'j'");
  auto untouched = apply_trace(*kernel, {});
  ASSERT_TRUE(untouched.ok());
  EXPECT_TRUE(ir::structurally_equal(*untouched, *kernel));
}

// Kernels that the rules treat differently: products with and without fixed extents, windows,
// reductions over inner and outer axes, and what has no loops at all.
struct Sample {
  const char* name;
  const char* graph;
};
void PrintTo(const Sample& s, std::ostream* out) { *out << s.name; }

const Sample kSamples[] = {
    {"matmul", R"(graph g {
  input x: f32[17, 23]
  input w: f32[23, 33]
  y: f32[17, 33] = matmul(x, w)
  output y as "y"
})"},
    {"matmul_symbolic_rows_bias_relu", R"(graph g {
  input x: f32[m, 23]
  input w: f32[23, 33]
  input b: f32[33]
  p: f32[m, 33] = matmul(x, w)
  s: f32[m, 33] = add(p, b)
  y: f32[m, 33] = relu(s)
  output y as "y"
})"},
    {"rows_by_one_vector", R"(graph g {
  input x: f32[m, 3, 75]
  input w: f32[75, 1]
  input b: f32[1]
  p: f32[m, 3, 1] = matmul(x, w)
  y: f32[m, 3, 1] = add(p, b)
  output y as "y"
})"},
    {"batched_matmul", R"(graph g {
  input x: f32[3, 5, 7]
  input w: f32[3, 7, 11]
  y: f32[3, 5, 11] = matmul(x, w)
  output y as "y"
})"},
    {"conv_with_pad", R"(graph g {
  input x: f32[1, 5, 9, 11]
  input w: f32[6, 5, 3, 3]
  y: f32[1, 6, 9, 11] = conv(x, w) {pads = [1, 1, 1, 1]}
  output y as "y"
})"},
    {"conv_with_stride", R"(graph g {
  input x: f32[n, 3, 11, 11]
  input w: f32[17, 3, 3, 3]
  y: f32[n, 17, 5, 5] = conv(x, w) {strides = [2, 2]}
  z: f32[n, 17, 5, 5] = relu(y)
  output z as "z"
})"},
    {"winograd_conv", R"(graph g {
  input x: f32[n, 5, 9, 11]
  input w: f32[6, 6, 5, 21]
  y: f32[n, 21, 9, 11] = winograd_conv(x, w) {pads = [1, 1, 1, 1]}
  z: f32[n, 21, 9, 11] = relu(y)
  output z as "z"
})"},
    {"depthwise", R"(graph g {
  input x: f32[1, 13, 7, 9]
  input w: f32[13, 1, 3, 3]
  y: f32[1, 13, 7, 9] = conv(x, w) {group = 13, pads = [1, 1, 1, 1]}
  output y as "y"
})"},
    {"lstm_of_bytes", R"(graph g {
  input x: f32[s, b, 48]
  input w: i8[12, 48]
  input scale: f32[48]
  input sums: i32[48]
  y: f32[s, b, 12], h: f32[b, 12], c: f32[b, 12] = lstm_steps(x, w, _, _, _, _, scale, sums)
    {activations = ["sigmoid", "tanh", "tanh"], alpha = [0.0, 0.0, 0.0], beta = [0.0, 0.0, 0.0]}
  output y as "y"
  output h as "h"
  output c as "c"
})"},
    {"softmax_rows", R"(graph g {
  input x: f32[m, 37]
  y: f32[m, 37] = softmax(x) {axis = -1}
  output y as "y"
})"},
    {"softmax_symbolic_row", R"(graph g {
  input x: f32[m, n]
  y: f32[m, n] = softmax(x) {axis = -1}
  output y as "y"
})"},
    {"softmax_groups_of_rows", R"(graph g {
  input x: f32[3, 67, 37]
  y: f32[3, 67, 37] = softmax(x) {axis = -1}
  output y as "y"
})"},
    {"layer_norm_groups_of_rows", R"(graph g {
  input x: f32[131, 1, 50]
  input w: f32[50]
  y: f32[131, 1, 50] = layer_norm(x, w) {axis = -1, epsilon = 1e-5}
  output y as "y"
})"},
    {"pointwise_with_broadcast", R"(graph g {
  input x: f32[m, 3, 19]
  input a: f32[3, 1]
  input b: f32[19]
  p: f32[m, 3, 19] = mul(x, a)
  s: f32[m, 3, 19] = add(p, b)
  y: f32[m, 3, 19] = tanh(s)
  output y as "y"
})"},
    {"pointwise_scalar", R"(graph g {
  input x: f32[]
  y: f32[] = exp(x)
  output y as "y"
})"},
    {"sum_over_outer_axis", R"(graph g {
  input x: f32[29, 33]
  y: f32[33] = reduce_sum(x) {axes = [0], keepdims = 0}
  output y as "y"
})"},
    {"max_over_symbolic_row", R"(graph g {
  input x: f32[5, n]
  y: f32[5, 1] = reduce_max(x) {axes = [1]}
  output y as "y"
})"},
    {"mean_over_all", R"(graph g {
  input x: f32[7, m]
  y: f32[1, 1] = reduce_mean(x)
  output y as "y"
})"},
};

class DefaultSchedules : public testing::TestWithParam<Sample> {
 protected:
  void SetUp() override {
    auto graph = ir::parse_graph(GetParam().graph);
    ASSERT_TRUE(graph.ok()) << graph.error().to_string();
    std::vector<size_t> nodes;
    for (size_t n = 0; n < graph->nodes.size(); ++n) nodes.push_back(n);
    kernel_ = build_group_kernel(*graph, nodes, graph->use_counts()).kernel;
  }
  ir::Kernel kernel_;
};

// The trace is the whole schedule: read back from its text it gives what the pipeline made.
TEST_P(DefaultSchedules, ReplayGivesTheSameKernel) {
  LowerOptions options;
  options.machine.threads = 4;
  for (bool constant_weights : {false, true}) {
    const std::set<std::string> constants =
        constant_weights ? std::set<std::string>{"in1"} : std::set<std::string>{};
    auto scheduled = schedule_kernel(kernel_, constants, options);
    ASSERT_TRUE(scheduled.ok()) << scheduled.error().to_string();
    auto parsed = parse_trace(to_string(scheduled->trace));
    ASSERT_TRUE(parsed.ok()) << parsed.error().to_string();
    EXPECT_EQ(*parsed, scheduled->trace);
    auto replayed = apply_trace(kernel_, *parsed);
    ASSERT_TRUE(replayed.ok()) << replayed.error().to_string();
    EXPECT_TRUE(ir::structurally_equal(*replayed, scheduled->kernel)) << to_string(*parsed);
  }
}

// Every step that a rule wants applies: one that fails is left out, and only `lost` tells.
TEST_P(DefaultSchedules, LoseNoStep) {
  ir::MachineDescription machine;
  auto choice = choose_trace(kernel_, {.machine = &machine, .constants = {"in1"}, .answers = {}});
  ASSERT_TRUE(choice.ok()) << choice.error().to_string();
  EXPECT_TRUE(choice->lost.empty()) << choice->lost[0];
}

// A trace that is looked up comes before the rules; nothing found: the rules choose.
TEST(FindSchedule, ComesBeforeTheDefault) {
  auto graph = ir::parse_graph(kSamples[0].graph);
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  const ir::Kernel kernel = build_group_kernel(*graph, {0}, graph->use_counts()).kernel;
  LowerOptions options;
  auto usual = schedule_kernel(kernel, {}, options);
  ASSERT_TRUE(usual.ok()) << usual.error().to_string();
  options.find_schedule = [](const ir::Kernel&, const std::set<std::string>&) {
    return std::optional<Trace>();
  };
  auto none = schedule_kernel(kernel, {}, options);
  ASSERT_TRUE(none.ok()) << none.error().to_string();
  EXPECT_EQ(none->trace, usual->trace);
  options.schedule = false;
  auto plain = schedule_kernel(kernel, {}, options);
  ASSERT_TRUE(plain.ok()) << plain.error().to_string();
  EXPECT_NE(plain->trace, usual->trace);
  options.schedule = true;
  options.find_schedule = [&](const ir::Kernel& k, const std::set<std::string>&) {
    EXPECT_EQ(k.name, kernel.name);
    return std::optional(plain->trace);
  };
  auto found = schedule_kernel(kernel, {}, options);
  ASSERT_TRUE(found.ok()) << found.error().to_string();
  EXPECT_EQ(found->trace, plain->trace);
  EXPECT_TRUE(ir::structurally_equal(found->kernel, plain->kernel));
  options.find_schedule = [](const ir::Kernel&, const std::set<std::string>&) {
    return std::optional(Trace{{"unroll", {"nothing"}, {}}});
  };
  auto wrong = schedule_kernel(kernel, {}, options);
  ASSERT_FALSE(wrong.ok());
  expect_phrase(wrong.error().to_string(), "no loop 'nothing'");
}

// In the interpreter, for machines with each width of vectors, scheduled and lowered.
TEST_P(DefaultSchedules, ComputeTheSame) {
  LowerOptions options;
  options.machine.threads = 4;
  for (int vector_bytes : {16, 32, 64}) {
    SCOPED_TRACE(vector_bytes);
    options.machine.vector_bytes = vector_bytes;
    options.machine.vector_registers = vector_bytes == 64 ? 32 : 16;
    options.machine.has_masks = vector_bytes == 64;
    auto scheduled = schedule_kernel(kernel_, {"in1"}, options);
    ASSERT_TRUE(scheduled.ok()) << scheduled.error().to_string();
    auto verified = ir::verify(scheduled->kernel, ir::Stage::kScheduled);
    ASSERT_TRUE(verified.ok()) << verified.error().to_string();
    expect_same_results(kernel_, scheduled->kernel);
    auto flat = lower_to_flat(scheduled->kernel, options);
    ASSERT_TRUE(flat.ok()) << flat.error().to_string();
    verified = ir::verify(*flat, ir::Stage::kPlanned);
    ASSERT_TRUE(verified.ok()) << verified.error().to_string();
    expect_same_results(kernel_, *flat);
  }
}

Trace default_trace(const ir::Kernel& kernel, const ir::MachineDescription& machine) {
  auto choice = choose_trace(kernel, {.machine = &machine, .constants = {"in1"}, .answers = {}});
  EXPECT_TRUE(choice.ok()) << choice.error().to_string();
  return choice.ok() ? choice->trace : Trace{};
}

// Products accumulate in a tile that is written out inside of its loops.
TEST_P(DefaultSchedules, ProductsGetATile) {
  const std::string name = GetParam().name;
  if (name.find("matmul") == std::string::npos && name.find("conv") == std::string::npos) return;
  ir::MachineDescription machine;
  const std::string trace = to_string(default_trace(kernel_, machine));
  for (const char* step : {"fuse_loops(", "vectorize(", "unroll(", "decompose_reduction("})
    EXPECT_NE(trace.find(step), std::string::npos) << step << "\n" << trace;
}

Trace trace_of_product(const std::string& rows, const std::string& terms, int threads) {
  auto graph = ir::parse_graph("graph g {\n  input x: f32[" + rows + ", " + terms +
                               "]\n  input w: f32[" + terms + ", 17]\n  y: f32[" + rows +
                               ", 17] = matmul(x, w)\n  output y as \"y\"\n}");
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  ir::Kernel kernel = build_group_kernel(*graph, {0}, graph->use_counts()).kernel;
  ir::MachineDescription machine;
  machine.threads = threads;
  return default_trace(kernel, machine);
}

// Runs of terms make tasks where the results make few; how many does not depend on the threads.
TEST(DefaultSchedule, LongProductsOfFewResultsAreCutInRuns) {
  for (const int threads : {1, 2, 64}) {
    const std::string even = to_string(trace_of_product("3", "16384", threads)),
                      prime = to_string(trace_of_product("1", "16411", threads));
    EXPECT_NE(even.find("split_reduction(matmul matmul_runs; 2 16)"), std::string::npos) << even;
    EXPECT_NE(prime.find("split_reduction(matmul matmul_runs; 2 16)"), std::string::npos) << prime;
    for (const std::string& trace : {even, prime}) {
      EXPECT_NE(trace.find("transform_layout(in1; 1 "), std::string::npos) << trace;
      EXPECT_EQ(trace.find("_runs_runs"), std::string::npos) << trace;
    }
    for (const auto& [rows, terms] : {std::pair("3", "512"), {"6400", "16384"}, {"m", "16384"}}) {
      const std::string whole = to_string(trace_of_product(rows, terms, threads));
      EXPECT_EQ(whole.find("split_reduction("), std::string::npos) << whole;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Samples, DefaultSchedules, testing::ValuesIn(kSamples),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tilewright::passes
