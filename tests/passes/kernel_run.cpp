// Kernels and graphs run in the interpreter on small random whole numbers: most sums are exact in
// f32 whatever their order.
#include "tests/passes/kernel_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "ir/interpreter/evaluate.h"
#include "ir/interpreter/interpreter.h"
#include "ir/text/printer_loops.h"
#include "ir/verify_loops.h"
#include "passes/build_loops.h"
#include "passes/loops/loop_passes.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// One element of a type, of a number that it can hold.
void put(uint8_t* at, DType dtype, double value) {
  const auto copy = [&](auto v) { std::memcpy(at, &v, sizeof(v)); };
  switch (dtype) {
    case DType::kFloat32: return copy(static_cast<float>(value));
    case DType::kFloat64: return copy(value);
    case DType::kInt8: return copy(static_cast<int8_t>(value));
    case DType::kUInt8: return copy(static_cast<uint8_t>(value));
    case DType::kBFloat16:  // of small integers, all of whose bits are in the upper half
      return copy(static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16));
    case DType::kInt16: return copy(static_cast<int16_t>(value));
    case DType::kInt32: return copy(static_cast<int32_t>(value));
    case DType::kInt64: return copy(static_cast<int64_t>(value));
    case DType::kBool: return copy(static_cast<uint8_t>(value != 0));
    default: TW_CHECK(false);
  }
}

// The bytes of one buffer as its layout says.
class Storage {
 public:
  Storage(const BufferNode& buffer, const IntValues& symbols) : buffer_(buffer), symbols_(symbols) {
    for (const Expr& e : buffer.shape) shape_.push_back(value_of(e));
    elements_ = tilewright::element_count(shape_).value();
    const auto size = static_cast<size_t>(value_of(storage_elements(buffer)));
    bytes_.assign(size * static_cast<size_t>(byte_size(buffer.dtype)), 0x7f);
  }
  void fill(unsigned seed) {
    std::mt19937 random(seed);
    const bool is_byte = byte_size(buffer_.dtype) == 1 && is_integer(buffer_.dtype);
    const unsigned values = is_byte ? 256 : 9;
    const int first = is_unsigned(buffer_.dtype) ? 0 : -static_cast<int>(values / 2);
    for (int64_t i = 0; i < elements_; ++i)
      put(at(i), buffer_.dtype, first + static_cast<int>(random() % values));
  }
  void fill(const Constant& c) {
    for (int64_t i = 0; i < elements_; ++i) put(at(i), buffer_.dtype, number_at(c, i));
  }
  Elements elements() {
    Elements all;
    for (int64_t i = 0; i < elements_; ++i) {
      const Constant one{
          buffer_.dtype, {}, at(i), static_cast<size_t>(byte_size(buffer_.dtype)), nullptr};
      all.push_back(number_at(one, 0));
    }
    return all;
  }
  void* data() { return bytes_.data(); }

 private:
  int64_t value_of(const Expr& e) const {
    auto v = evaluate_int(e, symbols_);
    TW_CHECK(v.has_value());
    return *v;
  }
  uint8_t* at(int64_t element) {
    std::vector<Expr> indices(shape_.size());
    for (size_t d = shape_.size(); d-- > 0; element /= shape_[d])
      indices[d] = Expr(element % shape_[d]);
    return bytes_.data() + value_of(flat_index(buffer_, indices)) * byte_size(buffer_.dtype);
  }
  const BufferNode& buffer_;
  const IntValues& symbols_;
  Shape shape_;
  int64_t elements_ = 0;
  std::vector<uint8_t> bytes_;
};

}  // namespace

Result<std::vector<Elements>> run_kernel(const Kernel& kernel, const std::vector<int64_t>& scalars,
                                         unsigned seed) {
  TW_CHECK(scalars.size() == kernel.scalars.size());
  IntValues symbols;
  for (size_t i = 0; i < scalars.size(); ++i) symbols[kernel.scalars[i].get()] = scalars[i];
  std::vector<Storage> storage;
  std::vector<void*> params;
  for (const Buffer& b : kernel.params) {
    storage.emplace_back(*b, symbols);
    storage.back().fill(seed * 100 + static_cast<unsigned>(storage.size()));
  }
  for (Storage& s : storage) params.push_back(s.data());
  TW_RETURN_IF_ERROR(interpret(kernel, params, scalars));
  std::vector<Elements> all;
  for (Storage& s : storage) all.push_back(s.elements());
  return all;
}

