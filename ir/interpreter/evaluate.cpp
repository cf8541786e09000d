// A tree walk with a memo for small integer expressions (extents, sizes of buffers). It applies the
// interpreter's own handlers to three registers, so that there is one meaning of each operation.
#include "ir/interpreter/evaluate.h"

#include <array>
#include <utility>

#include "ir/interpreter/machine.h"
#include "ir/loops/rewrite.h"

namespace tilewright::ir {

using namespace interpreter;

namespace {

class Evaluator {
 public:
  explicit Evaluator(const IntValues& values) : values_(values) {}
  using Value = std::optional<int64_t>;

  Value run(const Expr& e) {
    if (!e || is_float(e.dtype()) || e.lanes() != 1) return std::nullopt;
    if (auto it = memo_.find(e.get()); it != memo_.end()) return it->second;
    Value v = dispatch(e, [&](const auto& n) { return run(n, e.type()); });
    memo_.emplace(e.get(), v);
    return v;
  }

 private:
  Value run(const IntImm& n, ScalarType) { return n.value; }
  Value run(const FloatImm&, ScalarType) { return std::nullopt; }
  Value run(const VarNode& n, ScalarType) {
    auto it = values_.find(&n);
    return it == values_.end() ? std::nullopt : Value(it->second);
  }
  Value run(const Cast& n, ScalarType t) {
    return compute(cast_handler(n.value.dtype(), t.dtype), run(n.value), 0);
  }
  Value run(const Bitcast& n, ScalarType t) {
    return compute(bitcast_handler(n.value.dtype(), t.dtype), run(n.value), 0);
  }
  Value run(const Unary& n, ScalarType) {
    return compute(unary_handler(n.op, n.value.dtype(), false), run(n.value), 0);
  }
  Value run(const Binary& n, ScalarType) {
    return compute(binary_handler(n.op, n.a.dtype(), false), run(n.a), run(n.b));
  }
  Value run(const Select& n, ScalarType) {
    const Value c = run(n.condition);
    return c ? run(*c ? n.a : n.b) : std::nullopt;
  }
  Value run(const Load&, ScalarType) { return std::nullopt; }
  Value run(const Ramp&, ScalarType) { return std::nullopt; }
  Value run(const Broadcast&, ScalarType) { return std::nullopt; }
  Value run(const ReduceLanes&, ScalarType) { return std::nullopt; }
  Value run(const Dot&, ScalarType) { return std::nullopt; }
  Value run(const EveryLane&, ScalarType) { return std::nullopt; }
  Value run(const Interleave&, ScalarType) { return std::nullopt; }

  // The interpreter's own instruction on three registers.
  Value compute(Handler handler, Value a, Value b) {
    if (!handler || !a || !b) return std::nullopt;
    Slot r[3];
    r[0].i = 0;
    r[1].i = *a;
    r[2].i = *b;
    Machine m;
    m.r = r;
    handler(m, {handler, 0, 1, 2, kNoReg, 1});
    return m.error ? std::nullopt : Value(r[0].i);
  }

  const IntValues& values_;
  std::unordered_map<const ExprNode*, Value> memo_;
};

}  // namespace

std::optional<int64_t> evaluate_int(const Expr& e, const IntValues& values) {
  return Evaluator(values).run(e);
}

}  // namespace tilewright::ir
