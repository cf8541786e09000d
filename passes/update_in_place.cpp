// Runs when a program is written and its kernels are flat loops: tuned schedules, recorded answers and
// what kernels are checked against know nothing of it.
#include "passes/update_in_place.h"

#include <algorithm>
#include <map>

#include "ir/loops/rewrite.h"
#include "ir/program/buffer_uses.h"

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

  // Lets the call that computes `result` store it in `input`.
  bool write_directly(int32_t input, int32_t result) {
    if (root(result) != result || at(result).kind != StorageKind::kTemporary || at(result).dynamic)
      return false;
    size_t writer = main().size();
    for (size_t i = 0; i < main().size(); ++i)
      if (touches(main()[i], result, true)) {
        if (writer < main().size()) return false;
        writer = i;
      }
    if (writer == main().size()) return false;
    for (size_t i = writer + 1; i < main().size(); ++i)
      if (touches(main()[i], input, false)) return false;
    auto* call = std::get_if<CallInstruction>(&main()[writer]);
    if (!call || !find_pair(*call, writer, input, result)) return false;
    at(result).alias_of = input;
    return true;
  }
  // Uses of a buffer's storage, those of blocks inside included.
  bool touches(const ProgramInstruction& x, int32_t storage, bool to_write) const {
    bool found = false;
    uses_.of(x, [&](int32_t b, BufferUse use) {
      found |= root(b) == storage && (!to_write || use != BufferUse::kRead);
    });
    for (int32_t inner : inner_blocks(x))
      for (const ProgramInstruction& i : p_.blocks[static_cast<size_t>(inner)])
        found |= touches(i, storage, to_write);
    return found;
  }
  bool find_pair(CallInstruction& call, size_t writer, int32_t input, int32_t result) {
    std::vector<size_t> reads, writes;
    for (size_t k = 0; k < call.buffers.size(); ++k) {
      if (root(call.buffers[k]) == input) reads.push_back(k);
      if (root(call.buffers[k]) == result) writes.push_back(k);
    }
    if (writes.size() != 1 || call.buffers[writes[0]] != result || reads.size() > 1) return false;
    if (reads.empty()) return true;
    if (at(call.buffers[reads[0]]).alias_offset != 0) return false;
    const std::vector<Buffer>& params = kernel_of(call).params;
    if (!updates_by_element(kernel_of(call), params[reads[0]], params[writes[0]])) return false;
    merged_[writer].push_back({reads[0], writes[0]});
    return true;
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
  std::map<size_t, Pairs> merged_;  // by instruction of the main block
};

}  // namespace

void update_in_place(Program& program, const std::vector<std::pair<int32_t, int32_t>>& updates) {
  if (!updates.empty()) UpdateInPlace(program, updates).run();
}

}  // namespace tilewright::passes
