#include <functional>

#include "tests/performance/conv_layer.h"
#include "tests/performance/kernel_benchmark.h"
#include "tests/performance/suites.h"

namespace tilewright::performance {

namespace {

using ir::ValueId;

struct Gemm {
  int64_t m, n, k;
};
constexpr Gemm kGemms[] = {{128, 768, 768}, {128, 3072, 768},   {128, 768, 3072},
                           {384, 768, 768}, {1024, 1024, 1024}, {1, 3072, 768}};
constexpr ConvLayer kConvs[] = {
    {64, 64, 56, 3}, {256, 64, 56, 1}, {256, 256, 14, 3}, {144, 144, 56, 3, 1, 144}};

const std::string kU8 = "u8", kI32 = "i32";

// A node of two operands, with the attributes given.
using Product = std::function<ValueId(ValueId, ValueId, ir::Attributes)>;

// u8 times i8 alone, as ONNX's integer operators are read, ...
ValueId integer(const Product& product, ValueId x, ValueId w) {
  return product(x, w, {{"out_dtype", kI32}});
}
// ... or between the nodes that a quantised model has around it, with one scale a tensor.
ValueId quantised(KernelGraph& k, const Product& product, ValueId x, ValueId w) {
  const ValueId y =
      product(k.op("dequantize", {x, k.number(0.02)}), k.op("dequantize", {w, k.number(0.01)}), {});
  return k.op("quantize", {y, k.number(0.05)}, {{"to", kU8}});
}

void add_gemm(const Gemm& g, bool qdq) {
  add_benchmark(std::string("int8/matmul_") + (qdq ? "qdq" : "integer") + "_m" +
                    std::to_string(g.m) + "_n" + std::to_string(g.n) + "_k" + std::to_string(g.k),
                [=](KernelGraph& k) {
                  const Product matmul = [&](ValueId x, ValueId w, const ir::Attributes& a) {
                    return k.op("matmul", {x, w}, a);
                  };
                  k.int8 = true;
                  k.operations = 2.0 * static_cast<double>(g.m * g.n * g.k);
                  const ValueId x = k.input({g.m, g.k}, DType::kUInt8),
                                w = k.weight({g.k, g.n}, DType::kInt8);
                  k.output(qdq ? quantised(k, matmul, x, w) : integer(matmul, x, w));
                });
}

void add_conv(const ConvLayer& c, bool qdq) {
  add_benchmark(std::string("int8/conv_") + (qdq ? "qdq_" : "integer_") + c.name(),
                [=](KernelGraph& k) {
                  const Product conv = [&](ValueId x, ValueId w, ir::Attributes a) {
                    return c.conv(k, x, w, std::move(a));
                  };
                  k.int8 = true;
                  const ValueId x = between_layers(k, k.input(c.input(), DType::kUInt8)),
                                w = k.weight(c.weights(), DType::kInt8);
                  k.output(between_layers(k, qdq ? quantised(k, conv, x, w) : integer(conv, x, w)));
                });
}

}  // namespace

void add_int8() {
  for (const bool qdq : {false, true}) {
    for (const Gemm& g : kGemms) add_gemm(g, qdq);
    for (const ConvLayer& c : kConvs) add_conv(c, qdq);
  }
}

}  // namespace tilewright::performance
