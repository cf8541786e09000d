// What a session checks while it runs, and the key that it gives each run for its random numbers.
#include <gtest/gtest.h>

#include <set>

#include "runtime/session.h"
#include "tests/runtime/session_calls.h"
#include "tests/runtime/session_models.h"

namespace tilewright::testing {
namespace {

TEST(Session, ChecksSymbolsAcrossInputs) {
  Executable e;
  Variant v;
  v.symbols = {"batch"};
  const SizeExpr doubled{{SizeOp::kSymbol, 0}, {SizeOp::kConstant, 2}, {SizeOp::kMul}};
  v.buffers = {make_buffer("z", DType::kFloat32, {doubled}, BufferKind::kInput),
               make_buffer("y", DType::kFloat32, {symbol_size(0)}, BufferKind::kInput),
               make_buffer("x", DType::kFloat32, {symbol_size(0)}, BufferKind::kInput)};
  v.inputs = {0, 1, 2};
  v.outputs = {0};
  v.blocks = {{}};
  e.variants = {v};
  auto session = open(std::move(e));
  const Tensor one = floats({1}, {1}), two = floats({2}, {1, 2});
  EXPECT_EQ(error_of(*session, {two, one, one}), "no error");
  EXPECT_EQ(
      error_of(*session, {two, one, two}),
      "input 'x': symbol 'batch' is 2 here but 1 at input 'y'\n"
      "  where an extent of 1 is to stretch over the other, compile it for that: --shape y=1");
  const Tensor three = floats({3}, {1, 2, 3}), four = floats({4}, {1, 2, 3, 4});
  EXPECT_EQ(error_of(*session, {four, two, three}),
            "input 'x': symbol 'batch' is 3 here but 2 at input 'y'\n"
            "  where only a name that the model gives both makes them one, compile it with --shape "
            "apart");
  EXPECT_EQ(error_of(*session, {one, one, one}),
            "input 'z': extent 0 is 1, expected 2 = batch * 2");
}

// y = copy of w, where a caller may leave out w: f32[n].
Executable with_default(const std::vector<float>& contents, DType of_default = DType::kFloat32) {
  Executable e;
  Variant v;
  v.symbols = {"n"};
  const auto extent = static_cast<int64_t>(contents.size());
  v.buffers = {make_buffer("x", DType::kFloat32, {constant_size(1)}, BufferKind::kInput),
               make_buffer("w", DType::kFloat32, {symbol_size(0)}, BufferKind::kInput),
               make_buffer("y", DType::kFloat32, {symbol_size(0)}, BufferKind::kOutput),
               make_buffer("w", of_default, {constant_size(extent)}, BufferKind::kConstant)};
  v.buffers[1].default_buffer = 3;
  v.buffers[3].constant_offset = 0;
  v.inputs = {0, 1};
  v.outputs = {2};
  v.blocks = {{copy(2, 1)}};
  e.variants = {v};
  auto kept = std::make_shared<std::vector<float>>(contents);
  e.constants = reinterpret_cast<const uint8_t*>(kept->data());
  e.constants_bytes = extent * 4;
  e.owner = kept;
  return e;
}

TEST(Session, InputsWithADefaultMayBeLeftOut) {
  auto session = open(with_default({5, 6, 7}));
  EXPECT_FALSE(session->inputs()[0].has_default);
  EXPECT_TRUE(session->inputs()[1].has_default);
  const Tensor x = floats({1}, {1}), w = floats({2}, {8, 9});
  const auto y = [&](const std::vector<Tensor>& inputs) {
    std::vector<Tensor> outputs;
    const Status s = session->run(inputs, outputs);
    EXPECT_TRUE(s.ok()) << s.error().to_string();
    if (!s.ok()) return std::vector<float>();
    const auto* data = outputs[0].data_as<float>();
    return std::vector<float>(data, data + outputs[0].element_count());
  };
  const std::vector<float> by_default{5, 6, 7}, given{8, 9};
  EXPECT_EQ(y({x}), by_default);
  EXPECT_EQ(y({x, w}), given);
  EXPECT_EQ(y({x, Tensor()}), by_default);
  EXPECT_EQ(error_of(*session, {Tensor(), w}), "missing input 'x' (input 1 of 2)");
  EXPECT_EQ(error_of(*session, {x, w, w}), "got 3 inputs, expected 2");
}

TEST(Session, RefusesADefaultOfAnotherType) {
  auto refused =
      Session::create(std::make_shared<const Executable>(with_default({5, 6}, DType::kInt32)), {});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().to_string().find("default"), std::string::npos);
}

// A run writes into them: what else lies there would change too.
TEST(Session, InputsThatAreUpdatedLieApart) {
  Executable e;
  Variant v;
  v.buffers = {make_buffer("p", DType::kFloat32, {constant_size(2)}, BufferKind::kInput),
               make_buffer("x", DType::kFloat32, {constant_size(2)}, BufferKind::kInput)};
  v.buffers[0].updated = true;
  v.inputs = {0, 1};
  v.outputs = {1};
  v.blocks = {{}};
  e.variants = {v};
  auto session = open(std::move(e));
  const Tensor all = floats({32}, std::vector<float>(32)), other = floats({2}, {1, 2});
  const auto at = [&](int64_t element) {
    return Tensor::borrow(DType::kFloat32, {2}, all.data_as<float>() + element);
  };
  EXPECT_EQ(error_of(*session, {at(0), other}), "no error");
  EXPECT_EQ(error_of(*session, {at(0), at(2)}), "no error");
  EXPECT_EQ(error_of(*session, {at(0), at(1)}),
            "input 'p' is updated by the run: it shares memory with input 'x'");
  EXPECT_EQ(error_of(*session, {at(1), other}),
            "input 'p' is updated by the run: its data is not aligned to 64 bytes");
  std::vector<Tensor> outputs{at(0)};
  const Status s = session->run(std::vector<Tensor>{at(0), other}, outputs);
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().to_string(),
            "input 'p' is updated by the run: it shares memory with an output");
}

