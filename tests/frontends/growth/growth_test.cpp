// Compile time grows with the model, not faster: at most kFactor times for twice the size, from the
// model's bytes to code in memory.
//
//    TILEWRIGHT_GROWTH=8           as many times larger models, as far as there are any
//    TILEWRIGHT_GROWTH_MODELS=DIR  writes them there, e.g. for `tilewright compile --pass-times`
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "frontends/compiler/compiler.h"
#include "tests/frontends/growth/kinds.h"

namespace tilewright::growth {

// What GoogleTest calls a kind.
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

namespace {

constexpr double kFactor = 2.5;
// Seconds by which two measurements of one compilation may differ.
constexpr double kAllowance = 0.02;
constexpr int kTries = 4;
constexpr int kSizes = 3;  // each twice the one before

double cpu_seconds() {
  timespec t;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

std::string model_of(const Kind& kind, int n) {
  onnx_format::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(21);
  int names = 0;
  GraphMaker graph(model.mutable_graph(), &names);
  kind.make(graph, n);
  const std::string bytes = model.SerializeAsString();
  if (const char* folder = std::getenv("TILEWRIGHT_GROWTH_MODELS"))
    std::ofstream(folder + ("/" + std::string(kind.name)) + "_" + std::to_string(n) + ".onnx",
                  std::ios::binary)
        << bytes;
  return bytes;
}

// Of the processor, in all threads.
double compile_seconds(const Kind& kind, int n) {
  const std::string bytes = model_of(kind, n);
  CompileOptions options;
  options.compile_threads = 1;
  const double begin = cpu_seconds();
  auto model = parse(bytes);
  EXPECT_TRUE(model.ok()) << model.error().to_string();
  if (!model.ok()) return 0;
  auto executable = compile_in_memory(**model, {}, options);
  EXPECT_TRUE(executable.ok()) << executable.error().to_string();
  return cpu_seconds() - begin;
}

std::vector<Kind> all_kinds() {
  std::vector<Kind> all;
  for (const auto kinds : {chains(), joins(), layers(), movements(), regions(), interfaces()})
    all.insert(all.end(), kinds.begin(), kinds.end());
  return all;
}

class Growth : public testing::TestWithParam<Kind> {};

// Of a few times the least counts: the machine has other things to do.
TEST_P(Growth, IsLinear) {
  const Kind& kind = GetParam();
  const char* scale = std::getenv("TILEWRIGHT_GROWTH");
  int n = kind.n * (scale ? std::atoi(scale) : 1);
  if (kind.most > 0) n = std::min(n, kind.most >> (kSizes - 1));
  compile_seconds(kind, 1);  // what a process does once
  std::vector<double> least(kSizes, 1e9);
  bool holds = false;
  for (int attempt = 0; attempt < kTries && !holds && !HasFailure(); ++attempt) {
    holds = true;
    for (int k = 0; k < kSizes; ++k) {
      double& seconds = least[static_cast<size_t>(k)];
      seconds = std::min(seconds, compile_seconds(kind, n << k));
      if (k > 0) holds &= seconds <= kFactor * least[static_cast<size_t>(k - 1)] + kAllowance;
    }
  }
  std::string times;
  for (int k = 0; k < kSizes; ++k)
    times += "  " + std::to_string(n << k) + ": " +
             std::to_string(1000 * least[static_cast<size_t>(k)]) + " ms";
  printf("%s%s\n", kind.name, times.c_str());
  EXPECT_TRUE(holds) << kind.name << " of sizes" << times;
}

INSTANTIATE_TEST_SUITE_P(Kinds, Growth, testing::ValuesIn(all_kinds()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace

}  // namespace tilewright::growth
