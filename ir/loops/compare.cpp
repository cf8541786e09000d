// Each node becomes a row of words: kind, type, then its fields, where children are the digests of
// their own rows. With a digest that numbers distinct rows the walk decides equality; with a mixing
// function it computes the hash.
#include "ir/loops/compare.h"

#include <bit>
#include <map>
#include <string_view>

#include "ir/loops/rewrite.h"

namespace tilewright::ir {

namespace {

using Row = std::vector<uint64_t>;

struct Hash {
  static uint64_t mix(uint64_t x) {  // the finalizer of splitmix64
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  uint64_t operator()(const Row& row) const {
    uint64_t h = 0x9e3779b97f4a7c15u;
    for (uint64_t w : row) h = mix(h ^ w) + 0x9e3779b97f4a7c15u;
    return h;
  }
  static constexpr bool kFreeVariablesByName = true;
};
// Hash consing: a row that was seen before has the number it had then.
struct Number {
  std::map<Row, uint64_t>& rows;
  uint64_t operator()(const Row& row) const {
    return rows.emplace(row, rows.size() + 1).first->second;
  }
  static constexpr bool kFreeVariablesByName = false;
};

template <typename Digest>
// Alpha equivalence: bound variables are numbered where they are bound, buffers where they first
// occur (de Bruijn's idea), so names and addresses never matter. Linear in the number of distinct
// nodes.
class Walk {
 public:
  explicit Walk(Digest digest) : digest_(digest) {}

  uint64_t of(const Expr& e) {
    if (!e) return 0;
    if (auto it = memo_.find(e.get()); it != memo_.end()) return it->second;
    Row row;
    if (e.kind() == NodeKind::kVar)
      variable(row, e);
    else
      dispatch(e, [&](const auto& n) { node(row, n, e.type()); });
    const uint64_t d = digest_(row);
    memo_.emplace(e.get(), d);
    return d;
  }
  uint64_t of(const Stmt& s) {
    if (!s) return 0;
    Row row;
    dispatch(s, [&](const auto& n) { node(row, n, {}); });
    return digest_(row);
  }
  uint64_t of(const Kernel& k) {
    Row row;
    for (const Var& v : k.scalars) add(row, v);
    row.push_back(k.params.size());
    for (const Buffer& b : k.params) add(row, b);
    add(row, k.body);
    if (k.exact) row.push_back(1);  // the hash of others stays as it was
    if (k.team) row.push_back(2);
    if (!is_zero(k.workspace.call) || !is_zero(k.workspace.worker)) {
      add(row, k.workspace.call);
      add(row, k.workspace.worker);
    }
    return digest_(row);
  }

 private:
  template <typename Node>
  void node(Row& row, const Node& n, ScalarType type) {
    row.push_back(static_cast<uint64_t>(n.kind) << 40 | static_cast<uint64_t>(type.dtype) << 32 |
                  static_cast<uint32_t>(type.lanes));
    const_fields(n, [&](const char*, const auto& field) { add(row, field); });
    if constexpr (std::is_same_v<Node, Allocate>)
      if (!n.offset) row.erase(row.end() - 2);  // before there were offsets
  }
  void variable(Row& row, const Expr& e) {
    row.push_back(static_cast<uint64_t>(NodeKind::kVar) << 40 |
                  static_cast<uint64_t>(e.dtype()) << 32 | static_cast<uint32_t>(e.lanes()));
    if (auto it = bound_.find(e.get()); it != bound_.end())
      row.push_back(it->second);
    else if (Digest::kFreeVariablesByName)
      add(row, static_cast<const VarNode*>(e.get())->name);
    else
      row.push_back(reinterpret_cast<uintptr_t>(e.get()));
  }

  // One overload per type of field; a field of another type does not compile.
  void add(Row& row, const Expr& e) { row.push_back(of(e)); }
  void add(Row& row, const Var& v) {  // a definition
    if (!v) return row.push_back(0);
    if (!bound_.emplace(v.get(), bound_.size() + 1).second) bound_[v.get()] = ++redefined_;
    if (memo_.erase(v.get())) memo_.clear();
    row.push_back(of(static_cast<const Expr&>(v)));
  }
  void add(Row& row, const Stmt& s) { row.push_back(of(s)); }
  void add(Row& row, const Buffer& b) { row.push_back(of(b)); }
  void add(Row& row, const BlockAxis& a) {
    add(row, a.var);
    add(row, a.extent);
    add(row, a.kind);
  }
  template <typename T>
  void add(Row& row, const std::vector<T>& items) {
    row.push_back(items.size());
    for (const T& x : items) add(row, x);
  }
  void add(Row& row, int64_t v) { row.push_back(static_cast<uint64_t>(v)); }
  void add(Row& row, double v) {
    row.push_back(v != v ? 0x7ff8000000000000u : std::bit_cast<uint64_t>(v));
  }
  template <typename E>
    requires std::is_enum_v<E>
  void add(Row& row, E v) {
    row.push_back(static_cast<uint64_t>(v));
  }
  void add(Row& row, const std::string& s) {
    row.push_back(s.size());
    for (char c : s) row.push_back(static_cast<unsigned char>(c));
  }

  uint64_t of(const Buffer& b) {
    if (!b) return 0;
    if (auto it = buffers_.find(b.get()); it != buffers_.end()) return it->second;
    Row row{buffers_.size() + 1};
    add(row, b->dtype);
    add(row, b->shape);
    row.push_back(b->layout.size());
    for (const LayoutAxis& a : b->layout)
      row.insert(row.end(), {static_cast<uint64_t>(a.dim), static_cast<uint64_t>(a.divisor),
                             static_cast<uint64_t>(a.modulus), static_cast<uint64_t>(a.padded)});
    add(row, b->scope);
    return buffers_[b.get()] = digest_(row);
  }

  Digest digest_;
  std::unordered_map<const ExprNode*, uint64_t> memo_, bound_;
  std::unordered_map<const BufferNode*, uint64_t> buffers_;
  uint64_t redefined_ = uint64_t{1} << 32;  // numbers of variables that are bound a second time
};

template <typename T>
bool equal(const T& a, const T& b) {
  std::map<Row, uint64_t> rows;
  return Walk<Number>({rows}).of(a) == Walk<Number>({rows}).of(b);
}

}  // namespace

bool structurally_equal(const Expr& a, const Expr& b) { return a.same_as(b) || equal(a, b); }
bool structurally_equal(const Stmt& a, const Stmt& b) { return a.same_as(b) || equal(a, b); }
bool structurally_equal(const Kernel& a, const Kernel& b) { return equal(a, b); }

uint64_t structural_hash(const Expr& e) { return Walk<Hash>({}).of(e); }
uint64_t structural_hash(const Stmt& s) { return Walk<Hash>({}).of(s); }
uint64_t structural_hash(const Kernel& k) { return Walk<Hash>({}).of(k); }

}  // namespace tilewright::ir
