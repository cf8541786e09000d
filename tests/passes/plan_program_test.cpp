// What follows from a plan: kernels that read their numbers, what must hold of extents, the blocks
// of control flow, and how long buffers live.
#include "ir/module_text/parser_program.h"
#include "ir/module_text/printer_program.h"
#include "ir/text/printer_loops.h"
#include "tests/passes/plan_check.h"

namespace tilewright::passes {
namespace {

constexpr size_t kAll = 5;

// y = x * s + o, twice, by these constants.
std::string scaled_twice(const std::string& s0, const std::string& o0, const std::string& s1,
                         const std::string& o1, const std::string& op = "mul") {
  std::string lines = "  input x: f32[8]\n  input w: f32[8]\n";
  const std::string numbers[] = {s0, o0, s1, o1}, names[] = {"s0", "o0", "s1", "o1"};
  for (size_t i = 0; i < 4; ++i)
    lines += "  const " + names[i] + ": f32[] = [" + numbers[i] + "]\n";
  for (const std::string i : {"0", "1"})
    lines += "  m" + i + ": f32[8] = " + op + "(" + (i == "0" ? "x" : "w") + ", s" + i +
             ") group " + i + "\n  y" + i + ": f32[8] = add(m" + i + ", o" + i + ") group " + i +
             "\n  output y" + i + " as \"y" + i + "\"\n";
  return lines;
}
void expect_steps(const std::string& lines, const std::string& steps) {
  SCOPED_TRACE(lines);
  EXPECT_EQ(PlannedGraph(lines, kAll).text(), steps);
}

// The numbers that differ are operands; equal ones stay in the code.
TEST(ShareKernels, NumbersThatDifferAreRead) {
  expect_steps(scaled_twice("2.5", "7.0", "1.5", "7.0"),
               "  kernel mul_add (x, s0) -> (y0)\n  kernel mul_add (w, s1) -> (y1)\n");
  expect_steps(scaled_twice("2.5", "7.0", "1.5", "9.0"),
               "  kernel mul_add (x, s0, o0) -> (y0)\n  kernel mul_add (w, s1, o1) -> (y1)\n");
  expect_steps(scaled_twice("2.5", "7.0", "2.5", "7.0"),
               "  kernel mul_add (x) -> (y0)\n  kernel mul_add (w) -> (y1)\n");
}
// Code leaves out products with 1 and sums with 0, and multiplies where powers of two divide.
TEST(ShareKernels, NumbersThatSimplifyStay) {
  expect_steps(scaled_twice("1.0", "7.0", "1.5", "7.0"),
               "  kernel mul_add (x) -> (y0)\n  kernel mul_add (w) -> (y1)\n");
  expect_steps(scaled_twice("2.5", "0.0", "2.5", "9.0"),
               "  kernel mul_add (x) -> (y0)\n  kernel mul_add (w) -> (y1)\n");
  expect_steps(scaled_twice("0.5", "7.0", "1.5", "7.0", "div"),
               "  kernel div_add (x) -> (y0)\n  kernel div_add (w) -> (y1)\n");
  expect_steps(scaled_twice("0.7", "7.0", "1.5", "7.0", "div"),
               "  kernel div_add (x, s0) -> (y0)\n  kernel div_add (w, s1) -> (y1)\n");
}
// An exponent decides what code there is.
TEST(ShareKernels, OtherOperatorsKeepTheirNumbers) {
  expect_steps(scaled_twice("2.5", "7.0", "1.5", "7.0", "pow"),
               "  kernel pow_add (x) -> (y0)\n  kernel pow_add (w) -> (y1)\n");
}

std::string requirements(const std::string& lines) {
  const PlannedGraph planned(lines, kAll);
  std::string all;
  for (const PlanStep& s : planned.plan->steps)
    for (const ir::Requirement& r : s.requirements)
      all += ir::to_text(r.a) + " " + std::string(ir::name(r.relation)) + " " + ir::to_text(r.b) +
             "; ";
  return all;
}
// What types say follows from nothing else, and what is equal is named equally.
TEST(PlanRequirements, ExtentsThatMustAgree) {
  EXPECT_EQ(requirements(R"(  input x: f32[m, k]
  input w: f32[j, 5]
  y: f32[m, 5] = matmul(x, w)
  output y as "y"
)"),
            "k equals j; ");
  EXPECT_EQ(requirements(R"(  input x: f32[m, k]
  input w: f32[k, 5]
  y: f32[m, 5] = matmul(x, w)
  output y as "y"
)"),
            "");
  EXPECT_EQ(requirements(R"(  input x: f32[m]
  input w: f32[4]
  y: f32[m] = relu(x) group 0
  z: f32[4] = neg(w) group 1
  output y as "y"
  output z as "z"
)"),
            "");
}

// The blocks of a program, without its kernels.
std::string blocks_of(const std::string& lines) {
  auto g = ir::parse_graph("graph g {\n" + lines + "}\n");
  EXPECT_TRUE(g.ok()) << g.error().to_string();
  LowerOptions options;
  options.schedule = false;
  auto program = lower(std::move(*g), options);
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  if (!program.ok()) return "";
  const std::string text = to_text(*program);
  return text.substr(text.find("  block {"));
}
TEST(PlanControlFlow, BranchesWriteTheResultsOfTheIf) {
  EXPECT_EQ(blocks_of(R"(  input c: bool[]
  input x: f32[3]
  y: f32[3], z: f32[3] = if(c, x) with [
    graph then {
      input v: f32[3]
      w: f32[3] = neg(v)
      output w as "w"
      output v as "v"
    }
    graph otherwise {
      input v: f32[3]
      w: f32[3] = exp(v)
      output w as "w"
      output w as "u"
    }
  ]
  output y as "y"
  output z as "z"
)"),
            R"(  block {
    if b0 then 1 else 2
  }
  block {
    call 0(b1, b2) profile 0
    copy b3 = b1
  }
  block {
    call 1(b1, b2) profile 1
    copy b3 = b2
  }
}
)");
}

