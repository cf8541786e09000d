// An operator of one's own, from its meaning to a tuned kernel: squared distances between all pairs of
// rows, of which a radial basis function is made. usage: own_operator [DATABASE [SECONDS]]
//   DATABASE  where tuning keeps what it finds; default own_operator.jsonl.  SECONDS: of tuning; default 20
// Exit status 1 when a result differs from what plain loops compute. See 02_own_operator.md.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "frontends/compiler/tune.h"
#include "ir/graph/compute.h"
#include "ir/graph/infer.h"
#include "runtime/profiler.h"
#include "runtime/session.h"

namespace tilewright {
namespace {

constexpr int64_t kPoints = 300, kCentres = 200, kFeatures = 48;

// Types: x [n, k] and centres [m, k] give [n, m].
Status infer_distance(ir::InferContext& c) {
  if (c.rank(0) != 2 || c.rank(1) != 2 || !c.agree(c.dim(0, 1), c.dim(1, 1)))
    return c.error("x is " + to_string(c.type(0)) + ", centres are " + to_string(c.type(1)));
  c.set_output(0, c.type(0).dtype, {c.dim(0, 0), c.dim(1, 0)});
  return {};
}

// Its one meaning: d[i, j] is the sum over k of (x[i, k] - centres[j, k])^2. The interpreter runs this,
// and schedules are found for it.
void compute_distance(ir::ComputeContext& c) {
  c.b.reduce(
      c.out(), {c.dim(0, 1)}, ir::Combiner::kSum,
      [&](const ir::Axes& i, const ir::Axes& k) {
        const ir::Expr d = ir::load(c.in(0), {i[0], k[0]}) - ir::load(c.in(1), {i[1], k[0]});
        return d * d;
      },
      "distance");
}

const ir::OpDef kDistance{.name = "squared_distance",
                          .summary = "squared distances between rows of x and of centres",
                          .operands = {{"x"}, {"centres"}},
                          .fusion = ir::FusionKind::kReduction,
                          .infer_type = infer_distance,
                          .compute = compute_distance};

// exp(-squared_distance(x, centres)): the two operators around it are the house's.
Result<ir::Graph> build() {
  ir::Graph g;
  g.name = "radial_basis";
  g.inputs = {g.add_value("x", {DType::kFloat32, {kPoints, kFeatures}}),
              g.add_value("centres", {DType::kFloat32, {kCentres, kFeatures}})};
  TW_ASSIGN(const auto d, ir::add_node(g, &kDistance, g.inputs, {}, 1, "d", {"distance"}));
  TW_ASSIGN(const auto n, ir::add_node(g, "neg", d, {}, 1, "n", {"minus"}));
  TW_ASSIGN(g.outputs, ir::add_node(g, "exp", n, {}, 1, "y", {"exp"}));
  g.output_names = {"y"};
  return g;
}

Result<Tensor> numbers(const Shape& shape, float step) {
  TW_ASSIGN(Tensor t, Tensor::allocate(DType::kFloat32, shape));
  for (int64_t i = 0; i < t.element_count(); ++i)
    t.data_as<float>()[i] = 0.25f * std::sin(step * static_cast<float>(i));
  return t;
}

// The largest relative difference from plain loops in double precision.
double worst_error(const Tensor& x, const Tensor& centres, const Tensor& y) {
  double worst = 0;
  for (int64_t i = 0; i < kPoints; ++i)
    for (int64_t j = 0; j < kCentres; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < kFeatures; ++k) {
        const double d = double{x.data_as<float>()[i * kFeatures + k]} -
                         double{centres.data_as<float>()[j * kFeatures + k]};
        sum += d * d;
      }
      const double right = std::exp(-sum), found = y.data_as<float>()[i * kCentres + j];
      worst = std::max(worst, std::abs(found - right) / right);
    }
  return worst;
}

// Microseconds of the fastest of some runs; the results are those of the last.
Result<double> time(std::shared_ptr<Executable> executable, const std::vector<Tensor>& inputs,
                    std::vector<Tensor>& outputs) {
  TW_ASSIGN(const auto session, Session::create(std::move(executable), {.threads = 1}));
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int run = 0; run < 200; ++run) {
    const int64_t start = now_nanoseconds();
    TW_RETURN_IF_ERROR(session->run(inputs, outputs));
    least = std::min(least, now_nanoseconds() - start);
  }
  return static_cast<double>(least) * 1e-3;
}

Status show(const std::string& database, double seconds) {
  TW_ASSIGN(const ir::Graph graph, build());
  TW_ASSIGN(Tensor x, numbers({kPoints, kFeatures}, 0.37f));
  TW_ASSIGN(Tensor centres, numbers({kCentres, kFeatures}, 0.73f));
  const std::vector<std::vector<Tensor>> inputs{{x, centres}};
  // A sum of so many squares in float, and an exponential of it.
  const double tolerance = 1e-6 * kFeatures;
  std::vector<Tensor> outputs;
  CompileOptions options;
  const auto measure = [&](const char* what) -> Status {
    TW_ASSIGN(const auto executable, compile_in_memory(ir::Graph(graph), options));
    TW_ASSIGN(const double us, time(executable, inputs[0], outputs));
    const double error = worst_error(x, centres, outputs[0]);
    std::printf("%-8s %8.1f us, relative error %.1e\n", what, us, error);
    return error < tolerance ? Status() : invalid("the result is wrong");
  };
  TW_RETURN_IF_ERROR(measure("default"));
  options.database = database;
  TW_ASSIGN(const autotune::TuneResult result, tune(graph, inputs, options, {.seconds = seconds}));
  std::printf("%zu candidates measured in %.0f s, ratio %.3f\n", result.progress.trials,
              result.progress.seconds, result.runs.ratio);
  return measure("tuned");
}

}  // namespace
}  // namespace tilewright

int main(int argc, char** argv) {
  const tilewright::Status status = tilewright::show(
      argc > 1 ? argv[1] : "own_operator.jsonl", argc > 2 ? std::max(0.5, std::atof(argv[2])) : 20);
  if (!status.ok()) std::fprintf(stderr, "own_operator: %s\n", status.error().to_string().c_str());
  return status.ok() ? 0 : 1;
}
