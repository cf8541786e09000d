// The text form of graphs and their verifier.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/graph/infer.h"
#include "ir/module_text/parser_graph.h"
#include "ir/module_text/printer_graph.h"
#include "ir/verify_graph.h"

namespace tilewright::ir {
namespace {

const char kMlp[] = R"(graph mlp {
  input x: f32[batch, 4]
  const w: f32[4, 6] = #0
  const b: f32[6] = [0.1, -0.0, 1.0, inf, nan, 1e-45]
  h: f32[batch, 6] = matmul(x, w) from "fc1" group 0
  s: f32[batch, 6] = softmax(h) {axis = -1} from "prob", "prob/again" group 0
  n: i64[2] known [batch, 6] = shape(s)
  output s as "probabilities"
  output n as "n"
}
)";
std::vector<ConstantRef> weights() {
  return {make_constant_of<float>(DType::kFloat32, {4, 6}, std::vector<float>(24, 0.5f))};
}

Graph parsed(const std::string& text, const std::vector<ConstantRef>& constants = {}) {
  Result<Graph> g = parse_graph(text, constants);
  EXPECT_TRUE(g.ok()) << g.error().to_string() << "\n" << text;
  return g.ok() ? *g : Graph{};
}
std::string parse_error(const std::string& text) {
  Result<Graph> g = parse_graph(text);
  return g.ok() ? "no error" : g.error().to_string();
}
void expect_phrase(const std::string& found, const std::string& phrase) {
  EXPECT_NE(found.find(phrase), std::string::npos)
      << "found: " << found << "\nexpected: " << phrase;
}

// With constants, which stand in a table beside the text.
TEST(GraphText, RoundTrips) {
  const Graph g = parsed(kMlp, weights());
  std::vector<ConstantRef> constants;
  EXPECT_EQ(to_text(g, &constants), kMlp);
  ASSERT_EQ(constants.size(), 1u);
  EXPECT_EQ(to_text(parsed(to_text(g), constants), nullptr), kMlp);
  EXPECT_EQ(g.nodes.size(), 3u);
  EXPECT_EQ(g.output_names, (std::vector<std::string>{"probabilities", "n"}));
  EXPECT_EQ(g.nodes[1].sources, (std::vector<std::string>{"prob", "prob/again"}));
  EXPECT_EQ(g.value(g.nodes[0].outputs[0]).producer, 0);
  // One symbol `batch`, wherever it is named.
  EXPECT_TRUE(g.value(g.inputs[0]).type.dims[0].same_as(g.value(g.outputs[0]).type.dims[0]));
}

// State that a run leaves in the caller's tensor.
TEST(GraphText, OutputsThatUpdateInputs) {
  const std::string text = R"(graph step {
  input g: f32[3]
  input p: f32[3]
  q: f32[3] = sub(p, g)
  r: i64[3] = cast(q) {to = "i64"}
  output r as "r"
  output q as "q" updates p
}
)";
  Graph g = parsed(text);
  EXPECT_EQ(to_text(g), text);
  ASSERT_EQ(g.updates.size(), 1u);
  EXPECT_EQ(g.updates[0].input, 1);
  EXPECT_EQ(g.updates[0].output, 1);
  EXPECT_TRUE(verify(g).ok());
  g.updates = {{1, 0}};
  expect_phrase(verify(g).error().to_string(), "is updated by");
  g.updates = {{1, 1}, {0, 1}};
  expect_phrase(verify(g).error().to_string(), "are not updated by one another alone");
  g.updates = {{2, 1}};
  expect_phrase(verify(g).error().to_string(), "an update names what is no input or output");
  expect_phrase(parse_error("graph g {\n  input p: f32[3]\n  q: f32[3] = neg(p)\n"
                            "  output q as \"q\" updates q\n}\n"),
                "is no input");
}

TEST(GraphText, EveryPartOfANode) {
  const std::string text =
      R"(graph 'odd name' {
  input x: f32[batch, 4] layout(d1/2, d0, d1%2)
  input output: f16[]
  const k: u64[2] = [18446744073709551615, 0]
  const half: f16[2] = [1.5, 65504.0]
  const flags: bool[2] = [1, 0]
  'a b': f32[n + 1, 2 * batch], _, v: f32[] known [1.5] = concat(x, _, output))"
      R"( {a = 1, b = -2.5, c = "s\"", d = [1, -2], e = [0.5, inf], f = ["x", "y"])"
      R"(, g = ints[], h = floats[], i = strings[], 'j k' = const i8[2] = [-1, 2]} with [
    graph then {
      input y: f32[batch]
      z: f32[batch] = relu(y)
      output z
    }
    graph otherwise {
    }
  ] defines(n) from "source" group 7
  = relu(v)
  output x
  output _
}
)";
  const Graph g = parsed(text);
  EXPECT_EQ(to_text(g), text);
  EXPECT_EQ(g.nodes[0].attributes.size(), 10u);
  EXPECT_EQ(g.nodes[0].regions.size(), 2u);
  EXPECT_TRUE(g.nodes[0].regions[0]->values[0].type.dims[0].same_as(g.values[0].type.dims[0]));
}

