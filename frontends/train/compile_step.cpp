#include "frontends/train/compile_step.h"

#include <nlohmann/json.hpp>

#include "frontends/train/step_graph.h"
#include "frontends/train/step_nodes.h"
#include "runtime/core/write_file.h"

namespace tilewright::train {

namespace {

// Constants: what the model's initialisers hold.
ir::Graph start_graph(const OnnxModel& model, const StepGraph& step) {
  ir::Graph graph;
  graph.name = "start of the " + step.graph.name;
  StepNodes n(graph, "start");
  for (const State& s : step.states) {
    if (s.name != kParameters && s.name != kStatistics) continue;
    std::vector<float> start(static_cast<size_t>(s.members->elements));
    put_initial_values(model, *s.members, start.data());
    graph.outputs.push_back(
        n.constant(ir::make_constant_of(DType::kFloat32, {s.members->elements}, start)));
    graph.output_names.push_back(s.name);
  }
  return graph;
}

std::filesystem::path beside(const std::filesystem::path& path, const std::string& what) {
  std::filesystem::path other = path;
  return other.replace_filename(path.stem().string() + what);
}

// Of the flat buffers that the step reads and gives: where each tensor begins, and its dimensions as they lie,
// outermost first.
Status write_state(const Job& job, const StepGraph& step, const Trained& trained,
                   const std::filesystem::path& path) {
  using Json = nlohmann::ordered_json;
  Json all;
  const auto add = [&](const std::string& name, const Parameters& members) {
    Json tensors = Json::array();
    for (const Parameter& p : members.members) {
      std::vector<int> order = p.order;
      for (size_t d = 0; p.order.empty() && d < p.shape.size(); ++d)
        order.push_back(static_cast<int>(d));
      tensors.push_back(
          {{"name", p.name}, {"shape", p.shape}, {"offset", p.offset}, {"order", order}});
    }
    all[name] = {{"dtype", "f32"}, {"elements", members.elements}, {"tensors", tensors}};
  };
  for (const State& s : step.states) add(s.name, *s.members);
  if (keeps_gradients(job)) add(kGradients, trained.parameters);
  if (job.averages_statistics()) add(kNewStatistics, trained.statistics);
  return write_file(path.string(), all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace

std::filesystem::path start_of(const std::filesystem::path& path) {
  return beside(path, "-start" + path.extension().string());
}
std::filesystem::path update_of(const std::filesystem::path& path) {
  return beside(path, "-update" + path.extension().string());
}
std::filesystem::path state_of(const std::filesystem::path& path) {
  return beside(path, "-state.json");
}

Status compile_step(const Job& job, const CompileOptions& options,
                    const std::filesystem::path& path) {
  for (const auto& written : {path, start_of(path), state_of(path)})
    TW_RETURN_IF_ERROR(check_writable(written.string()));
  TW_ASSIGN(const std::unique_ptr<OnnxModel> model,
            open_model(job.model.string(), ModelUse::kTraining));
  TW_ASSIGN(Trained trained, find_trained(*model, job));
  TW_ASSIGN(StepGraph step, build_step(*model, trained, job));
  ir::Graph start = start_graph(*model, step);
  TW_RETURN_IF_ERROR(write_state(job, step, trained, state_of(path)));
  TW_RETURN_IF_ERROR(compile_to_file(std::move(step.graph), options, path.string()));
  if (step.update)
    TW_RETURN_IF_ERROR(compile_to_file(std::move(*step.update), options, update_of(path).string()));
  return compile_to_file(std::move(start), options, start_of(path).string());
}

}  // namespace tilewright::train
