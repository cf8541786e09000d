#include "autotune/check/check_given.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "autotune/check/check_alone.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"

namespace tilewright::autotune {

namespace {

constexpr int64_t kMostBytes = int64_t{1} << 30;

// The program's symbols, by what these inputs have for extents.
ir::VarMap extents_of(const ir::Program& program, std::span<const Tensor> inputs) {
  ir::VarMap values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& dims = program.buffers[static_cast<size_t>(program.inputs[i])].type.dims;
    for (size_t d = 0; d < dims.size(); ++d)
      if (dims[d].kind() == ir::NodeKind::kVar)
        values[dims[d].get()] = ir::Expr(inputs[i].shape()[d]);
  }
  return values;
}

Result<int64_t> evaluate(const ir::Expr& e, const ir::VarMap& values) {
  const auto n = ir::as_int(ir::simplify(ir::substitute(e, values)));
  if (!n || *n < 0) return invalid("an extent does not follow from those of the inputs");
  return *n;
}

class Given {
 public:
  Given(const ir::Program& program, std::span<const Tensor> inputs)
      : program_(program), extents_(extents_of(program, inputs)) {
    for (size_t i = 0; i < inputs.size(); ++i) inputs_[program.inputs[i]] = &inputs[i];
  }

  Result<CapturedCalls> calls() {
    const auto& call = std::get<ir::CallInstruction>(program_.blocks[0][0]);
    CapturedCall captured;
    for (const int32_t b : call.buffers) {
      TW_ASSIGN(const CapturedOperand o, operand(b));
      captured.operands.push_back(o);
    }
    if (used_ > kMostBytes) return limit_error("operands are larger than 1 GiB together");
    for (const ir::Expr& s : call.scalars) {
      TW_ASSIGN(const int64_t n, evaluate(s, extents_));
      captured.scalars.push_back(n);
    }
    CapturedCalls calls;
    TW_ASSIGN(calls.contents, SharedMemory::make(std::max<int64_t>(used_, 64)));
    for (size_t p = 0; p < call.buffers.size(); ++p) {
      const CapturedOperand& o = captured.operands[p];
      const auto it = inputs_.find(call.buffers[p]);
      if (it == inputs_.end()) continue;
      const int64_t bytes = std::min(it->second->bytes(), o.bytes);
      std::memcpy(calls.contents.data() + o.before, it->second->data(), static_cast<size_t>(bytes));
    }
    calls.by_kernel[program_.kernels[0].name] = std::move(captured);
    return calls;
  }

 private:
  Result<CapturedOperand> operand(int32_t b) {
    const ir::ProgramBuffer& buffer = program_.buffers[static_cast<size_t>(b)];
    CapturedOperand o{.dtype = buffer.type.dtype,
                      .constant = buffer.kind == ir::StorageKind::kConstant};
    TW_ASSIGN(const int64_t elements, evaluate(buffer.elements, extents_));
    if (elements > kMostBytes) return limit_error("larger than 1 GiB", buffer.name);
    o.bytes = elements * byte_size(o.dtype);
    o.written = !o.constant && !inputs_.count(b);
    if (o.constant) return o;
    o.before = used_;
    used_ += (o.bytes + 63) / 64 * 64;
    return o;
  }

  const ir::Program& program_;
  const ir::VarMap extents_;
  std::map<int32_t, const Tensor*> inputs_;
  int64_t used_ = 0;  // bytes of contents
};

}  // namespace

Status check_given(const ir::Program& program, std::span<const Tensor> inputs,
                   const codegen::AssembleOptions& assemble) {
  TW_ASSIGN(const CapturedCalls calls, Given(program, inputs).calls());
  const std::string& name = program.kernels[0].name;
  TW_ASSIGN(const auto refused,
            check_alone(program, {name}, {&calls, 1}, assemble, {.seconds = 60}));
  if (refused.empty()) return {};
  return invalid("its code was called alone, and " + refused.begin()->second, name);
}

}  // namespace tilewright::autotune
