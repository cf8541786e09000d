// Which stores of local buffers may write lanes that are off: nobody reads what they leave there.
#pragma once

#include <set>
#include <unordered_map>
#include <vector>

#include "ir/loops/linear.h"
#include "ir/loops/simplify.h"

namespace tilewright::passes {

class ScratchLanes {
 public:
  explicit ScratchLanes(const ir::Stmt& s);

  // Do the lanes of a store at `index`, those that are off among them, reach what stores write as a piece of its own,
  // behind the store's?
  bool reach_another(const ir::Store& st, const ir::Expr& index, const ir::Ranges& ranges) const;
  // Is it true of all lanes of sums at `index` that `mask` turns off that nothing was set there before, so that
  // nothing is there to be kept?
  bool are_unset(const ir::BufferNode& b, const ir::Expr& index, const ir::Expr& mask,
                 const ir::Ranges& ranges) const;

 private:
  void visit(const ir::Stmt& s);
  // Of elements, before they are summed up; under conditions on the lane, or of all lanes where there are none.
  struct Set {
    ir::Linear index;
    std::vector<ir::Expr> conditions;
  };
  bool stays_in_rows_of(const Set& set, const ir::Expr& index, const ir::Ranges& ranges) const;
  bool stays_below(const Set& set, int64_t row, int64_t start, int64_t columns) const;
  std::unordered_map<const ir::BufferNode*, std::vector<Set>> sets_;
  // Told by the constant parts of indices: places that differ by variables are rows of their own.
  std::unordered_map<const ir::BufferNode*, std::set<int64_t>> begins_;
  ir::Ranges ranges_;
  ir::Var lane_;                      // of the innermost vectorised loop
  std::vector<ir::Expr> conditions_;  // on it
};

}  // namespace tilewright::passes
