#include "frontends/onnx/signatures.h"

#include <algorithm>
#include <map>
#include <vector>

#include "frontends/onnx/attribute_ranges.h"

namespace tilewright::onnx {

const Signature* find_signature(const OnnxNode& node) {
  static const auto* const table = [] {
    auto* t = new std::map<std::pair<std::string, std::string>, std::vector<const Signature*>>;
    for (const Signature& s : standard_signatures())
      (*t)[{"", std::string(s.op_type)}].push_back(&s);
    for (const Signature& s : microsoft_signatures())
      (*t)[{"com.microsoft", std::string(s.op_type)}].push_back(&s);
    return t;
  }();
  const auto rows = table->find({node.domain, node.op_type});
  if (rows == table->end()) return nullptr;
  auto earlier = [](const Signature* a, const Signature* b) { return a->since < b->since; };
  const Signature* best = nullptr;
  for (const Signature* s : rows->second)
    if (s->since <= node.opset && (!best || earlier(best, s))) best = s;
  // An operator that is read in opsets before its first has its first form there.
  return best ? best : *std::min_element(rows->second.begin(), rows->second.end(), earlier);
}

namespace {

// Trailing operands and results that are left out are no surplus.
std::string count_mismatch(const std::vector<std::string>& names, int least, int most,
                           const char* what) {
  auto n = names.size();
  while (n > 0 && names[n - 1].empty()) --n;
  const int found = static_cast<int>(n);
  if (static_cast<int>(names.size()) >= least && (most == kAny || found <= most)) return "";
  const std::string wanted = most == kAny ? "at least " + std::to_string(least)
                             : least == most
                                 ? std::to_string(least)
                                 : std::to_string(least) + " to " + std::to_string(most);
  return "has " + std::to_string(found) + " " + what + ", expected " + wanted;
}

// The letters of Signature::attributes, in the order of OnnxAttribute's alternatives.
constexpr std::string_view kKinds = "ifstgyIFSTGY";
std::string kind_name(char letter) {
  constexpr std::pair<char, const char*> kNames[] = {
      {'i', "an integer"}, {'f', "a float"}, {'s', "a string"}, {'t', "a tensor"},
      {'g', "a graph"},    {'y', "a type"},  {'I', "integers"}, {'F', "floats"},
      {'S', "strings"},    {'T', "tensors"}, {'G', "graphs"},   {'p', "a sparse tensor"}};
  for (const auto& [l, name] : kNames)
    if (l == letter) return name;
  return "types";
}

struct AttributeRow {
  std::string_view name;
  char kind;
  bool required;
};
std::vector<AttributeRow> attribute_rows(std::string_view text) {
  std::vector<AttributeRow> rows;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size()), colon = text.find(':');
    rows.push_back({text.substr(0, colon), text[colon + 1], text[end - 1] == '!'});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return rows;
}
std::optional<int64_t> out_of_range(const OnnxAttribute& value, const IntegerRange& range) {
  const auto is_out = [&](int64_t v) { return v > range.most || v < range.least; };
  if (const auto* one = std::get_if<int64_t>(&value); one && is_out(*one)) return *one;
  if (const auto* many = std::get_if<std::vector<int64_t>>(&value)) {
    const auto out = std::ranges::find_if(*many, is_out);
    if (out != many->end()) return *out;
  }
  return {};
}
std::string attribute_mismatch(const OnnxNode& node, std::string_view text) {
  const std::vector<AttributeRow> rows = attribute_rows(text);
  for (const auto& [name, value] : node.attributes) {
    if (name.starts_with("__")) continue;  // exporters' own
    auto row = std::find_if(rows.begin(), rows.end(),
                            [&](const AttributeRow& r) { return r.name == name; });
    if (row == rows.end()) return "has no attribute " + quote(name);
    if (value.index() < kKinds.size() && kKinds[value.index()] != row->kind)
      return "takes " + kind_name(row->kind) + " as attribute " + quote(name) + ", found " +
             kind_name(kKinds[value.index()]);
    const IntegerRange range = attribute_range(node, name);
    if (const auto out = out_of_range(value, range))
      return "takes integers from " + std::to_string(range.least) + " to " +
             std::to_string(range.most) + " as attribute " + quote(name) + ", found " +
             std::to_string(*out);
  }
  for (const AttributeRow& row : rows)
    if (row.required && !node.attributes.count(std::string(row.name)))
      return "needs the attribute " + quote(row.name);
  return "";
}

}  // namespace

std::string signature_mismatch(const OnnxNode& node) {
  const Signature* s = find_signature(node);
  if (!s) return "";
  const std::string operands =
      count_mismatch(node.inputs, s->least_inputs, s->most_inputs, "operands");
  if (!operands.empty()) return "the node " + operands;
  const std::string results =
      count_mismatch(node.outputs, std::min(s->least_outputs, 1), s->most_outputs, "results");
  if (!results.empty()) return "the node " + results;
  const std::string attributes = attribute_mismatch(node, s->attributes);
  return attributes.empty() ? "" : "the operator " + attributes;
}

}  // namespace tilewright::onnx
