// tilewright info: what a model is, before or after compilation.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <sstream>

#include "frontends/cli/cli.h"
#include "frontends/onnx/node_import.h"
#include "frontends/tensor_files/element_type.h"

namespace tilewright::cli {

namespace {

std::string megabytes(uintmax_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f MB", static_cast<double>(bytes) / 1e6);
  return text;
}
std::string file_size(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  return error ? "unknown" : megabytes(bytes);
}

std::string extents_text(const std::vector<int64_t>& extents,
                         const std::vector<std::string>& symbols) {
  std::string text = "[";
  for (size_t d = 0; d < extents.size(); ++d)
    text += (d ? ", " : "") + (extents[d] >= 0      ? std::to_string(extents[d])
                               : symbols[d].empty() ? "?"
                                                    : symbols[d]);
  return text + "]";
}

std::string type_text(const OnnxType& type) {
  if (type.kind == OnnxTypeKind::kUnknown) return "unknown";
  if (type.kind != OnnxTypeKind::kTensor) return describe_kind(type.kind);
  const std::string text = onnx_element_name(type.onnx_code);
  if (!type.shape) return text + " of unknown rank";
  std::vector<int64_t> extents;
  std::vector<std::string> symbols;
  for (const OnnxDimension& d : *type.shape) {
    const auto* extent = std::get_if<int64_t>(&d);
    extents.push_back(extent ? *extent : -1);
    symbols.push_back(extent_name(d));
  }
  return text + extents_text(extents, symbols);
}

// Exporters may list every weight as an input.
void print_defaults(const OnnxModel& model) {
  constexpr size_t kMost = 8;
  size_t count = 0;
  for (const OnnxValueInfo& v : model.graph.inputs)
    if (is_overridable(model, v.name) && ++count <= kMost)
      std::cout << "input with a default " << v.name << ": " << type_text(v.type) << "\n";
  if (count > kMost)
    std::cout << "and " << count - kMost << " more initializers that are inputs with a default\n";
}

void print_onnx(const OnnxModel& model, const std::string& path) {
  std::cout << "ONNX model " << path << " (" << file_size(path) << ")\n";
  std::cout << "graph: " << model.graph.name << "\nproducer: " << model.producer
            << "\nIR version: " << model.ir_version << "\nopsets:";
  for (const auto& [domain, version] : model.opset_imports)
    std::cout << " " << (domain.empty() ? "ai.onnx" : domain) << " " << version;
  std::cout << "\n";
  for (const OnnxValueInfo& v : model.graph.inputs)
    if (!model.graph.initializers.count(v.name))
      std::cout << "input " << v.name << ": " << type_text(v.type) << "\n";
  print_defaults(model);
  for (const OnnxValueInfo& v : model.graph.outputs)
    std::cout << "output " << v.name << ": " << type_text(v.type) << "\n";
  std::map<std::string, bool> symbols;
  for (const InputInfo& i : inputs_of(model))
    for (const std::string& s : i.symbols)
      if (!s.empty()) symbols[s] = true;
  std::cout << "symbols:";
  for (const auto& [s, unused] : symbols) std::cout << " " << s;
  if (symbols.empty()) std::cout << " none";
  uintmax_t bytes = 0;
  for (const auto& [name, t] : model.graph.initializers) bytes += t.bytes;
  std::cout << "\nweights: " << model.graph.initializers.size() << ", " << megabytes(bytes) << "\n";
  std::map<std::string, int> counts;
  for (const OnnxNode& n : model.graph.nodes)
    ++counts[(n.domain.empty() ? "" : n.domain + ":") + n.op_type +
             (onnx::find_mapping(n) ? "" : " (unsupported)")];
  std::cout << "nodes: " << model.graph.nodes.size() << "\n";
  for (const auto& [op, count] : counts) std::cout << "  " << count << " " << op << "\n";
  std::vector<std::string> notes;
  if (build_graph(model, {}, nullptr, &notes).ok())
    for (const std::string& note : notes) std::cout << "note: " << note << "\n";
}

void print_variant(const Variant& v, size_t number) {
  std::cout << "variant " << number << ": " << v.kernels.size() << " kernels";
  std::cout << (v.symbols.empty() ? ", all extents fixed\n" : ", symbols:");
  for (const std::string& s : v.symbols) std::cout << " " << s;
  if (!v.symbols.empty()) std::cout << "\n";
  auto print = [&](const char* what, const std::vector<int32_t>& buffers) {
    for (int32_t b : buffers) {
      const BufferDesc& d = v.buffers[static_cast<size_t>(b)];
      std::vector<int64_t> extents;
      std::vector<std::string> symbols;
      for (const SizeExpr& e : d.dims) {
        const bool fixed = e.size() == 1 && e[0].op == SizeOp::kConstant,
                   symbol = e.size() == 1 && e[0].op == SizeOp::kSymbol;
        extents.push_back(fixed ? e[0].value : -1);
        symbols.push_back(symbol ? v.symbols[static_cast<size_t>(e[0].value)] : "");
      }
      std::cout << "  " << what << " " << d.name << ": " << name(d.dtype)
                << extents_text(extents, symbols) << (d.updated ? ", updated in place" : "")
                << (d.default_buffer >= 0 ? ", with a default" : "") << "\n";
    }
  };
  print("input", v.inputs);
  print("output", v.outputs);
}

void print_schedules(const Variant& v) {
  for (const KernelDesc& k : v.kernels) {
    std::cout << "  kernel " << k.name << (k.schedule.empty() ? ": plain loops\n" : ":\n");
    std::istringstream steps(k.schedule);
    for (std::string step; std::getline(steps, step);) std::cout << "    " << step << "\n";
  }
}

void print_executable(const Executable& e, const std::string& path, bool schedules) {
  std::cout << "compiled model " << path << " (" << file_size(path) << ")\nmodel: " << e.model_name
            << "\nproducer: " << e.producer << "\nmade for: " << e.cpu << ", schedules for "
            << e.schedule_threads << " threads\nnumerics: " << name(e.numerics) << "\nneeds:";
  for (const std::string& f : e.cpu_features) std::cout << " " << f;
  std::cout << "\nconstants: " << megabytes(static_cast<uintmax_t>(e.constants_bytes)) << "\n";
  for (size_t i = 0; i < e.variants.size(); ++i) {
    print_variant(e.variants[i], i);
    if (schedules) print_schedules(e.variants[i]);
  }
}

}  // namespace

int info_command(const std::string& path, bool schedules) {
  if (is_compiled(path)) {
    auto executable = load_executable(path);
    if (!executable.ok()) return report(executable.error());
    print_executable(**executable, path, schedules);
    return kOk;
  }
  if (schedules) return report_usage("--schedules: '" + path + "' is not compiled");
  auto model = open_model(path);
  if (!model.ok()) return report(model.error());
  print_onnx(**model, path);
  return kOk;
}

}  // namespace tilewright::cli
