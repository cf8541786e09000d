// Slices that are read where they lie and parts of concats that are written where they belong:
// which kernels copy, and that the results are those of copies.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/ops/graph_oracle.h"

namespace tilewright {
namespace {

class Aliases : public testing::Test {
 protected:
  ir::ValueId input(const Shape& shape) {
    return call_.input(random_tensor(DType::kFloat32, shape, random_));
  }
  ir::ValueId weights(const Shape& shape) {
    return call_.constant(random_tensor(DType::kFloat32, shape, random_));
  }
  ir::ValueId ints(const std::vector<double>& values) {
    return call_.constant(repeated(DType::kInt64, {static_cast<int64_t>(values.size())}, values));
  }
  ir::ValueId slice(ir::ValueId x, double from, double to, double axis, double step = 1) {
    return call_.op("slice", {x, ints({from}), ints({to}), ints({axis}), ints({step})});
  }
  ir::ValueId concat(const std::vector<ir::ValueId>& parts, int64_t axis) {
    return call_.op("concat", parts, {{"axis", axis}});
  }
  ir::ValueId product(ir::ValueId x, int64_t rows, int64_t columns) {
    return call_.op("matmul", {x, weights({rows, columns})});
  }
  ir::ValueId reshape(ir::ValueId x, const std::vector<double>& dims) {
    return call_.op("reshape", {x, ints(dims)}, {{"allowzero", int64_t{0}}});
  }
  // The names of the kernels that do nothing but slice or concat; and equal results.
  void expect_copies(int count) {
    const CompiledForm form{true, true, true};
    auto program = lower_graph_for(call_.graph, form);
    ASSERT_TRUE(program.ok()) << program.error().to_string();
    std::string names;
    int copies = 0;
    for (const ir::ProfileEntry& e : program->profile) {
      names += e.kernel + " ";
      const std::string op = e.kernel.substr(e.kernel.find('_') + 1);
      copies += op == "slice" || op == "concat";
    }
    EXPECT_EQ(copies, count) << names;
    auto expected = interpret_graph(call_.graph, call_.inputs);
    ASSERT_TRUE(expected.ok()) << expected.error().to_string();
    auto runs = run_compiled(call_.graph, call_.inputs, form, {1, 3});
    ASSERT_TRUE(runs.ok()) << runs.error().to_string();
    const double bound = expected->steps * expected->largest * epsilon(DType::kFloat32);
    for (const Tensors& run : *runs)
      for (size_t k = 0; k < run.size(); ++k)
        EXPECT_LE(difference(run[k], expected->outputs[k]), bound) << "output " << k;
    EXPECT_EQ((*runs)[0][0].bytes, (*runs)[1][0].bytes);
  }
  // Kernels that write paddings, which need nothing of what they surround.
  void expect_borders(int count) {
    auto program = lower_graph_for(call_.graph, {true, true, true});
    ASSERT_TRUE(program.ok());
    int borders = 0;
    for (const ir::Kernel& k : program->kernels) {
      if (k.name.find("_pad") == std::string::npos) continue;
      ++borders;
      EXPECT_EQ(k.params.size(), 1u) << k.name;
    }
    EXPECT_EQ(borders, count);
  }

