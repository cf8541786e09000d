#include "tests/performance/kernel_benchmark.h"
#include "tests/performance/suites.h"

namespace tilewright::performance {

namespace {

// Products [m, k] times [k, n]: squares, layers of BERT-base and GPT-2 (a token at a time: m = 1),
// few rows, and primes, which no tile divides.
struct Gemm {
  const char* name;
  int64_t m, n, k;
};
constexpr Gemm kGemms[] = {
    {"square", 256, 256, 256},    {"square", 512, 512, 512},    {"square", 1024, 1024, 1024},
    {"square", 2048, 2048, 2048}, {"bert", 128, 768, 768},      {"bert", 128, 3072, 768},
    {"bert", 128, 768, 3072},     {"bert", 384, 768, 768},      {"bert", 384, 3072, 768},
    {"bert", 384, 768, 3072},     {"gpt2", 128, 2304, 768},     {"gpt2", 1, 2304, 768},
    {"gpt2", 1, 50257, 768},      {"rows", 1, 768, 768},        {"rows", 1, 3072, 768},
    {"rows", 1, 768, 3072},       {"rows", 8, 768, 768},        {"rows", 8, 3072, 768},
    {"rows", 8, 768, 3072},       {"primes", 127, 131, 137},    {"primes", 251, 257, 263},
    {"primes", 509, 521, 523},    {"primes", 1021, 1019, 1013},
};

}  // namespace

void add_gemm() {
  for (const Gemm& g : kGemms)
    add_benchmark(std::string("gemm/") + g.name + "_m" + std::to_string(g.m) + "_n" +
                      std::to_string(g.n) + "_k" + std::to_string(g.k),
                  [g](KernelGraph& k) {
                    k.operations = 2.0 * static_cast<double>(g.m * g.n * g.k);
                    k.output(k.op("matmul", {k.input({g.m, g.k}), k.weight({g.k, g.n})}));
                  });
}

}  // namespace tilewright::performance
