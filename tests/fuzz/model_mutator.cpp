#include "tests/fuzz/model_mutator.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace tilewright {
namespace {

constexpr int64_t kNumbers[] = {0,         1,         -1,        2,         -2,        3,
                                7,         64,        1 << 15,   1 << 20,   INT32_MAX, INT32_MIN,
                                1LL << 31, 1LL << 32, 1LL << 40, 1LL << 62, INT64_MAX, INT64_MIN};

class Mutator {
 public:
  Mutator(OnnxModel& model, std::mt19937_64& random) : model_(model), random_(random) {}

  std::string run() {
    std::string done;
    for (uint64_t k = 1 + below(3); k > 0; --k) {
      const std::string one = change();
      done += (done.empty() ? "" : "; ") + one;
    }
    return done;
  }

 private:
  uint64_t below(uint64_t n) { return n == 0 ? 0 : random_() % n; }
  bool one_of(uint64_t n) { return below(n) == 0; }
  template <typename Container>
  auto& any(Container& c) {
    return *std::next(std::begin(c), static_cast<long>(below(std::size(c))));
  }
  int64_t number() { return one_of(3) ? static_cast<int64_t>(below(12)) - 3 : any(kNumbers); }

  // A node, or one of a body inside it.
  OnnxNode* node() {
    OnnxGraph* graph = &model_.graph;
    for (int depth = 0; depth < 8; ++depth) {
      if (graph->nodes.empty()) return nullptr;
      OnnxNode& n = any(graph->nodes);
      OnnxGraph* inner = nullptr;
      for (auto& [name, a] : n.attributes)
        if (auto* g = std::get_if<std::shared_ptr<OnnxGraph>>(&a); g && *g && one_of(2))
          inner = g->get();
      if (!inner) return &n;
      graph = inner;
    }
    return nullptr;
  }
  // The name of a value of the main graph.
  std::string value() {
    std::vector<std::string> all;
    for (const OnnxValueInfo& i : model_.graph.inputs) all.push_back(i.name);
    for (const auto& [name, t] : model_.graph.initializers) all.push_back(name);
    return all.empty() ? "" : any(all);
  }

