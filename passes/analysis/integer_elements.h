// What is known of integers that a kernel reads from buffers, where they are indices or bounds of loops.
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/graph/op.h"
#include "ir/loops/facts.h"
#include "ir/loops/nodes.h"

namespace tilewright::passes {

// What a parameter's elements are known to be, as the run checks before the kernel: indices into dimensions of these
// extents (ir/graph/op.h), all elements or one for each place along the last dimension.
struct CheckedElements {
  ir::Buffer buffer;
  std::vector<ir::IndexedDim> dims;
};

// Elements of checked parameters have the range that was checked; those of temporaries, the range of all that the
// kernel stores there.
class IntegerElements {
 public:
  // Borrows both.
  IntegerElements(const ir::Kernel& kernel, const std::vector<CheckedElements>& checked);

  // The expression with a name in place of each integer element and each integer let, the same one for the same
  // element; `facts` get what range is known. Lets stand for their values where these stay the same.
  ir::Expr named(const ir::Expr& e, ir::Facts& facts);
  // Assumes of each element in `named` that it lies in [0, extent), where all that is stored there does.
  void assume_stored_within(const ir::Expr& named, const ir::Expr& extent, ir::Facts& facts);
  // What of a condition of statement `s` lasts to its end: conjuncts whose elements `s` does not store to. Null:
  // nothing.
  ir::Expr lasting(const ir::Expr& condition, const ir::Stmt& s) const;
  // Whether the variable is part of a name.
  bool is_name(const ir::Expr& v) const { return names_.count(v.get()) != 0; }

 private:
  struct Stored {
    ir::Expr value;
    ir::Facts facts;  // where it is stored
  };
  struct Element {
    ir::Expr key, name;            // a load, cast to i64 or not, or a let's variable
    const ir::BufferNode* buffer;  // that it is read from; null: none
    std::optional<ir::Ranges::Range> range;
  };
  friend class StoreCollector;
  friend class ElementNamer;
  ir::Expr name_of(const ir::Expr& key, const ir::Expr& element, ir::Facts& facts);
  std::optional<ir::Ranges::Range> range_of(const ir::Load& load, DType type);
  std::optional<ir::Ranges::Range> range_of_value(const ir::Expr& value, DType type,
                                                  ir::Facts& facts);
  std::optional<ir::Ranges::Range> checked_range(const ir::Load& load, DType type) const;
  std::optional<ir::Interval> range_of_stored(const ir::BufferNode& buffer);
  ir::Expr value_of_let(const ir::Expr& e) const;
  const ir::Load* load_behind(const ir::Expr& e) const;
  bool all_stored_within(const ir::BufferNode& buffer, const ir::Expr& extent);

  const std::vector<CheckedElements>& checked_;
  std::unordered_map<const ir::BufferNode*, std::vector<Stored>>
      stored_;  // temporaries of integers
  std::unordered_map<const ir::ExprNode*, ir::Expr> lets_;
  std::unordered_set<const ir::BufferNode*> written_;  // by the kernel
  std::vector<Element> elements_;
  std::unordered_set<const ir::ExprNode*> names_;
  // Buffers whose range is being found, or of which it is being proven that all that is stored there lies within an
  // extent. What is stored there of their own elements does, by induction over the stores. Names given within the
  // former are forgotten afterwards.
  std::unordered_set<const ir::BufferNode*> open_ranges_, open_extents_;
};

}  // namespace tilewright::passes
