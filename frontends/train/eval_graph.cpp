#include "frontends/train/eval_graph.h"

#include <set>

#include "frontends/train/losses.h"
#include "frontends/train/step_nodes.h"

namespace tilewright::train {

namespace {

using ir::Graph;
using ir::V;
using ir::ValueId;

// The model, whose initialisers in `layouts` are pieces of inputs; `flats` are these.
Result<Graph> import_bound(const OnnxModel& model, const std::vector<const Parameters*>& layouts,
                           const Job& job, std::vector<ValueId>& flats) {
  ImportOptions options;
  TW_RETURN_IF_ERROR(bind_batches(model, job, options));
  options.inference = true;
  options.bind = [&](Graph& graph, bool) {
    StepNodes n(graph, "parameters");
    BoundValues bound;
    flats.clear();
    for (const Parameters* layout : layouts) {
      flats.push_back(n.input("flat" + std::to_string(flats.size()), flat_type(*layout)));
      add_pieces(n, flats.back(), *layout, bound);
    }
    return bound;
  };
  return import_graph(model, options);
}

// How many, i64[].
V count(V hits) {
  std::vector<int64_t> axes;
  for (int k = 0; k < hits.rank(); ++k) axes.push_back(k);
  return ir::reduce("reduce_sum", hits.to(DType::kInt64), axes, false);
}

Result<EvalGraph> build(EvalGraph eval, const std::vector<ValueId>& flats, const Job& job,
                        int64_t rest) {
  Graph& g = eval.graph;
  if (g.outputs.empty()) return invalid("the model has no output");
  const ValueId output = g.outputs[0];
  for (const ValueId v : flats) std::erase(g.inputs, v);
  StepNodes n(g, "evaluation");
  Wanted wanted;  // as of the step
  const Compared all = add_targets(n, output, job, wanted);
  g.inputs.insert(g.inputs.end(), flats.begin(), flats.end());
  const Loss& loss = find_loss(job.loss);
  eval.counts_hits = loss.hits != nullptr;
  g.outputs.clear();
  g.output_names.clear();
  const auto add = [&](const Compared& c, const std::string& name) {
    g.outputs.push_back(loss.loss(c.output, c.targets).id);
    g.output_names.push_back("loss" + name);
    if (!eval.counts_hits) return;
    g.outputs.push_back(count(loss.hits(c.output, c.targets)).id);
    g.output_names.push_back("hits" + name);
  };
  add(all, "");
  const auto& dims = n.type(output).dims;
  if (rest > 0 && (dims.empty() || ir::as_int(dims[0]) != job.part()))
    n.fail("the output is " + to_string(n.type(output)) + ", and the last batch has " +
           std::to_string(rest) + " samples: hold back a multiple of " +
           std::to_string(job.part()));
  if (rest > 0)
    add({{n, n.slice(all.output.id, 0, 0, rest)}, {n, n.slice(all.targets.id, 0, 0, rest)}},
        " of the rest");
  g.name = "evaluation of " + g.name;
  return eval;
}

}  // namespace

// A name that the model does not have is told where the outputs are checked (check_outputs).
Result<WrittenOutputs> written_outputs(const OnnxModel& model, const Job& job) {
  WrittenOutputs written{job.outputs, {}};
  OnnxModel chosen = model;
  chosen.graph.outputs.clear();
  std::set<std::string> there;
  for (const OnnxNode& node : model.graph.nodes)
    there.insert(node.outputs.begin(), node.outputs.end());
  for (const std::string& name : job.outputs)
    if (!name.empty() && there.count(name)) chosen.graph.outputs.push_back({name, {}});
  if (chosen.graph.outputs.empty()) return written;
  ImportOptions options;
  options.inference = true;
  TW_RETURN_IF_ERROR(bind_batches(model, job, options));
  TW_ASSIGN(const Graph graph, import_graph(chosen, options));
  for (size_t k = 0; k < graph.outputs.size(); ++k) {
    const ir::TensorType& type = graph.value(graph.outputs[k]).type;
    OnnxType stated{.kind = OnnxTypeKind::kTensor, .onnx_code = info(type.dtype).onnx_code};
    stated.shape.emplace(static_cast<size_t>(type.rank()));
    written.types.push_back({graph.output_names[k], std::move(stated)});
  }
  return written;
}

Result<EvalGraph> build_evaluation(const OnnxModel& model,
                                   const std::vector<const Parameters*>& layouts, const Job& job,
                                   int64_t rest) {
  std::vector<ValueId> flats;
  EvalGraph eval;
  TW_ASSIGN(eval.graph, import_bound(model, layouts, job, flats));
  try {
    return build(std::move(eval), flats, job, rest);
  } catch (StepFailure& f) { return std::move(f.error); }
}

}  // namespace tilewright::train
