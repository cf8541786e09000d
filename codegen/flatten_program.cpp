#include "codegen/flatten_program.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "ir/loops/layout.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "ir/text/printer_loops.h"

namespace tilewright::codegen {

using ir::Expr;

namespace {

int64_t round_up(int64_t n) { return (n + 63) / 64 * 64; }

std::optional<SizeOp> size_op(ir::BinaryOp op) {
  switch (op) {
    case ir::BinaryOp::kAdd: return SizeOp::kAdd;
    case ir::BinaryOp::kSub: return SizeOp::kSub;
    case ir::BinaryOp::kMul: return SizeOp::kMul;
    case ir::BinaryOp::kFloorDiv: return SizeOp::kFloorDiv;
    case ir::BinaryOp::kFloorMod: return SizeOp::kFloorMod;
    case ir::BinaryOp::kMin: return SizeOp::kMin;
    case ir::BinaryOp::kMax: return SizeOp::kMax;
    case ir::BinaryOp::kEq: return SizeOp::kEq;
    case ir::BinaryOp::kNe: return SizeOp::kNe;
    case ir::BinaryOp::kLt: return SizeOp::kLt;
    case ir::BinaryOp::kLe: return SizeOp::kLe;
    case ir::BinaryOp::kAnd: return SizeOp::kAnd;
    case ir::BinaryOp::kOr: return SizeOp::kOr;
    default: return std::nullopt;
  }
}

BufferKind buffer_kind(ir::StorageKind kind) {
  switch (kind) {
    case ir::StorageKind::kInput: return BufferKind::kInput;
    case ir::StorageKind::kOutput: return BufferKind::kOutput;
    case ir::StorageKind::kConstant: return BufferKind::kConstant;
    case ir::StorageKind::kTemporary: return BufferKind::kTemporary;
    case ir::StorageKind::kRunKey: return BufferKind::kRunKey;
  }
  TW_CHECK(!"no kind of storage");
  return BufferKind::kTemporary;
}

// Post-order walk of the expression tree: operands first, then the operation. a > b is b < a, so
// that the session knows fewer operations. Casts between integers vanish: sizes are i64 throughout.
Status flatten_into(const Expr& e, const std::vector<ir::Var>& symbols, SizeExpr& out) {
  if (auto i = ir::as_int(e)) {
    out.push_back({SizeOp::kConstant, *i});
    return {};
  }
  if (e.kind() == ir::NodeKind::kVar) {
    for (size_t s = 0; s < symbols.size(); ++s)
      if (symbols[s].same_as(e)) {
        out.push_back({SizeOp::kSymbol, static_cast<int64_t>(s)});
        return {};
      }
    return internal_error("size names the unknown symbol '" + ir::to_text(e) + "'");
  }
  if (const auto* b = e.as<ir::Binary>(); b && !is_float(b->a.dtype())) {
    const bool swapped = b->op == ir::BinaryOp::kGt || b->op == ir::BinaryOp::kGe;
    auto op = b->op == ir::BinaryOp::kGt   ? SizeOp::kLt
              : b->op == ir::BinaryOp::kGe ? SizeOp::kLe
                                           : size_op(b->op);
    if (op) {
      TW_RETURN_IF_ERROR(flatten_into(swapped ? b->b : b->a, symbols, out));
      TW_RETURN_IF_ERROR(flatten_into(swapped ? b->a : b->b, symbols, out));
      out.push_back({*op, 0});
      return {};
    }
  }
  if (const auto* s = e.as<ir::Select>()) {
    TW_RETURN_IF_ERROR(flatten_into(s->condition, symbols, out));
    TW_RETURN_IF_ERROR(flatten_into(s->a, symbols, out));
    TW_RETURN_IF_ERROR(flatten_into(s->b, symbols, out));
    out.push_back({SizeOp::kSelect, 0});
    return {};
  }
  if (const auto* u = e.as<ir::Unary>();
      u && u->op == ir::UnaryOp::kNot && e.dtype() == DType::kBool) {
    TW_RETURN_IF_ERROR(flatten_into(u->value, symbols, out));
    out.push_back({SizeOp::kNot, 0});
    return {};
  }
  if (const auto* c = e.as<ir::Cast>(); c && !is_float(c->value.dtype()) && !is_float(e.dtype()))
    return flatten_into(c->value, symbols, out);
  return unsupported("the extent " + ir::to_text(e) + " cannot be computed at run time");
}

class Flatten {
 public:
  Flatten(const ir::Program& program, ConstantSection& constants)
      : p_(program), constants_(constants) {}

