#include "frontends/compiler/text_model.h"

#include <algorithm>
#include <filesystem>
#include <random>

#include "autotune/check/check_given.h"
#include "ir/module_text/inline_constant.h"
#include "ir/module_text/parser_graph.h"
#include "ir/text/parser_loops.h"
#include "ir/verify_graph.h"
#include "ir/verify_loops.h"
#include "passes/plan_kernel.h"
#include "runtime/core/open_file.h"
#include "runtime/device_cpu.h"

namespace tilewright {

namespace fs = std::filesystem;

namespace {

constexpr const char* kConstants = "# constants:";
constexpr uint64_t kMostBytes = uint64_t{64} << 20;  // of a text

// Small numbers of any type: floats in [-0.5, 0.5), integers 0 and 1, which are indices of any table.
class MakeUp {
 public:
  Result<ir::ConstantRef> operator()(int64_t seed, DType dtype, const Shape& shape) {
    constexpr int64_t kMost = int64_t{1} << 30;
    const auto n = element_count(shape);
    if (!n || *n > kMost || (bytes_ += *n * byte_size(dtype)) > kMost)
      return limit_error("constants are larger than 1 GiB together");
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    std::vector<uint8_t> bytes;
    bytes.reserve(static_cast<size_t>(*n * byte_size(dtype)));
    for (int64_t i = 0; i < *n; ++i) {
      const uint64_t drawn = random();
      if (is_float(dtype))
        ir::append_element(bytes, dtype, static_cast<double>(drawn >> 40) / (1 << 24) - 0.5);
      else
        ir::append_element(bytes, dtype, static_cast<int64_t>(drawn % 2));
    }
    return ir::make_constant(dtype, shape, std::move(bytes));
  }

 private:
  int64_t bytes_ = 0;
};

// The names behind `# constants:`; lines that begin with # become empty, so that places stay.
std::vector<std::string> take_comments(std::string& text) {
  std::vector<std::string> names;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    if (text[from] == '#') {
      const std::string line = text.substr(from, end - from);
      if (line.starts_with(kConstants))
        for (size_t at = std::string(kConstants).size(); at < line.size();) {
          const size_t comma = std::min(line.find(',', at), line.size());
          const size_t first = line.find_first_not_of(' ', at);
          if (first < comma) names.push_back(line.substr(first, comma - first));
          at = comma + 1;
        }
      text.replace(from, end - from, end - from, ' ');
    }
    from = end + 1;
  }
  return names;
}

// Rules that a text breaks are its author's mistakes, not the compiler's.
Status as_input(Status status) {
  if (status.ok()) return status;
  Error e = status.error();
  e.kind = ErrorKind::kInvalid;
  return e;
}

Status read_graph(const std::string& text, TextModel& model) {
  MakeUp make_up;
  Status limit;
  const auto find = [&](int64_t n, DType dtype, const Shape& shape) -> ir::ConstantRef {
    auto made = make_up(n, dtype, shape);
    if (!made.ok()) return limit = made.error(), nullptr;
    model.made_up = true;
    return *made;
  };
  auto graph = ir::parse_graph(text, ir::FindConstant(find));
  TW_RETURN_IF_ERROR(limit);
  if (!graph.ok()) return graph.error();
  TW_RETURN_IF_ERROR(as_input(ir::verify(*graph)));
  model.name = graph->name;
  model.graph = std::move(*graph);
  return {};
}

Status read_kernel(const std::string& text, const std::vector<std::string>& constants,
                   TextModel& model) {
  TW_ASSIGN(ir::Kernel kernel, ir::parse_kernel(text));
  TW_RETURN_IF_ERROR(as_input(ir::verify(kernel, ir::Stage::kBlocks)));
  MakeUp make_up;
  for (const std::string& name : constants) {
    const auto it = std::find_if(kernel.params.begin(), kernel.params.end(),
                                 [&](const ir::Buffer& b) { return b->name == name; });
    if (it == kernel.params.end())
      return invalid("'" + name + "' is called a constant and is no parameter", kernel.name);
    const auto shape = ir::constant_shape({(*it)->dtype, (*it)->shape});
    if (!shape) return invalid("constant '" + name + "' has no constant extents", kernel.name);
    TW_ASSIGN(model.constants[name], make_up(it - kernel.params.begin(), (*it)->dtype, *shape));
    model.made_up = true;
  }
  model.name = kernel.name;
  model.kernel = std::move(kernel);
  return {};
}

}  // namespace

bool is_text_model(const std::string& path) { return fs::path(path).extension() == ".ir"; }

Result<TextModel> read_text_model(const std::string& path) {
  return catch_failures([&]() -> Result<TextModel> {
    TW_ASSIGN(std::string text, read_whole(path, kMostBytes));
    const std::vector<std::string> constants = take_comments(text);
    const size_t first = text.find_first_not_of(" \n\r\t");
    const bool is_kernel = first != std::string::npos && text.compare(first, 6, "kernel") == 0;
    TextModel model;
    Status done = is_kernel ? read_kernel(text, constants, model) : read_graph(text, model);
    if (done.ok()) return model;
    Error e = done.error();
    e.location = path + (e.location.empty() ? "" : ":" + e.location);
    return e;
  });
}

static Result<ir::Program> lower_alone(const TextModel& model, const passes::LowerOptions& lower) {
  const auto lower_one = [&](ir::Kernel k, const std::set<std::string>& constants) {
    return passes::lower_kernel(std::move(k), constants, lower);
  };
  return passes::plan_kernel(*model.kernel, model.constants, lower, lower_one);
}

Status check_usual(const TextModel& model, std::span<const Tensor> inputs,
                   const passes::LowerOptions& lower, const codegen::AssembleOptions& assemble) {
  TW_ASSIGN(const ir::Program program, lower_alone(model, lower));
  return autotune::check_given(program, inputs, assemble);
}

Result<std::shared_ptr<Executable>> compile_in_memory(const TextModel& model,
                                                      std::span<const Tensor> inputs,
                                                      const CompileOptions& options) {
  if (model.graph) return compile_in_memory(ir::Graph(*model.graph), options);
  return catch_failures([&]() -> Result<std::shared_ptr<Executable>> {
    TW_ASSIGN(const passes::LowerOptions lower, lower_options(options));
    std::vector<ir::Program> programs(1);
    TW_ASSIGN(programs[0], lower_alone(model, lower));
    const auto assemble = assemble_options(options, lower.machine, model.name);
    TW_RETURN_IF_ERROR(autotune::check_given(programs[0], inputs, assemble));
    TW_ASSIGN(std::shared_ptr<Executable> executable,
              codegen::assemble_in_memory(std::move(programs), assemble));
    TW_RETURN_IF_ERROR(check_cpu_features(executable->cpu_features));
    return executable;
  });
}

}  // namespace tilewright
