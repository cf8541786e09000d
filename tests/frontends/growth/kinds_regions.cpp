#include "tests/frontends/growth/kinds.h"

namespace tilewright::growth {

namespace {

// A chain of n operators and the value that it begins with.
std::string chain(GraphMaker& g, std::string t, int n) {
  for (int i = 0; i < n; ++i) t = g.node(i % 2 ? "Tanh" : "Neg", {t});
  return t;
}
// If in the branches of If.
void nest(GraphMaker& g, const std::string& condition, const std::string& x, int depth) {
  if (depth == 0) return g.output(g.node("Neg", {x}));
  const std::string y = g.node("If", {condition});
  GraphMaker then = g.body("then_branch");
  nest(then, condition, then.node("Tanh", {x}), depth - 1);
  GraphMaker other = g.body("else_branch");
  other.output(other.node("Relu", {x}));
  g.output(y);
}
void nested_ifs(GraphMaker& g, int n) { nest(g, g.input({}, kBool), g.input({16}), n); }

void ifs(GraphMaker& g, int n) {
  std::string t = g.input({16});
  const std::string condition = g.input({}, kBool);
  for (int i = 0; i < n; ++i) {
    const std::string y = g.node("If", {condition});
    for (const char* name : {"then_branch", "else_branch"}) {
      GraphMaker branch = g.body(name);
      branch.output(branch.node(*name == 't' ? "Tanh" : "Neg", {t}));
    }
    t = y;
  }
  g.output(t);
}
// The body of a loop: its inputs, and what it carries out.
GraphMaker loop(GraphMaker& g, std::string* result, std::string* carried, const std::string& x) {
  *result = g.node("Loop", {g.integer(3), "", x});
  GraphMaker body = g.body("body");
  body.input({}, kI64);
  const std::string go_on = body.input({}, kBool);
  *carried = body.input({16});
  body.output(body.node("Identity", {go_on}), kBool);
  return body;
}
void loop_body(GraphMaker& g, int n) {
  std::string result, carried;
  GraphMaker body = loop(g, &result, &carried, g.input({16}));
  body.output(chain(body, carried, n));
  g.output(result);
}
void loops(GraphMaker& g, int n) {
  std::string t = g.input({16});
  for (int i = 0; i < n; ++i) {
    std::string result, carried;
    GraphMaker body = loop(g, &result, &carried, t);
    body.output(chain(body, carried, 2));
    t = result;
  }
  g.output(t);
}
void nest_loops(GraphMaker& g, const std::string& x, int depth) {
  std::string result, carried;
  GraphMaker body = loop(g, &result, &carried, x);
  if (depth > 1)
    nest_loops(body, body.node("Tanh", {carried}), depth - 1);
  else
    body.output(body.node("Neg", {carried}));
  g.output(result);
}
void nested_loops(GraphMaker& g, int n) { nest_loops(g, g.input({16}), n); }

void scan_body(GraphMaker& g, int n) {
  const Names out =
      g.nodes("Scan", {g.input({16}), g.input({4, 16})}, 2, {{"num_scan_inputs", int64_t{1}}});
  GraphMaker body = g.body("body");
  const std::string state = body.input({16}), slice = body.input({16});
  const std::string next = chain(body, body.node("Add", {state, slice}), n);
  body.output(next);
  body.output(body.node("Relu", {next}));
  g.output(out[0]);
  g.output(out[1]);
}
void sequences(GraphMaker& g, int n) {
  std::string all = g.node("SequenceEmpty", {});
  for (const std::string& x : g.inputs(n, {4}))
    all = g.node("SequenceInsert", {all, g.node("Tanh", {x})});
  g.output(g.node("ConcatFromSequence", {all}, {{"axis", int64_t{0}}}));
}

}  // namespace

std::span<const Kind> regions() {
  static constexpr Kind kKinds[] = {
      {"nested_ifs", nested_ifs, 10, 40},     {"ifs", ifs, 25},
      {"loop_body", loop_body, 20},           {"loops", loops, 15},
      {"nested_loops", nested_loops, 10, 40}, {"scan_body", scan_body, 20},
      {"sequences", sequences, 20},
  };
  return kKinds;
}

}  // namespace tilewright::growth
