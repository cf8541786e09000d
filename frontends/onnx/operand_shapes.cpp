// Matches each operand with the first alternative of its row that has its rank. A first pass binds letters to extents,
// a second one compares all extents with their expressions.
#include "frontends/onnx/operand_shapes.h"

#include <algorithm>
#include <map>
#include <vector>

#include "frontends/onnx/operand_types.h"
#include "frontends/onnx/split_text.h"
#include "ir/loops/simplify.h"
#include "ir/text/printer_loops.h"

namespace tilewright::onnx {

using ir::Expr;

namespace {

using Extents = std::vector<std::string_view>;

bool is_star(std::string_view extent) { return extent.starts_with('*'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
// "h"; or "x2", of the extents at *x.
bool is_letter(std::string_view text) {
  return text[0] >= 'a' && text[0] <= 'z' && std::ranges::all_of(text.substr(1), is_digit);
}

const OperandShapes* find_row(const NodeImport& n) {
  const OperandShapes* best = nullptr;
  for (const OperandShapes& row :
       n.node.domain.empty() ? standard_operand_shapes() : microsoft_operand_shapes()) {
    if (row.op_type != n.node.op_type || row.since > n.opset()) continue;
    const std::string attribute(row.attribute);
    if (!attribute.empty() && n.int_attr(attribute, 0) == 0) continue;
    if (!best || row.since > best->since || !attribute.empty()) best = &row;
  }
  return best;
}

// The operands of one node against one row.
class ShapeCheck {
 public:
  ShapeCheck(NodeImport& n, const Signature& signature) : n_(n), signature_(signature) {}

  void run(const OperandShapes& row) {
    for (const std::string_view word : words(row.shapes)) {
      const size_t colon = word.find(':');
      const std::string name = "operand '" + std::string(word.substr(0, colon)) + "'";
      for (int i = 0; i < n_.num_inputs(); ++i)
        if (operand_name(signature_, i) == name && n_.has(i) && !n_.is_sequence(i))
          add(i, name, word.substr(colon + 1));
    }
    for (const Operand& operand : operands_) bind(operand);
    for (const Operand& operand : operands_) compare(operand);
  }

 private:
  struct Operand {
    int number;
    std::string name;
    Extents extents;
    std::vector<Expr> dims;
  };

  void add(int i, const std::string& name, std::string_view text) {
    const ir::TensorType& type = n_.type(n_.stored(i));
    if (text == "scalar") {
      if (type.rank() > 1) fail_rank(name, type, "one element");
      if (type.rank() == 1) n_.require_equal(type.dims[0], Expr(1), name + " has one element");
      return;
    }
    for (const std::string_view alternative : words(text, '|')) {
      Extents extents = words(alternative, ',');
      const auto star = std::ranges::find_if(extents, is_star);
      const int fixed = static_cast<int>(extents.size()) - (star != extents.end() ? 1 : 0),
                more = type.rank() - fixed;
      if (star == extents.end() ? more != 0 : more < 0) continue;
      if (star != extents.end() && *star != "*") {
        // As many in each operand of the node: the first one says how many.
        if (stars_ < 0) stars_ = more, starred_ = name;
        if (more != stars_)
          n_.fail(name + " is " + to_string(type) + ", expected " + shown(alternative) +
                  " with as many dimensions at * as " + starred_ + ", " + std::to_string(stars_));
      }
      operands_.push_back({i, name, std::move(extents), type.dims});
      return;
    }
    fail_rank(name, type, shown(text));
  }
  // "[n, c, ...]" for "n,c,*x".
  static std::string shown(std::string_view text) {
    std::string all;
    for (const std::string_view alternative : words(text, '|')) {
      std::string one;
      for (const std::string_view e : words(alternative, ','))
        one += (one.empty() ? "" : ", ") + (is_star(e) ? "..." : std::string(e));
      all += (all.empty() ? "[" : " or [") + one + "]";
    }
    return all;
  }
  [[noreturn]] void fail_rank(const std::string& name, const ir::TensorType& type,
                              const std::string& expected) const {
    n_.fail(name + " is " + to_string(type) + " of rank " + std::to_string(type.rank()) +
            ", expected " + expected);
  }

  // Calls visit(text, dimension) for each dimension. The text is "x0", "x1", ... in *x, and ? in *.
  template <typename Visit>
  static void for_each_extent(const Operand& operand, const Visit& visit) {
    const size_t more = operand.dims.size() + 1 - operand.extents.size();
    size_t d = 0;
    for (const std::string_view e : operand.extents) {
      if (!is_star(e)) {
        visit(std::string(e), d++);
        continue;
      }
      for (size_t k = 0; k < more; ++k, ++d)
        visit(e == "*" ? "?" : std::string(e.substr(1)) + std::to_string(k), d);
    }
  }
  void bind(const Operand& operand) {
    for_each_extent(operand, [&](const std::string& text, size_t d) {
      if (is_letter(text)) bound_.try_emplace(text, Bound{operand.dims[d], operand.name});
    });
  }
  void compare(const Operand& operand) const {
    for_each_extent(operand, [&](const std::string& text, size_t d) {
      if (text == "?") return;
      const size_t quotient = text.find('/');
      const std::optional<Expr> wanted = product(text.substr(0, quotient));
      if (!wanted) return;
      Expr found = operand.dims[d];
      if (quotient != std::string::npos) {
        const std::optional<Expr> divisor = product(text.substr(quotient + 1));
        if (!divisor) return;
        found = simplify(found * *divisor);
      }
      if (ir::can_prove_equal(found, *wanted)) return;
      const auto x = ir::as_int(found), y = ir::as_int(*wanted);
      const std::string rule =
          "extent " + std::to_string(d) + " of " + operand.name + " is " + described(text);
      if (x && y)
        n_.fail(operand.name + " is " + to_string(n_.type(n_.stored(operand.number))) + ": " +
                rule + (quotient == std::string::npos ? ", " + std::to_string(*y) : ""));
      n_.require_equal(found, *wanted, rule);
    });
  }
  // "that of X" of a letter, by the operand that bound it.
  std::string described(const std::string& text) const {
    const auto it = bound_.find(text);
    if (it != bound_.end()) return "that of " + it->second.operand;
    std::string from;
    for (const auto& [letter, bound] : bound_)
      for (const char sign : {'*', '/'})
        for (const std::string_view factor : words(text, sign))
          if (factor == letter && from.find(bound.operand) == std::string::npos)
            from += (from.empty() ? ", with " : " and ") + letter + " of " + bound.operand;
    return text + from;
  }
  // Of numbers, letters and attributes; nothing where a letter has no extent.
  std::optional<Expr> product(const std::string& text) const {
    Expr value(1);
    for (const std::string_view factor : words(text, '*')) {
      const std::string name(factor);
      const auto bound = bound_.find(name);
      if (bound != bound_.end())
        value = value * bound->second.extent;
      else if (is_digit(name[0]))
        value = value * Expr(static_cast<int64_t>(std::stoll(name)));
      else if (is_letter(name))
        return std::nullopt;
      else
        value = value * Expr(n_.int_attr(name, 1));
    }
    return simplify(value);
  }

  struct Bound {
    Expr extent;
    std::string operand;
  };

  NodeImport& n_;
  const Signature& signature_;
  std::vector<Operand> operands_;
  std::map<std::string, Bound> bound_;
  int stars_ = -1;
  std::string starred_;
};

}  // namespace

void check_operand_shapes(NodeImport& n, const Signature& signature) {
  if (const OperandShapes* row = find_row(n)) ShapeCheck(n, signature).run(*row);
}

}  // namespace tilewright::onnx
