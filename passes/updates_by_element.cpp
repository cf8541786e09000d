// Each element is stored once: as many are stored as there are, and a kernel stores all of its result.
// So a load before the store of the same index, in the same iteration, sees what the run began with.
#include "ir/loops/compare.h"
#include "ir/loops/rewrite.h"
#include "passes/loops/loop_passes.h"
#include "passes/update_in_place.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class Accesses final : public Visitor {
 public:
  Accesses(const Buffer& input, const Buffer& result) : input_(input), result_(result) {}
  using Visitor::visit;

  bool run(const Stmt& body) {
    visit(body);
    end_scope(0);
    return provable_ && stored_ == as_int(storage_elements(*result_)).value_or(-1);
  }

  void visit(const Expr& e) override {
    if (const auto* load = e.as<Load>())
      if (load->buffer == input_) pending_.push_back(load);
    Visitor::visit(e);
  }
  void visit(const Stmt& s) override {
    if (const auto* loop = s.as<For>()) {
      within(loop->body, as_int(loop->extent).value_or(kUnknown));
      visit(loop->extent);
    } else if (const auto* branch = s.as<If>()) {
      visit(branch->condition);
      within(branch->then, kUnknown);
      if (branch->otherwise) within(branch->otherwise, kUnknown);
    } else if (const auto* store = s.as<Store>(); store && store->buffer == result_) {
      Visitor::visit(s);
      count(*store);
    } else {
      const bool touches = s.kind() == NodeKind::kDotTile || s.kind() == NodeKind::kWhile;
      if (touches) repeats_ = kUnknown;  // what they do to either is not looked at
      Visitor::visit(s);
    }
  }

 private:
  static constexpr int64_t kUnknown = -1;

  // The loads of a scope must find their stores in it.
  void within(const Stmt& body, int64_t times) {
    const int64_t around = repeats_;
    const size_t first = pending_.size();
    repeats_ = around == kUnknown || times == kUnknown ? kUnknown : around * times;
    visit(body);
    end_scope(first);
    repeats_ = around;
  }
  void end_scope(size_t first) { provable_ &= pending_.size() == first; }

  void count(const Store& store) {
    const int64_t lanes = store.value.type().lanes;
    provable_ &= repeats_ != kUnknown && !store.mask;
    stored_ += repeats_ * lanes;
    std::erase_if(pending_, [&](const Load* load) {
      return !load->mask && load->indices.size() == 1 &&
             structurally_equal(load->indices[0], store.indices[0]);
    });
  }

  const Buffer &input_, &result_;
  std::vector<const Load*> pending_;  // whose element has not been stored
  int64_t repeats_ = 1, stored_ = 0;
  bool provable_ = true;
};

}  // namespace

bool updates_by_element(const Kernel& kernel, const Buffer& input, const Buffer& result) {
  const auto elements = as_int(storage_elements(*input));
  const bool alike =
      elements && elements == as_int(storage_elements(*result)) && input->dtype == result->dtype;
  return alike && Accesses(input, result).run(kernel.body);
}

}  // namespace tilewright::passes
