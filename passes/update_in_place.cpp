// Runs when a program is written and its kernels are flat loops: tuned schedules, recorded answers and
// what kernels are checked against know nothing of it.
#include "passes/update_in_place.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/loops/rewrite.h"
#include "ir/program/buffer_ranges.h"

namespace tilewright::passes {

using namespace ir;

namespace {

using Pairs = std::vector<std::pair<size_t, size_t>>;  // parameters (input, result) of a kernel

class UpdateInPlace {
 public:
  UpdateInPlace(Program& program, const std::vector<std::pair<int32_t, int32_t>>& updates)
      : p_(program), uses_(program), updates_(updates) {}

  void run() {
    for (const auto& [input, result] : updates_) at(input).updated = true;
    keep_old_contents();
    std::vector<std::pair<int32_t, int32_t>> copies;
    for (auto [input, result] : updates_)
      if (root(result) != input && !write_directly(input, result))
        copies.push_back({input, result});
    merge_parameters();
    put_copies();
    for (auto [input, result] : copies) main().push_back(CopyInstruction{input, result});
  }

 private:
  ProgramBuffer& at(int32_t b) { return p_.buffers[static_cast<size_t>(b)]; }
  std::vector<ProgramInstruction>& main() { return p_.blocks[0]; }
  int32_t root(int32_t b) const { return storage_root(p_, b); }
  Kernel& kernel_of(const CallInstruction& c) { return p_.kernels[static_cast<size_t>(c.kernel)]; }

  // Results that are the old contents of an updated input are copied before anything is stored.
  void keep_old_contents() {
    std::vector<ProgramInstruction> first;
    const auto keep = [&](int32_t& b, StorageKind kind) {
      if (!at(root(b)).updated) return;
      ProgramBuffer kept = at(b);
      kept.kind = kind;
      kept.alias_of = -1;
      kept.alias_offset = 0;
      kept.view = {};
      kept.updated = false;
      first.push_back(CopyInstruction{static_cast<int32_t>(p_.buffers.size()), b});
      b = static_cast<int32_t>(p_.buffers.size());
      p_.buffers.push_back(std::move(kept));
    };
    for (int32_t& b : p_.outputs) keep(b, StorageKind::kOutput);
    for (auto& [input, result] : updates_)
      if (root(result) != input) keep(result, StorageKind::kTemporary);
    main().insert(main().begin(), first.begin(), first.end());
  }

  // Lets the calls that compute `result`, each a part of it, store it in `input`.
  bool write_directly(int32_t input, int32_t result) {
    if (root(result) != result || at(result).kind != StorageKind::kTemporary || at(result).dynamic)
      return false;
    std::vector<std::pair<size_t, size_t>> writes, apart;  // instruction, its parameter
    for (size_t i = 0; i < main().size(); ++i) {
      if (!touches(main()[i], whole(result), true)) continue;
      const auto* call = std::get_if<CallInstruction>(&main()[i]);
      if (!call) return false;
      std::set<int32_t> stored;
      uses_.of(main()[i], [&](int32_t b, BufferUse use) {
        if (root(b) == result && use != BufferUse::kRead) stored.insert(b);
      });
      for (size_t k = 0; k < call->buffers.size(); ++k)
        if (stored.count(call->buffers[k])) writes.push_back({i, k});
    }
    for (const auto& [i, k] : writes)
      if (!is_last(i, k, input) || meets_another(writes, i, k)) return false;
    for (const auto& [i, k] : writes)
      if (!find_pair(i, k, input)) apart.push_back({i, k});
    if (writes.empty() || (writes.size() == 1 && !apart.empty())) return false;
    at(result).alias_of = input;
    for (const auto& [i, k] : apart) write_apart(i, k);
    return true;
  }
  // Kernels that store parts of a buffer which is theirs as a whole leave open what each of them stores.
  bool meets_another(const std::vector<std::pair<size_t, size_t>>& writes, size_t instruction,
                     size_t k) const {
    const auto stored = [&](size_t i, size_t p) {
      return range(std::get<CallInstruction>(p_.blocks[0][i]).buffers[p]);
    };
    return std::any_of(writes.begin(), writes.end(), [&](const auto& w) {
      return w != std::pair(instruction, k) &&
             meet(stored(w.first, w.second), stored(instruction, k));
    });
  }
  BufferRange whole(int32_t b) const { return {.in = b}; }
  BufferRange range(int32_t b) const { return range_of(p_, b); }
  bool touches(const ProgramInstruction& x, const BufferRange& memory, bool to_write) const {
    return ir::touches(p_, uses_, x, memory, to_write);
  }
  // Does nothing behind the call read what the input holds where its parameter k is to lie?
  bool is_last(size_t writer, size_t k, int32_t input) const {
    BufferRange written = range(std::get<CallInstruction>(p_.blocks[0][writer]).buffers[k]);
    written.in = input;
    for (size_t i = writer + 1; i < p_.blocks[0].size(); ++i)
      if (touches(p_.blocks[0][i], written, false)) return false;
    return true;
  }
  // May the call store its parameter k over what it reads there?
  bool find_pair(size_t writer, size_t k, int32_t input) {
    const auto& call = std::get<CallInstruction>(main()[writer]);
    BufferRange written = range(call.buffers[k]);
    written.in = input;
    std::vector<size_t> reads;
    for (size_t p = 0; p < call.buffers.size(); ++p)
      if (meet(range(call.buffers[p]), written)) reads.push_back(p);
    if (reads.empty()) return true;
    const BufferRange read = range(call.buffers[reads[0]]);
    const Kernel& kernel = kernel_of(call);
    if (reads.size() > 1 || read.begin != written.begin || read.end != written.end ||
        !updates_by_element(kernel, kernel.params[reads[0]], kernel.params[k]))
      return false;
    merged_[writer].push_back({reads[0], k});
    return true;
  }
  // What cannot be stored there at once is copied behind the call.
  void write_apart(size_t writer, size_t k) {
    auto& call = std::get<CallInstruction>(main()[writer]);
    ProgramBuffer own = at(call.buffers[k]);
    own.kind = StorageKind::kTemporary;
    own.alias_of = -1;
    own.alias_offset = 0;
    own.view = {};
    const auto number = static_cast<int32_t>(p_.buffers.size());
    copied_.emplace(writer, CopyInstruction{call.buffers[k], number});
    call.buffers[k] = number;
    p_.buffers.push_back(std::move(own));
  }
  void put_copies() {
    std::vector<ProgramInstruction> all;
    for (size_t i = 0; i < main().size(); ++i) {
      all.push_back(std::move(main()[i]));
      const auto [first, last] = copied_.equal_range(i);
      for (auto it = first; it != last; ++it) all.emplace_back(it->second);
    }
    main() = std::move(all);
  }

