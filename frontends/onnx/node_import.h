// What an importer sees of one ONNX node: operands as graph values, attributes, and a way to add
// graph nodes. Importers throw ImportFailure (through op, fail and unsupported); import_graph turns
// it into a Result.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontends/onnx/import_graph.h"
#include "ir/formula/formula.h"
#include "ir/graph/infer.h"

namespace tilewright::onnx {

using ir::kNone;
using ir::V;

// Thrown by importers and caught where the node's import began.
struct ImportFailure {
  // Names the node, and says what about it is wrong or unsupported.
  Error error;
  // Of a node with graphs: what else in these is unsupported.
  std::vector<Error> others = {};
};

// Names visible at one place of the model; the graphs of If, Loop and Scan see those around them.
struct ImportScope {
  // The scope around, null for the main graph's; and what this one defines.
  ImportScope* parent = nullptr;
  std::map<std::string, ir::ValueId> values;
  // Set where a graph of its own begins: brings a value of the graph around into this one.
  std::function<ir::ValueId(ir::ValueId)> capture;
  ir::ValueId find(const std::string& name);
  // Sequences: what they hold, in order.
  std::map<std::string, std::vector<ir::ValueId>> sequences;
  std::optional<std::vector<ir::ValueId>> find_sequence(const std::string& name);
};

class GraphImport;

// One node while it is imported, handed to its importer by reference. Its methods either succeed or
// throw ImportFailure with the node's name, so that importers need no checks of their own.
class NodeImport final : public ir::NodeBuilder {
 public:
  // formula: see OpMapping.
  NodeImport(GraphImport& owner, const OnnxNode& node, std::string where, bool formula = false)
      : owner_(owner), node(node), where_(std::move(where)), formula_(formula) {}

  // --- operands
  int num_inputs() const { return static_cast<int>(node.inputs.size()); }
  int num_outputs() const { return static_cast<int>(node.outputs.size()); }
  bool has(int i) const { return i < num_inputs() && !node.inputs[static_cast<size_t>(i)].empty(); }
  bool wants(int output) const {
    return output < num_outputs() && !node.outputs[static_cast<size_t>(output)].empty();
  }
  // Whether the model reads the result: another node, or the graph that the node stands in returns it.
  bool is_read(int output) const;
  ir::ValueId in(int i);        // kNone when absent
  ir::ValueId required(int i);  // fails when absent
  std::vector<ir::ValueId> all_inputs();
  // Operand i as the model has it, in a formula too: for what moves elements, and for `product`.
  ir::ValueId stored(int i) const;
  ir::ValueId required_stored(int i) const;
  // Operand i, which is a sequence of tensors; fails when it is none.
  std::vector<ir::ValueId> sequence(int i) const;
  bool is_sequence(int i) const;
  ir::ValueId widened(ir::ValueId v);  // as f32, a half in a formula; else v
  int64_t opset() const { return node.opset; }
  const std::string& where() const { return where_; }  // the node, for messages

  // --- types and known elements of any value
  std::vector<int64_t> must_know_ints(
      ir::ValueId v, const char* what) const;  // needs_value("... is not known at compile time")
  std::optional<std::vector<double>> known_floats(ir::ValueId v) const;

  // --- attributes
  bool has_attr(const std::string& name) const { return node.attributes.count(name) != 0; }
  int64_t int_attr(const std::string& name, int64_t fallback) const;
  double float_attr(const std::string& name, double fallback) const;
  std::string string_attr(const std::string& name, const std::string& fallback) const;
  std::vector<int64_t> ints_attr(const std::string& name, std::vector<int64_t> fallback = {}) const;
  std::vector<double> floats_attr(const std::string& name, std::vector<double> fallback = {}) const;
  std::vector<std::string> strings_attr(const std::string& name) const;
  ir::ConstantRef tensor_attr(const std::string& name) const;
  const OnnxGraph* graph_attr(const std::string& name) const;
  // Axes from attribute (old opsets) or input (new ones), as given; nothing when neither is there.
  std::optional<std::vector<int64_t>> axes(int input, int64_t input_since) const;

