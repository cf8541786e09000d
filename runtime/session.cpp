// A run, step by step: check the inputs, choose the variant whose extents they fit, find or make
// the plan for their sizes, point the program's inputs and outputs at the caller's tensors where
// that is possible, execute, and deliver. Everything but the execution is skipped or free of
// allocation when the same sizes come again.
#include "runtime/session.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "runtime/executable_check.h"

namespace tilewright {
namespace {

// Half-open ranges of bytes; empty tensors overlap nothing.
bool overlap(const Tensor& a, const Tensor& b) {
  const auto x = reinterpret_cast<uintptr_t>(a.data()), y = reinterpret_cast<uintptr_t>(b.data());
  return a.bytes() > 0 && b.bytes() > 0 && x < y + static_cast<uintptr_t>(b.bytes()) &&
         y < x + static_cast<uintptr_t>(a.bytes());
}

// Kernels rely on aligned outputs that share memory with nothing else.
bool is_writable_in_place(std::span<const Tensor> inputs, const std::vector<Tensor>& outputs,
                          size_t i) {
  const Tensor& t = outputs[i];
  if (reinterpret_cast<uintptr_t>(t.data()) % kAlignment != 0) return false;
  for (const Tensor& in : inputs)
    if (overlap(t, in)) return false;
  for (size_t j = 0; j < outputs.size(); ++j)
    if (j != i && outputs[j].defined() && overlap(t, outputs[j])) return false;
  return true;
}

// The same of inputs that a run updates.
Status check_updated(const std::vector<ValueInfo>& infos, std::span<const Tensor> inputs,
                     const std::vector<Tensor>& outputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!infos[i].updated) continue;
    const std::string which = "input '" + infos[i].name + "' is updated by the run: ";
    if (reinterpret_cast<uintptr_t>(inputs[i].data()) % kAlignment != 0)
      return invalid(which + "its data is not aligned to " + std::to_string(kAlignment) + " bytes");
    for (size_t j = 0; j < inputs.size(); ++j)
      if (j != i && overlap(inputs[i], inputs[j]))
        return invalid(which + "it shares memory with input '" + infos[j].name + "'");
    for (const Tensor& o : outputs)
      if (o.defined() && overlap(inputs[i], o))
        return invalid(which + "it shares memory with an output");
  }
  return {};
}

bool has_type(const Tensor& t, DType dtype, const Shape& shape) {
  return t.defined() && t.dtype() == dtype && t.shape() == shape;
}

std::shared_ptr<ThreadPool> make_pool(int threads) {
  return std::make_shared<ThreadPool>(threads > 0 ? threads : available_cpus());
}

uint64_t system_seed() {
  uint64_t seed = 0;
  if (getentropy(&seed, sizeof seed) != 0) seed = static_cast<uint64_t>(now_nanoseconds());
  return seed;
}

// A key of its own for each run: SplitMix64 (Steele, Lea and Flood, 2014), which takes different
// numbers to different keys.
std::array<uint32_t, 2> key_of_run(uint64_t seed, uint64_t run) {
  uint64_t z = seed + (run + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  z ^= z >> 31;
  return {static_cast<uint32_t>(z), static_cast<uint32_t>(z >> 32)};
}

}  // namespace

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const Executable> executable,
                                                 SessionOptions options) {
  TW_RETURN_IF_ERROR(check_executable(*executable));
  for (const Variant& v : executable->variants)
    for (const KernelDesc& k : v.kernels)
      if (!k.function) return internal_error("kernel '" + k.name + "' is not resolved");
  return std::unique_ptr<Session>(new Session(std::move(executable), std::move(options)));
}

Session::Session(std::shared_ptr<const Executable> executable, SessionOptions options)
    : executable_(std::move(executable)),
      input_infos_(describe_inputs(*executable_)),
      output_infos_(describe_outputs(*executable_)),
      defaults_(default_inputs(executable_)),
      pool_(options.pool ? std::move(options.pool) : make_pool(options.threads)),
      profiling_(options.profile),
      guard_(options.guard),
      observer_(std::move(options.observer)),
      collectives_(options.collectives),
      seed_(options.seed ? options.seed : system_seed()),
      runner_(options.dynamic_limit) {
  for (const Variant& v : executable_->variants) layouts_.push_back(make_layout(v));
  slots_.resize(output_infos_.size());
}

