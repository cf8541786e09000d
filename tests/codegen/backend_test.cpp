// The seam: a second backend is one class. This one keeps kernels as text and interprets them;
// whole models run on it through the same executable, runtime and session as on the CPU's.
#include "codegen/backend.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "codegen/assemble_executable.h"
#include "ir/interpreter/interpreter.h"
#include "ir/module_text/parser_graph.h"
#include "ir/text/parser_loops.h"
#include "ir/text/printer_loops.h"
#include "passes/lower.h"
#include "runtime/session.h"

namespace tilewright::codegen {
namespace {

// A TwKernel is a bare function: each slot has one, which runs the kernel that the slot holds.
constexpr size_t kSlots = 8;
std::array<ir::Kernel, kSlots> slots;
int calls = 0;

template <size_t slot>
void run_slot(TwKernelContext*, void* const* buffers, const int64_t* scalars) {
  ++calls;
  const ir::Kernel& k = slots[slot];
  const Status done = ir::interpret(k, std::vector<void*>(buffers, buffers + k.params.size()),
                                    std::vector<int64_t>(scalars, scalars + k.scalars.size()));
  EXPECT_TRUE(done.ok()) << done.error().to_string();
}
template <size_t... slot>
constexpr std::array<TwKernel, kSlots> entries_of(std::index_sequence<slot...>) {
  return {run_slot<slot>...};
}
constexpr auto kEntries = entries_of(std::make_index_sequence<kSlots>());

class InterpretedCode : public LoadedCode {
 public:
  void* find(const std::string& symbol) override {
    for (size_t i = 0; i < kSlots; ++i)
      if (slots[i].name == symbol) return reinterpret_cast<void*>(kEntries[i]);
    return nullptr;
  }
};

class InterpreterBackend : public Backend {
 public:
  Result<ir::MachineDescription> describe(const std::string&) const override {
    return ir::MachineDescription();
  }
  Status check(const ir::MachineDescription&) const override { return {}; }
  std::string version() const override { return "interpreter"; }
  Result<std::vector<CompiledKernel>> compile(
      const std::vector<const ir::Kernel*>& kernels, const ir::MachineDescription&, int,
      const std::function<void(size_t, size_t)>&) const override {
    std::vector<CompiledKernel> code;
    for (const ir::Kernel* k : kernels) {
      const std::string text = ir::to_text(*k);
      code.push_back({{text.begin(), text.end()}, {}});
    }
    return code;
  }
  Result<std::string> print(const ir::Kernel& kernel, const ir::MachineDescription&,
                            CodeForm) const override {
    return ir::to_text(kernel);
  }
  Result<std::shared_ptr<LoadedCode>> load(
      const std::vector<std::vector<uint8_t>>& objects) const override {
    if (objects.size() > kSlots) return unsupported("more kernels than slots");
    for (size_t i = 0; i < objects.size(); ++i) {
      TW_ASSIGN(slots[i], ir::parse_kernel({reinterpret_cast<const char*>(objects[i].data()),
                                            objects[i].size()}));
    }
    return std::shared_ptr<LoadedCode>(std::make_shared<InterpretedCode>());
  }
  Result<std::vector<uint8_t>> emit_function_table(const std::vector<std::string>&,
                                                   const std::string&, const std::string&,
                                                   const ir::MachineDescription&) const override {
    return unsupported("interpreted code is not linked");
  }
  Status link(const std::vector<std::string>&, const std::string&) const override {
    return unsupported("interpreted code is not linked");
  }
};

// A product and a softmax: several kernels, buffers between them, symbols of the run.
constexpr const char* kGraph = R"(graph layers {
  input x: f32[n, 40]
  input w: f32[40, 24]
  y: f32[n, 24] = matmul(x, w)
  z: f32[n, 24] = softmax(y) {axis = -1}
  output z as "z"
})";

std::vector<float> run(const Backend* backend) {
  Result<ir::Graph> graph = ir::parse_graph(kGraph);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  passes::LowerOptions lower;
  lower.machine = *backend->describe("x86-64-v3");
  Result<ir::Program> program = passes::lower(std::move(*graph), lower);
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  AssembleOptions options{lower.machine, 1, "two layers"};
  options.backend = backend;
  auto executable = assemble_in_memory({std::move(*program)}, options);
  EXPECT_TRUE(executable.ok()) << executable.error().to_string();
  auto session = Session::create(*executable, {});
  EXPECT_TRUE(session.ok()) << session.error().to_string();
  std::vector<float> x(5 * 40), w(40 * 24);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 11) / 8 - 0.5f;
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 7) / 4 - 0.75f;
  std::vector<Tensor> outputs;
  const std::vector<Tensor> inputs{Tensor::borrow(DType::kFloat32, {5, 40}, x.data()),
                                   Tensor::borrow(DType::kFloat32, {40, 24}, w.data())};
  const Status done = (*session)->run(inputs, outputs);
  EXPECT_TRUE(done.ok()) << done.error().to_string();
  std::vector<float> z(5 * 24);
  std::memcpy(z.data(), outputs[0].data(), z.size() * sizeof(float));
  return z;
}

TEST(Backend, ASecondOneIsOneClass) {
  const InterpreterBackend interpreter;
  calls = 0;
  const std::vector<float> found = run(&interpreter);
  EXPECT_GE(calls, 2);
  Result<const Backend*> cpu = open_backend();
  ASSERT_TRUE(cpu.ok()) << cpu.error().to_string();
  const std::vector<float> expected = run(*cpu);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << i;
}
// Kernels whose loops come out alike, as both directions of a recurrence over one step, are one.
TEST(Backend, ATableNamesEqualFunctionsTwice) {
  const auto backend = open_backend();
  ASSERT_TRUE(backend.ok()) << backend.error().to_string();
  const auto machine = (*backend)->describe("native");
  ASSERT_TRUE(machine.ok()) << machine.error().to_string();
  const auto table =
      (*backend)->emit_function_table({"one_kernel", "one_kernel"}, "table", "count", *machine);
  ASSERT_TRUE(table.ok()) << table.error().to_string();
  const std::string bytes(table->begin(), table->end());
  EXPECT_NE(bytes.find("one_kernel"), std::string::npos);
  EXPECT_EQ(bytes.find("one_kernel."), std::string::npos);
}
TEST(Backend, IsOpenedByName) {
  Result<const Backend*> none = open_backend("abacus");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message, "no backend is named 'abacus'; there are: cpu");
  EXPECT_EQ(*open_backend("cpu"), *open_backend());
}

}  // namespace
}  // namespace tilewright::codegen