// First and last use of each buffer, as set_lifetimes finds them.
std::string lives_of(const std::string& lines) {
  auto program = ir::parse_program("program p standard {\n" + lines + "}\n", {});
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  if (!program.ok()) return "";
  std::string lives;
  for (const ir::ProgramBuffer& b : set_lifetimes(std::move(*program)).buffers)
    lives += std::to_string(b.first_use) + ".." + std::to_string(b.last_use) + " ";
  return lives;
}
const std::string kBuffers = R"(  input b0 "x": f32[4] elements 4 live 7..7
  output b1 "y": f32[4] elements 4 live 7..7
  temporary b2 "t": f32[4] elements 4 live 7..7
  temporary b3 "v": f32[2, 2] elements 4 of b2 live 7..7
  temporary b4 "u": f32[4] elements 4 live 7..7
  input b5 "c": bool[] elements 1 live 7..7
  inputs(b0, b5)
  outputs(b1)
)";
// From the first instruction that names a buffer, or a view of it, to the last; results to the end.
TEST(SetLifetimes, FirstAndLastUse) {
  EXPECT_EQ(lives_of(kBuffers + R"(  block {
    copy b1 = b0
    copy b2 = b0
    copy b4 = b2
    copy b4 = b3
    copy b4 = b0
  }
)"),
            "0..4 0..4 1..3 1..3 2..4 0..0 ");
}
// What a branch uses lives while the instruction of the main block runs.
TEST(SetLifetimes, BranchesCountAtTheirInstruction) {
  EXPECT_EQ(lives_of(kBuffers + R"(  block {
    copy b2 = b0
    if b5 then 1 else 2
    copy b1 = b0
  }
  block {
    copy b4 = b3
  }
  block {
    if b5 then 1 else 1
  }
)"),
            "0..2 2..2 0..1 0..1 1..1 1..1 ");
}

