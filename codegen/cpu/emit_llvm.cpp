#include "codegen/cpu/emit_llvm.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <bit>
#include <cmath>
#include <deque>
#include <functional>
#include <unordered_map>

#include "codegen/cpu/emit_arithmetic.h"
#include "codegen/cpu/emit_dot.h"
#include "codegen/cpu/lane_indices.h"
#include "codegen/cpu/phases.h"
#include "codegen/cpu/strided_loads.h"
#include "codegen/cpu/transpose_steps.h"
#include "ir/loops/dot_tile.h"
#include "ir/loops/linear.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"

namespace tilewright::cpu {

using namespace ir;

namespace {

using llvm::Value;

constexpr int kWorkerStrideAlignment = 64;

// Offsets of the fields of TwKernelContext (runtime/kernel_abi.h).
enum ContextField : int64_t {
  kParallelField = 0,
  kCallWorkspaceField = 8,
  kWorkerWorkspaceField = 16,
  kWorkerStrideField = 24,
  kTeamField = 40
};

// One function being written: the values its code can name.
struct Frame {
  llvm::Function* function = nullptr;
  Value* context = nullptr;
  Value* worker_base = nullptr;  // this worker's workspace, inside a parallel body
  bool streams = false;          // some of its stores go past the caches
  std::unordered_map<const ExprNode*, Value*> vars;
  std::unordered_map<const BufferNode*, Value*> buffers;
};

class Emitter {
 public:
  Emitter(const Kernel& kernel, const MachineDescription& machine, llvm::Module& module)
      : kernel_(kernel), machine_(machine), module_(module), c_(module.getContext()), b_(c_) {
    llvm::FastMathFlags flags;
    flags.setAllowContract(true);
    b_.setFastMathFlags(flags);
  }

  KernelWorkspace run() {
    auto* entry =
        make_function(kernel_.name, {ptr(), ptr(), ptr()}, llvm::Function::ExternalLinkage);
    // The kernel's body has its buffers as arguments, so that they are known not to alias.
    std::vector<llvm::Type*> types{ptr()};
    for (size_t i = 0; i < kernel_.params.size(); ++i) types.push_back(ptr());
    for (size_t i = 0; i < kernel_.scalars.size(); ++i) types.push_back(b_.getInt64Ty());
    auto* body = make_function(kernel_.name + ".body", types, llvm::Function::InternalLinkage);
    const Stmt phases = as_phases(kernel_.body);
    call_body(phases ? by_team(entry) : entry, body);
    f_ = {};
    f_.function = body;
    f_.context = body->getArg(0);
    unsigned next = 1;
    for (const Buffer& p : kernel_.params) {
      body->addParamAttr(next, llvm::Attribute::NoAlias);
      f_.buffers[p.get()] = body->getArg(next++);
    }
    for (const Var& s : kernel_.scalars) f_.vars[s.get()] = body->getArg(next++);
    b_.SetInsertPoint(block_of(body));
    emit(phases ? phases : kernel_.body);
    emit_return();
    return {simplify(call_bytes_), simplify(worker_bytes_)};
  }

 private:
  // Calls the body with what the kernel's arguments (context, buffers, scalars) point to.
  void call_body(llvm::Function* from, llvm::Function* body) {
    b_.SetInsertPoint(block_of(from));
    std::vector<Value*> args{from->getArg(0)};
    for (size_t i = 0; i < kernel_.params.size(); ++i)
      args.push_back(b_load(ptr(), from->getArg(1), i));
    for (size_t i = 0; i < kernel_.scalars.size(); ++i)
      args.push_back(b_load(b_.getInt64Ty(), from->getArg(2), i));
    b_.CreateCall(body, args);
    b_.CreateRetVoid();
  }
  // A function of the kernel's arguments that each member of a team calls with those of `entry`.
  llvm::Function* by_team(llvm::Function* entry) {
    auto* member = make_function(kernel_.name + ".member", {ptr(), ptr(), ptr()},
                                 llvm::Function::InternalLinkage);
    auto* team =
        make_function(kernel_.name + ".team", {ptr(), ptr()}, llvm::Function::InternalLinkage);
    b_.SetInsertPoint(block_of(entry));
    Value* closure = b_.CreateAlloca(llvm::ArrayType::get(ptr(), 2), nullptr, "closure");
    for (unsigned i = 0; i < 2; ++i)
      b_.CreateStore(entry->getArg(i + 1), b_.CreateConstInBoundsGEP1_64(ptr(), closure, i));
    f_ = {};
    f_.context = entry->getArg(0);
    b_.CreateCall(llvm::FunctionType::get(b_.getVoidTy(), {ptr(), ptr(), ptr()}, false),
                  context_field(ptr(), kTeamField), {f_.context, team, closure});
    b_.CreateRetVoid();
    b_.SetInsertPoint(block_of(team));
    b_.CreateCall(member, {team->getArg(0), b_load(ptr(), team->getArg(1), 0),
                           b_load(ptr(), team->getArg(1), 1)});
    b_.CreateRetVoid();
    return member;
  }

