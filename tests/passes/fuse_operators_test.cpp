// Which nodes share a kernel, and which are computed again in several.
#include <algorithm>
#include <map>
#include <set>

#include "tests/passes/graph_check.h"

namespace tilewright::passes {
namespace {

// The groups of the nodes, numbered by first appearance.
std::vector<int> groups_of(const ir::Graph& g) {
  std::vector<int> groups, seen;
  for (const ir::Node& n : g.nodes) {
    auto it = std::find(seen.begin(), seen.end(), n.group);
    groups.push_back(static_cast<int>(it - seen.begin()));
    if (it == seen.end()) seen.push_back(n.group);
  }
  return groups;
}
void expect_groups(const std::string& lines, const std::vector<int>& groups) {
  const ir::Graph g = parsed_graph(lines), fused = fuse_operators(g);
  EXPECT_EQ(groups_of(fused), groups) << ir::to_text(fused);
  expect_same_graph_results(g, fused);
  const ir::Graph apart = leave_unfused(g);
  EXPECT_EQ(std::set<int>(groups.begin(), groups.end()).size() <= apart.nodes.size(), true);
  expect_same_graph_results(g, apart);
}

TEST(FuseOperators, EpilogueJoinsItsAnchor) {
  expect_groups(R"(  input x: f32[3, 5]
  input w: f32[5, 4]
  input b: f32[4]
  p: f32[3, 4] = matmul(x, w)
  s: f32[3, 4] = add(p, b)
  y: f32[3, 4] = relu(s)
  output y as "y"
)",
                {0, 0, 0});
}
TEST(FuseOperators, OneAnchorInAGroup) {
  expect_groups(R"(  input x: f32[3, 5]
  input w: f32[5, 4]
  input v: f32[4, 2]
  p: f32[3, 4] = matmul(x, w)
  r: f32[3, 4] = relu(p)
  q: f32[3, 2] = matmul(r, v)
  n: f32[3, 2] = neg(q)
  z: f32[3, 1] = reduce_sum(n) {axes = [1]}
  output z as "z"
)",
                {0, 0, 1, 1, 2});
}
// Of many products, whose rows are still in cache. Rows across places, or of few of them, are kernels of their own, and
// so is what goes along the rows once more.
TEST(FuseOperators, RowsOfPlacesJoinTheirProduct) {
  const auto of = [](int places, const std::string& rows) {
    const std::string n = std::to_string(places);
    return "  input q: f32[" + n + ", 4, 5]\n  input k: f32[" + n + ", 6, 5]\n  input e: f32[" + n +
           ", 4, 6]\n  p: f32[" + n + ", 4, 6] = matmul(q, k) {trans_b = 1}\n  s: f32[" + n +
           ", 4, 6] = sqrt(p)\n" + rows;
  };
  expect_groups(of(16, R"(  m: f32[16, 4, 6] = softmax(s) {axis = -1}
  y: f32[16, 4, 6] = neg(m)
  output y as "y"
)"),
                {0, 0, 0, 0});
  expect_groups(of(16, R"(  m: f32[16, 4, 6] = softmax_gradient(s, e) {axis = 2}
  n: f32[16, 4, 6] = softmax(m) {axis = 2}
  output n as "n"
)"),
                {0, 0, 0, 1});
  expect_groups(of(15, R"(  m: f32[15, 4, 6] = softmax(s) {axis = 2}
  output m as "m"
)"),
                {0, 0, 1});
  expect_groups(of(16, R"(  m: f32[16, 4, 6] = softmax(s) {axis = 1}
  output m as "m"
)"),
                {0, 0, 1});
}
TEST(FuseOperators, AReductionTakesItsPrologue) {
  expect_groups(R"(  input x: f32[3, 5]
  a: f32[3, 5] = mul(x, x)
  z: f32[3, 1] = reduce_sum(a) {axes = [1]}
  s: f32[3, 1] = sqrt(z)
  y: f32[3, 5] = div(x, s)
  output y as "y"
)",
                {0, 0, 0, 1});
}
TEST(FuseOperators, TheLatestAnchorThatCanTakeIt) {
  // The sum cannot join the softmax, whose result the product reads, though that is read last.
  expect_groups(R"(  input x: f32[3, 4]
  input w: f32[4, 4]
  s: f32[3, 4] = softmax(x) {axis = 1}
  p: f32[3, 4] = matmul(s, w)
  r: f32[3, 4] = relu(s)
  y: f32[3, 4] = add(r, p)
  output y as "y"
)",
                {0, 1, 0, 1});
}
// What is in memory anyway is read again, where an epilogue would write what a reader outside reads.
std::string beside_a_softmax(const std::string& rows, const std::string& reader) {
  const std::string all = "f32[" + rows + ", 256]";
  return "  input x: f32[" + rows +
         ", 8]\n  input w: f32[8, 256]\n  input b: f32[256]\n  p: " + all +
         " = matmul(x, w)\n  s: " + all + " = softmax(p) {axis = 1}\n  m: " + all +
         " = mul(p, b)\n  y: " + reader + "\n  output s as \"s\"\n  output y as \"y\"\n";
}
TEST(FuseOperators, EpiloguesWaitForTheirReaders) {
  const std::string sum = "f32[1, 256] = reduce_sum(m) {axes = [0]}",
                    add = "f32[256, 256] = add(m, s)";
  expect_groups(beside_a_softmax("256", sum), {0, 1, 2, 2});
  expect_groups(beside_a_softmax("16", sum), {0, 1, 0, 2});
  expect_groups(beside_a_softmax("256", add), {0, 1, 1, 1});
  // What others read, too, is written in any case.
  expect_groups(beside_a_softmax("256", sum) + "  output m as \"m\"\n", {0, 1, 0, 2});
}
// A chain that goes on behind the group belongs to its end, whatever its links cost, where it begins with
// what lies in memory: `s`, which is read again behind the softmax.
TEST(FuseOperators, ChainsWaitForWhatEndsThem) {
  const auto chain = [](const std::string& extents, const std::string& last) {
    const std::string all = "f32[" + extents + ", 256]";
    return "  input x: f32[" + extents + ", 8]\n  input w: f32[8, 256]\n  p: " + all +
           " = matmul(x, w)\n  s: " + all + " = tanh(p)\n  a: " + all +
           " = mul(s, s)\n  b: " + all + " = exp(a)\n  r: " + all +
           " = softmax(s) {axis = 1}\n  t: " + all + " = mul(r, s)\n  y: " + all + " = " + last +
           "\n  output y as \"y\"\n";
  };
  expect_groups(chain("256", "mul(b, t)"), {0, 0, 1, 1, 1, 1, 1});
  expect_groups(chain("16", "mul(b, t)"), {0, 0, 0, 0, 1, 1, 1});
  // In memory anyway; and what nothing outside comes back to.
  expect_groups(chain("256", "mul(b, t)") + "  output b as \"b\"\n", {0, 0, 0, 0, 1, 1, 1});
  expect_groups(chain("256", "neg(b)") + "  output t as \"t\"\n", {0, 0, 0, 0, 1, 1, 0});
}
// The same behind pointwise work: `m` is computed where it is read, from `t`, which the sum has put into memory. What
// takes fewer bytes than it is made of is kept.
TEST(FuseOperators, PointwiseWorkWaitsForItsReader) {
  const auto beside_a_sum = [](const std::string& rows, const std::string& m,
                               const std::string& last) {
    const std::string all = "f32[" + rows + ", 256]";
    return "  input x: " + all + "\n  input b: f32[256]\n  t: " + all + " = tanh(x)\n  m: " + m +
           "\n  s: f32[1, 256] = reduce_sum(t) {axes = [0]}\n  y: " + all + " = " + last +
           "\n  output y as \"y\"\n";
  };
  const std::string product = "f32[256, 256] = mul(t, b)", add = "add(m, s)";
  expect_groups(beside_a_sum("256", product, add), {0, 1, 2, 1});
  expect_groups(beside_a_sum("16", "f32[16, 256] = mul(t, b)", add), {0, 0, 1, 2});
  expect_groups(beside_a_sum("2048", "bool[2048, 256] = greater(t, b)", "where(m, s, t)"),
                {0, 0, 1, 2});
}
TEST(FuseOperators, AViewIsAlone) {
  expect_groups(R"(  input x: f32[3, 4]
  const n: i64[2] = [2, 6]
  a: f32[3, 4] = relu(x)
  v: f32[2, 6] = reshape(a, n)
  y: f32[2, 6] = neg(v)
  output y as "y"
)",
                {0, 1, 2});
}
TEST(FuseOperators, NoCycles) {
  // relu and add would be one group, but the softmax between them must run after one, before the
  // other.
  const ir::Graph fused = fuse_operators(parsed_graph(R"(  input x: f32[3, 5]
  a: f32[3, 5] = relu(x)
  b: f32[3, 5] = softmax(a) {axis = 1}
  y: f32[3, 5] = add(a, b)
  output y as "y"
)"));
  EXPECT_FALSE(fused.nodes[0].group == fused.nodes[2].group &&
               fused.nodes[1].group != fused.nodes[0].group)
      << ir::to_text(fused);
  expect_same_graph_results(leave_unfused(fused), fused);
}

// `y` may not join `a`: the sum between them reads `s`, and with it runs all of its group, whose
// other member `t` reads `a`.
TEST(FuseOperators, NoCyclesThroughAnotherMember) {
  const ir::Graph before = parsed_graph(R"(  input x: f32[3, 5]
  input w: f32[3, 5]
  a: f32[3, 5] = softmax(x) {axis = 1}
  s: f32[3, 5] = softmax(w) {axis = 1}
  t: f32[3, 5] = add(s, a)
  r: f32[3, 1] = reduce_sum(s) {axes = [1]}
  y: f32[3, 5] = add(a, r)
  output t as "t"
  output y as "y"
)");
  const ir::Graph fused = fuse_operators(before);
  EXPECT_EQ(fused.nodes[1].group, fused.nodes[2].group) << ir::to_text(fused);
  EXPECT_NE(fused.nodes[0].group, fused.nodes[4].group) << ir::to_text(fused);
  expect_same_graph_results(before, fused);
}

// The same where all between stands before `a`, but for that member.
TEST(FuseOperators, NoCyclesThroughEarlierNodes) {
  const ir::Graph before = parsed_graph(R"(  input x: f32[1, 5]
  input w: f32[3, 5]
  s: f32[3, 5] = softmax(w) {axis = 1}
  r: f32[1, 5] = reduce_sum(s) {axes = [0]}
  a: f32[1, 5] = softmax(x) {axis = 1}
  t: f32[3, 5] = add(s, a)
  y: f32[1, 5] = add(a, r)
  output t as "t"
  output y as "y"
)");
  const ir::Graph fused = fuse_operators(before);
  EXPECT_EQ(fused.nodes[0].group, fused.nodes[3].group) << ir::to_text(fused);
  EXPECT_NE(fused.nodes[2].group, fused.nodes[4].group) << ir::to_text(fused);
  expect_same_graph_results(before, fused);
}

// The operators of each group's nodes, after fusion and repeated widening.
std::string repeated(const std::string& lines) {
  const ir::Graph fused = fuse_operators(parsed_graph(lines)), after = repeat_widening(fused);
  expect_same_graph_results(fused, after);
  std::map<int32_t, std::string> groups;
  for (const ir::Node& n : after.nodes) groups[n.group] += std::string(n.op->name) + " ";
  std::string all;
  for (const auto& [group, names] : groups) all += names + "| ";
  return all;
}

TEST(RepeatWidening, BytesAreReadByThoseWhoWantFloats) {
  // The second product reads bytes of the first group; the sum reads floats, in the second group.
  EXPECT_EQ(repeated(R"(  input x: f32[3, 4]
  input w: f32[4, 4]
  input b: i8[4, 4]
  const s: f32[] = [0.25]
  const z: u8[] = [7]
  p: f32[3, 4] = matmul(x, w)
  q: u8[3, 4] = quantize(p, s, z) {to = "u8"}
  d: f32[3, 4] = dequantize(q, s, z)
  m: i32[3, 4] = matmul(q, b) {out_dtype = "i32"}
  f: f32[3, 4] = cast(m) {to = "f32"}
  y: f32[3, 4] = add(d, f)
  output y as "y"
)"),
            "matmul quantize | matmul cast dequantize add | ");
}
TEST(RepeatWidening, OnceInAGroupAndWhereItIsAResult) {
  EXPECT_EQ(repeated(R"(  input x: f32[3, 4]
  input u: f32[3, 1]
  h: f16[3, 4] = cast(x) {to = "f16"}
  d: f32[3, 4] = cast(h) {to = "f32"}
  t: f32[3, 1] = reduce_sum(d) {axes = [1]}
  a: f32[3, 4] = add(d, t)
  y: f32[3, 4] = mul(a, d)
  output y as "y"
  output d as "d"
)"),
            "cast cast | reduce_sum | cast add mul | ");
}
TEST(RepeatWidening, NarrowingAndBroadcastsStay) {
  EXPECT_EQ(repeated(R"(  input x: f64[3, 4]
  input b: i8[4]
  c: f32[4] = cast(b) {to = "f32"}
  n: f32[3, 4] = cast(x) {to = "f32"}
  s: f32[3, 4] = softmax(n) {axis = 1}
  a: f32[3, 4] = add(s, c)
  t: f32[3, 4] = softmax(a) {axis = 1}
  m: f32[3, 4] = mul(t, c)
  y: f32[3, 4] = add(m, n)
  output y as "y"
)"),
            "cast | cast | softmax add | softmax mul add | ");
}

}  // namespace
}  // namespace tilewright::passes