  // --- building
  std::vector<ir::ValueId> ops(std::string_view name, std::vector<ir::ValueId> inputs,
                               ir::Attributes attributes, int outputs) override;
  std::vector<ir::ValueId> control(std::string_view name, std::vector<ir::ValueId> inputs,
                                   ir::Attributes attributes, int outputs,
                                   std::vector<std::shared_ptr<const ir::Graph>> regions);
  // A contraction. In a formula its sum of products of halves stays f32: nothing is widened before
  // it, and nothing rounded behind it.
  ir::ValueId product(std::string_view name, std::vector<ir::ValueId> inputs,
                      ir::Attributes attributes = {});
  // The extent of what is computed from operands of two extents, by numpy's rule.
  ir::Expr joined(const ir::Expr& a, const ir::Expr& b);
  // What the standard calls unidirectional broadcasting: fails where v has more or other dimensions than the trailing
  // `dims`; else the run checks.
  void require_broadcasts(ir::ValueId v, const std::vector<ir::Expr>& dims);
  // Returns the operand broadcast to the trailing `dims`. Inserts an `expand` where only the run knows
  // whether an extent is 1.
  ir::ValueId expanded_to(ir::ValueId v, std::vector<ir::Expr> dims);
  // Result i. That of a formula has the type of operand `like` of the model, if this is a half.
  void out(int i, ir::ValueId v, int like = 0);
  void out_sequence(std::vector<ir::ValueId> elements);  // the one result
  // Imports a nested graph in place (a branch that is always taken); the values of its outputs.
  std::vector<ir::ValueId> inline_graph(const OnnxGraph& graph,
                                        const std::map<std::string, ir::ValueId>& inputs = {});

  // What the standard requires of extents: fails where they are known and do not keep to it; else
  // the run checks. `rule`: the requirement, as a sentence for the error.
  void require_at_most(const ir::Expr& a, const ir::Expr& b, const std::string& rule);
  void require_equal(const ir::Expr& a, const ir::Expr& b, const std::string& rule);
  // v, an integer value whose elements must be at least 0 and less than `end`; the run checks what is not known. what:
  // an element, for messages.
  ir::ValueId within(ir::ValueId v, const ir::Expr& end, const std::string& what);
  void require_multiple(const ir::Expr& a, int64_t of, const std::string& rule);

  [[noreturn]] void fail(const std::string& message) const override;  // the model breaks a rule
  [[noreturn]] void unsupported(
      const std::string& message) const;  // it is legal, but not supported
  [[noreturn]] void needs_value(
      const std::string& message) const;  // nor is it where that is not known
  // The graph that nodes are added to, and the import it is part of.
  ir::Graph& graph() override;
  const ir::Graph& graph() const override;
  GraphImport& owner() { return owner_; }

 private:
  // Returns whether two extents of this node, not known to be equal, are assumed to be.
  bool takes_for_equal(const ir::Expr& a, const ir::Expr& b);

  GraphImport& owner_;

 public:
  // The node being imported, with its attributes as the file has them.
  const OnnxNode& node;

 private:
  std::string where_;
  bool formula_;
  std::map<ir::ValueId, ir::ValueId> widened_;  // halves, and the same as f32
};

// How an operator computes in half precision: by one graph operator (which sums in f32 and rounds
// once, or moves elements), or by a formula of several. A formula gets its halves as f32, and its
// results are rounded to halves once.
enum class Form : uint8_t { kOperator, kFormula };

// One row of the tables of importers: the function that imports an operator from an opset on.
struct OpMapping {
  // The operator; the domain is "" for the standard ones.
  std::string_view domain, op_type;
  int since;  // first opset of the row; the row with the largest `since` not above the node's opset
              // holds
  void (*import)(NodeImport&);
  Form form = Form::kOperator;
};
// The row that imports the node, by its opset; null when the operator is not supported.
const OpMapping* find_mapping(const OnnxNode& node);
std::vector<std::string> mapped_ops();  // "Conv", "com.microsoft:Gelu", sorted

}  // namespace tilewright::onnx