TEST(Session, RefusesExecutablesThatBreakRules) {
  EXPECT_EQ(refusal(add_relu_model()), "no error");
  Executable e = add_relu_model();
  e.variants[0].kernels[0].function = nullptr;
  EXPECT_EQ(refusal(e), "kernel 'relu' is not resolved");
  e = add_relu_model();
  e.variants[0].buffers[2].last_use = 0;
  EXPECT_EQ(refusal(e),
            "variant 0: executable: buffer 't' is used by instruction 1, outside its life [0, 0]");
  e = add_relu_model();
  e.constants_bytes = 15;
  EXPECT_EQ(refusal(e),
            "variant 0: executable: constant 'c' exceeds the constant section of 15 bytes");
  e = add_relu_model();
  e.variants[0].buffers[2].alias_of = 3;
  e.variants[0].buffers[3].alias_of = 2;
  EXPECT_EQ(refusal(e), "variant 0: executable: buffer 't' is an alias of itself");
  e = add_relu_model();
  e.variants[0].buffers[2].alias_offset = 64;
  EXPECT_EQ(refusal(e),
            "variant 0: executable: buffer 't' begins at byte 64, expected a multiple of 64 in "
            "another buffer");
  e.variants[0].buffers[2].alias_of = 3;
  EXPECT_EQ(refusal(e), "no error");
  e.variants[0].buffers[2].alias_offset = 96;
  EXPECT_EQ(refusal(e),
            "variant 0: executable: buffer 't' begins at byte 96, expected a multiple of 64 in "
            "another buffer");
  e.variants[0].buffers[2].alias_offset = -64;
  EXPECT_EQ(refusal(e),
            "variant 0: executable: buffer 't' begins at byte -64, expected a multiple of 64 in "
            "another buffer");
  e = add_relu_model();
  e.variants[0].buffers[3].alias_of = 2;
  e.variants[0].buffers[3].alias_offset = 64;
  EXPECT_EQ(refusal(e), "variant 0: executable: output 'y' does not begin where its storage does");
  e = branch_model();
  e.variants[0].blocks[1].push_back(branch(0, 1, -1));
  EXPECT_EQ(refusal(e), "variant 0: executable: block 1 is used twice");
  e = compact_model();
  e.variants[0].buffers[2].dynamic = false;
  EXPECT_EQ(refusal(e),
            "variant 0: executable: buffer 'y' depends on a symbol that the run defines, but is "
            "not dynamic");
  e = fibonacci_model();
  e.variants[0].loops[0].trip_count = e.variants[0].loops[0].body_cond = -1;
  EXPECT_EQ(refusal(e), "variant 0: executable: loop without an end");
}