void Session::set_next_run(uint64_t run) {
  std::lock_guard lock(mutex_);
  runs_ = run;
}

void Session::set_collectives(Collectives* collectives) {
  std::lock_guard lock(mutex_);
  collectives_ = collectives;
}

void Session::set_threads(int threads) {
  std::lock_guard lock(mutex_);
  pool_ = make_pool(threads);
  plans_.clear();  // workspaces depend on the number of workers
}

int Session::threads() const {
  std::lock_guard lock(mutex_);
  return pool_->worker_count();
}

void Session::set_profiling(bool enabled) {
  std::lock_guard lock(mutex_);
  profiling_ = enabled;
  if (enabled) profiler_.clear();
}

Profiler Session::profile() const {
  std::lock_guard lock(mutex_);
  return profiler_;
}

Status Session::run(std::span<const Tensor> inputs, std::vector<Tensor>& outputs) {
  std::lock_guard lock(mutex_);
  struct Release {  // the session holds the caller's tensors no longer than the run
    std::vector<Tensor>& given;
    ~Release() { given.clear(); }
  } release{given_};
  inputs = with_defaults(inputs);
  TW_RETURN_IF_ERROR(check_inputs(executable_->variants[0], inputs));
  if (!outputs.empty() && outputs.size() != output_infos_.size())
    return invalid("got " + std::to_string(outputs.size()) + " outputs, expected " +
                   std::to_string(output_infos_.size()));
  TW_RETURN_IF_ERROR(check_updated(input_infos_, inputs, outputs));
  outputs.resize(output_infos_.size());
  TW_ASSIGN(layout_, choose_variant(inputs));
  TW_ASSIGN(plan_, find_plan(*layout_));
  TW_RETURN_IF_ERROR(prepare_arena());
  Status status = run_planned(inputs, outputs);
  runner_.end();
  for (OutputSlot& s : slots_) s.storage = {};
  return status;
}

std::span<const Tensor> Session::with_defaults(std::span<const Tensor> inputs) {
  auto left_out = [&](size_t i) { return i >= inputs.size() || !inputs[i].defined(); };
  bool any = false;
  for (size_t i = 0; i < defaults_.size(); ++i) any |= defaults_[i].defined() && left_out(i);
  if (!any || inputs.size() > defaults_.size()) return inputs;
  given_.assign(inputs.begin(), inputs.end());
  given_.resize(defaults_.size());
  for (size_t i = 0; i < given_.size(); ++i)
    if (!given_[i].defined()) given_[i] = defaults_[i];
  return given_;
}

// Variants whose input extents are all fixed are tried first. Where no variant's requirements hold, the
// most general one that fits says which.
Result<const VariantLayout*> Session::choose_variant(std::span<const Tensor> inputs) {
  const VariantLayout* fitting = nullptr;
  for (const bool fixed : {true, false})
    for (const VariantLayout& l : layouts_) {
      if (l.fixed != fixed || !bind_symbols(*l.variant, inputs, symbols_)) continue;
      if (layouts_.size() == 1 || requirements_hold(*l.variant, symbols_)) return &l;
      fitting = &l;
    }
  if (fitting) {
    bind_symbols(*fitting->variant, inputs, symbols_);
    return fitting;
  }
  Error error = explain_mismatch(*layouts_.back().variant, inputs);
  if (layouts_.size() > 1)
    error.notes.push_back("none of the model's " + std::to_string(layouts_.size()) +
                          " variants fits");
  return error;
}

// The plans are a small LRU cache, the latest at the end.
Result<Plan*> Session::find_plan(const VariantLayout& layout) {
  for (size_t i = plans_.size(); i-- > 0;) {
    if (plans_[i].layout != &layout || plans_[i].plan->symbols != symbols_) continue;
    std::rotate(plans_.begin() + i, plans_.begin() + i + 1, plans_.end());
    return plans_.back().plan.get();
  }
  TW_ASSIGN(Plan plan, make_plan(layout, symbols_, pool_->worker_count(), guard_));
  if (plans_.size() == kPlanLimit) plans_.erase(plans_.begin());
  plans_.push_back({&layout, std::make_unique<Plan>(std::move(plan))});
  return plans_.back().plan.get();
}

Status Session::prepare_arena() {
  const bool guarded = guard_ != Guard::kNone;
  if (!guarded && plan_->arena_bytes <= arena_.capacity) return {};
  arena_ = {};  // the old one goes first
  TW_ASSIGN(arena_, guarded ? allocate_guarded_storage(plan_->arena_bytes, plan_->guards)
                            : allocate_storage(plan_->arena_bytes));
  return {};
}