  Result<Variant> run() {
    for (const ir::Var& s : p_.symbols) v_.symbols.push_back(s.name());
    for (const ir::ProgramBuffer& b : p_.buffers) TW_RETURN_IF_ERROR(add_buffer(b));
    v_.inputs = p_.inputs;
    v_.outputs = p_.outputs;
    for (size_t k = 0; k < p_.kernels.size(); ++k)
      v_.kernels.push_back({p_.kernels[k].name, nullptr, {}, {}, p_.schedules[k]});
    v_.blocks.resize(p_.blocks.size());
    for (size_t i = 0; i < p_.blocks.size(); ++i)
      for (const ir::ProgramInstruction& ins : p_.blocks[i]) {
        Instruction out;
        TW_RETURN_IF_ERROR(std::visit([&](const auto& x) { return add(x, out); }, ins));
        v_.blocks[i].push_back(std::move(out));
      }
    for (const ir::ProfileEntry& e : p_.profile) {
      ProfileRow row;
      for (const std::string& n : e.nodes) row.nodes += (row.nodes.empty() ? "" : ", ") + n;
      row.kernel = e.kernel;
      TW_ASSIGN(row.flops, size(e.flops));
      TW_ASSIGN(row.bytes, size(e.bytes));
      v_.profile.push_back(std::move(row));
    }
    return std::move(v_);
  }

 private:
  // What follows from extents of inputs is a number once these are given.
  Result<SizeExpr> size(const Expr& e) {
    Result<SizeExpr> flat = flatten_size(e, p_.symbols);
    if (flat.ok() || flat.error().kind != ErrorKind::kUnsupported) return flat;
    const std::vector<ir::Var> symbols = ir::free_vars_in_order(e);
    if (std::all_of(symbols.begin(), symbols.end(), [&](const ir::Var& v) { return is_given(v); }))
      flat.error().by_inputs = Cure::kAll;
    return flat;
  }
  bool is_given(const ir::Var& symbol) const {
    for (const int32_t input : p_.inputs)
      for (const Expr& d : p_.buffers[static_cast<size_t>(input)].type.dims)
        if (d.get() == symbol.get()) return true;
    return false;
  }
  Status add_buffer(const ir::ProgramBuffer& b) {
    BufferDesc d;
    d.name = b.name;
    d.dtype = b.type.dtype;
    for (const Expr& e : b.type.dims) {
      TW_ASSIGN(SizeExpr dim, size(e));
      d.dims.push_back(std::move(dim));
    }
    TW_ASSIGN(d.bytes, size(ir::simplify(b.elements * Expr(byte_size(b.type.dtype)))));
    d.kind = buffer_kind(b.kind);
    if (b.kind == ir::StorageKind::kConstant)
      d.constant_offset = constants_.add(b.constant, b.layout);
    d.alias_of = b.alias_of;
    d.alias_offset = b.alias_offset;
    d.dynamic = b.dynamic;
    d.updated = b.updated;
    d.first_use = b.first_use;
    d.last_use = b.last_use;
    v_.buffers.push_back(std::move(d));
    return {};
  }
  Status add(const ir::CallInstruction& x, Instruction& out) {
    out.op = Op::kCall;
    out.target = x.kernel;
    out.buffers = x.buffers;
    out.profile = x.profile;
    for (const Expr& e : x.scalars) {
      TW_ASSIGN(SizeExpr s, size(e));
      out.scalars.push_back(std::move(s));
    }
    return {};
  }
  int32_t symbol_index(const ir::Var& v) const {
    for (size_t s = 0; s < p_.symbols.size(); ++s)
      if (p_.symbols[s].same_as(v)) return static_cast<int32_t>(s);
    return -1;
  }
  Status add(const ir::DefineSymbolInstruction& x, Instruction& out) {
    out.op = Op::kDefineSymbol;
    out.target = symbol_index(x.symbol);
    out.buffers = {x.buffer};
    out.index = x.index;
    out.limit = x.limit;
    out.message = x.what;
    return {};
  }
  Status add(const ir::AllocateInstruction& x, Instruction& out) {
    out.op = Op::kAllocate;
    out.buffers = {x.buffer};
    return {};
  }
  Status add(const ir::CopyInstruction& x, Instruction& out) {
    out.op = Op::kCopy;
    out.buffers = {x.to, x.from};
    return {};
  }
  Status add(const ir::IfInstruction& x, Instruction& out) {
    out.op = Op::kIf;
    out.buffers = {x.condition};
    out.block_a = x.then_block;
    out.block_b = x.else_block;
    return {};
  }
  Status add(const ir::FailInstruction& x, Instruction& out) {
    out.op = Op::kFail;
    out.message = x.message;
    return {};
  }
  Status add(const ir::CheckIndicesInstruction& x, Instruction& out) {
    out.op = Op::kCheckIndices;
    out.buffers = {x.indices, x.farthest};
    out.index = x.dim;
    out.message = x.node;
    for (const Expr& e : x.extents) {
      TW_ASSIGN(SizeExpr s, size(e));
      out.scalars.push_back(std::move(s));
    }
    return {};
  }
  Status add(const ir::RequireInstruction& x, Instruction& out) {
    out.op = Op::kRequire;
    out.index = static_cast<int64_t>(x.relation);
    out.message = x.what;
    for (const Expr& e : {x.a, x.b}) {
      TW_ASSIGN(SizeExpr s, size(e));
      out.scalars.push_back(std::move(s));
    }
    return {};
  }
  Status add(const ir::StartInstruction& x, Instruction& out) {
    out.op = Op::kStart;
    out.buffers = {x.buffer};
    out.target = static_cast<int32_t>(x.number);
    out.index = x.begin;
    out.limit = x.end;
    return {};
  }
  Status add(const ir::LoopInstruction& x, Instruction& out) {
    out.op = Op::kLoop;
    out.target = static_cast<int32_t>(v_.loops.size());
    LoopDesc d;
    d.trip_count = x.trip_count;
    d.initial_cond = x.initial_condition;
    d.iteration = x.iteration;
    d.body = x.body;
    d.body_cond = x.body_condition;
    d.carried = x.carried;
    for (const auto& [element, result] : x.scans) d.scans.push_back({element, result});
    if (x.count) d.count_symbol = symbol_index(x.count);
    v_.loops.push_back(std::move(d));
    return {};
  }