namespace {

// The nodes of a graph, fused as their groups say, each group as one kernel.
class GraphRun {
 public:
  GraphRun(const Graph& graph, unsigned seed) : graph_(graph), uses_(graph.use_counts()) {
    for (const Value& v : graph.values)
      buffers_.push_back(make_buffer(v.name, v.type.dtype, v.type.dims, Scope::kParam, v.layout));
    for (const Buffer& b : buffers_) storage_.emplace_back(*b, no_symbols_);
    for (size_t v = 0; v < storage_.size(); ++v)
      if (graph.values[v].constant) storage_[v].fill(*graph.values[v].constant);
    for (ValueId v : graph.inputs) fill(v, seed++);
  }
  Result<std::vector<Elements>> run() {
    std::map<int, std::vector<size_t>> groups;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const int group = graph_.nodes[n].group;
      groups[group < 0 ? -1 - static_cast<int>(n) : group].push_back(n);
    }
    std::vector<bool> done(graph_.nodes.size());
    while (!groups.empty()) {
      const size_t before = groups.size();
      for (auto it = groups.begin(); it != groups.end();) {
        if (!ready(it->second, done)) {
          ++it;
          continue;
        }
        TW_RETURN_IF_ERROR(run_group(it->second));
        for (size_t n : it->second) done[n] = true;
        it = groups.erase(it);
      }
      if (groups.size() == before) return invalid("groups wait for one another");
    }
    std::vector<Elements> outputs;
    for (ValueId v : graph_.outputs) outputs.push_back(storage_[static_cast<size_t>(v)].elements());
    return outputs;
  }

 private:
  void fill(ValueId v, unsigned seed) { storage_[static_cast<size_t>(v)].fill(seed); }
  bool ready(const std::vector<size_t>& nodes, const std::vector<bool>& done) const {
    for (size_t n : nodes)
      for (ValueId v : graph_.nodes[n].inputs) {
        if (v == kNone || graph_.value(v).producer < 0) continue;
        const auto p = static_cast<size_t>(graph_.value(v).producer);
        if (!done[p] && std::find(nodes.begin(), nodes.end(), p) == nodes.end()) return false;
      }
    return true;
  }
  // The kernel as it is before any schedule.
  Status run_group(const std::vector<size_t>& nodes) {
    const GroupKernel g = build_group_kernel(graph_, nodes, uses_);
    TW_RETURN_IF_ERROR(verify(g.kernel, Stage::kBlocks));
    std::vector<void*> params;
    for (ValueId v : g.params) params.push_back(storage_[static_cast<size_t>(v)].data());
    return interpret(g.kernel, params, {});
  }
  const Graph& graph_;
  std::vector<int> uses_;
  IntValues no_symbols_;
  std::vector<Buffer> buffers_;
  std::vector<Storage> storage_;
};

}  // namespace

Result<std::vector<Elements>> run_graph(const Graph& graph, unsigned seed) {
  return GraphRun(graph, seed).run();
}

void expect_close(const std::vector<Elements>& found, const std::vector<Elements>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t p = 0; p < found.size(); ++p) {
    ASSERT_EQ(found[p].size(), expected[p].size()) << "tensor " << p;
    for (size_t i = 0; i < found[p].size(); ++i) {
      const double f = found[p][i], e = expected[p][i];
      if (f == e || (std::isnan(f) && std::isnan(e))) continue;
      ASSERT_LE(std::abs(f - e), 1e-5 * std::max(1.0, std::abs(e)))
          << "tensor " << p << ", element " << i;
    }
  }
}

void expect_same_results(const Kernel& before, const Kernel& after) {
  for (int64_t extent : {1, 2, 7, 8, 13}) {
    const std::vector<int64_t> scalars(before.scalars.size(), extent);
    auto expected = run_kernel(before, scalars), found = run_kernel(after, scalars);
    ASSERT_TRUE(expected.ok()) << expected.error().to_string() << "\n" << to_text(before);
    ASSERT_TRUE(found.ok()) << found.error().to_string() << "\n" << to_text(after);
    SCOPED_TRACE("scalars " + std::to_string(extent));
    expect_close(*found, *expected);
    if (scalars.empty()) return;
  }
}

}  // namespace tilewright::passes
