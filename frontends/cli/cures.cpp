// What helps where a model does not compile with open dimensions. Nothing is promised that was not
// tried: the model is lowered once more with what the advice would bind.
#include <algorithm>

#include "frontends/cli/cli.h"

namespace tilewright::cli {

namespace {

constexpr int64_t kTried[] = {4, 1, 16};  // extents; a model may reject one and accept another

// The dimensions that a set leaves open: "x: batch, seq; y: all".
std::string open_dimensions(const Binding& set, const std::vector<InputInfo>& inputs) {
  std::string text;
  for (const InputInfo& i : inputs) {
    if (set.shapes.count(i.name)) continue;
    std::string dims = i.known_rank ? "" : "all (its rank is unknown)";
    for (size_t d = 0; d < i.extents.size(); ++d)
      if (i.extents[d] < 0 && !set.symbols.count(i.symbols[d]))
        dims +=
            (dims.empty() ? "" : ", ") +
            (i.symbols[d].empty() ? "dimension " + std::to_string(d) : "'" + i.symbols[d] + "'");
    if (!dims.empty()) text += (text.empty() ? "" : "; ") + ("input '" + i.name + "': ") + dims;
  }
  return text;
}

// The set with all that is open bound to one extent; nothing where a rank is unknown.
std::optional<Binding> bound_to(Binding set, const std::vector<InputInfo>& inputs, int64_t extent) {
  for (const InputInfo& i : inputs) {
    if (set.shapes.count(i.name)) continue;
    if (!i.known_rank) return std::nullopt;
    Shape shape = i.extents;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] >= 0) continue;
      const auto symbol = set.symbols.find(i.symbols[d]);
      shape[d] = symbol == set.symbols.end() ? extent : symbol->second;
    }
    set.shapes[i.name] = std::move(shape);
  }
  return set;
}
// Returns the set with the integer inputs that `run` fixes set to ones.
Binding with_values(Binding set, const std::vector<InputInfo>& inputs) {
  for (const InputInfo& i : inputs) {
    const Shape& shape = set.shapes[i.name];
    if (is_float(i.dtype) || !may_decide_shapes(i.dtype, shape)) continue;
    const auto one = static_cast<size_t>(byte_size(i.dtype));
    std::vector<uint8_t> bytes(static_cast<size_t>(*element_count(shape)) * one, 0);
    for (size_t at = 0; at < bytes.size(); at += one) bytes[at] = 1;
    set.values[i.name] = ir::make_constant(i.dtype, shape, std::move(bytes));
  }
  return set;
}

// Returns whether the binding removes the error; nothing when a different error occurs first.
std::optional<bool> goes(const Error& error, const OnnxModel& model, const Binding& set,
                         CompileOptions options) {
  options.note = nullptr;
  const auto program = compile_program(model, set, options);
  if (program.ok()) return true;
  const Error& now = program.error();
  if (now.message == error.message && now.location == error.location) return false;
  if (now.kind == ErrorKind::kUnsupported) return error.by_inputs != now.by_inputs;
  return std::nullopt;
}

// Returns a --shape option that removes the error by binding one symbol to 1, or nothing.
std::string extent_of_one(const Error& error, const OnnxModel& model, const Binding& set,
                          const std::vector<InputInfo>& inputs, const CompileOptions& options) {
  constexpr size_t kMostTried = 16;                          // symbols; each costs a compilation
  if (goes(error, model, set, options) != false) return "";  // the error is of something else
  std::set<std::string> symbols;
  for (const InputInfo& i : inputs)
    for (const std::string& s : i.symbols)
      if (!s.empty() && !set.symbols.count(s) && symbols.size() < kMostTried) symbols.insert(s);
  for (const std::string& s : symbols) {
    Binding one = set;
    one.symbols[s] = 1;
    if (goes(error, model, one, options) == true) return "--shape " + s + "=1";
  }
  return "";
}

}  // namespace

Error with_cure(Error error, const OnnxModel& model, const std::vector<Binding>& sets,
                const std::vector<InputInfo>& inputs, const CompileOptions& options) {
  const auto set = std::find_if(sets.begin(), sets.end(), [&](const Binding& s) {
    return !open_dimensions(s, inputs).empty();
  });
  const bool is_open = set != sets.end();
  if (error.kind == ErrorKind::kInvalid && is_open) {
    const std::string one = extent_of_one(error, model, *set, inputs, options);
    if (!one.empty()) error.notes.push_back("it compiles with " + one);
    return error;
  }
  if (error.by_inputs == Cure::kNone || error.kind != ErrorKind::kUnsupported) return error;
  std::optional<bool> by_shape = is_open ? std::nullopt : std::optional(false), by_values;
  const Binding& tried = is_open ? *set : sets.front();
  for (const int64_t extent : kTried) {
    const std::optional<Binding> bound = bound_to(tried, inputs, extent);
    if (!bound) break;
    if (!by_shape) by_shape = goes(error, model, *bound, options);
    if (by_shape == false && !by_values)
      by_values = goes(error, model, with_values(*bound, inputs), options);
  }
  if (by_shape.value_or(true)) {
    const std::string open = open_dimensions(tried, inputs);
    // The model stays unsupported unless the binding removes every reason.
    if (error.by_inputs == Cure::kAll) {
      error.kind = ErrorKind::kInvalid;
      error.notes.push_back("these dimensions must be bound with --shape: " + open);
    } else {
      error.notes.push_back("some of this goes when these dimensions are bound with --shape: " +
                            open);
    }
  } else if (by_values.value_or(true)) {
    error.notes.push_back(
        "no --shape helps, as it depends on values of inputs: `tilewright run` compiles for the "
        "values that it is given");
  } else {
    error.notes.push_back("no --shape helps, as only a run knows what it depends on");
  }
  return error;
}

}  // namespace tilewright::cli