  // One parameter for both of a pair. Other calls of a kernel keep it as it is.
  void merge_parameters() {
    std::map<std::pair<int32_t, Pairs>, int32_t> made;
    for (auto& [instruction, pairs] : merged_) {
      auto& call = std::get<CallInstruction>(main()[instruction]);
      std::sort(pairs.begin(), pairs.end());
      const auto [it, is_new] = made.try_emplace({call.kernel, pairs}, call.kernel);
      if (is_new) it->second = merged_kernel(call.kernel, pairs);
      call.kernel = it->second;
      call.buffers = without_results(call.buffers, pairs);
    }
  }
  int32_t merged_kernel(int32_t kernel, const Pairs& pairs) {
    const auto from = static_cast<size_t>(kernel);
    Kernel k = p_.kernels[from];
    BufferMap buffers;
    for (const auto& [input, result] : pairs) buffers[k.params[result].get()] = k.params[input];
    k.body = replace_buffers(k.body, buffers);
    k.params = without_results(k.params, pairs);
    if (!is_called_otherwise(kernel)) {
      p_.kernels[from] = std::move(k);
      return kernel;
    }
    k.name += "_in_place";
    p_.kernels.push_back(std::move(k));
    p_.schedules.push_back(p_.schedules[from]);
    return static_cast<int32_t>(p_.kernels.size()) - 1;
  }
  // By calls that have nothing to merge, or other parameters.
  bool is_called_otherwise(int32_t kernel) const {
    const Pairs* pairs = nullptr;
    for (size_t b = 0; b < p_.blocks.size(); ++b)
      for (size_t i = 0; i < p_.blocks[b].size(); ++i) {
        const auto* call = std::get_if<CallInstruction>(&p_.blocks[b][i]);
        if (!call || call->kernel != kernel) continue;
        const auto it = b == 0 ? merged_.find(i) : merged_.end();
        if (it == merged_.end() || (pairs && *pairs != it->second)) return true;
        pairs = &it->second;
      }
    return false;
  }
  template <typename T>
  static std::vector<T> without_results(const std::vector<T>& all, const Pairs& pairs) {
    std::vector<T> kept;
    for (size_t k = 0; k < all.size(); ++k)
      if (std::none_of(pairs.begin(), pairs.end(), [&](const auto& p) { return p.second == k; }))
        kept.push_back(all[k]);
    return kept;
  }

  Program& p_;
  const BufferUses uses_;
  std::vector<std::pair<int32_t, int32_t>> updates_;
  std::map<size_t, Pairs> merged_;                 // by instruction of the main block
  std::multimap<size_t, CopyInstruction> copied_;  // behind an instruction
};

}  // namespace

void update_in_place(Program& program, const std::vector<std::pair<int32_t, int32_t>>& updates) {
  if (!updates.empty()) UpdateInPlace(program, updates).run();
}

}  // namespace tilewright::passes
