// A crash reproducer in the sense of MLIR's: the IR before the failing pass, the rest of the
// pipeline and the options, as text. Weights are left out (zeros in their place), so that files are
// small and hold nothing of the model's contents but its structure.
#include "passes/reproducer.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iomanip>
#include <map>
#include <sstream>

#include "ir/module_text/parser_graph.h"
#include "ir/module_text/parser_program.h"
#include "ir/module_text/printer_graph.h"
#include "ir/module_text/printer_program.h"
#include "ir/text/parser_loops.h"
#include "ir/text/printer_loops.h"
#include "ir/verify_graph.h"
#include "passes/decisions/decisions.h"
#include "passes/planner.h"
#include "runtime/core/open_file.h"
#include "runtime/core/write_file.h"

namespace tilewright::passes {

namespace {

constexpr std::string_view kFirstLine = "tilewright reproducer 1";
constexpr std::string_view kSeparator = "---";
constexpr std::string_view kPrefix = "tilewright-reproducer-", kSuffix = ".txt";
constexpr size_t kMostReproducers = 32;               // in a folder
constexpr uint64_t kMostBytes = uint64_t{256} << 20;  // of one

template <typename Range>
std::string join(const Range& words) {
  std::string text;
  for (const auto& w : words) text += (text.empty() ? "" : " ") + std::string(w);
  return text;
}
std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> all;
  for (std::string w; in >> w;) all.push_back(w);
  return all;
}

// The figures of MachineSpeed that passes read.
constexpr double ir::MachineSpeed::* kSpeed[] = {
    &ir::MachineSpeed::clock_ghz,       &ir::MachineSpeed::fma_latency_cycles,
    &ir::MachineSpeed::fma_ports,       &ir::MachineSpeed::f32_gflops,
    &ir::MachineSpeed::l2_read,         &ir::MachineSpeed::l3_read,
    &ir::MachineSpeed::l3_read_all,     &ir::MachineSpeed::memory_read,
    &ir::MachineSpeed::memory_read_all, &ir::MachineSpeed::handed_over,
    &ir::MachineSpeed::fork_join_us,
};

std::string header(const char* form, const LowerOptions& options, const Error& error) {
  const ir::MachineDescription& m = options.machine;
  std::ostringstream out;
  out << kFirstLine << "\nform: " << form
      << "\nerror: " << error.message.substr(0, error.message.find('\n')) << "\ncpu: " << m.cpu
      << "\nfeatures: " << join(m.features) << "\nvectors: " << m.vector_bytes << " "
      << m.vector_registers << " " << m.has_masks << " " << m.has_fma << "\ncaches: " << m.l1_bytes
      << " " << m.l2_bytes << " " << m.l3_bytes << "\nthreads: " << m.threads
      << "\noptions: " << options.fuse << " " << options.schedule << " " << options.fold << " "
      << options.inside << "\nnumerics: " << name(options.numerics) << "\n";
  if (m.speed.measured) {
    out << "speed:" << std::setprecision(17);
    for (const auto field : kSpeed) out << " " << m.speed.*field;
    out << "\n";
  }
  if (options.decisions)
    for (const auto& [decision, value] : options.decisions->answers())
      out << "answer: " << value << " " << decision << "\n";
  return out.str();
}

bool is_reproducer(const std::string& name) {
  return name.starts_with(kPrefix) && name.ends_with(kSuffix);
}

// Makes room for one more among the most that a folder keeps.
void remove_oldest(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    const auto written = it->last_write_time(gone);
    if (!gone && it->is_regular_file(gone) && is_reproducer(it->path().filename().string()))
      found.emplace_back(written, it->path());
  }
  std::sort(found.begin(), found.end());
  for (size_t i = 0; i + kMostReproducers <= found.size(); ++i) fs::remove(found[i].second, error);
}

Result<std::string> write_text(const std::string& text) {
  const char* folder = std::getenv("TILEWRIGHT_DUMP");
  std::error_code ignored;
  std::filesystem::path base = folder && *folder ? std::filesystem::path(folder)
                                                 : std::filesystem::temp_directory_path(ignored);
  std::filesystem::create_directories(base, ignored);
  remove_oldest(base);
  return write_new_file(base.string(), std::string(kPrefix), std::string(kSuffix), text);
}

template <typename Pass>
std::string names_of(std::span<const Pass> passes) {
  std::vector<std::string_view> names;
  for (const Pass& p : passes) names.push_back(p.name);
  return join(names);
}

