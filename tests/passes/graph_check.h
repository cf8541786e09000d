// What tests of graph passes share: graphs and constants from text, and the comparison of graphs by
// what they compute.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "ir/graph/op.h"
#include "ir/module_text/parser_graph.h"
#include "ir/module_text/printer_graph.h"
#include "ir/verify_graph.h"
#include "passes/graph/graph_passes.h"
#include "tests/passes/kernel_run.h"

namespace tilewright::passes {

// The graph of these lines; `#n` in them is constants[n].
inline ir::Graph parsed_graph(const std::string& lines,
                              const std::vector<ir::ConstantRef>& constants = {}) {
  auto g = ir::parse_graph("graph g {\n" + lines + "}\n", constants);
  EXPECT_TRUE(g.ok()) << g.error().to_string() << "\n" << lines;
  if (!g.ok()) return {};
  auto verified = ir::verify(*g);
  EXPECT_TRUE(verified.ok()) << verified.error().to_string();
  return *g;
}

// A constant whose elements are written out, for types of 8 bits.
inline ir::ConstantRef bytes(DType dtype, Shape shape, std::vector<uint8_t> values) {
  return ir::make_constant(dtype, std::move(shape), std::move(values));
}
// Elements over the whole range of an 8-bit type.
inline ir::ConstantRef random_bytes(DType dtype, const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> values(static_cast<size_t>(*element_count(shape)));
  for (uint8_t& v : values) v = static_cast<uint8_t>(random());
  return bytes(dtype, shape, std::move(values));
}

// The text between a graph's braces, and its nodes alone: what neither names nor outputs say.
inline std::string lines_of(const ir::Graph& g) {
  const std::string text = ir::to_text(g);
  const size_t begin = text.find('\n') + 1;
  return text.substr(begin, text.rfind('}') - begin);
}
inline std::string nodes_of(const ir::Graph& g) {
  std::istringstream lines(lines_of(g));
  std::string nodes;
  for (std::string line; std::getline(lines, line);)
    if (line.rfind("  input ", 0) != 0 && line.rfind("  const ", 0) != 0 &&
        line.rfind("  output ", 0) != 0)
      nodes += line + "\n";
  return nodes;
}

// Floats up to the rounding of sums in another order, integers exactly.
inline void expect_same_graph_results(const ir::Graph& before, const ir::Graph& after) {
  auto verified = ir::verify(after);
  ASSERT_TRUE(verified.ok()) << verified.error().to_string() << "\n" << ir::to_text(after);
  auto expected = run_graph(before), found = run_graph(after);
  ASSERT_TRUE(expected.ok()) << expected.error().to_string();
  ASSERT_TRUE(found.ok()) << found.error().to_string() << "\n" << ir::to_text(after);
  expect_close(*found, *expected);
  for (size_t p = 0; p < after.outputs.size() && p < found->size(); ++p)
    if (!is_float(after.value(after.outputs[p]).type.dtype)) {
      EXPECT_EQ((*found)[p], (*expected)[p]) << ir::to_text(after);
    }
}
// Expects the nodes of `after` as text, and that both graphs compute the same.
inline void expect_graph(const ir::Graph& before, const ir::Graph& after,
                         const std::string& lines) {
  expect_same_graph_results(before, after);
  EXPECT_EQ(ir::to_text(after), "graph g {\n" + lines + "}\n");
}

}  // namespace tilewright::passes