// The lines of the main block, and how many kernels have a parameter less.
std::string updated_program(const std::string& lines) {
  auto graph = ir::parse_graph("graph g {\n" + lines + "}\n", std::vector<ir::ConstantRef>{});
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  if (!graph.ok()) return "";
  auto program = lower(std::move(*graph), LowerOptions{});
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  if (!program.ok()) return "";
  std::string text = std::to_string(program->outputs.size()) + " outputs;";
  for (const ir::ProgramInstruction& i : program->blocks[0]) {
    if (const auto* c = std::get_if<ir::CallInstruction>(&i))
      text += " call of " + std::to_string(c->buffers.size()) + ";";
    if (std::holds_alternative<ir::CopyInstruction>(i)) text += " copy;";
  }
  return text;
}
constexpr char kStep[] = R"(  input g: f32[32]
  input p: f32[32]
)";
// Element by element, new values go where old ones were.
TEST(UpdateInPlace, ByElement) {
  EXPECT_EQ(updated_program(std::string(kStep) + R"(  q: f32[32] = sub(p, g)
  output q as "q" updates p
)"),
            "0 outputs; call of 2;");
}
// Each part goes where its old one was, after all that read this: the product that stands behind the update here.
TEST(UpdateInPlace, PartByPart) {
  const std::string parts = R"(  input g: f32[4, 16]
  input p: f32[96]
  const a: i64[1] = [0]
  const b: i64[1] = [64]
  const c: i64[1] = [96]
  const s: i64[2] = [4, 16]
  const n: i64[1] = [64]
  u: f32[64] = slice(p, a, b, a)
  w: f32[4, 16] = reshape(u, s)
  v: f32[32] = slice(p, b, c, a)
  d: f32[4, 16] = sub(w, g)
  e: f32[32] = exp(v)
  f: f32[64] = reshape(d, n)
  q: f32[96] = concat(f, e) {axis = 0}
  r: f32[4, 4] = matmul(g, w) {trans_b = 1}
  output q as "q" updates p
  output r as "r"
)";
  EXPECT_EQ(updated_program(parts), "1 outputs; call of 1; call of 3; call of 2;");
}
// What another one still needs cannot wait for it: it is copied.
TEST(UpdateInPlace, PartsThatAreStillRead) {
  const std::string text = updated_program(R"(  input p: f32[64]
  const a: i64[1] = [0]
  const b: i64[1] = [32]
  const c: i64[1] = [64]
  u: f32[32] = slice(p, a, b, a)
  v: f32[32] = slice(p, b, c, a)
  d: f32[32] = exp(u)
  e: f32[32] = exp(v)
  q: f32[64] = concat(e, d) {axis = 0}
  output q as "q" updates p
)");
  EXPECT_NE(text.find("copy;"), std::string::npos) << text;
}
// Parts that begin amid a line are stored by kernels that have all of the result: it is copied as a whole.
TEST(UpdateInPlace, PartsThatHaveNoMemoryOfTheirOwn) {
  const std::string text = updated_program(R"(  input g: f32[17]
  input p: f32[50]
  const a: i64[1] = [17]
  const b: i64[1] = [50]
  const c: i64[1] = [0]
  u: f32[33] = slice(p, a, b, c)
  d: f32[17] = exp(g)
  e: f32[33] = exp(u)
  q: f32[50] = concat(d, e) {axis = 0}
  output q as "q" updates p
)");
  EXPECT_TRUE(text.ends_with(" copy;")) << text;
}
// Other elements are still wanted when one is stored.
TEST(UpdateInPlace, OtherwiseCopied) {
  EXPECT_EQ(
      updated_program(std::string(kStep) + R"(  s: f32[1] = reduce_sum(p) {axes = [0], keepdims = 1}
  q: f32[32] = sub(g, s)
  output q as "q" updates p
)"),
      "0 outputs; call of 2; call of 3;");
  EXPECT_EQ(updated_program(R"(  input g: f32[32]
  input p: f32[32]
  input r: f32[32]
  output p as "a" updates r
  output r as "b" updates p
  output p as "old"
)"),
            "1 outputs; copy; copy; copy; copy; copy;");
}

}  // namespace
}  // namespace tilewright::passes