// What follows the separator, and the lines "key: value" before it.
struct Reproducer {
  std::multimap<std::string, std::string> fields;
  std::string body;
  std::string field(const std::string& key) const {
    auto it = fields.find(key);
    return it == fields.end() ? "" : it->second;
  }
};
Result<Reproducer> read_reproducer(const std::string& path) {
  TW_ASSIGN(std::string text, read_whole(path, kMostBytes));
  std::istringstream in(std::move(text));
  Reproducer r;
  std::string line;
  if (!std::getline(in, line) || line != kFirstLine)
    return invalid("no reproducer: the first line is not \"" + std::string(kFirstLine) + "\"",
                   path);
  while (std::getline(in, line) && line != kSeparator) {
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) r.fields.emplace(line.substr(0, colon), line.substr(colon + 2));
  }
  std::ostringstream rest;
  rest << in.rdbuf();
  r.body = rest.str();
  return r;
}

LowerOptions read_options(const Reproducer& r) {
  LowerOptions options;
  ir::MachineDescription& m = options.machine;
  if (!r.field("cpu").empty()) m.cpu = r.field("cpu");
  m.features = words(r.field("features"));
  std::istringstream(r.field("vectors")) >> m.vector_bytes >> m.vector_registers >> m.has_masks >>
      m.has_fma;
  std::istringstream(r.field("caches")) >> m.l1_bytes >> m.l2_bytes >> m.l3_bytes;
  std::istringstream(r.field("threads")) >> m.threads;
  std::istringstream(r.field("options")) >> options.fuse >> options.schedule >> options.fold >>
      options.inside;
  options.numerics = numerics_from_name(r.field("numerics")).value_or(options.numerics);
  std::istringstream speed(r.field("speed"));
  m.speed.measured = !r.field("speed").empty();
  for (const auto field : kSpeed)
    if (m.speed.measured) speed >> m.speed.*field;
  return options;
}

template <typename Pass>
Result<std::vector<Pass>> find_passes(const Reproducer& r, std::span<const Pass> all) {
  std::vector<Pass> found;
  for (const std::string& name : words(r.field("passes"))) {
    const Pass* match = nullptr;
    for (const Pass& p : all)
      if (p.name == name) match = &p;
    if (!match) return invalid("there is no pass '" + name + "'");
    found.push_back(*match);
  }
  return found;
}

// "f32 2 3" as a constant of zeros.
Result<ir::ConstantRef> zeros(const std::string& text) {
  constexpr int64_t kMost = int64_t{1} << 32;
  std::istringstream in(text);
  std::string type;
  in >> type;
  auto dtype = dtype_from_name(type);
  Shape shape;
  for (int64_t d; in >> d;) shape.push_back(d);
  auto n = element_count(shape);
  if (!dtype || !n || *n > kMost) return invalid("constant '" + text + "'");
  return ir::make_constant(*dtype, shape,
                           std::vector<uint8_t>(static_cast<size_t>(*n * byte_size(*dtype))));
}

Result<std::vector<ir::ConstantRef>> read_constants(const Reproducer& r) {
  std::vector<ir::ConstantRef> constants;
  for (auto [it, end] = r.fields.equal_range("constant"); it != end; ++it) {
    TW_ASSIGN(ir::ConstantRef c, zeros(it->second));
    constants.push_back(std::move(c));
  }
  return constants;
}

// "2 conv3.winograd": the value, and the decision's name.
Result<Answers> read_answers(const Reproducer& r) {
  Answers answers;
  for (auto [it, end] = r.fields.equal_range("answer"); it != end; ++it) {
    std::istringstream in(it->second);
    int64_t value = 0;
    std::string decision;
    if (!(in >> value >> decision)) return invalid("answer '" + it->second + "'");
    answers[decision] = value;
  }
  return answers;
}