  const ir::Program& p_;
  ConstantSection& constants_;
  Variant v_;
};

}  // namespace

namespace {

// Of the bytes at 64 places, evenly spread: equal contents have equal values, and the usual unequal
// ones do not.
size_t sample_hash(const ir::Constant& c) {
  constexpr size_t kPlaces = 64, kBytes = 64;
  const auto* text = reinterpret_cast<const char*>(c.data);
  size_t hash = c.bytes;
  for (size_t place = 0; place < kPlaces; ++place) {
    const size_t at = c.bytes / kPlaces * place;
    const std::string_view piece(text + at, std::min(kBytes, c.bytes - at));
    hash = hash * 31 + std::hash<std::string_view>()(piece);
  }
  return hash;
}

// Are both stored as the same bytes?
bool same_storage(const ir::Constant& a, const ir::Constant& b, const ir::Layout& layout) {
  if (a.bytes != b.bytes) return false;
  const bool alike =
      layout.empty() || (a.shape == b.shape && byte_size(a.dtype) == byte_size(b.dtype));
  return alike && (a.bytes == 0 || a.data == b.data || std::memcmp(a.data, b.data, a.bytes) == 0);
}

}  // namespace

int64_t ConstantSection::add(const ir::ConstantRef& constant, const ir::Layout& layout) {
  const size_t hash = constant->bytes ? sample_hash(*constant) : 0;
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const Item& i = items_[it->second];
    if (i.layout == layout && same_storage(*i.constant, *constant, layout)) return i.offset;
  }
  by_hash_.emplace(hash, items_.size());
  ir::BufferNode shape{"", constant->dtype, {}, layout, ir::Scope::kParam};
  const int64_t size = ir::storage_elements(shape, constant->shape) * byte_size(constant->dtype);
  items_.push_back({constant, layout, bytes_, size});
  bytes_ += round_up(std::max<int64_t>(size, 1));
  return items_.back().offset;
}
void ConstantSection::move_to(uint8_t* at) {
  for (Item& i : items_) {
    if (i.layout.empty()) {
      if (i.size) std::memcpy(at + i.offset, i.constant->data, static_cast<size_t>(i.size));
    } else {
      const auto packed =
          ir::pack(i.constant->data, i.constant->dtype, i.constant->shape, i.layout);
      std::memcpy(at + i.offset, packed.data(), packed.size());
    }
    i.constant = nullptr;
  }
}

Result<SizeExpr> flatten_size(const Expr& e, const std::vector<ir::Var>& symbols) {
  SizeExpr out;
  TW_RETURN_IF_ERROR(flatten_into(e, symbols, out));
  return out;
}

Result<Variant> flatten_program(const ir::Program& program, ConstantSection& constants) {
  return Flatten(program, constants).run();
}

}  // namespace tilewright::codegen
