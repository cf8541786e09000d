// What tests of plans share: the plan of a graph's text after some of the passes, and parts of its
// text.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "ir/module_text/parser_graph.h"
#include "ir/verify_graph.h"
#include "passes/lower.h"
#include "passes/planner.h"

namespace tilewright::passes {

// A plan and the graph that it is of.
class PlannedGraph {
 public:
  // The first `passes` of plan_passes() have run, and what they left obeys the rules of plans.
  PlannedGraph(const std::string& lines, size_t passes,
               const std::vector<ir::ConstantRef>& constants = {}) {
    auto g = ir::parse_graph("graph g {\n" + lines + "}\n", constants);
    EXPECT_TRUE(g.ok()) << g.error().to_string() << "\n" << lines;
    if (g.ok())
      graph_ = std::make_unique<ir::Graph>(std::move(*g));
    else
      graph_ = std::make_unique<ir::Graph>();
    auto verified = ir::verify(*graph_);
    EXPECT_TRUE(verified.ok()) << verified.error().to_string();
    plan = std::make_unique<GraphPlan>(*graph_, 0);
    Status s = run_pipeline(plan_passes().subspan(0, passes), *plan, LowerOptions{});
    EXPECT_TRUE(s.ok()) << s.error().to_string();
  }
  // The lines between the braces of the plan.
  std::string text() const {
    const std::string all = to_text(*plan);
    const size_t begin = all.find('\n') + 1;
    return all.substr(begin, all.rfind('}') - begin);
  }
  std::unique_ptr<GraphPlan> plan;

 private:
  std::unique_ptr<ir::Graph> graph_;
};

}  // namespace tilewright::passes