TEST(GraphText, GraphsBuiltInCodeRoundTrip) {
  Graph g;
  g.name = "built";
  ValueId x = g.add_value("same", {DType::kFloat32, {Var("n"), Expr(4)}});
  g.inputs = {x};
  ValueId w = g.add_constant("same", weights()[0]), w2 = g.add_constant("", g.value(w).constant);
  auto y = add_node(g, "matmul", {x, w}, {}, 1, "same", {"m"});
  auto z = add_node(g, "matmul", {x, w2}, {}, 1, "relu/1", {"m2"});
  ASSERT_TRUE(y.ok() && z.ok());
  g.outputs = {(*y)[0], (*z)[0]};
  g.output_names = {"y", "z"};
  ASSERT_TRUE(verify(g).ok()) << verify(g).error().to_string();
  std::vector<ConstantRef> constants;
  const std::string text = to_text(g, &constants);
  EXPECT_EQ(constants.size(), 1u);  // shared
  const Graph back = parsed(text, constants);
  EXPECT_EQ(to_text(back), text);
  EXPECT_TRUE(verify(back).ok()) << verify(back).error().to_string();
}

TEST(GraphText, ErrorsNamePlaceFoundAndExpected) {
  const std::pair<const char*, const char*> cases[] = {
      {"graph g {\n  y: f32[2] = relu(x)\n}", "2:20: value 'x' is not defined"},
      {"graph g { input x: f32[2] y: f32[2] = frob(x) }", "1:39: unknown operator 'frob'"},
      {"graph g { input x: f32[2] input x: f32[2] }", "1:33: value 'x' is defined twice"},
      {"graph g { const x: f32[2] = #5 }", "1:30: constant #5 is not given"},
      {"graph g { const x: f32[2] = [1.0] }", "1:17: expected 2 elements, found 1"},
      {"graph g { const x: f32[n] = [1.0] }", "expected constant extents"},
      {"graph g { const x: i8[1] = [300] }", "300 is outside the range of i8"},
      {"graph g { const x: f32[1] = [3] }", "expected a number with a fraction, found '3'"},
      {"graph g { input x: f32[2] y: f32[2] = relu(y) }", "the node uses its own output 'y'"},
      {"graph g { input x: f32[2] y: f32[2] = relu(x) {a = []} }",
       "an empty list is written ints[]"},
      {"graph g { input x: f32[2] y: f32[2] = relu(x) {a = 1, a = 2} }",
       "attribute 'a' is given twice"},
      {"graph g { input x: f32[2", "expected ',', found the end"},
      {"", "1:1: expected 'graph', found the end"},
  };
  for (const auto& [text, phrase] : cases) expect_phrase(parse_error(text), phrase);
  std::string deep;
  for (int n = 0; n < 100000; ++n) deep += "graph g { = relu() with [ ";
  expect_phrase(parse_error(deep), "nesting");
}

// As for kernels: valid texts with random changes.
TEST(GraphText, GarbageIsAnErrorNeverACrash) {
  std::mt19937 random(11);
  const std::string text = kMlp;
  for (int n = 0; n < 5000; ++n) {
    std::string broken = text;
    for (int times = random() % 3; times >= 0; --times) {
      const size_t at = random() % broken.size();
      switch (random() % 3) {
        case 0: broken.erase(at, random() % 8 + 1); break;
        case 1: broken[at] = static_cast<char>(random() % 96 + 32); break;
        default: broken.insert(at, text.substr(random() % text.size(), random() % 12)); break;
      }
      if (broken.empty()) broken = " ";
    }
    Result<Graph> g = parse_graph(broken, weights());
    if (!g.ok()) continue;
    const std::string once = to_text(*g);
    std::vector<ConstantRef> constants;
    to_text(*g, &constants);
    EXPECT_EQ(to_text(parsed(once, constants)), once);
    (void)verify(*g, GraphStage::kImported);
  }
}

std::string violations(const Graph& g, GraphStage stage = GraphStage::kTyped) {
  Status s = verify(g, stage);
  return s.ok() ? "" : s.error().to_string();
}

TEST(VerifyGraph, GoodGraphPasses) { EXPECT_EQ(violations(parsed(kMlp, weights())), ""); }

