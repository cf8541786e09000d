#include "autotune/check/captured_calls.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "ir/loops/rewrite.h"
#include "ir/program/buffer_uses.h"
#include "runtime/arena.h"
#include "runtime/profiler.h"

namespace tilewright::autotune {

namespace {

constexpr uint8_t kPoison = 0xff;

// What the program says of a call.
struct KnownCall {
  size_t block = 0, instruction = 0;
  const ir::Kernel* kernel = nullptr;
  std::vector<bool> constant, read, written;
};

// Follows one run from call to call (Session's observer). A call's operands are copied before it runs;
// what it only writes is filled with ones then, so that what a candidate leaves out differs from what
// it should be, and is not by chance what an earlier run left there.
class Capture {
 public:
  Capture(const ir::Program& program, const Variant& variant, SharedMemory contents)
      : program_(program), variant_(variant) {
    calls_.contents = std::move(contents);
    for (size_t b = 0; b < program.blocks.size(); ++b)
      for (size_t i = 0; i < program.blocks[b].size(); ++i)
        if (const auto* call = std::get_if<ir::CallInstruction>(&program.blocks[b][i]))
          known_[&variant.blocks[b][i]] = know(*call, b, i);
  }

  void observe(const CallView& view, bool done) {
    const auto it = known_.find(&view.call);
    if (it == known_.end()) return;
    if (done)
      finish(view);
    else
      begin(view, it->second);
  }
  CapturedCalls take() { return std::move(calls_); }

 private:
  KnownCall know(const ir::CallInstruction& call, size_t block, size_t instruction) const {
    KnownCall k{block, instruction, &program_.kernels[static_cast<size_t>(call.kernel)],
                {},    {},          {}};
    const std::vector<ir::BufferUse> uses = ir::param_uses(*k.kernel);
    const std::vector<bool> loads = loaded(*k.kernel);
    for (size_t p = 0; p < call.buffers.size(); ++p) {
      const auto& b = program_.buffers[static_cast<size_t>(call.buffers[p])];
      k.constant.push_back(b.kind == ir::StorageKind::kConstant && b.alias_of < 0);
      k.written.push_back(uses[p] == ir::BufferUse::kWritten);
      k.read.push_back(loads[p]);
    }
    return k;
  }
  // By parameter: whether loops read it. Sums that are made in memory read what they write.
  static std::vector<bool> loaded(const ir::Kernel& kernel);

  int64_t bytes_of(const CallView& view, size_t p) const {
    const BufferDesc& desc = variant_.buffers[static_cast<size_t>(view.call.buffers[p])];
    const int64_t stored = desc.alias_of < 0 ? evaluate(desc.bytes, {}).value_or(0) : 0;
    return std::max(view.bytes[p], stored);  // layouts may pad
  }
  // Whether another operand lies in the same memory: what it holds is not to be spoilt.
  bool is_shared(const CallView& view, size_t p) const {
    const auto begin = [&](size_t q) { return reinterpret_cast<uintptr_t>(view.buffers[q]); };
    for (size_t q = 0; q < view.buffers.size(); ++q)
      if (q != p && begin(q) < begin(p) + static_cast<uintptr_t>(bytes_of(view, p)) &&
          begin(p) < begin(q) + static_cast<uintptr_t>(bytes_of(view, q)))
        return true;
    return false;
  }

