// What types refuse when extents are known, the run refuses when it alone knows them: with an error
// that names the node, never with values. And what they take, it runs as the interpreter does.
#include <gtest/gtest.h>

#include <filesystem>

#include "ir/graph/infer.h"
#include "ir/graph/op.h"
#include "tests/frontends/open_extents.h"
#include "tests/frontends/scratch_folder.h"

namespace tilewright {
namespace {

constexpr int kOpenings =
    4;                       // sets of open extents for each operator, the first of all that can be
constexpr int kShapes = 40;  // runs for each of them

bool is_of_indices(const Error& e) { return e.message.find("index") != std::string::npos; }

// --- operators of the graph --------------------------------------------------------------------

class ExampleCall {
 public:
  explicit ExampleCall(const ir::OpDef& op) : op_(op), example_(op.example) {
    for (const ir::TensorType& t : example_.inputs)
      shapes_.push_back(ir::constant_shape(t).value_or(Shape{}));
  }
  const Shapes& shapes() const { return shapes_; }
  std::vector<Place> places() const {
    std::vector<Place> all;
    for (size_t i = 0; i < shapes_.size(); ++i)
      for (size_t d = 0; !is_constant(i) && d < shapes_[i].size(); ++d) all.push_back({i, d});
    return all;
  }
  // With these shapes, but symbols at the open places.
  Result<ir::Graph> graph(const Shapes& shapes, const std::vector<Place>& open) const {
    ir::Graph g;
    g.name = std::string(op_.name);
    std::vector<ir::ValueId> operands;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const std::string name = "operand" + std::to_string(i);
      if (is_constant(i)) {
        operands.push_back(g.add_constant(name, constant(i)));
        continue;
      }
      ir::TensorType type{example_.inputs[i].dtype, {shapes[i].begin(), shapes[i].end()}};
      for (const Place& p : open)
        if (p.operand == i)
          type.dims[p.dim] = ir::Var("s" + std::to_string(i) + "_" + std::to_string(p.dim));
      operands.push_back(g.add_value(name, std::move(type)));
      g.inputs.push_back(operands.back());
    }
    TW_ASSIGN(g.outputs, ir::add_node(g, op_.name, operands, example_.attributes, example_.outputs,
                                      "result", {"the node"}));
    for (ir::ValueId v : g.outputs) {
      g.output_names.push_back(g.value(v).name);
      for (const ir::Expr& d : g.value(v).type.dims)
        if (ir::as_int(d).value_or(0) < 0) return invalid("a result has less than no elements");
    }
    return g;
  }
  Tensors inputs(const Shapes& shapes, Random& random) const {
    Tensors all;
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (is_constant(i)) continue;
      const DType t = example_.inputs[i].dtype;
      all.push_back(has_values(i) ? repeated(t, shapes[i], example_.values[i])
                                  : random_tensor(t, shapes[i], random));
    }
    return all;
  }

 private:
  bool has_values(size_t i) const {
    return i < example_.values.size() && !example_.values[i].empty();
  }
  bool is_constant(size_t i) const { return has_values(i) && shapes_[i].size() <= 1; }
  ir::ConstantRef constant(size_t i) const {
    const HostTensor t = repeated(example_.inputs[i].dtype, shapes_[i], example_.values[i]);
    return ir::make_constant(t.dtype, t.shape, {t.bytes.begin(), t.bytes.end()});
  }
  const ir::OpDef& op_;
  const ir::OpExample& example_;
  Shapes shapes_;
};

void expect_equal(const Tensors& found, const OracleRun& oracle) {
  ASSERT_EQ(found.size(), oracle.outputs.size());
  for (size_t k = 0; k < found.size(); ++k) {
    const auto d = difference(found[k], oracle.outputs[k]);
    ASSERT_TRUE(d.has_value()) << "output " << k;
    EXPECT_LE(*d, epsilon(found[k].dtype) * (4 + oracle.steps) * std::max(1.0, oracle.largest))
        << "output " << k;
  }
}

// One run; `refused`: by types that know the extents.
void check_run(const ExampleCall& call, const std::shared_ptr<Executable>& executable,
               const Shapes& shapes, bool may_stretch, Random& random) {
  const Tensors inputs = call.inputs(shapes, random);
  const auto known = call.graph(shapes, {});
  for (const int threads : {1, 3}) {
    const auto found = run(executable, inputs, threads);
    if (!known.ok()) {
      if (known.error().kind != ErrorKind::kInvalid) return;
      ASSERT_FALSE(found.ok()) << "values, although: " << known.error().to_string();
      EXPECT_EQ(found.error().kind, ErrorKind::kInvalid) << found.error().to_string();
      EXPECT_NE(found.error().message.find("'the node'"), std::string::npos)
          << found.error().to_string();
      continue;
    }
    if (!found.ok() && (is_of_indices(found.error()) || may_stretch)) return;
    ASSERT_TRUE(found.ok()) << found.error().to_string();
    const auto oracle = interpret_graph(*known, inputs);
    if (!oracle.ok()) return;
    expect_equal(*found, *oracle);
  }
}

class RefusedExtents : public testing::TestWithParam<const ir::OpDef*> {};

TEST_P(RefusedExtents, AreRefusedAtTheRun) {
  const ExampleCall call(*GetParam());
  const ScratchFolder folder;
  Random random(1);
  std::vector<Place> all = call.places();
  if (all.empty()) GTEST_SKIP() << "no extent of the example can be open";
  int opened = 0;
  for (int n = 0; n < 4 * kOpenings && opened < kOpenings; ++n) {
    std::vector<Place> open = all;
    if (n > 0) {
      std::shuffle(open.begin(), open.end(), random);
      open.resize(1 + random() % std::min<size_t>(open.size(), 3));
    }
    const auto graph = call.graph(call.shapes(), open);
    if (!graph.ok()) continue;  // some extents are to be known
    ++opened;
    auto executable = compile_in_memory(*graph, {});
    ASSERT_TRUE(executable.ok()) << executable.error().to_string();
    if (opened == 1) {
      const std::string path = (folder.path() / "model.so").string();
      const Status s = compile_to_file(*graph, {}, path);
      ASSERT_TRUE(s.ok()) << s.error().to_string();
      executable = load_executable(path);
      ASSERT_TRUE(executable.ok()) << executable.error().to_string();
    }
    for (int k = 0; k < kShapes; ++k) {
      const Shapes shapes = k == 0 ? call.shapes() : changed(call.shapes(), open, random);
      SCOPED_TRACE(testing::Message()
                   << open.size() << " open extents, run with " << text_of(shapes));
      const bool may_stretch =
          has_extent_of_one(shapes, open) || has_extent_of_one(call.shapes(), open);
      check_run(call, *executable, shapes, may_stretch, random);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(opened, 0) << "nothing could be open";
}

std::vector<const ir::OpDef*> ops_with_loops() {
  std::vector<const ir::OpDef*> ops;
  for (const ir::OpDef* op : ir::all_ops())
    if (op->compute) ops.push_back(op);
  return ops;
}
INSTANTIATE_TEST_SUITE_P(All, RefusedExtents, testing::ValuesIn(ops_with_loops()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace tilewright