Status Session::run_planned(std::span<const Tensor> inputs, std::vector<Tensor>& outputs) {
  runner_.begin(*executable_, *layout_, *plan_, arena_.data);
  for (size_t i = 0; i < inputs.size(); ++i)
    runner_.set_root(layout_->variant->inputs[i], inputs[i].data());
  run_key_ = key_of_run(seed_, runs_++);
  for (int32_t b : layout_->run_keys) runner_.set_root(b, run_key_.data());
  TW_RETURN_IF_ERROR(prepare_outputs(inputs, outputs));
  TW_RETURN_IF_ERROR(
      runner_.run(*pool_, profiling_ ? &profiler_ : nullptr, observer_, collectives_));
  // A tensor that may overlap an input is filled last: another output may still have to be copied
  // from that input.
  for (const bool isolated : {true, false})
    for (size_t i = 0; i < outputs.size(); ++i)
      if (slots_[i].isolated == isolated) TW_RETURN_IF_ERROR(deliver(i, outputs[i]));
  return {};
}

// Evaluates the extents of an output, over the symbols known by now.
Status Session::set_shape(size_t output) {
  const Variant& v = *layout_->variant;
  const BufferDesc& desc = v.buffers[v.outputs[output]];
  const std::span<const int64_t> symbols = runner_.symbols();
  Shape& shape = slots_[output].shape;
  shape.resize(desc.dims.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    const std::optional<int64_t> extent = evaluate(desc.dims[d], symbols);
    if (!extent || *extent < 0)
      return internal_error("output '" + desc.name + "': extent " + std::to_string(d) +
                            " has no value");
    shape[d] = *extent;
  }
  return {};
}

Status Session::prepare_outputs(std::span<const Tensor> inputs,
                                const std::vector<Tensor>& outputs) {
  const Variant& v = *layout_->variant;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int32_t buffer = v.outputs[i], root = layout_->root[buffer];
    OutputSlot& slot = slots_[i];
    slot.isolated = !outputs[i].defined() || is_writable_in_place(inputs, outputs, i);
    if (layout_->home[root] != Home::kOutput ||
        layout_->output_of_root[root] != static_cast<int32_t>(i))
      continue;
    bool in_place = plan_->bytes[buffer] != kUnknownSize && outputs[i].defined() && slot.isolated;
    if (in_place) {
      TW_RETURN_IF_ERROR(set_shape(i));
      in_place = has_type(outputs[i], v.buffers[buffer].dtype, slot.shape) &&
                 plan_->root_bytes[root] <= outputs[i].capacity();
    }
    if (!in_place) { TW_ASSIGN(slot.storage, allocate_storage(plan_->root_bytes[root])); }
    void* const data = in_place ? outputs[i].data() : slot.storage.data;
    if (plan_->is_guarded()) poison(data, plan_->root_bytes[root]);
    runner_.set_root(root, data);
  }
  return {};
}

// Brings the elements of an output to where the caller finds them. Storage that moves into one
// output's tensor stays where it is, so that other outputs can still be copied from it.
Status Session::deliver(size_t output, Tensor& tensor) {
  TW_RETURN_IF_ERROR(set_shape(output));
  const Variant& v = *layout_->variant;
  const int32_t buffer = v.outputs[output], root = layout_->root[buffer];
  const BufferDesc& desc = v.buffers[buffer];
  OutputSlot& slot = slots_[output];
  void* source = runner_.data(buffer);
  if (!source) return internal_error("output '" + desc.name + "' was never allocated");
  if (!has_type(tensor, desc.dtype, slot.shape)) {
    const bool owns_root = layout_->output_of_root[root] == static_cast<int32_t>(output);
    if (owns_root && layout_->home[root] == Home::kDynamic)
      slot.storage = runner_.take_dynamic(root);
    if (slot.storage.data) {
      tensor = Tensor::share(desc.dtype, slot.shape, std::move(slot.storage));
      return {};
    }
    TW_ASSIGN(tensor, Tensor::allocate(desc.dtype, slot.shape));
  }
  if (tensor.data() != source)
    std::memmove(tensor.data(), source, static_cast<size_t>(tensor.bytes()));
  return {};
}

}  // namespace tilewright
