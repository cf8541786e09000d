// Kernels of every width on inputs and outputs beside pages that may not be touched: vectors that
// reach over the end of a row are masked, guarded or moved back, never read or written beyond.
// Few widths on all but this machine's own kind of CPU; TILEWRIGHT_WIDTHS=all: all of them on each,
// and every pair of types at every width.
#include <cstdlib>

#include "tests/ops/guarded_memory.h"
#include "tests/ops/kernel_test.h"

namespace tilewright {
namespace {

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
                            DType::kInt8,    DType::kInt16,   DType::kInt32,   DType::kInt64,
                            DType::kUInt8,   DType::kUInt16,  DType::kUInt32,  DType::kUInt64,
                            DType::kBool};
constexpr int64_t kMostWidth = 130;

bool takes_all() {
  const char* widths = std::getenv("TILEWRIGHT_WIDTHS");
  return widths && std::string(widths) == "all";
}

class GuardedKernels : public KernelTest {
 protected:
  using Value = ir::ValueId;

  // `few`: of one width in seven, for kernels that take long to compile.
  std::vector<int64_t> widths(bool few = false) const {
    const bool native = std::string(GetParam()) == "native";
    if (takes_all() || (native && !few)) {
      std::vector<int64_t> all(kMostWidth);
      for (int64_t i = 0; i < kMostWidth; ++i) all[static_cast<size_t>(i)] = i + 1;
      return all;
    }
    if (native) return {1, 2, 3, 5, 7, 8, 9, 13, 16, 17, 25, 31, 33, 49, 63, 65, 81, 113, 129};
    return {1, 3, 8, 9, 17, 33, 65, 113};
  }
  // `operands` makes a graph for a width. Results may differ from the interpreter's by `roundings`
  // units of the largest value.
  template <typename Make>
  void expect_guarded_at(const std::vector<int64_t>& widths, double roundings, Make&& make) {
    for (const int64_t width : widths) {
      GraphCall call;
      make(call, width);
      auto oracle = interpret_graph(call.graph, call.inputs);
      ASSERT_TRUE(oracle.ok()) << oracle.error().to_string();
      auto executable = compile_graph(call.graph, {.cpu = GetParam()});
      ASSERT_TRUE(executable.ok()) << executable.error().to_string();
      for (const Place place : {Place::kAtStart, Place::kAtEnd})
        expect_guarded(*executable, call.inputs, oracle->outputs, place,
                       "width " + std::to_string(width) + " for " + GetParam(),
                       roundings * epsilon(DType::kFloat32) * oracle->largest);
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
  // Whole numbers, so that results need not be rounded.
  Value whole(GraphCall& call, DType t, const Shape& shape) {
    return call.input(repeated(t, shape, {3, 1, 4, 1, 5, 9, 2, 6, 7, 0, 11}));
  }
  static Value cast(GraphCall& call, Value x, DType to) {
    return call.op("cast", {x}, {{"to", std::string(name(to))}});
  }
  static Value turn(GraphCall& call, Value x, std::vector<int64_t> perm) {
    return call.op("transpose", {x}, {{"perm", std::move(perm)}});
  }
  static Value numbers(GraphCall& call, const std::vector<double>& values) {
    return call.constant(repeated(DType::kInt64, {static_cast<int64_t>(values.size())}, values));
  }
  static Value slice(GraphCall& call, Value x, double from, double to, double axis, double step) {
    return call.op("slice", {x, numbers(call, {from}), numbers(call, {to}), numbers(call, {axis}),
                             numbers(call, {step})});
  }
  static ir::Attributes over(int64_t axis) {
    return {{"axes", std::vector<int64_t>{axis}}, {"keepdims", int64_t{0}}};
  }
};

TEST_P(GuardedKernels, Pointwise) {
  expect_guarded_at(widths(), 8, [&](GraphCall& call, int64_t n) {
    const Value x = call.input(random(DType::kFloat32, {n})),
                y = call.input(random(DType::kFloat32, {n})),
                column = call.input(random(DType::kFloat32, {3, 1}));
    call.output(call.op("exp", {call.op("mul", {x, y})}));
    call.output(call.op("where", {call.op("less", {x, y}), x, column}));
    const DType t = kTypes[n % 12];
    call.output(call.op("add", {whole(call, t, {n}), whole(call, t, {n})}));
  });
}

// At each width as many pairs as there are types; at as many widths, each pair.
TEST_P(GuardedKernels, Casts) {
  expect_guarded_at(widths(), 0, [&](GraphCall& call, int64_t n) {
    for (size_t from = 0; from < std::size(kTypes); ++from)
      for (size_t to = 0; to < std::size(kTypes); ++to)
        if (takes_all() || to == (from + static_cast<size_t>(n)) % std::size(kTypes))
          call.output(cast(call, whole(call, kTypes[from], {n}), kTypes[to]));
  });
}

// Rows of integers that become narrower behind a transpose or a sum.
TEST_P(GuardedKernels, NarrowRows) {
  constexpr std::pair<DType, DType> kNarrow[] = {
      {DType::kInt64, DType::kInt32}, {DType::kInt64, DType::kInt8},
      {DType::kInt32, DType::kInt8},  {DType::kInt32, DType::kInt16},
      {DType::kInt16, DType::kUInt8}, {DType::kInt64, DType::kInt16}};
  expect_guarded_at(widths(), 0, [&](GraphCall& call, int64_t n) {
    for (size_t k = 0; k < std::size(kNarrow); ++k) {
      if (!takes_all() && k / 2 != static_cast<size_t>(n % 3)) continue;
      const auto [from, to] = kNarrow[k];
      call.output(cast(call, turn(call, whole(call, from, {n, 5}), {1, 0}), to));
      call.output(cast(call, call.op("reduce_sum", {whole(call, from, {3, 5, n})}, over(1)), to));
    }
  });
}

TEST_P(GuardedKernels, Transposes) {
  expect_guarded_at(widths(true), 0, [&](GraphCall& call, int64_t n) {
    for (const DType t : {DType::kFloat32, DType::kInt8, DType::kInt64}) {
      call.output(turn(call, whole(call, t, {n, 17}), {1, 0}));
      call.output(turn(call, whole(call, t, {3, n}), {1, 0}));
    }
  });
}

TEST_P(GuardedKernels, Reductions) {
  expect_guarded_at(widths(true), 600, [&](GraphCall& call, int64_t n) {
    const Value x = call.input(random(DType::kFloat32, {3, n}));
    call.output(call.op("reduce_sum", {x}, over(1)));
    call.output(call.op("reduce_max", {x}, over(0)));
    call.output(call.op("softmax", {x}, {{"axis", int64_t{-1}}}));
    call.output(call.op("reduce_max", {whole(call, DType::kInt8, {7, n})}, over(1)));
  });
}

TEST_P(GuardedKernels, PaddedWindows) {
  expect_guarded_at(widths(true), 60, [&](GraphCall& call, int64_t n) {
    const Value x = call.input(random(DType::kFloat32, {1, 3, 4, n})),
                w = call.input(random(DType::kFloat32, {5, 3, 3, 3})),
                each = call.input(random(DType::kFloat32, {3, 1, 3, 3}));
    const std::vector<int64_t> ones{1, 1, 1, 1};
    call.output(call.op("conv", {x, w}, {{"pads", ones}}));
    call.output(call.op("conv", {x, each}, {{"pads", ones}, {"group", int64_t{3}}}));
    call.output(
        call.op("max_pool", {x}, {{"kernel_shape", std::vector<int64_t>{3, 3}}, {"pads", ones}}));
  });
}

// The last columns of a product become bytes.
TEST_P(GuardedKernels, QuantisedProducts) {
  expect_guarded_at(widths(true), 0, [&](GraphCall& call, int64_t n) {
    const Value scale = call.constant(repeated(DType::kFloat32, {}, {4})),
                zero = call.constant(repeated(DType::kUInt8, {}, {3}));
    const ir::Attributes bytes{{"to", std::string("u8")}};
    const Value sum =
        call.op("matmul", {whole(call, DType::kUInt8, {5, 20}), whole(call, DType::kInt8, {20, n})},
                {{"out_dtype", std::string("i32")}});
    call.output(call.op("quantize", {cast(call, sum, DType::kFloat32), scale, zero}, bytes));
    const Value product = call.op(
        "matmul", {whole(call, DType::kFloat32, {5, 6}), whole(call, DType::kFloat32, {6, n})});
    call.output(call.op("quantize", {product, scale, zero}, bytes));
  });
}

TEST_P(GuardedKernels, InterleavedPlanes) {
  expect_guarded_at(widths(true), 2, [&](GraphCall& call, int64_t n) {
    for (const int64_t planes : {2, 3, 4}) {
      call.output(turn(call,
                       cast(call, whole(call, DType::kUInt8, {1, 2, n, planes}), DType::kFloat32),
                       {0, 3, 1, 2}));
      call.output(turn(call, whole(call, DType::kFloat32, {1, planes, 2, n}), {0, 2, 3, 1}));
    }
  });
}

// What one kernel leaves for the next, in the layouts that they agree on, and their workspaces.
TEST_P(GuardedKernels, Temporaries) {
  expect_guarded_at(widths(true), 3000, [&](GraphCall& call, int64_t n) {
    const auto input = [&](const Shape& shape) {
      return call.input(random(DType::kFloat32, shape));
    };
    const auto constant = [&](const Shape& shape) {
      return call.constant(random(DType::kFloat32, shape));
    };
    const std::vector<int64_t> ones{1, 1, 1, 1};
    // Images in blocks of channels; n channels between two convolutions.
    Value y = call.op("conv", {input({1, 3, 4, 9}), constant({n, 3, 3, 3})}, {{"pads", ones}});
    y = call.op("max_pool", {call.op("exp", {y})}, {{"kernel_shape", std::vector<int64_t>{2, 2}}});
    y = call.op("conv", {y, constant({5, n, 3, 3})}, {{"pads", ones}});
    call.output(call.op("softmax", {turn(call, y, {0, 2, 3, 1})}, {{"axis", int64_t{-1}}}));
    // Rows of n, and products over them.
    Value rows = call.op("matmul", {input({7, 20}), constant({20, n})});
    rows = call.op("softmax", {rows}, {{"axis", int64_t{-1}}});
    call.output(call.op("matmul", {rows, input({n, 3})}));
    call.output(
        call.op("reduce_sum", {call.op("matmul", {turn(call, rows, {1, 0}), rows})}, over(0)));
    // Narrowed sums with two readers.
    const Value sum = call.op("reduce_sum", {whole(call, DType::kInt64, {3, 5, n})}, over(1)),
                narrow = cast(call, sum, DType::kInt8);
    call.output(turn(call, narrow, {1, 0}));
    call.output(call.op("reduce_max", {narrow}, over(0)));
  });
}

// Read from the last element on, and every second or third: lanes lie below the first address.
TEST_P(GuardedKernels, ReversedAndStridedSlices) {
  constexpr double kFirst = -1e6;  // before the first element
  expect_guarded_at(widths(), 2, [&](GraphCall& call, int64_t n) {
    const DType t = n % 3 == 0 ? DType::kFloat32 : n % 3 == 1 ? DType::kInt8 : DType::kInt16;
    const Value x = whole(call, t, {3, n}), reversed = slice(call, x, -1, kFirst, 1, -1);
    call.output(call.op("add", {reversed, x}));
    call.output(reversed);
    call.output(slice(call, x, -1, kFirst, 1, -2));
    call.output(slice(call, x, 0, 1e6, 1, n % 4 ? 2 : 3));
    // Each element twice, from the last on: quotients of offsets below 0.
    const Value twice = call.op("repeat", {x}, {{"factors", std::vector<int64_t>{1, 2}}});
    call.output(slice(call, twice, -1, kFirst, 1, -1));
  });
}

INSTANTIATE_TEST_SUITE_P(Cpu, GuardedKernels,
                         testing::Values("native", "cascadelake", "znver5", "x86-64-v4",
                                         "x86-64-v3", "x86-64"),
                         [](const auto& info) { return as_test_name(info.param); });

}  // namespace
}  // namespace tilewright