  GraphCall call_;
  std::mt19937_64 random_{3};
};

// As in a DenseNet or an Inception block.
TEST_F(Aliases, ConvolutionsWriteTheirPartOfAConcat) {
  const ir::ValueId x = input({1, 8, 9, 11});
  const ir::ValueId a =
      call_.op("conv", {x, weights({32, 8, 3, 3})}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  const ir::ValueId b = call_.op("relu", {call_.op("conv", {x, weights({17, 8, 1, 1})})});
  // The first is also read by itself.
  const ir::ValueId c = call_.op("conv", {concat({a, b}, 1), weights({8, 49, 1, 1})});
  call_.output(call_.op("add", {c, call_.op("conv", {a, weights({8, 32, 1, 1})})}));
  expect_copies(0);
}
// The next layer then reads no border of its own; a kernel writes the zeros.
TEST_F(Aliases, PaddingIsWrittenAroundWhatAConvolutionStores) {
  const ir::ValueId x = input({1, 8, 9, 17});
  const ir::ValueId a = call_.op("relu", {call_.op("conv", {x, weights({24, 8, 1, 1})})});
  call_.output(call_.op("conv", {a, weights({24, 1, 3, 3})},
                        {{"pads", std::vector<int64_t>{1, 0, 2, 1}}, {"group", int64_t{24}}}));
  expect_copies(0);
  expect_borders(1);
}
// What such a padding holds is read from what it surrounds, which has to be there before.
TEST_F(Aliases, PaddingsThatRepeatAreNotWrittenAround) {
  const ir::ValueId x = input({1, 8, 9, 11});
  for (const char* mode : {"edge", "reflect", "wrap"}) {
    const ir::ValueId a = call_.op("relu", {call_.op("conv", {x, weights({24, 8, 1, 1})})});
    const ir::ValueId padded =
        call_.op("pad", {a, ints({0, 0, 2, 3, 0, 0, 1, 4})}, {{"mode", std::string(mode)}});
    call_.output(call_.op("conv", {padded, weights({24, 1, 3, 3})}, {{"group", int64_t{24}}}));
  }
  expect_copies(0);
}
// The wider one serves both convolutions, and the sum reads amid it.
TEST_F(Aliases, ReadersShareAPadding) {
  const ir::ValueId x = input({1, 8, 9, 11});
  const ir::ValueId a = call_.op("relu", {call_.op("conv", {x, weights({24, 8, 1, 1})})});
  const ir::ValueId b = call_.op("conv", {a, weights({24, 24, 5, 5})},
                                 {{"pads", std::vector<int64_t>{2, 2, 2, 2}}}),
                    c = call_.op("conv", {a, weights({24, 1, 3, 2})},
                                 {{"pads", std::vector<int64_t>{1, 0, 3, 1}},
                                  {"strides", std::vector<int64_t>{2, 1}},
                                  {"group", int64_t{24}}});
  call_.output(call_.op("add", {a, b}));
  call_.output(c);
  expect_copies(0);
  expect_borders(1);
}
// It has to lie row by row, so the convolution pads what it reads.
TEST_F(Aliases, AResultOfTheGraphIsNotPaddedApart) {
  const ir::ValueId x = input({1, 8, 9, 11});
  const ir::ValueId a = call_.op("relu", {call_.op("conv", {x, weights({24, 8, 1, 1})})});
  call_.output(a);
  call_.output(
      call_.op("conv", {a, weights({24, 24, 5, 5})}, {{"pads", std::vector<int64_t>{2, 2, 2, 2}}}));
  expect_copies(0);
  expect_borders(0);
}
TEST_F(Aliases, PaddingsOfDifferentValuesAreNotShared) {
  const ir::ValueId x = call_.input(random_bytes(DType::kUInt8, {1, 16, 9, 11}, random_)),
                    w = call_.constant(random_bytes(DType::kInt8, {16, 16, 3, 3}, random_)),
                    a = call_.op("max_pool", {x}, {{"kernel_shape", std::vector<int64_t>{2, 2}}});
  for (const double zero : {3.0, 7.0})
    call_.output(
        call_.op("conv", {a, w, call_.constant(repeated(DType::kUInt8, {}, {zero}))},
                 {{"pads", std::vector<int64_t>{1, 1, 1, 1}}, {"out_dtype", std::string("i32")}}));
  expect_copies(0);
}
// All around, also where memory holds what was there before.
TEST_F(Aliases, PaddingsOfAValueAreWrittenToTheEnd) {
  const ir::ValueId x = call_.input(random_bytes(DType::kUInt8, {1, 64, 9, 11}, random_)),
                    w = call_.constant(random_bytes(DType::kInt8, {16, 64, 3, 3}, random_)),
                    a = call_.op("max_pool", {x}, {{"kernel_shape", std::vector<int64_t>{2, 2}}});
  call_.output(
      call_.op("conv", {a, w, call_.constant(repeated(DType::kUInt8, {}, {7}))},
               {{"pads", std::vector<int64_t>{1, 1, 2, 1}}, {"out_dtype", std::string("i32")}}));
  expect_copies(0);
  expect_borders(1);
}
// Places are relative to the outermost buffer.
TEST_F(Aliases, AConcatOfConcatsIsOne) {
  const ir::ValueId x = input({5, 32});
  const ir::ValueId inner = concat({product(x, 32, 16), product(x, 32, 48)}, 1);
  call_.output(concat({product(x, 32, 64), inner}, 1));
  expect_copies(0);
}
TEST_F(Aliases, InterleavedPartsAreFinishedAndWrittenApart) {
  const ir::ValueId x = input({1, 16, 5, 7});
  auto interleave = [&](ir::ValueId a, ir::ValueId b, int64_t axis) {
    return call_.op("concat", {a, b}, {{"axis", axis}, {"interleave", int64_t{1}}});
  };
  auto part = [&] { return call_.op("conv", {x, weights({24, 16, 1, 1})}); };
  const ir::ValueId above = interleave(part(), part(), 3), below = interleave(part(), part(), 3);
  const ir::ValueId all = call_.op("add", {interleave(above, below, 2), weights({24, 1, 1})});
  call_.output(call_.op("conv", {call_.op("relu", {all}), weights({8, 24, 3, 3})}));
  expect_copies(0);
  auto program = lower_graph_for(call_.graph, {true, true, true});
  ASSERT_TRUE(program.ok());
  for (const ir::ProfileEntry& e : program->profile)
    EXPECT_TRUE(e.kernel.find("conv") != std::string::npos ||
                e.kernel.find("identity") != std::string::npos)
        << e.kernel << " is a pass of its own";
}
// Its elements differ from part to part.
TEST_F(Aliases, ARowIsAddedToInterleavedPartsTogether) {
  const ir::ValueId x = input({1, 16, 5, 7});
  auto part = [&] { return call_.op("conv", {x, weights({64, 16, 1, 1})}); };
  const ir::ValueId both =
      call_.op("concat", {part(), part()}, {{"axis", int64_t{3}}, {"interleave", int64_t{1}}});
  for (const Shape& shape : {Shape{14}, Shape{5, 1}, Shape{64, 1, 1}})
    call_.output(
        call_.op("conv", {call_.op("add", {both, weights(shape)}), weights({32, 64, 1, 1})}));
  expect_copies(0);
}
TEST_F(Aliases, InterleavedColumnsAreCopied) {
  const ir::ValueId x = input({5, 32});
  const ir::ValueId both = call_.op("concat", {product(x, 32, 48), product(x, 32, 48)},
                                    {{"axis", int64_t{1}}, {"interleave", int64_t{1}}});
  call_.output(call_.op("relu", {both}));
  expect_copies(1);
}
TEST_F(Aliases, AProductReadsOnePartAndWritesAnother) {
  const ir::ValueId a = product(input({7, 33}), 33, 32), b = product(a, 32, 31);
  const ir::ValueId both = concat({a, b}, 1);
  call_.output(product(both, 63, 5));
  call_.output(both);
  expect_copies(0);
}
// It can lie in one place only.
TEST_F(Aliases, APartThatIsThereTwiceIsCopied) {
  const ir::ValueId a = product(input({4, 16}), 16, 32), both = concat({a, a}, 0);
  call_.output(call_.op("relu", {product(both, 32, 8)}));
  expect_copies(1);
}
// An input of the graph lies where the caller has it.
TEST_F(Aliases, WhatIsNotMadeForTheConcatIsCopied) {
  const ir::ValueId x = input({4, 16}), a = product(x, 16, 40);
  call_.output(concat({x, a}, 1));
  expect_copies(1);
}
// It lies in memory of the caller's, whole and without gaps.
TEST_F(Aliases, AResultOfTheGraphStaysItsOwn) {
  const ir::ValueId a = product(input({4, 16}), 16, 32);
  call_.output(a);
  call_.output(concat({a, a}, 0));
  call_.output(slice(a, 1, 3, 0));
  expect_copies(2);
}
// Rows of a few elements would be written to scattered places.
TEST_F(Aliases, ShortRunsAreCopied) {
  const ir::ValueId x = input({40, 16});
  call_.output(concat({product(x, 16, 3), product(x, 16, 5)}, 1));
  expect_copies(1);
}
// The graph of attention with one product for queries, keys and values.
TEST_F(Aliases, HeadsAreReadWhereTheProductStoresThem) {
  const ir::ValueId all = product(input({1, 13, 24}), 24, 96);
  std::vector<ir::ValueId> heads;
  for (int k = 0; k < 3; ++k)
    heads.push_back(call_.op("transpose",
                             {reshape(slice(all, 32 * k, 32 * k + 32, 2), {1, 13, 2, 16})},
                             {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}));
  const ir::ValueId keys =
      call_.op("transpose", {heads[1]}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  const ir::ValueId weights =
      call_.op("softmax", {call_.op("matmul", {heads[0], keys})}, {{"axis", int64_t{-1}}});
  call_.output(call_.op("matmul", {weights, heads[2]}));
  expect_copies(0);
}
TEST_F(Aliases, SlicesOfSlicesAndSteps) {
  const ir::ValueId x = input({9, 6, 32});
  const ir::ValueId s = slice(slice(x, -1, -100, 0, -2), 1, 6, 1, 2);
  call_.output(product(s, 32, 7));
  call_.output(call_.op("matmul", {slice(x, 2, 3, 0), weights({1, 32, 4})}));
  expect_copies(0);
}
// Elements that are not neighbours make no vector loads.
TEST_F(Aliases, ASliceAcrossVectorsIsCopied) {
  call_.output(product(slice(input({9, 64}), 0, 64, 1, 2), 32, 7));
  expect_copies(1);
}
// A concat may hold a part of one of its own parts.
TEST_F(Aliases, APartOfAPartIsCopiedToItsPlace) {
  const ir::ValueId a = product(input({6, 16}), 16, 32);
  call_.output(concat({a, slice(a, 0, 16, 1)}, 1));
  expect_copies(1);
}

}  // namespace
}  // namespace tilewright
