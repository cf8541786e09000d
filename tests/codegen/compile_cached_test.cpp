// Kernels by their contents: what is the same is compiled once, what differs in anything is not mixed up.
#include "codegen/compile_cached.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "ir/text/parser_loops.h"
#include "ir/text/printer_loops.h"

namespace tilewright::codegen {
namespace {

ir::Kernel kernel(const std::string& name, const std::string& value, const std::string& head = "") {
  auto k = ir::parse_kernel("kernel " + name + "(C: f32[8]) " + head +
                            "{ for i in 0..8 { C[i] = " + value + " } }");
  EXPECT_TRUE(k.ok()) << k.error().to_string();
  return std::move(*k);
}

// Counts what it is asked for; its objects are the kernels' texts.
class CountingBackend : public Backend {
 public:
  explicit CountingBackend(std::string version) : version_(std::move(version)) {}
  std::string version() const override { return version_; }
  Result<ir::MachineDescription> describe(const std::string&) const override {
    return ir::MachineDescription();
  }
  Status check(const ir::MachineDescription&) const override { return {}; }
  Result<std::vector<CompiledKernel>> compile(
      const std::vector<const ir::Kernel*>& kernels, const ir::MachineDescription& machine, int,
      const std::function<void(size_t, size_t)>&) const override {
    std::vector<CompiledKernel> all;
    for (const ir::Kernel* k : kernels) {
      ++compiled;
      const std::string text = ir::to_text(*k) + machine.cpu;
      all.push_back({{text.begin(), text.end()}, {"avx2", k->name}});
    }
    return all;
  }
  Result<std::string> print(const ir::Kernel&, const ir::MachineDescription&,
                            CodeForm) const override {
    return unsupported("");
  }
  Result<std::shared_ptr<LoadedCode>> load(
      const std::vector<std::vector<uint8_t>>&) const override {
    return unsupported("");
  }
  Result<std::vector<uint8_t>> emit_function_table(const std::vector<std::string>&,
                                                   const std::string&, const std::string&,
                                                   const ir::MachineDescription&) const override {
    return unsupported("");
  }
  Status link(const std::vector<std::string>&, const std::string&) const override {
    return unsupported("");
  }
  mutable int compiled = 0;

 private:
  std::string version_;
};

class CompileCached : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "cache-XXXXXX").string();
    ASSERT_TRUE(mkdtemp(pattern.data()));
    folder_ = pattern;
    cache_ = std::make_unique<cache::FileCache>(folder_, 1 << 20);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  // How many were compiled; that each is its own is checked.
  int compile(const CountingBackend& backend, std::vector<ir::Kernel> kernels,
              const ir::MachineDescription& machine = {}, bool cached = true) {
    std::vector<const ir::Kernel*> pointers;
    for (ir::Kernel& k : kernels) {
      k.name = content_symbol(k);
      pointers.push_back(&k);
    }
    const int before = backend.compiled;
    auto code =
        compile_cached(backend, pointers, machine, 1, nullptr, cached ? cache_.get() : nullptr);
    EXPECT_TRUE(code.ok()) << code.error().to_string();
    for (size_t i = 0; i < kernels.size(); ++i) {
      const std::string text = ir::to_text(kernels[i]) + machine.cpu;
      EXPECT_EQ((*code)[i].object, std::vector<uint8_t>(text.begin(), text.end()));
      EXPECT_EQ((*code)[i].features, (std::vector<std::string>{"avx2", kernels[i].name}));
    }
    return backend.compiled - before;
  }
  std::string folder_;
  std::unique_ptr<cache::FileCache> cache_;
};

TEST_F(CompileCached, WhatIsKnownIsNotCompiledAgain) {
  const CountingBackend backend("1");
  EXPECT_EQ(compile(backend, {kernel("k0_mul", "1.0"), kernel("k1_mul", "2.0")}), 2);
  // Numbers in a program are no part of what a kernel is; operators, loops and marks are.
  EXPECT_EQ(compile(backend, {kernel("k7_mul", "2.0"), kernel("k8_mul", "1.0")}), 0);
  EXPECT_EQ(compile(backend, {kernel("k0_add", "1.0"), kernel("k1_mul", "2.0")}), 1);
  EXPECT_EQ(compile(backend, {kernel("k0_mul", "1.0", "exact ")}), 1);
  EXPECT_EQ(compile(backend, {kernel("k0_mul", "1.0000001")}), 1);
  EXPECT_EQ(compile(backend, {}), 0);
}

TEST_F(CompileCached, AnotherMachineOrCompilerIsAnother) {
  const CountingBackend backend("1"), newer("2"), unknown("");
  const auto one = [] { return std::vector{kernel("k0_mul", "1.0")}; };
  EXPECT_EQ(compile(backend, one()), 1);
  ir::MachineDescription machine;
  machine.cpu = "znver5";
  EXPECT_EQ(compile(backend, one(), machine), 1);
  machine.features = {"avx2"};
  EXPECT_EQ(compile(backend, one(), machine), 1);
  machine.has_fma = false;
  EXPECT_EQ(compile(backend, one(), machine), 1);
  machine.l2_bytes *= 2;  // schedules know it, code does not
  EXPECT_EQ(compile(backend, one(), machine), 0);
  EXPECT_EQ(compile(newer, one()), 1);
  EXPECT_EQ(compile(backend, one(), {}, false), 1);
  EXPECT_EQ(compile(unknown, one()), 1);
  EXPECT_EQ(compile(unknown, one()), 1);
}

}  // namespace
}  // namespace tilewright::codegen
