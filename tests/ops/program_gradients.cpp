#include "tests/ops/program_gradients.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/module_text/parser_graph.h"
#include "passes/graph/differentiate.h"
#include "runtime/session.h"

namespace tilewright {

using ir::ValueId;

namespace {

// A graph that is compiled once and run often.
class Program {
 public:
  explicit Program(const ir::Graph& graph, const CompiledForm& form = {}) {
    auto executable = compile_graph(graph, form);
    if (!executable.ok()) {
      ADD_FAILURE() << executable.error().to_string();
      return;
    }
    auto session = Session::create(*executable, SessionOptions{});
    if (session.ok()) session_ = std::move(session).value();
  }
  Tensors run(const Tensors& inputs) {
    std::vector<Tensor> given, outputs;
    for (const HostTensor& t : inputs)
      given.push_back(Tensor::borrow(t.dtype, t.shape, const_cast<uint8_t*>(t.bytes.data())));
    if (!session_) return {};
    if (Status s = session_->run(given, outputs); !s.ok()) {
      ADD_FAILURE() << s.error().to_string();
      return {};
    }
    Tensors results;
    for (const Tensor& t : outputs) {
      HostTensor& copy = results.emplace_back(t.dtype(), t.shape());
      if (!copy.bytes.empty()) std::memcpy(copy.bytes.data(), t.data(), copy.bytes.size());
    }
    return results;
  }

 private:
  std::unique_ptr<Session> session_;
};

}  // namespace

Tensors checked_gradients(const std::string& text, const Tensors& inputs) {
  auto graph = ir::parse_graph(text);
  if (!graph.ok()) {
    ADD_FAILURE() << graph.error().to_string();
    return {};
  }
  Program forward(*graph);
  const ValueId loss = graph->outputs[0];
  std::vector<ValueId> of;
  std::vector<size_t> places;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!is_float(inputs[i].dtype)) continue;
    of.push_back(graph->inputs[i]);
    places.push_back(i);
  }
  const auto found = passes::differentiate(*graph, loss, of);
  if (!found.ok()) {
    ADD_FAILURE() << found.error().to_string();
    return {};
  }
  graph->outputs = *found;
  graph->output_names.assign(found->size(), "gradient");
  const Tensors gradients = Program(*graph).run(inputs),
                plain = Program(*graph, {false, false}).run(inputs);
  if (gradients.size() != of.size() || plain.size() != of.size()) return {};
  for (size_t n = 0; n < of.size(); ++n) {
    const HostTensor& g = gradients[n];
    EXPECT_EQ(g.shape, inputs[places[n]].shape);
    for (int64_t k = 0; k < g.size(); ++k) {
      double slopes[2];
      for (int half : {0, 1}) {
        const double h = half ? 5e-4 : 1e-3;
        double sides[2] = {};
        for (int side : {0, 1}) {
          Tensors moved = inputs;
          moved[places[n]].data<double>()[k] += side ? h : -h;
          const Tensors y = forward.run(moved);
          if (y.empty()) return {};
          sides[side] = element(y[0], 0);
        }
        slopes[half] = (sides[1] - sides[0]) / (2 * h);
      }
      const double expected = (4 * slopes[1] - slopes[0]) / 3;
      EXPECT_NEAR(element(g, k), expected, 1e-6 * std::max(1.0, std::abs(expected)))
          << "operand " << places[n] << ", element " << k;
      EXPECT_NEAR(element(plain[n], k), element(g, k), 1e-12 * std::max(1.0, std::abs(expected)));
    }
  }
  return gradients;
}

}  // namespace tilewright
