// A tuner whose candidates have no code, or wrong code: none of them is taken, each is told, and
// tuning goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "autotune/tune_model.h"
#include "frontends/compiler/compiler.h"
#include "ir/loops/make.h"
#include "ir/loops/rewrite.h"
#include "ir/module_text/parser_graph.h"
#include "ir/text/printer_loops.h"

namespace tilewright::autotune {
namespace {

using codegen::Backend;

// The CPU's, but for kernels that are compiled later than the first program after `usual` is set.
class FaultyBackend final : public Backend {
 public:
  enum Fault { kNoCode, kWrongCode };
  explicit FaultyBackend(Fault fault) : fault_(fault), cpu_(**codegen::open_backend()) {}
  mutable bool usual = false;

  Result<std::vector<codegen::CompiledKernel>> compile(
      const std::vector<const ir::Kernel*>& kernels, const ir::MachineDescription& machine,
      int threads, const std::function<void(size_t, size_t)>& progress) const override {
    std::vector<ir::Kernel> wrong(kernels.size());
    std::vector<const ir::Kernel*> given = kernels;
    for (size_t i = 0; i < kernels.size(); ++i) {
      ir::Kernel unnamed = *kernels[i];
      unnamed.name = "k";
      if (!closed_) known_.insert(ir::to_text(unnamed));
      if (known_.count(ir::to_text(unnamed))) continue;
      if (fault_ == kNoCode) return unsupported("the backend has had enough");
      wrong[i] = *kernels[i];
      wrong[i].body = Double().rewrite(wrong[i].body);
      given[i] = &wrong[i];
    }
    closed_ |= usual;
    return cpu_.compile(given, machine, threads, progress);
  }
  std::string version() const override { return ""; }
  Result<ir::MachineDescription> describe(const std::string& machine) const override {
    return cpu_.describe(machine);
  }
  Status check(const ir::MachineDescription& machine) const override { return cpu_.check(machine); }
  Result<std::string> print(const ir::Kernel& kernel, const ir::MachineDescription& machine,
                            codegen::CodeForm form) const override {
    return cpu_.print(kernel, machine, form);
  }
  Result<std::shared_ptr<codegen::LoadedCode>> load(
      const std::vector<std::vector<uint8_t>>& objects) const override {
    return cpu_.load(objects);
  }
  Result<std::vector<uint8_t>> emit_function_table(
      const std::vector<std::string>& functions, const std::string& name,
      const std::string& count_name, const ir::MachineDescription& machine) const override {
    return cpu_.emit_function_table(functions, name, count_name, machine);
  }
  Status link(const std::vector<std::string>& object_paths,
              const std::string& output_path) const override {
    return cpu_.link(object_paths, output_path);
  }

 private:
  // Stores twice of what it should.
  class Double : public ir::Rewriter {
   public:
    using ir::Rewriter::rewrite;
    ir::Stmt rewrite(const ir::Stmt& s) override {
      const ir::Stmt r = ir::Rewriter::rewrite(s);
      const auto* store = r ? r.as<ir::Store>() : nullptr;
      if (!store || store->buffer->scope != ir::Scope::kParam) return r;
      return ir::store(store->buffer, store->indices, store->value + store->value, store->mask,
                       store->store_kind);
    }
  };
  const Fault fault_;
  const Backend& cpu_;
  mutable bool closed_ = false;
  mutable std::set<std::string> known_;
};

class RefusedCandidates : public testing::Test {
 protected:
  // `known`: of the kernels, for tuning to start from.
  static Result<TuneResult> tuned(const FaultyBackend* backend, size_t trials,
                                  const std::map<std::string, passes::Answers>& known) {
    std::vector<float> w(300 * 64);
    for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 17) / 16 - 0.5f;
    TW_ASSIGN(const ir::Graph graph,
              ir::parse_graph("graph g {\n  input x: f32[40, 300]\n  const w: f32[300, 64] = #0\n"
                              "  t: f32[40, 64] = matmul(x, w)\n"
                              "  y: f32[40, 64] = softmax(t) {axis = 1}\n"
                              "  output y as \"y\"\n}\n",
                              {ir::make_constant_of<float>(DType::kFloat32, {300, 64}, w)}));
    Tensor x = Tensor::allocate(DType::kFloat32, {40, 300}).value();
    for (int64_t i = 0; i < x.element_count(); ++i)
      x.data_as<float>()[i] = std::sin(static_cast<float>(i));
    const std::vector<std::vector<Tensor>> inputs{{x}};
    TW_ASSIGN(const passes::LowerOptions lower, lower_options({}));
    codegen::AssembleOptions assemble = assemble_options({}, lower.machine, "g");
    assemble.backend = backend;
    assemble.cache = nullptr;
    TuneOptions how{.seconds = 60, .trials = trials};
    how.known = [&](const std::string& task, const std::string& family) {
      if (backend && !family.empty()) backend->usual = true;
      const auto it = known.find(task);
      return it == known.end() ? Known() : Known{.answers = it->second};
    };
    return tune_model(graph, lower, assemble, inputs, how);
  }
  static void expect_all_refused(FaultyBackend::Fault fault, const std::string& why,
                                 const std::map<std::string, passes::Answers>& known) {
    const FaultyBackend backend(fault);
    const auto result = tuned(&backend, 6, known);
    ASSERT_TRUE(result.ok()) << result.error().to_string();
    EXPECT_GE(result->refused, 6u);
    EXPECT_THAT(result->refusal, testing::HasSubstr(why));
    for (const TunedKernel& k : result->kernels) {
      EXPECT_FALSE(k.improved);
      EXPECT_TRUE(k.best.answers.empty());
      EXPECT_FALSE(k.trials.empty());
      for (const Trial& t : k.trials) EXPECT_THAT(t.refused, testing::HasSubstr(why));
    }
  }
};

TEST_F(RefusedCandidates, HaveNoCode) {
  expect_all_refused(FaultyBackend::kNoCode, "not compiled: ", {});
}
TEST_F(RefusedCandidates, HaveWrongCode) {
  expect_all_refused(FaultyBackend::kWrongCode, "wrong: ", {});
}
TEST_F(RefusedCandidates, AreKnownFromADatabase) {
  const auto usual = tuned(nullptr, 8, {});
  ASSERT_TRUE(usual.ok()) << usual.error().to_string();
  std::map<std::string, passes::Answers> known;
  for (const TunedKernel& k : usual->kernels) {
    ASSERT_FALSE(k.trials.empty());
    known[k.task] = k.trials[0].answers;
  }
  expect_all_refused(FaultyBackend::kWrongCode, "wrong: ", known);
}

}  // namespace
}  // namespace tilewright::autotune