Status replay_graph(const Reproducer& r, const LowerOptions& options) {
  TW_ASSIGN(std::vector<ir::ConstantRef> constants, read_constants(r));
  TW_ASSIGN(ir::Graph graph, ir::parse_graph(r.body, constants));
  TW_ASSIGN(std::vector<GraphPass> passes, find_passes(r, graph_passes()));
  auto result = run_pipeline(std::span<const GraphPass>(passes), std::move(graph), options);
  return result.ok() ? Status() : Status(result.error());
}
Status replay_plan(const Reproducer& r, const LowerOptions& options) {
  TW_ASSIGN(std::vector<ir::ConstantRef> constants, read_constants(r));
  TW_ASSIGN(ir::Graph graph, ir::parse_graph(r.body, constants));
  TW_RETURN_IF_ERROR(ir::verify(graph));
  TW_ASSIGN(std::vector<PlanPass> passes, find_passes(r, plan_passes()));
  GraphPlan plan(graph, 0);
  return run_pipeline(std::span<const PlanPass>(passes), plan, options);
}
Status replay_program(const Reproducer& r, const LowerOptions& options) {
  TW_ASSIGN(std::vector<ir::ConstantRef> constants, read_constants(r));
  TW_ASSIGN(ir::Program program, ir::parse_program(r.body, constants));
  TW_ASSIGN(std::vector<ProgramPass> passes, find_passes(r, program_passes()));
  auto result = run_pipeline(std::span<const ProgramPass>(passes), std::move(program), options);
  return result.ok() ? Status() : Status(result.error());
}
Status replay_kernel(const Reproducer& r, const LowerOptions& options) {
  TW_ASSIGN(ir::Kernel kernel, ir::parse_kernel(r.body));
  std::vector<KernelPass> all(schedule_passes().begin(), schedule_passes().end());
  all.insert(all.end(), loop_passes().begin(), loop_passes().end());
  TW_ASSIGN(std::vector<KernelPass> passes, find_passes(r, std::span<const KernelPass>(all)));
  std::string steps;
  for (auto [it, end] = r.fields.equal_range("step"); it != end; ++it) steps += it->second + "\n";
  TW_ASSIGN(Trace trace, parse_trace(steps));
  KernelContext context{options, {}, &trace};
  for (const std::string& name : words(r.field("constants"))) context.constants.insert(name);
  auto result = run_pipeline(std::span<const KernelPass>(passes), std::move(kernel), context);
  return result.ok() ? Status() : Status(result.error());
}

template <typename Module, typename Pass>
Result<std::string> write_with_constants(const char* form, const Module& module,
                                         std::span<const Pass> remaining,
                                         const LowerOptions& options, const Error& error) {
  std::vector<ir::ConstantRef> constants;
  const std::string body = ir::to_text(module, &constants);
  std::string text = header(form, options, error) + "passes: " + names_of(remaining) + "\n";
  for (const ir::ConstantRef& c : constants) {
    text += "constant: " + std::string(name(c->dtype));
    for (int64_t d : c->shape) text += " " + std::to_string(d);
    text += "\n";
  }
  return write_text(text + std::string(kSeparator) + "\n" + body);
}

}  // namespace

Result<std::string> write_reproducer(const ir::Graph& graph, std::span<const GraphPass> remaining,
                                     const LowerOptions& options, const Error& error) {
  return write_with_constants("graph", graph, remaining, options, error);
}
Result<std::string> write_reproducer(const ir::Graph& graph, std::span<const PlanPass> remaining,
                                     const LowerOptions& options, const Error& error) {
  return write_with_constants("plan", graph, remaining, options, error);
}
Result<std::string> write_reproducer(const ir::Program& program,
                                     std::span<const ProgramPass> remaining,
                                     const LowerOptions& options, const Error& error) {
  return write_with_constants("program", program, remaining, options, error);
}
Result<std::string> write_reproducer(const ir::Kernel& kernel,
                                     std::span<const KernelPass> remaining,
                                     const KernelContext& context, const Error& error) {
  std::string text = header("kernel", context.options, error) +
                     "constants: " + join(context.constants) + "\npasses: " + names_of(remaining) +
                     "\n";
  if (context.trace)
    for (const Step& step : *context.trace) text += "step: " + to_string(Trace{step});
  return write_text(text + std::string(kSeparator) + "\n" + ir::to_text(kernel));
}

Status replay(const std::string& path, const RunConstants& run_constants) {
  TW_ASSIGN(Reproducer r, read_reproducer(path));
  LowerOptions options = read_options(r);
  options.run_constants = run_constants;
  TW_ASSIGN(Answers answers, read_answers(r));
  Decisions decisions(std::move(answers));
  options.decisions = &decisions;
  if (r.field("form") == "graph") return replay_graph(r, options);
  if (r.field("form") == "kernel") return replay_kernel(r, options);
  if (r.field("form") == "plan") return replay_plan(r, options);
  if (r.field("form") == "program") return replay_program(r, options);
  return invalid("form '" + r.field("form") + "', expected graph, plan, kernel or program", path);
}

}  // namespace tilewright::passes