// A view of part of an input reads that part; one that ends behind it is refused where sizes are known.
TEST(Session, ViewsBeginWithinWhatTheyView) {
  for (const int64_t elements : {16, 17}) {
    Executable e;
    Variant v;
    const SizeExpr n = constant_size(elements);
    v.buffers = {make_buffer("x", DType::kFloat32, {constant_size(32)}, BufferKind::kInput),
                 make_buffer("part", DType::kFloat32, {n}, BufferKind::kTemporary),
                 make_buffer("y", DType::kFloat32, {n}, BufferKind::kOutput)};
    v.buffers[1].alias_of = 0;
    v.buffers[1].alias_offset = 64;
    v.inputs = {0};
    v.outputs = {2};
    v.blocks = {{copy(2, 1)}};
    e.variants = {v};
    auto session = open(std::move(e));
    std::vector<float> x(32);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    const std::vector<Tensor> in{floats({32}, x)};
    std::vector<Tensor> out;
    const Status s = session->run(in, out);
    if (elements == 16) {
      ASSERT_TRUE(s.ok()) << s.error().to_string();
      EXPECT_EQ(values<float>(out[0]), std::vector<float>(x.begin() + 16, x.end()));
    } else {
      ASSERT_FALSE(s.ok());
      EXPECT_EQ(s.error().message, "buffer 'part' ends behind 'x'");
    }
  }
}

// What the run checks of indices and extents ends it with an error, and the next one is as usual.
TEST(Session, ChecksIndicesAndExtents) {
  auto session =
      std::move(*Session::create(std::make_shared<Executable>(gather_model()), {.threads = 1}));
  auto error = [&](const std::vector<float>& x, const std::vector<int64_t>& indices) {
    std::vector<Tensor> in{floats({static_cast<int64_t>(x.size())}, x),
                           integers({static_cast<int64_t>(indices.size())}, indices)},
        out;
    const Status s = session->run(in, out);
    return s.ok() ? std::string() : s.error().message;
  };
  EXPECT_EQ(error({1, 2, 3}, {2, -3, 0}), "");
  EXPECT_EQ(error({1, 2, 3}, {2, 3, 0}),
            "gather 'g': index 3 is out of range for dimension 0 of 3 elements");
  EXPECT_EQ(error({1, 2, 3}, {-4}),
            "gather 'g': index -4 is out of range for dimension 0 of 3 elements");
  EXPECT_EQ(error({}, {}), "");
  EXPECT_EQ(error({}, {0}), "gather 'g': index 0 is out of range for dimension 0 of 0 elements");
  EXPECT_EQ(
      error(std::vector<float>(9, 1), {0}),
      "gather 'g': extents rows and 8 are 9 and 8, expected the first to be at most the second");
  EXPECT_EQ(error(std::vector<float>(8, 1), {7}), "");
}

// Gives the key of the run as its result.
Executable key_model() {
  Executable e;
  Variant v;
  v.buffers = {make_buffer("key", DType::kUInt32, {constant_size(2)}, BufferKind::kRunKey),
               make_buffer("y", DType::kUInt32, {constant_size(2)}, BufferKind::kOutput)};
  v.outputs = {1};
  v.blocks = {{copy(1, 0)}};
  e.variants = {v};
  return e;
}
std::vector<std::vector<uint32_t>> keys(uint64_t seed, int runs) {
  auto session = open(key_model(), {.threads = 1, .seed = seed});
  std::vector<std::vector<uint32_t>> all;
  for (int k = 0; k < runs; ++k) {
    std::vector<Tensor> out;
    EXPECT_TRUE(session->run({}, out).ok());
    all.push_back(values<uint32_t>(out[0]));
  }
  return all;
}

TEST(Session, EachRunHasAKey) {
  const auto a = keys(5, 100);
  EXPECT_EQ(keys(5, 100), a);
  std::set<std::vector<uint32_t>> different(a.begin(), a.end());
  for (const uint64_t seed : {uint64_t{1}, uint64_t{6}, ~uint64_t{0}, uint64_t{0}, uint64_t{0}})
    for (const auto& k : keys(seed, 100)) different.insert(k);
  EXPECT_EQ(different.size(), 600u);
}
TEST(Session, ChecksTheKeyOfARun) {
  Executable e = key_model();
  e.variants[0].blocks = {{copy(0, 1)}};
  EXPECT_NE(refusal(e).find("'key' cannot be written"), std::string::npos) << refusal(e);
  e = key_model();
  e.variants[0].buffers[0] =
      make_buffer("key", DType::kUInt32, {constant_size(3)}, BufferKind::kRunKey);
  EXPECT_NE(refusal(e).find("'key' is not 8 bytes"), std::string::npos) << refusal(e);
}

}  // namespace
}  // namespace tilewright::testing
