#include "tests/passes/rule_cases.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <regex>
#include <sstream>

#include "ir/module_text/parser_graph.h"
#include "passes/plan_program.h"

namespace tilewright::passes {

namespace {

// `machine: vectors 64, registers 32, threads 4, features a b, exact, third cache slow`: what differs from the
// defaults.
void read_machine(RuleCase& c) {
  std::istringstream parts(c.machine_line.substr(c.machine_line.find(':') + 1));
  for (std::string part; std::getline(parts, part, ',');) {
    std::istringstream words(part);
    std::string key;
    words >> key;
    if (key == "vectors")
      words >> c.machine.vector_bytes;
    else if (key == "registers")
      words >> c.machine.vector_registers;
    else if (key == "threads")
      words >> c.machine.threads;
    else if (key == "exact")
      c.exact = true;
    else if (part == " third cache slow")
      c.machine.speed.l3_read = c.machine.speed.memory_read;
    else
      for (std::string feature; words >> feature;) c.machine.features.push_back(feature);
  }
  c.machine.has_masks = c.machine.vector_bytes == 64;
}

// The constants of a graph's text, `#f32[2, 3]` (zeros) or `#i64(1, 2)`, which become `#0`, `#1`...
std::string take_constants(const std::string& text, std::vector<ir::ConstantRef>& constants) {
  static const std::regex kConstant(R"(#(\w+)([\[(])([-0-9, ]*)[\])])");
  std::string rest = text, out;
  for (std::smatch m; std::regex_search(rest, m, kConstant); rest = m.suffix()) {
    const auto dtype = dtype_from_name(m[1].str());
    EXPECT_TRUE(dtype) << m[0];
    std::vector<int64_t> numbers;
    std::istringstream list(m[3].str());
    for (std::string n; std::getline(list, n, ',');) numbers.push_back(std::stoll(n));
    const bool values = m[2].str() == "(";
    const Shape shape = values ? Shape{static_cast<int64_t>(numbers.size())}
                               : Shape(numbers.begin(), numbers.end());
    std::vector<uint8_t> bytes(static_cast<size_t>(*element_count(shape) * byte_size(*dtype)));
    if (values) std::memcpy(bytes.data(), numbers.data(), bytes.size());
    out += m.prefix().str() + "#" + std::to_string(constants.size());
    constants.push_back(ir::make_constant(*dtype, shape, std::move(bytes)));
  }
  return out + rest;
}

}  // namespace

std::vector<RuleCase> read_rule_cases(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << "no file " << path;
  std::vector<RuleCase> cases;
  std::string* part = nullptr;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("=== ")) {
      cases.push_back({line.substr(4), "", "", "", {}});
      part = &cases.back().graph;
    } else if (line.starts_with("machine:") && part) {
      cases.back().machine_line = line;
      read_machine(cases.back());
    } else if (line == "--- schedules" && part) {
      part = &cases.back().schedules;
    } else if (part) {
      *part += line + "\n";
    }
  }
  return cases;
}

void write_rule_cases(const std::string& path, const std::vector<RuleCase>& cases) {
  std::ofstream out(path);
  for (const RuleCase& c : cases)
    out << "=== " << c.name << "\n"
        << c.machine_line << "\n"
        << c.graph << "--- schedules\n"
        << c.schedules;
}

std::vector<RuleKernel> kernels_of(const RuleCase& c) {
  std::vector<ir::ConstantRef> constants;
  auto graph = ir::parse_graph(take_constants(c.graph, constants), constants);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  if (!graph.ok()) return {};
  LowerOptions options;
  options.machine = c.machine;
  options.fold = false;
  options.numerics = c.exact ? Numerics::kExact : Numerics::kStandard;
  auto lowered = lower_graph(std::move(*graph), options);
  EXPECT_TRUE(lowered.ok()) << lowered.error().to_string();
  if (!lowered.ok()) return {};
  std::vector<RuleKernel> kernels;
  auto program =
      plan_program(*lowered, options,
                   [&](ir::Kernel k, const std::set<std::string>& known) -> Result<LoweredKernel> {
                     kernels.push_back({k, known});
                     return LoweredKernel{std::move(k), ""};
                   });
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  return kernels;
}

}  // namespace tilewright::passes