// A graph that breaks it, and words of the message.
TEST(VerifyGraph, EachRule) {
  const Graph good = parsed(kMlp, weights());
  auto expect = [&](const std::string& phrase, auto&& break_it) {
    Graph g = good;
    break_it(g);
    expect_phrase(violations(g), phrase);
  };
  const ValueId x = good.inputs[0], h = good.nodes[0].outputs[0];
  expect("operand 0 is value 99 of 6", [](Graph& g) { g.nodes[0].inputs[0] = 99; });
  expect("an output of the graph is value -1", [](Graph& g) { g.outputs[0] = kNone; });
  expect("operand 0 is 'h', which is not defined before",
         [](Graph& g) { std::swap(g.nodes[0], g.nodes[1]); });
  expect("value 'h' is defined more than once", [&](Graph& g) { g.nodes[1].outputs[0] = h; });
  expect("value 'x' is defined more than once", [&](Graph& g) { g.inputs.push_back(x); });
  expect("value 'h' states the producer 5, found 0", [&](Graph& g) { g.value(h).producer = 5; });
  expect("2 outputs have 1 names", [](Graph& g) { g.output_names.pop_back(); });
  expect("there is no operator", [](Graph& g) { g.nodes[0].op = nullptr; });
  expect("the required operand 'b' is absent", [](Graph& g) { g.nodes[0].inputs.pop_back(); });
  expect("the required operand 'a' is absent", [](Graph& g) { g.nodes[0].inputs[0] = kNone; });
  expect("found 5 operands, expected at most 4", [&](Graph& g) { g.nodes[0].inputs.resize(5, x); });
  expect("found 2 outputs, expected at most 1",
         [](Graph& g) { g.nodes[0].outputs.push_back(kNone); });
  expect("the first output is absent", [](Graph& g) { g.nodes[0].outputs[0] = kNone; });
  expect("node 0 (matmul 'fc1'): attribute 'color' is not one of the operator's",
         [](Graph& g) { g.nodes[0].attributes["color"] = int64_t{1}; });
  expect("attribute 'axis' is a string, expected an int",
         [](Graph& g) { g.nodes[1].attributes["axis"] = std::string("last"); });
  expect("a region is missing", [](Graph& g) { g.nodes[1].regions.push_back(nullptr); });
  expect("'x' has an extent of type f32, expected i64",
         [&](Graph& g) { g.value(x).type.dims[1] = float_imm(4); });
  expect("'x' has the negative extent -4", [&](Graph& g) { g.value(x).type.dims[1] = Expr(-4); });
  expect("the layout of 'h' does not fit its rank",
         [&](Graph& g) { g.value(h).layout = {{5, 1, 0}}; });
  expect("'n' of type i64[2] has 1 known elements",
         [](Graph& g) { g.value(g.outputs[1]).known->pop_back(); });
  expect("'w' has type f32[4, 7], its constant f32[4, 6]",
         [](Graph& g) { g.value(1).type.dims[1] = Expr(7); });
  expect("constant of 8 bytes, which do not fit its shape [4, 6]", [](Graph& g) {
    auto c = std::make_shared<Constant>(*g.value(1).constant);
    c->bytes = 8;
    g.value(1).constant = c;
  });
  expect("names the symbol 'm', which no input and no earlier node defines",
         [&](Graph& g) { g.value(h).type.dims[0] = Var("m"); });
  expect("'h' has type f32[batch, 7], inferred is f32[batch, 6]",
         [&](Graph& g) { g.value(h).type.dims[1] = Expr(7); });
  expect("'h' has type f16[batch, 6], inferred is f32[batch, 6]",
         [&](Graph& g) { g.value(h).type.dtype = DType::kFloat16; });
  expect("matmul 'fc1'", [&](Graph& g) {
    g.value(x).type.dims[1] = Expr(5);
  });  // the operator refuses its operands

  // Values that others read in place.
  const auto turned = [](Value& v) { v.layout = {{1, 1, 0}, {0, 1, 0}}; };
  expect("'x' is laid out as layout(d1, d0), expected row-major",
         [&](Graph& g) { turned(g.value(x)); });
  expect("is laid out as layout(d1, d0), expected row-major",
         [&](Graph& g) { turned(g.value(g.outputs[0])); });
  expect("'h' is laid out as layout(d1, d0), expected row-major", [&](Graph& g) {
    turned(g.value(h));
    g.nodes[1].regions.push_back(std::make_shared<Graph>(good));
  });

  Graph region = good;
  auto inner = std::make_shared<Graph>(good);
  inner->name = "inner";
  inner->outputs.push_back(99);
  region.nodes[1].regions.push_back(inner);
  expect_phrase(violations(region), "graph 'inner', outputs: an output of the graph is value 99");

  Graph untyped = good;
  untyped.value(h).type.dims = {Var("unknown")};
  EXPECT_EQ(violations(untyped, GraphStage::kImported), "");
}

// Checked indices lie in the memory of those that they check.
TEST(VerifyGraph, ChecksKeepTheLayoutOfIndices) {
  constexpr const char* kChecked = R"(graph g {
  input x: i64[3, 4]
  y: i64[3, 4] layout(d1, d0) = identity(x)
  f: u64[1] = farthest_index(x) {extents = extents[5]}
  c: i64[3, 4] layout(d1, d0) = checked_indices(y, f) {dim = 0, extents = extents[5], node = "n"}
  z: i64[3, 4] = identity(c)
  output z as "z"
}
)";
  const Graph good = parsed(kChecked);
  EXPECT_EQ(violations(good), "");
  Graph broken = good;
  broken.value(broken.nodes[2].outputs[0]).layout.clear();
  expect_phrase(violations(broken), "in whose memory it lies");
  broken = good;
  broken.value(broken.nodes[0].outputs[0]).layout.clear();
  expect_phrase(violations(broken), "in whose memory it lies");
}

}  // namespace
}  // namespace tilewright::ir