  std::string change() {
    switch (below(8)) {
      case 0:
      case 1: return change_attribute();
      case 2: return change_operand();
      case 3: return change_input_type();
      case 4: return change_constant();
      case 5: return change_elements();
      case 6: return change_opset();
      default: return change_results();
    }
  }
  // Another value, one more or one less in a list, another kind, none at all, or an attribute that is new.
  std::string change_attribute() {
    OnnxNode* n = node();
    if (!n) return "nothing";
    const std::string who = n->op_type + "'s ";
    if (n->attributes.empty() || one_of(8)) {
      static const char* const kNames[] = {"axis", "axes", "perm",  "kernel_shape",
                                           "to",   "pads", "group", "mode"};
      const std::string name = any(kNames);
      if (one_of(2))
        n->attributes[name] = number();
      else
        n->attributes[name] = std::vector<int64_t>{number(), number()};
      return who + name + " is new";
    }
    auto& [name, a] = any(n->attributes);
    const std::string what = who + name;
    if (one_of(10)) {
      n->attributes.erase(std::string(name));
      return what + " is gone";
    }
    if (auto* i = std::get_if<int64_t>(&a)) {
      *i = number();
      return what + " = " + std::to_string(*i);
    }
    if (auto* f = std::get_if<float>(&a)) {
      static const float kFloats[] = {0, -1, 1e30f, -1e30f, 0.3f, INFINITY, NAN};
      *f = any(kFloats);
      return what + " = " + std::to_string(*f);
    }
    if (auto* l = std::get_if<std::vector<int64_t>>(&a)) {
      const uint64_t how = below(3);
      if (how == 0 || l->empty())
        l->push_back(number());
      else if (how == 1)
        l->pop_back();
      else
        any(*l) = number();
      return what + ", a list";
    }
    if (auto* s = std::get_if<std::string>(&a)) {
      *s = one_of(2) ? s->substr(0, s->size() / 2) : *s + "X";
      return what + " = '" + *s + "'";
    }
    a = number();
    return what + " is an integer";
  }
  std::string change_operand() {
    OnnxNode* n = node();
    if (!n) return "nothing";
    const uint64_t how = below(5);
    if (n->inputs.empty() || how == 0) {
      n->inputs.push_back(value());
      return n->op_type + " has one operand more";
    }
    if (how == 1) {
      n->inputs.pop_back();
      return n->op_type + " has one operand less";
    }
    if (how == 2) {
      any(n->inputs) = "";
      return n->op_type + " lacks an operand";
    }
    if (how == 3) {
      std::swap(any(n->inputs), any(n->inputs));
      return n->op_type + " has operands in another order";
    }
    any(n->inputs) = value();
    return n->op_type + " has another operand";
  }
  // Another element type, rank or extent, or an extent that is a symbol, which others may be, too.
  std::string change_input_type() {
    if (model_.graph.inputs.empty()) return "nothing";
    OnnxValueInfo& i = any(model_.graph.inputs);
    const std::string who = "input '" + i.name + "': ";
    if (one_of(4)) {
      i.type.onnx_code = static_cast<int>(below(26));
      return who + "type " + std::to_string(i.type.onnx_code);
    }
    if (!i.type.shape) i.type.shape.emplace();
    auto& dims = *i.type.shape;
    switch (below(5)) {
      case 0:
        dims.insert(dims.begin() + static_cast<long>(below(dims.size() + 1)),
                    int64_t(1 + below(3)));
        return who + "a dimension more";
      case 1:
        if (!dims.empty()) dims.erase(dims.begin() + static_cast<long>(below(dims.size())));
        return who + "a dimension less";
      case 2:
        if (!dims.empty()) any(dims) = std::string(one_of(2) ? "n" : "m");
        return who + "a symbol";
      default: {
        if (dims.empty()) return who + "nothing";
        OnnxDimension& d = any(dims);
        const auto* old = std::get_if<int64_t>(&d);
        const int64_t near[] = {0, 1, (old ? *old : 2) - 1, (old ? *old : 2) + 1, 1 << 20};
        d = std::max<int64_t>(any(near), 0);
        return who + "another extent";
      }
    }
  }
  // Its shape, with as many elements as that has; bytes are repeated.
  std::string change_constant() {
    if (model_.graph.initializers.empty()) return "nothing";
    auto& [name, t] = any(model_.graph.initializers);
    const auto type = t.dtype();
    if (!type) return "nothing";
    if (t.shape.empty() || one_of(3))
      t.shape.push_back(static_cast<int64_t>(below(4)));
    else if (one_of(2))
      t.shape.pop_back();
    else
      any(t.shape) = static_cast<int64_t>(below(9));
    int64_t count = 1;
    for (const int64_t d : t.shape) count *= d;
    fill(t, static_cast<size_t>(std::min<int64_t>(count, 1 << 20) * byte_size(*type)));
    if (count > 1 << 20) t.shape = {1 << 20};
    return "constant '" + name + "' has another shape";
  }
  void fill(TensorView& t, size_t bytes) {
    auto data = std::make_shared<std::vector<uint8_t>>(bytes);
    for (size_t k = 0; k < bytes && t.bytes > 0; ++k) (*data)[k] = t.data[k % t.bytes];
    t.data = data->data();
    t.bytes = bytes;
    t.owner = data;
  }
  std::string change_elements() {
    if (model_.graph.initializers.empty()) return "nothing";
    auto& [name, t] = any(model_.graph.initializers);
    if (t.bytes == 0) return "nothing";
    fill(t, t.bytes);
    auto* bytes = const_cast<uint8_t*>(t.data);
    const auto type = t.dtype();
    if (type == DType::kInt64 || type == DType::kInt32) {
      const int64_t n = number();
      const auto width = static_cast<size_t>(byte_size(*type));
      std::memcpy(bytes + below(t.bytes / width) * width, &n, width);
    } else {
      bytes[below(t.bytes)] ^= static_cast<uint8_t>(1u << below(8));
    }
    return "constant '" + name + "' has another element";
  }
  std::string change_opset() {
    OnnxNode* n = node();
    if (!n) return "nothing";
    n->opset = static_cast<int64_t>(1 + below(26));
    return n->op_type + " of opset " + std::to_string(n->opset);
  }
  std::string change_results() {
    OnnxNode* n = node();
    if (!n) return "nothing";
    if (n->outputs.size() > 1 && one_of(2)) {
      n->outputs.pop_back();
      return n->op_type + " has one result less";
    }
    n->outputs.push_back("fresh" + std::to_string(below(1000000)));
    return n->op_type + " has one result more";
  }

  OnnxModel& model_;
  std::mt19937_64& random_;
};

}  // namespace

std::string mutate(OnnxModel& model, std::mt19937_64& random) {
  return Mutator(model, random).run();
}

}  // namespace tilewright