  // --- types
  // -------------------------------------------------------------------------------------------------------
  llvm::PointerType* ptr() { return b_.getPtrTy(); }
  llvm::Type* scalar_type(DType t, bool in_memory = false) {
    return llvm_type(b_, {t, 1}, in_memory);
  }
  llvm::Type* type_of(ScalarType t, bool in_memory = false) { return llvm_type(b_, t, in_memory); }
  Value* splat(Value* v, int lanes) {
    return lanes == 1 || v->getType()->isVectorTy()
               ? v
               : b_.CreateVectorSplat(static_cast<unsigned>(lanes), v);
  }
  // A short vector over and over until there are `lanes`.
  Value* repeat(Value* v, int lanes) {
    const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
    if (!type) return splat(v, lanes);
    std::vector<int> from(static_cast<size_t>(lanes));
    for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int>(i % type->getNumElements());
    return b_.CreateShuffleVector(v, from);
  }
  Value* i64(int64_t v) { return b_.getInt64(static_cast<uint64_t>(v)); }

  // --- functions
  // -----------------------------------------------------------------------------------------------------
  llvm::Function* make_function(const std::string& name, const std::vector<llvm::Type*>& types,
                                llvm::Function::LinkageTypes linkage) {
    auto* f = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), types, false), linkage,
                                     name, module_);
    std::string features;
    for (const std::string& x : machine_.features) features += (features.empty() ? "+" : ",+") + x;
    // Only the listed features: the file names all that it needs. The CPU itself steers instruction
    // order alone.
    f->addFnAttr("target-cpu", "x86-64");
    f->addFnAttr("tune-cpu", machine_.cpu);
    if (!features.empty()) f->addFnAttr("target-features", features);
    f->addFnAttr("prefer-vector-width", std::to_string(8 * machine_.vector_bytes));
    f->addFnAttr(llvm::Attribute::NoUnwind);
    llvm::BasicBlock::Create(c_, "entry", f);
    if (linkage == llvm::Function::InternalLinkage) f->addFnAttr(llvm::Attribute::NoInline);
    return f;
  }
  static llvm::BasicBlock* block_of(llvm::Function* f) { return &f->getEntryBlock(); }
  Value* b_load(llvm::Type* t, Value* base, size_t i) {
    return b_.CreateLoad(t, b_.CreateConstInBoundsGEP1_64(t, base, i));
  }
  Value* context_field(llvm::Type* t, int64_t offset) {
    return b_.CreateLoad(t, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), f_.context,
                                                          static_cast<uint64_t>(offset)));
  }

  // --- statements
  // ------------------------------------------------------------------------------------------------------
  void emit(const Stmt& s) {
    memo_.clear();
    if (s.kind() != NodeKind::kDotTile) unit_.forget_operands();
    switch (s.kind()) {
      case NodeKind::kStore: return emit_store(*s.as<Store>());
      case NodeKind::kDotTile: return emit_dot_tile(*s.as<DotTile>());
      case NodeKind::kSeq: return emit_seq(s.as<Seq>()->stmts);
      case NodeKind::kLet: {
        const Let& l = *s.as<Let>();
        f_.vars[l.var.get()] = expr(l.value);
        return emit(l.body);
      }
      case NodeKind::kFor:
        return s.as<For>()->loop_kind == LoopKind::kParallel ? emit_parallel(*s.as<For>())
                                                             : emit_for(*s.as<For>());
      case NodeKind::kWhile: return emit_while(*s.as<While>());
      case NodeKind::kIf: return emit_if(*s.as<If>());
      case NodeKind::kAllocate: return emit_allocate(*s.as<Allocate>());
      default: TW_CHECK(!"flat loops hold no blocks");
    }
  }

  void emit_seq(const std::vector<Stmt>& stmts) {
    size_t square_end = 0;
    for (size_t i = 0; i < stmts.size(); ++i) {
      if (i >= square_end) square_end = i + load_square(columns_of_square(stmts, i));
      emit(stmts[i]);
    }
    loaded_.clear();  // other places may share the loads, but not their values
  }
  // Reads the rows of a square; its columns are then the values of these loads, where a gather for
  // each would take the elements one by one. Returns their number.
  size_t load_square(const std::vector<const Load*>& columns) {
    loaded_.clear();
    if (columns.empty()) return 0;
    const Load& first = *columns[0];
    const Ramp& index = *first.indices[0].as<Ramp>();
    memo_.clear();
    Value *place = address(first.buffer, expr(index.base)), *stride = expr(index.stride);
    std::vector<Value*> rows;
    for (size_t i = 0; i < columns.size(); ++i) {
      Value* row = b_.CreateInBoundsGEP(scalar_type(first.buffer->dtype, true), place,
                                        b_.CreateMul(stride, i64(static_cast<int64_t>(i))));
      rows.push_back(b_.CreateAlignedLoad(type_of(first.type, true), row, alignment(first.buffer)));
    }
    const int n = first.type.lanes, part = std::min(n, 16 / byte_size(first.type.dtype));
    for (const std::vector<Shuffle>& step : transpose_steps(n, part)) {
      std::vector<Value*> next;
      for (const Shuffle& s : step)
        next.push_back(b_.CreateShuffleVector(rows[static_cast<size_t>(s.x)],
                                              rows[static_cast<size_t>(s.y)], s.lanes));
      rows = std::move(next);
    }
    for (size_t i = 0; i < columns.size(); ++i)
      loaded_[columns[i]] = from_memory(rows[i], first.type);
    return columns.size();
  }

  void emit_for(const For& f) {
    Value* extent = expr(f.extent);
    const bool holds = unit_.hold_sums(f);
    llvm::Function* fn = f_.function;
    auto* preheader = b_.GetInsertBlock();
    auto* loop = llvm::BasicBlock::Create(c_, f.var.name(), fn);
    auto* exit = llvm::BasicBlock::Create(c_, f.var.name() + ".end", fn);
    const bool runs = as_int(f.extent).value_or(0) > 0;
    if (runs)
      b_.CreateBr(loop);
    else
      b_.CreateCondBr(b_.CreateICmpSGT(extent, i64(0)), loop, exit);
    b_.SetInsertPoint(loop);
    auto* i = b_.CreatePHI(b_.getInt64Ty(), 2, f.var.name());
    i->addIncoming(i64(0), preheader);
    f_.vars[f.var.get()] = i;
    unit_.enter_loop(preheader);
    emit(f.body);
    Value* next = b_.CreateAdd(i, i64(1), "", true, true);
    i->addIncoming(next, b_.GetInsertBlock());
    auto* back = b_.CreateCondBr(b_.CreateICmpSLT(next, extent), loop, exit);
    mark_loop(back);
    unit_.leave_loop(back->getParent(), exit, runs ? nullptr : preheader);
    b_.SetInsertPoint(exit);
    memo_.clear();
    if (holds) unit_.store_sums();
  }
  // The schedule decides on unrolling; LLVM does not do it again.
  void mark_loop(llvm::Instruction* back) {
    auto* off = llvm::MDNode::get(c_, llvm::MDString::get(c_, "llvm.loop.unroll.disable"));
    auto* id = llvm::MDNode::getDistinct(c_, {nullptr, off});
    id->replaceOperandWith(0, id);
    back->setMetadata(llvm::LLVMContext::MD_loop, id);
  }
  void emit_dot_tile(const DotTile& tile) {
    if (has_matrix_unit(machine_, tile)) return unit_.emit(tile);
    expanded_.push_back(as_dots(tile));
    emit(expanded_.back());
  }
  void emit_while(const While& w) {
    auto* head = llvm::BasicBlock::Create(c_, "while", f_.function);
    auto* body = llvm::BasicBlock::Create(c_, "do", f_.function);
    auto* exit = llvm::BasicBlock::Create(c_, "done", f_.function);
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    memo_.clear();
    b_.CreateCondBr(expr(w.condition), body, exit);
    b_.SetInsertPoint(body);
    emit(w.body);
    b_.CreateBr(head);
    b_.SetInsertPoint(exit);
  }
  void emit_if(const If& s) {
    Value* condition = expr(s.condition);
    auto* then = llvm::BasicBlock::Create(c_, "then", f_.function);
    auto* exit = llvm::BasicBlock::Create(c_, "endif", f_.function);
    auto* otherwise = s.otherwise ? llvm::BasicBlock::Create(c_, "else", f_.function) : exit;
    b_.CreateCondBr(condition, then, otherwise);
    b_.SetInsertPoint(then);
    emit(s.then);
    b_.CreateBr(exit);
    if (s.otherwise) {
      b_.SetInsertPoint(otherwise);
      emit(s.otherwise);
      b_.CreateBr(exit);
    }
    b_.SetInsertPoint(exit);
    memo_.clear();
  }
  void emit_allocate(const Allocate& a) {
    Expr elements = 1;
    for (const Expr& d : a.buffer->shape) elements = elements * d;
    elements = simplify(elements);
    if (a.buffer->scope == Scope::kLocal) {
      TW_CHECK(as_int(elements));
      llvm::IRBuilder<> at(block_of(f_.function), block_of(f_.function)->begin());
      auto* array = llvm::ArrayType::get(scalar_type(a.buffer->dtype, true),
                                         static_cast<uint64_t>(*as_int(elements)));
      auto* memory = at.CreateAlloca(array, nullptr, a.buffer->name);
      memory->setAlignment(llvm::Align(64));
      f_.buffers[a.buffer.get()] = memory;
    } else {
      // Bytes rounded up to 64, so that each buffer starts aligned.
      Expr bytes =
          floordiv(elements * Expr(byte_size(a.buffer->dtype)) + Expr(63), Expr(64)) * Expr(64);
      Expr& total = f_.worker_base ? worker_bytes_ : call_bytes_;
      Value* base = f_.worker_base ? f_.worker_base : context_field(ptr(), kCallWorkspaceField);
      f_.buffers[a.buffer.get()] =
          b_.CreateInBoundsGEP(b_.getInt8Ty(), base, expr(simplify(total)));
      total = total + bytes;
    }
    const auto* steps = a.body.as<Seq>();
    if (!steps || !unit_.starts_from_zero(a.buffer, steps->stmts)) return emit(a.body);
    memo_.clear();
    emit_seq({steps->stmts.begin() + 1, steps->stmts.end()});
  }

  // A parallel loop becomes a function over a range of iterations; what it names from outside goes
  // through a closure.
  void emit_parallel(const For& f) {
    struct Captured {
      std::vector<const ExprNode*> vars;
      std::vector<const BufferNode*> buffers;
    } captured;
    for (const ExprNode* v : free_vars(f.body))
      if (v != f.var.get() && f_.vars.count(v)) captured.vars.push_back(v);
    std::sort(captured.vars.begin(), captured.vars.end(), [](const ExprNode* a, const ExprNode* b) {
      return static_cast<const VarNode*>(a)->name < static_cast<const VarNode*>(b)->name;
    });
    collect_buffers(f.body, captured.buffers);

    const size_t slots = captured.vars.size() + captured.buffers.size();
    llvm::IRBuilder<> at(block_of(f_.function), block_of(f_.function)->begin());
    Value* closure = at.CreateAlloca(
        llvm::ArrayType::get(b_.getInt64Ty(), std::max<size_t>(slots, 1)), nullptr, "closure");
    size_t slot = 0;
    auto put = [&](Value* v) {
      b_.CreateStore(v, b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), closure, slot++));
    };
    for (const BufferNode* x : captured.buffers) put(f_.buffers.at(x));
    for (const ExprNode* v : captured.vars) put(f_.vars.at(v));

    const std::string name = kernel_.name + ".parallel" + std::to_string(bodies_++);
    auto* outer =
        make_function(name, {ptr(), ptr(), b_.getInt64Ty(), b_.getInt64Ty(), b_.getInt64Ty()},
                      llvm::Function::InternalLinkage);
    Value* count = expr(f.extent);
    b_.CreateCall(
        llvm::FunctionType::get(b_.getVoidTy(), {ptr(), b_.getInt64Ty(), ptr(), ptr()}, false),
        context_field(ptr(), kParallelField), {f_.context, count, outer, closure});

    Frame saved = std::move(f_);
    auto* resume = b_.GetInsertBlock();
    std::vector<llvm::Type*> types{ptr(), ptr(), b_.getInt64Ty(), b_.getInt64Ty()};
    for (size_t i = 0; i < captured.buffers.size(); ++i) types.push_back(ptr());
    for (size_t i = 0; i < captured.vars.size(); ++i) types.push_back(b_.getInt64Ty());
    auto* body = make_function(name + ".body", types, llvm::Function::InternalLinkage);

    b_.SetInsertPoint(block_of(outer));
    f_ = {};
    f_.context = outer->getArg(0);
    Value* stride = context_field(b_.getInt64Ty(), kWorkerStrideField);
    Value* base = b_.CreateInBoundsGEP(b_.getInt8Ty(), context_field(ptr(), kWorkerWorkspaceField),
                                       b_.CreateMul(outer->getArg(4), stride));
    std::vector<Value*> args{outer->getArg(0), base, outer->getArg(2), outer->getArg(3)};
    slot = 0;
    for (size_t i = 0; i < captured.buffers.size(); ++i)
      args.push_back(b_.CreateLoad(
          ptr(), b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), outer->getArg(1), slot++)));
    for (size_t i = 0; i < captured.vars.size(); ++i)
      args.push_back(
          b_.CreateLoad(b_.getInt64Ty(),
                        b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), outer->getArg(1), slot++)));
    b_.CreateCall(body, args);
    b_.CreateRetVoid();

    f_ = {};
    f_.function = body;
    f_.context = body->getArg(0);
    f_.worker_base = body->getArg(1);
    unsigned next = 4;
    for (const BufferNode* x : captured.buffers) {
      body->addParamAttr(next, llvm::Attribute::NoAlias);
      f_.buffers[x] = body->getArg(next++);
    }
    for (const ExprNode* v : captured.vars) f_.vars[v] = body->getArg(next++);
    emit_range(f, body);
    f_ = std::move(saved);
    b_.SetInsertPoint(resume);
    memo_.clear();
  }
  void emit_range(const For& f, llvm::Function* body) {
    b_.SetInsertPoint(block_of(body));
    auto* loop = llvm::BasicBlock::Create(c_, f.var.name(), body);
    auto* exit = llvm::BasicBlock::Create(c_, "end", body);
    b_.CreateCondBr(b_.CreateICmpSLT(body->getArg(2), body->getArg(3)), loop, exit);
    auto* entry = b_.GetInsertBlock();
    b_.SetInsertPoint(loop);
    auto* i = b_.CreatePHI(b_.getInt64Ty(), 2, f.var.name());
    i->addIncoming(body->getArg(2), entry);
    f_.vars[f.var.get()] = i;
    emit(f.body);
    Value* next = b_.CreateAdd(i, i64(1), "", true, true);
    i->addIncoming(next, b_.GetInsertBlock());
    mark_loop(b_.CreateCondBr(b_.CreateICmpSLT(next, body->getArg(3)), loop, exit));
    b_.SetInsertPoint(exit);
    emit_return();
  }
  // Streamed stores are not ordered with others: they are waited for before the task counts as
  // done.
  void emit_return() {
    if (f_.streams) b_.CreateIntrinsic(b_.getVoidTy(), llvm::Intrinsic::x86_sse_sfence, {});
    b_.CreateRetVoid();
  }
  void collect_buffers(const Stmt& s, std::vector<const BufferNode*>& out) {
    auto add = [&](const Buffer& x) {
      if (f_.buffers.count(x.get()) && std::find(out.begin(), out.end(), x.get()) == out.end())
        out.push_back(x.get());
    };
    for_each_stmt(s, [&](const Stmt& x) {
      if (const auto* st = x.as<Store>()) add(st->buffer);
      if (const auto* t = x.as<DotTile>())
        for (const TileOperand* o : {&t->sum, &t->a, &t->b}) add(o->buffer);
    });
    for_each_expr(s, [&](const Expr& e) {
      if (const auto* l = e.as<Load>()) add(l->buffer);
    });
  }

  // --- memory
  // ------------------------------------------------------------------------------------------------------------
  llvm::Align alignment(const Buffer& x) {
    return llvm::Align(static_cast<uint64_t>(byte_size(x->dtype)));
  }
  Value* address(const Buffer& x, Value* index) {
    auto it = f_.buffers.find(x.get());
    TW_CHECK(it != f_.buffers.end());
    return b_.CreateInBoundsGEP(scalar_type(x->dtype, true), it->second, index);
  }
  Value* to_memory(Value* v, ScalarType t) {
    return t.dtype == DType::kBool ? b_.CreateZExt(v, type_of(t, true)) : v;
  }
  Value* from_memory(Value* v, ScalarType t) {
    return t.dtype == DType::kBool ? b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()))
                                   : v;
  }
  // A unit-stride vector index, as its first element; null otherwise.
  Value* contiguous_base(const Expr& index) {
    const auto* r = index.as<Ramp>();
    return r && is_one(r->stride) ? expr(r->base) : nullptr;
  }

  void emit_store(const Store& s) {
    const ScalarType t{s.buffer->dtype, std::max(s.indices[0].lanes(), s.value.lanes())};
    Value* value = to_memory(splat(expr(s.value), t.lanes), t);
    Value* mask = s.mask ? expr(s.mask) : nullptr;
    if (t.lanes == 1) {
      if (mask) return store_if(mask, s, value);
      b_.CreateAlignedStore(value, address(s.buffer, expr(s.indices[0])), alignment(s.buffer));
      return;
    }
    if (mask) mask = splat(mask, t.lanes);
    if (Value* base = contiguous_base(s.indices[0])) {
      Value* p = address(s.buffer, base);
      if (mask)
        b_.CreateMaskedStore(value, p, alignment(s.buffer), mask);
      else if (can_stream(s, t))
        mark_streamed(
            b_.CreateAlignedStore(value, p, llvm::Align(static_cast<uint64_t>(register_bytes(t)))));
      else
        b_.CreateAlignedStore(value, p, alignment(s.buffer));
      return;
    }
    Value* pointers = address(s.buffer, expr(s.indices[0]));
    b_.CreateMaskedScatter(value, pointers, alignment(s.buffer), mask);
  }
  int register_bytes(ScalarType t) const {
    return std::min(t.lanes * byte_size(t.dtype), machine_.vector_bytes);
  }
  // Whole registers at whole multiples of their size: results start aligned (kernel_abi.h).
  bool can_stream(const Store& s, ScalarType t) const {
    const int bytes = register_bytes(t);
    return s.store_kind == StoreKind::kStreamed && bytes >= 16 &&
           std::has_single_bit(static_cast<unsigned>(t.lanes)) &&
           is_multiple(s.indices[0].as<Ramp>()->base, bytes / byte_size(t.dtype));
  }
  void mark_streamed(llvm::Instruction* store) {
    auto* one = llvm::ConstantAsMetadata::get(b_.getInt32(1));
    store->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(c_, one));
    f_.streams = true;
  }
  void store_if(Value* condition, const Store& s, Value* value) {
    Value* p = address(s.buffer, expr(s.indices[0]));
    auto* then = llvm::BasicBlock::Create(c_, "store", f_.function);
    auto* exit = llvm::BasicBlock::Create(c_, "stored", f_.function);
    b_.CreateCondBr(condition, then, exit);
    b_.SetInsertPoint(then);
    b_.CreateAlignedStore(value, p, alignment(s.buffer));
    b_.CreateBr(exit);
    b_.SetInsertPoint(exit);
  }

  Value* emit_load(const Load& l) {
    if (auto it = loaded_.find(&l); it != loaded_.end()) return it->second;
    const ScalarType t = l.type;
    llvm::Type* type = type_of(t, true);
    const bool always = l.mask && is_one(l.mask);  // even where a guard around is off
    Value* mask = l.mask && !always ? expr(l.mask) : nullptr;
    if (guard_ && !always)
      mask = mask ? b_.CreateAnd(splat(mask, t.lanes), fit(guard_, t.lanes)) : fit(guard_, t.lanes);
    if (t.lanes == 1) {
      Value* index = expr(l.indices[0]);
      // Element 0 always exists: what is not to be read is read there and dropped.
      if (mask) index = b_.CreateSelect(mask, index, i64(0));
      Value* v = b_.CreateAlignedLoad(type, address(l.buffer, index), alignment(l.buffer));
      return from_memory(v, t);
    }
    if (mask) mask = splat(mask, t.lanes);
    Value* zero = llvm::Constant::getNullValue(type);
    if (Value* base = contiguous_base(l.indices[0])) {
      Value* p = address(l.buffer, base);
      Value* v =
          mask ? static_cast<Value*>(b_.CreateMaskedLoad(type, p, alignment(l.buffer), mask, zero))
               : b_.CreateAlignedLoad(type, p, alignment(l.buffer));
      return from_memory(v, t);
    }
    if (Value* v = guard_ && !always ? nullptr : read_shuffled(l)) return from_memory(v, t);
    Value* pointers = addresses(l.buffer, l.indices[0]);
    return from_memory(b_.CreateMaskedGather(type, pointers, alignment(l.buffer), mask, zero), t);
  }
  // The address of each lane, from that which all have in common: processors add the rest to it
  // where it is a vector of narrow numbers.
  Value* addresses(const Buffer& x, const Expr& index) {
    const SplitIndex i = split_index(index);
    if (!i.uniform || !i.rest) return address(x, expr(index));
    Value* base = address(x, expr(keep(i.uniform)));
    return b_.CreateInBoundsGEP(scalar_type(x->dtype, true), base, expr(keep(i.rest)));
  }
  // Elements that lie close together, by known distances, are read side by side and put in order.
  // Null where they do not.
  Value* read_shuffled(const Load& l) {
    const auto index = known_lanes(l.indices[0]);
    const bool always = !l.mask || is_one(l.mask);
    const auto mask = always ? std::nullopt : known_lanes(l.mask);
    if (!index || (!always && (!mask || !is_zero(mask->base)))) return nullptr;
    std::vector<bool> on(index->offsets.size(), true);
    for (size_t i = 0; mask && i < on.size(); ++i) on[i] = mask->offsets[i] != 0;
    const auto read = shuffled_read(index->offsets, on);
    if (!read) return nullptr;
    Value* base = expr(keep(index->base));
    llvm::Type* part = type_of({l.type.dtype, read->count}, true);
    auto read_at = [&](int64_t offset) {
      Value* v = b_.CreateAlignedLoad(part, address(l.buffer, b_.CreateAdd(base, i64(offset))),
                                      alignment(l.buffer));
      return read->count == 1 ? b_.CreateVectorSplat(1, v) : v;
    };
    Value* first = read_at(read->first);
    Value* second = read->second == read->first ? first : read_at(read->second);
    Value* v = b_.CreateShuffleVector(first, second, read->lanes);
    if (always) return v;
    std::vector<llvm::Constant*> bits;  // lanes that are off give 0
    for (const bool lane : on) bits.push_back(b_.getInt1(lane));
    return b_.CreateSelect(llvm::ConstantVector::get(bits), v,
                           llvm::Constant::getNullValue(v->getType()));
  }
  const Expr& keep(Expr e) {
    made_.push_back(std::move(e));
    return made_.back();
  }
  // A guard of another width: scalars guard whole vectors; for a scalar inside a vector's guard,
  // any lane on suffices.
  Value* fit(Value* guard, int lanes) {
    const bool vector = guard->getType()->isVectorTy();
    if (lanes == 1 && vector) return b_.CreateOrReduce(guard);
    return splat(guard, lanes);
  }

  // --- expressions
  // -----------------------------------------------------------------------------------------------------
  Value* expr(const Expr& e) {
    if (e.kind() == NodeKind::kVar) {
      auto it = f_.vars.find(e.get());
      TW_CHECK(it != f_.vars.end());
      return it->second;
    }
    if (auto it = memo_.find(e.get()); it != memo_.end()) return it->second;
    Value* v = make(e);
    memo_[e.get()] = v;
    return v;
  }
  Value* make(const Expr& e) {
    switch (e.kind()) {
      case NodeKind::kIntImm:
        return llvm::ConstantInt::get(type_of(e.type()),
                                      static_cast<uint64_t>(e.as<IntImm>()->value), true);
      case NodeKind::kFloatImm:
        return llvm::ConstantFP::get(type_of(e.type()), e.as<FloatImm>()->value);
      case NodeKind::kCast:
        return emit_cast(b_, machine_, *e.as<Cast>(), expr(e.as<Cast>()->value));
      case NodeKind::kBitcast:
        return b_.CreateBitCast(expr(e.as<Bitcast>()->value), type_of(e.type()));
      case NodeKind::kUnary:
        return emit_unary(b_, machine_, *e.as<Unary>(), expr(e.as<Unary>()->value));
      case NodeKind::kBinary: {
        Value *x = expr(e.as<Binary>()->a), *y = expr(e.as<Binary>()->b);
        return emit_binary(b_, machine_, *e.as<Binary>(), x, y);
      }
      case NodeKind::kSelect: return emit_select(*e.as<Select>());
      case NodeKind::kLoad: return emit_load(*e.as<Load>());
      case NodeKind::kRamp: {
        const Ramp& r = *e.as<Ramp>();
        std::vector<llvm::Constant*> steps;
        for (int i = 0; i < e.lanes(); ++i)
          steps.push_back(llvm::ConstantInt::get(scalar_type(e.dtype()), static_cast<uint64_t>(i)));
        Value* offsets =
            b_.CreateMul(llvm::ConstantVector::get(steps), splat(expr(r.stride), e.lanes()));
        return b_.CreateAdd(splat(expr(r.base), e.lanes()), offsets);
      }
      case NodeKind::kBroadcast: return repeat(expr(e.as<Broadcast>()->value), e.lanes());
      case NodeKind::kDot: {
        const Dot& d = *e.as<Dot>();
        return emit_dot(b_, machine_, expr(d.sum), expr(d.a), expr(d.b));
      }
      case NodeKind::kReduceLanes:
        return emit_reduce_lanes(b_, machine_, *e.as<ReduceLanes>(),
                                 expr(e.as<ReduceLanes>()->value));
      default: break;
    }
    TW_CHECK(!"no expression");
    return nullptr;
  }

  static bool reads_memory(const Expr& e) {
    bool found = false;
    for_each_expr(e, [&](const Expr& x) { found |= x.kind() == NodeKind::kLoad; });
    return found;
  }
  Value* guarded(Value* condition, const Expr& e) {
    if (!reads_memory(e)) return expr(e);
    auto saved_memo = memo_;  // values computed under the guard do not hold outside
    Value* saved = guard_;
    guard_ = saved ? b_.CreateAnd(fit(saved, e.lanes()), fit(condition, e.lanes())) : condition;
    memo_.clear();
    Value* v = expr(e);
    guard_ = saved;
    memo_ = std::move(saved_memo);
    return v;
  }
  Value* emit_select(const Select& s) {
    // A broadcast condition guards whole vectors as a scalar.
    Expr scalar = s.condition;
    if (const auto* broadcast = scalar.as<Broadcast>(); broadcast && broadcast->value.lanes() == 1)
      scalar = broadcast->value;
    Value* condition = expr(scalar);
    Value* a = guarded(condition, s.a);
    Value* other = reads_memory(s.b) ? guarded(b_.CreateNot(condition), s.b) : expr(s.b);
    return b_.CreateSelect(condition, a, other);
  }

  const Kernel& kernel_;
  const MachineDescription& machine_;
  llvm::Module& module_;
  llvm::LLVMContext& c_;
  llvm::IRBuilder<> b_;
  Frame f_;
  std::unordered_map<const ExprNode*, Value*> memo_;
  std::unordered_map<const Load*, Value*> loaded_;  // ahead, by the square that they are part of
  Value* guard_ = nullptr;                          // loads are real only where it is true
  MatrixUnit unit_{b_, machine_,
                   [this](const Buffer& x, const Expr& index) { return address(x, expr(index)); },
                   [this](const Expr& e) { return expr(e); }};
  std::vector<Stmt> expanded_;  // kept alive for the tables above
  std::deque<Expr> made_;
  Expr call_bytes_ = 0, worker_bytes_ = 0;
  int bodies_ = 0;
};

}  // namespace

Result<KernelWorkspace> emit_kernel(const Kernel& kernel, const MachineDescription& machine,
                                    llvm::Module& module) {
  return Emitter(kernel, machine, module).run();
}

}  // namespace tilewright::cpu