  void begin(const CallView& view, const KnownCall& known) {
    open_.reset();
    if (calls_.by_kernel.count(known.kernel->name)) return;
    int64_t bytes = 0;
    for (size_t p = 0; p < view.buffers.size(); ++p)
      if (!known.constant[p]) bytes += (known.written[p] ? 2 : 1) * align_up(bytes_of(view, p));
    if (bytes > calls_.contents.bytes() - used_) return;
    open_.emplace();
    open_->name = known.kernel->name;
    open_->call = {known.block, known.instruction, {}, {view.scalars.begin(), view.scalars.end()}};
    for (size_t p = 0; p < view.buffers.size(); ++p) {
      CapturedOperand o{.dtype = known.kernel->params[p]->dtype, .constant = known.constant[p]};
      o.written = known.written[p] && !o.constant;
      o.bytes = bytes_of(view, p);
      open_->old.emplace_back();
      auto* at = static_cast<uint8_t*>(view.buffers[p]);
      if (!o.constant) {
        if (o.written && !known.read[p] && !is_shared(view, p)) {
          open_->old.back().assign(at, at + o.bytes);
          std::fill(at, at + o.bytes, kPoison);
        }
        o.before = keep(at, o.bytes);
      }
      open_->call.operands.push_back(o);
    }
    open_->since = now_nanoseconds();
  }
  int64_t keep(const uint8_t* from, int64_t bytes) {
    const int64_t at = used_;
    std::copy(from, from + bytes, calls_.contents.data() + at);
    used_ += align_up(bytes);
    return at;
  }

  // What the call has not written gets back what was there.
  void finish(const CallView& view) {
    if (!open_) return;
    open_->call.seconds = static_cast<double>(now_nanoseconds() - open_->since) * 1e-9;
    for (size_t p = 0; p < view.buffers.size(); ++p) {
      CapturedOperand& o = open_->call.operands[p];
      if (!o.written) continue;
      auto* at = static_cast<uint8_t*>(view.buffers[p]);
      o.after = keep(at, o.bytes);
      const auto size = static_cast<size_t>(byte_size(o.dtype));
      const std::vector<uint8_t>& old = open_->old[p];
      for (size_t i = 0; i + size <= old.size(); i += size)
        if (std::all_of(at + i, at + i + size, [](uint8_t x) { return x == kPoison; }))
          std::memcpy(at + i, old.data() + i, size);
    }
    calls_.by_kernel.emplace(std::move(open_->name), std::move(open_->call));
    open_.reset();
  }

  struct Open {
    std::string name;
    CapturedCall call;
    std::vector<std::vector<uint8_t>> old;  // of what was poisoned
    int64_t since = 0;                      // nanoseconds
  };
  const ir::Program& program_;
  const Variant& variant_;
  std::map<const Instruction*, KnownCall> known_;
  std::optional<Open> open_;
  CapturedCalls calls_;
  int64_t used_ = 0;  // bytes of its contents
};

std::vector<bool> Capture::loaded(const ir::Kernel& kernel) {
  std::set<const ir::BufferNode*> loads;
  ir::for_each_expr(kernel.body, [&](const ir::Expr& e) {
    if (const auto* l = e.as<ir::Load>()) loads.insert(l->buffer.get());
  });
  ir::for_each_stmt(kernel.body, [&](const ir::Stmt& s) {
    if (const auto* tile = s.as<ir::DotTile>()) loads.insert(tile->sum.buffer.get());
  });
  std::vector<bool> found;
  for (const ir::Buffer& b : kernel.params) found.push_back(loads.count(b.get()) != 0);
  return found;
}

}  // namespace

Result<CapturedCalls> capture_calls(const ir::Program& program,
                                    const std::shared_ptr<Executable>& executable,
                                    std::span<const Tensor> inputs,
                                    std::shared_ptr<ThreadPool> pool, int64_t most_bytes) {
  TW_ASSIGN(SharedMemory contents, SharedMemory::make(most_bytes));
  Capture capture(program, executable->variants[0], std::move(contents));
  SessionOptions options{.pool = std::move(pool), .seed = 1};
  options.observer = [&](const CallView& view, bool done) { capture.observe(view, done); };
  TW_ASSIGN(const auto session, Session::create(executable, std::move(options)));
  std::vector<Tensor> outputs;
  TW_RETURN_IF_ERROR(session->run(inputs, outputs));
  return capture.take();
}

}  // namespace tilewright::autotune
