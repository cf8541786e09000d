#include "codegen/cpu/emit_llvm.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <cmath>
#include <functional>
#include <unordered_map>

#include "codegen/cpu/vector_math.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"

namespace tilewright::cpu {

using namespace ir;

namespace {

using llvm::Value;

constexpr int kWorkerStrideAlignment = 64;

// Offsets of the fields of TwKernelContext (runtime/kernel_abi.h).
enum ContextField : int64_t { kParallelField = 0, kCallWorkspaceField = 8, kWorkerWorkspaceField = 16, kWorkerStrideField = 24 };

std::optional<MathOp> math_op(UnaryOp op) {
  switch (op) {
    case UnaryOp::kExp: return MathOp::kExp;
    case UnaryOp::kLog: return MathOp::kLog;
    case UnaryOp::kSin: return MathOp::kSin;
    case UnaryOp::kCos: return MathOp::kCos;
    case UnaryOp::kTan: return MathOp::kTan;
    case UnaryOp::kAsin: return MathOp::kAsin;
    case UnaryOp::kAcos: return MathOp::kAcos;
    case UnaryOp::kAtan: return MathOp::kAtan;
    case UnaryOp::kSinh: return MathOp::kSinh;
    case UnaryOp::kCosh: return MathOp::kCosh;
    case UnaryOp::kTanh: return MathOp::kTanh;
    case UnaryOp::kAsinh: return MathOp::kAsinh;
    case UnaryOp::kAcosh: return MathOp::kAcosh;
    case UnaryOp::kAtanh: return MathOp::kAtanh;
    case UnaryOp::kErf: return MathOp::kErf;
    case UnaryOp::kSigmoid: return MathOp::kSigmoid;
    case UnaryOp::kNeg:
    case UnaryOp::kNot:
    case UnaryOp::kAbs:
    case UnaryOp::kSqrt:
    case UnaryOp::kFloor:
    case UnaryOp::kCeil:
    case UnaryOp::kRoundEven:
    case UnaryOp::kTrunc:
    case UnaryOp::kIsNan:
    case UnaryOp::kIsInf: return std::nullopt;
  }
  return std::nullopt;
}

// One function being written: the values its code can name.
struct Frame {
  llvm::Function* function = nullptr;
  Value* context = nullptr;
  Value* worker_base = nullptr;  // this worker's workspace, inside a parallel body
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
    auto* entry = make_function(kernel_.name, {ptr(), ptr(), ptr()}, llvm::Function::ExternalLinkage);
    // The kernel's body has its buffers as arguments, so that they are known not to alias.
    std::vector<llvm::Type*> types{ptr()};
    for (size_t i = 0; i < kernel_.params.size(); ++i) types.push_back(ptr());
    for (size_t i = 0; i < kernel_.scalars.size(); ++i) types.push_back(b_.getInt64Ty());
    auto* body = make_function(kernel_.name + ".body", types, llvm::Function::InternalLinkage);
    b_.SetInsertPoint(block_of(entry));
    std::vector<Value*> args{entry->getArg(0)};
    for (size_t i = 0; i < kernel_.params.size(); ++i) args.push_back(b_load(ptr(), entry->getArg(1), i));
    for (size_t i = 0; i < kernel_.scalars.size(); ++i) args.push_back(b_load(b_.getInt64Ty(), entry->getArg(2), i));
    b_.CreateCall(body, args);
    b_.CreateRetVoid();

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
    emit(kernel_.body);
    b_.CreateRetVoid();
    return {simplify(call_bytes_), simplify(worker_bytes_)};
  }

 private:
  // --- types -------------------------------------------------------------------------------------------------------
  llvm::PointerType* ptr() { return b_.getPtrTy(); }
  llvm::Type* scalar_type(DType t, bool in_memory = false) {
    switch (t) {
      case DType::kFloat32: return b_.getFloatTy();
      case DType::kFloat64: return b_.getDoubleTy();
      case DType::kFloat16: return b_.getHalfTy();
      case DType::kBFloat16: return b_.getBFloatTy();
      case DType::kBool: return in_memory ? b_.getInt8Ty() : b_.getInt1Ty();
      default: return b_.getIntNTy(static_cast<unsigned>(8 * byte_size(t)));
    }
  }
  llvm::Type* type_of(ScalarType t, bool in_memory = false) {
    llvm::Type* s = scalar_type(t.dtype, in_memory);
    return t.lanes == 1 ? s : llvm::FixedVectorType::get(s, static_cast<unsigned>(t.lanes));
  }
  Value* splat(Value* v, int lanes) {
    return lanes == 1 || v->getType()->isVectorTy() ? v : b_.CreateVectorSplat(static_cast<unsigned>(lanes), v);
  }
  Value* i64(int64_t v) { return b_.getInt64(static_cast<uint64_t>(v)); }

  // --- functions -----------------------------------------------------------------------------------------------------
  llvm::Function* make_function(const std::string& name, const std::vector<llvm::Type*>& types, llvm::Function::LinkageTypes linkage) {
    auto* f = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), types, false), linkage, name, module_);
    std::string features;
    for (const std::string& x : machine_.features) features += (features.empty() ? "+" : ",+") + x;
    // Only the listed features: the file names all that it needs. The CPU itself steers instruction order alone.
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
    return b_.CreateLoad(t, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), f_.context, static_cast<uint64_t>(offset)));
  }

  // --- statements ------------------------------------------------------------------------------------------------------
  void emit(const Stmt& s) {
    memo_.clear();
    switch (s.kind()) {
      case NodeKind::kStore: return emit_store(*s.as<Store>());
      case NodeKind::kSeq:
        for (const Stmt& x : s.as<Seq>()->stmts) emit(x);
        return;
      case NodeKind::kLet: {
        const Let& l = *s.as<Let>();
        f_.vars[l.var.get()] = expr(l.value);
        return emit(l.body);
      }
      case NodeKind::kFor: return s.as<For>()->loop_kind == LoopKind::kParallel ? emit_parallel(*s.as<For>()) : emit_for(*s.as<For>());
      case NodeKind::kWhile: return emit_while(*s.as<While>());
      case NodeKind::kIf: return emit_if(*s.as<If>());
      case NodeKind::kAllocate: return emit_allocate(*s.as<Allocate>());
      default: TW_CHECK(!"flat loops hold no blocks");
    }
  }

  void emit_for(const For& f) {
    Value* extent = expr(f.extent);
    llvm::Function* fn = f_.function;
    auto* preheader = b_.GetInsertBlock();
    auto* loop = llvm::BasicBlock::Create(c_, f.var.name(), fn);
    auto* exit = llvm::BasicBlock::Create(c_, f.var.name() + ".end", fn);
    if (auto n = as_int(f.extent); n && *n > 0) b_.CreateBr(loop);
    else b_.CreateCondBr(b_.CreateICmpSGT(extent, i64(0)), loop, exit);
    b_.SetInsertPoint(loop);
    auto* i = b_.CreatePHI(b_.getInt64Ty(), 2, f.var.name());
    i->addIncoming(i64(0), preheader);
    f_.vars[f.var.get()] = i;
    emit(f.body);
    Value* next = b_.CreateAdd(i, i64(1), "", true, true);
    i->addIncoming(next, b_.GetInsertBlock());
    auto* back = b_.CreateCondBr(b_.CreateICmpSLT(next, extent), loop, exit);
    mark_loop(back);
    b_.SetInsertPoint(exit);
  }
  // The schedule decides on unrolling; LLVM does not do it again.
  void mark_loop(llvm::Instruction* back) {
    auto* off = llvm::MDNode::get(c_, llvm::MDString::get(c_, "llvm.loop.unroll.disable"));
    auto* id = llvm::MDNode::getDistinct(c_, {nullptr, off});
    id->replaceOperandWith(0, id);
    back->setMetadata(llvm::LLVMContext::MD_loop, id);
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
      auto* array = llvm::ArrayType::get(scalar_type(a.buffer->dtype, true), static_cast<uint64_t>(*as_int(elements)));
      auto* memory = at.CreateAlloca(array, nullptr, a.buffer->name);
      memory->setAlignment(llvm::Align(64));
      f_.buffers[a.buffer.get()] = memory;
    } else {
      // Bytes rounded up to 64, so that each buffer starts aligned.
      Expr bytes = floordiv(elements * Expr(byte_size(a.buffer->dtype)) + Expr(63), Expr(64)) * Expr(64);
      Expr& total = f_.worker_base ? worker_bytes_ : call_bytes_;
      Value* base = f_.worker_base ? f_.worker_base : context_field(ptr(), kCallWorkspaceField);
      f_.buffers[a.buffer.get()] = b_.CreateInBoundsGEP(b_.getInt8Ty(), base, expr(simplify(total)));
      total = total + bytes;
    }
    emit(a.body);
  }

  // A parallel loop becomes a function over a range of iterations; what it names from outside goes through a closure.
  void emit_parallel(const For& f) {
    struct Captured { std::vector<const ExprNode*> vars; std::vector<const BufferNode*> buffers; } captured;
    for (const ExprNode* v : free_vars(f.body)) if (v != f.var.get() && f_.vars.count(v)) captured.vars.push_back(v);
    std::sort(captured.vars.begin(), captured.vars.end(), [](const ExprNode* a, const ExprNode* b) {
      return static_cast<const VarNode*>(a)->name < static_cast<const VarNode*>(b)->name;
    });
    collect_buffers(f.body, captured.buffers);

    const size_t slots = captured.vars.size() + captured.buffers.size();
    llvm::IRBuilder<> at(block_of(f_.function), block_of(f_.function)->begin());
    Value* closure = at.CreateAlloca(llvm::ArrayType::get(b_.getInt64Ty(), std::max<size_t>(slots, 1)), nullptr, "closure");
    size_t slot = 0;
    auto put = [&](Value* v) { b_.CreateStore(v, b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), closure, slot++)); };
    for (const BufferNode* x : captured.buffers) put(f_.buffers.at(x));
    for (const ExprNode* v : captured.vars) put(f_.vars.at(v));

    const std::string name = kernel_.name + ".parallel" + std::to_string(bodies_++);
    auto* outer = make_function(name, {ptr(), ptr(), b_.getInt64Ty(), b_.getInt64Ty(), b_.getInt64Ty()}, llvm::Function::InternalLinkage);
    Value* count = expr(f.extent);
    b_.CreateCall(llvm::FunctionType::get(b_.getVoidTy(), {ptr(), b_.getInt64Ty(), ptr(), ptr()}, false),
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
    Value* base = b_.CreateInBoundsGEP(b_.getInt8Ty(), context_field(ptr(), kWorkerWorkspaceField), b_.CreateMul(outer->getArg(4), stride));
    std::vector<Value*> args{outer->getArg(0), base, outer->getArg(2), outer->getArg(3)};
    slot = 0;
    for (size_t i = 0; i < captured.buffers.size(); ++i) args.push_back(b_.CreateLoad(ptr(), b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), outer->getArg(1), slot++)));
    for (size_t i = 0; i < captured.vars.size(); ++i) args.push_back(b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), outer->getArg(1), slot++)));
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
    b_.CreateRetVoid();
  }
  void collect_buffers(const Stmt& s, std::vector<const BufferNode*>& out) {
    auto add = [&](const Buffer& x) {
      if (f_.buffers.count(x.get()) && std::find(out.begin(), out.end(), x.get()) == out.end()) out.push_back(x.get());
    };
    for_each_stmt(s, [&](const Stmt& x) { if (const auto* st = x.as<Store>()) add(st->buffer); });
    for_each_expr(s, [&](const Expr& e) { if (const auto* l = e.as<Load>()) add(l->buffer); });
  }

  // --- memory ------------------------------------------------------------------------------------------------------------
  llvm::Align alignment(const Buffer& x) { return llvm::Align(static_cast<uint64_t>(byte_size(x->dtype))); }
  Value* address(const Buffer& x, Value* index) {
    auto it = f_.buffers.find(x.get());
    TW_CHECK(it != f_.buffers.end());
    return b_.CreateInBoundsGEP(scalar_type(x->dtype, true), it->second, index);
  }
  Value* to_memory(Value* v, ScalarType t) { return t.dtype == DType::kBool ? b_.CreateZExt(v, type_of(t, true)) : v; }
  Value* from_memory(Value* v, ScalarType t) {
    return t.dtype == DType::kBool ? b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType())) : v;
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
      if (mask) b_.CreateMaskedStore(value, p, alignment(s.buffer), mask);
      else b_.CreateAlignedStore(value, p, alignment(s.buffer));
      return;
    }
    Value* pointers = address(s.buffer, expr(s.indices[0]));
    b_.CreateMaskedScatter(value, pointers, alignment(s.buffer), mask);
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
    const ScalarType t = l.type;
    llvm::Type* type = type_of(t, true);
    Value* mask = l.mask ? expr(l.mask) : nullptr;
    if (guard_) mask = mask ? b_.CreateAnd(splat(mask, t.lanes), fit(guard_, t.lanes)) : fit(guard_, t.lanes);
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
      Value* v = mask ? static_cast<Value*>(b_.CreateMaskedLoad(type, p, alignment(l.buffer), mask, zero))
                      : b_.CreateAlignedLoad(type, p, alignment(l.buffer));
      return from_memory(v, t);
    }
    Value* pointers = address(l.buffer, expr(l.indices[0]));
    return from_memory(b_.CreateMaskedGather(type, pointers, alignment(l.buffer), mask, zero), t);
  }
  // A guard of another width: scalars guard whole vectors; for a scalar inside a vector's guard, any lane on suffices.
  Value* fit(Value* guard, int lanes) {
    const bool vector = guard->getType()->isVectorTy();
    if (lanes == 1 && vector) return b_.CreateOrReduce(guard);
    return splat(guard, lanes);
  }

  // --- expressions -----------------------------------------------------------------------------------------------------
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
      case NodeKind::kIntImm: return llvm::ConstantInt::get(type_of(e.type()), static_cast<uint64_t>(e.as<IntImm>()->value), true);
      case NodeKind::kFloatImm: return llvm::ConstantFP::get(type_of(e.type()), e.as<FloatImm>()->value);
      case NodeKind::kCast: return emit_cast(*e.as<Cast>());
      case NodeKind::kBitcast: return b_.CreateBitCast(expr(e.as<Bitcast>()->value), type_of(e.type()));
      case NodeKind::kUnary: return emit_unary(*e.as<Unary>());
      case NodeKind::kBinary: return emit_binary(*e.as<Binary>());
      case NodeKind::kSelect: return emit_select(*e.as<Select>());
      case NodeKind::kLoad: return emit_load(*e.as<Load>());
      case NodeKind::kRamp: {
        const Ramp& r = *e.as<Ramp>();
        std::vector<llvm::Constant*> steps;
        for (int i = 0; i < e.lanes(); ++i) steps.push_back(llvm::ConstantInt::get(scalar_type(e.dtype()), static_cast<uint64_t>(i)));
        Value* offsets = b_.CreateMul(llvm::ConstantVector::get(steps), splat(expr(r.stride), e.lanes()));
        return b_.CreateAdd(splat(expr(r.base), e.lanes()), offsets);
      }
      case NodeKind::kBroadcast: return splat(expr(e.as<Broadcast>()->value), e.lanes());
      case NodeKind::kReduceLanes: return emit_reduce_lanes(*e.as<ReduceLanes>());
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
    if (const auto* broadcast = scalar.as<Broadcast>()) scalar = broadcast->value;
    Value* condition = expr(scalar);
    Value* a = guarded(condition, s.a);
    Value* other = reads_memory(s.b) ? guarded(b_.CreateNot(condition), s.b) : expr(s.b);
    return b_.CreateSelect(condition, a, other);
  }

  Value* emit_cast(const Cast& c) {
    const DType from = c.value.dtype(), to = c.type.dtype;
    Value* v = expr(c.value);
    llvm::Type* type = type_of(c.type);
    if (to == DType::kBool)
      return is_float(from) ? b_.CreateFCmpUNE(v, llvm::Constant::getNullValue(v->getType())) : b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
    if (is_float(from) && is_float(to)) {
      if (from == DType::kFloat64 && byte_size(to) == 2) return b_.CreateFPTrunc(v, type);
      if (byte_size(from) == 2 && byte_size(to) == 2) return b_.CreateFPTrunc(b_.CreateFPExt(v, type_of({DType::kFloat32, c.type.lanes})), type);
      return byte_size(to) > byte_size(from) ? b_.CreateFPExt(v, type) : b_.CreateFPTrunc(v, type);
    }
    if (is_float(from)) {
      const auto id = is_unsigned(to) ? llvm::Intrinsic::fptoui_sat : llvm::Intrinsic::fptosi_sat;
      return b_.CreateIntrinsic(id, {type, v->getType()}, {v});
    }
    const bool zero_extend = is_unsigned(from) || from == DType::kBool;
    if (is_float(to)) return zero_extend ? b_.CreateUIToFP(v, type) : b_.CreateSIToFP(v, type);
    return zero_extend ? b_.CreateZExtOrTrunc(v, type) : b_.CreateSExtOrTrunc(v, type);
  }

  Value* emit_unary(const Unary& u) {
    Value* v = expr(u.value);
    const DType t = u.value.dtype();
    const bool half = t == DType::kFloat16 || t == DType::kBFloat16;
    auto intrinsic = [&](llvm::Intrinsic::ID id) { return static_cast<Value*>(b_.CreateUnaryIntrinsic(id, v)); };
    switch (u.op) {
      case UnaryOp::kNeg: return is_float(t) ? b_.CreateFNeg(v) : b_.CreateNeg(v);
      case UnaryOp::kNot: return b_.CreateNot(v);
      case UnaryOp::kAbs:
        if (is_float(t)) return intrinsic(llvm::Intrinsic::fabs);
        if (is_unsigned(t)) return v;
        return b_.CreateIntrinsic(llvm::Intrinsic::abs, {v->getType()}, {v, b_.getFalse()});
      case UnaryOp::kSqrt: return intrinsic(llvm::Intrinsic::sqrt);
      case UnaryOp::kFloor: return is_float(t) ? intrinsic(llvm::Intrinsic::floor) : v;
      case UnaryOp::kCeil: return is_float(t) ? intrinsic(llvm::Intrinsic::ceil) : v;
      case UnaryOp::kRoundEven: return is_float(t) ? intrinsic(llvm::Intrinsic::roundeven) : v;
      case UnaryOp::kTrunc: return is_float(t) ? intrinsic(llvm::Intrinsic::trunc) : v;
      case UnaryOp::kIsNan: return b_.CreateFCmpUNO(v, v);
      case UnaryOp::kIsInf: return b_.CreateFCmpOEQ(intrinsic(llvm::Intrinsic::fabs), llvm::ConstantFP::getInfinity(v->getType()));
      default: break;
    }
    auto op = math_op(u.op);
    TW_CHECK(op && is_float(t));
    if (half) v = b_.CreateFPExt(v, type_of({DType::kFloat32, u.type.lanes}));
    v = emit_math(b_, *op, v, {.has_fma = machine_.has_fma});
    return half ? b_.CreateFPTrunc(v, type_of(u.type)) : v;
  }

  Value* emit_binary(const Binary& e) {
    const DType t = e.a.dtype();
    Value *a = expr(e.a), *y = expr(e.b);
    return is_float(t) ? float_binary(e, a, y) : int_binary(e, a, y);
  }
  Value* float_binary(const Binary& e, Value* a, Value* y) {
    const bool half = byte_size(e.a.dtype()) == 2;
    auto call = [&](llvm::Intrinsic::ID id) { return static_cast<Value*>(b_.CreateBinaryIntrinsic(id, a, y)); };
    switch (e.op) {
      case BinaryOp::kAdd: return b_.CreateFAdd(a, y);
      case BinaryOp::kSub: return b_.CreateFSub(a, y);
      case BinaryOp::kMul: return b_.CreateFMul(a, y);
      case BinaryOp::kDiv: return b_.CreateFDiv(a, y);
      case BinaryOp::kMin: return call(llvm::Intrinsic::minimum);
      case BinaryOp::kMax: return call(llvm::Intrinsic::maximum);
      case BinaryOp::kFloorDiv: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, b_.CreateFDiv(a, y));
      case BinaryOp::kTruncMod:
      case BinaryOp::kFloorMod: return float_remainder(e, a, y);
      case BinaryOp::kPow: {
        if (!half) return emit_pow(b_, a, y, {.has_fma = machine_.has_fma});
        llvm::Type* wide = type_of({DType::kFloat32, e.type.lanes});
        return b_.CreateFPTrunc(emit_pow(b_, b_.CreateFPExt(a, wide), b_.CreateFPExt(y, wide), {.has_fma = machine_.has_fma}), type_of(e.type));
      }
      case BinaryOp::kEq: return b_.CreateFCmpOEQ(a, y);
      case BinaryOp::kNe: return b_.CreateFCmpUNE(a, y);
      case BinaryOp::kLt: return b_.CreateFCmpOLT(a, y);
      case BinaryOp::kLe: return b_.CreateFCmpOLE(a, y);
      case BinaryOp::kGt: return b_.CreateFCmpOGT(a, y);
      case BinaryOp::kGe: return b_.CreateFCmpOGE(a, y);
      default: break;
    }
    TW_CHECK(!"no float operation");
    return nullptr;
  }
  // Exact while the quotient is below 2^53: computed in double, a - q * y with one rounding.
  Value* float_remainder(const Binary& e, Value* a, Value* y) {
    llvm::Type* wide = type_of({DType::kFloat64, e.type.lanes});
    Value *x = b_.CreateFPExt(a, wide), *m = b_.CreateFPExt(y, wide);
    if (e.a.dtype() == DType::kFloat64) { x = a; m = y; }
    Value* q = b_.CreateUnaryIntrinsic(e.op == BinaryOp::kFloorMod ? llvm::Intrinsic::floor : llvm::Intrinsic::trunc, b_.CreateFDiv(x, m));
    Value* r = machine_.has_fma ? b_.CreateIntrinsic(llvm::Intrinsic::fma, {wide}, {b_.CreateFNeg(q), m, x}) : b_.CreateFSub(x, b_.CreateFMul(q, m));
    // Division by an infinity leaves x; the sign of a zero is that of x.
    Value* infinite = b_.CreateFCmpOEQ(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, m), llvm::ConstantFP::getInfinity(wide));
    if (e.op == BinaryOp::kTruncMod) {
      r = b_.CreateSelect(infinite, x, r);
      r = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, r, x);
    }
    return e.a.dtype() == DType::kFloat64 ? r : b_.CreateFPTrunc(r, a->getType());
  }
  Value* int_binary(const Binary& e, Value* a, Value* y) {
    const bool is_u = is_unsigned(e.a.dtype()) || e.a.dtype() == DType::kBool;
    auto call = [&](llvm::Intrinsic::ID id) { return static_cast<Value*>(b_.CreateBinaryIntrinsic(id, a, y)); };
    switch (e.op) {
      case BinaryOp::kAdd: return b_.CreateAdd(a, y);
      case BinaryOp::kSub: return b_.CreateSub(a, y);
      case BinaryOp::kMul: return b_.CreateMul(a, y);
      case BinaryOp::kDiv:
      case BinaryOp::kFloorDiv:
      case BinaryOp::kTruncMod:
      case BinaryOp::kFloorMod: return int_division(e, a, y, is_u);
      case BinaryOp::kMin: return call(is_u ? llvm::Intrinsic::umin : llvm::Intrinsic::smin);
      case BinaryOp::kMax: return call(is_u ? llvm::Intrinsic::umax : llvm::Intrinsic::smax);
      case BinaryOp::kAnd: return b_.CreateAnd(a, y);
      case BinaryOp::kOr: return b_.CreateOr(a, y);
      case BinaryOp::kXor: return b_.CreateXor(a, y);
      case BinaryOp::kShl:
      case BinaryOp::kShr: return shift(e, a, y, is_u);
      case BinaryOp::kPow: return int_power(a, y);
      case BinaryOp::kEq: return b_.CreateICmpEQ(a, y);
      case BinaryOp::kNe: return b_.CreateICmpNE(a, y);
      case BinaryOp::kLt: return is_u ? b_.CreateICmpULT(a, y) : b_.CreateICmpSLT(a, y);
      case BinaryOp::kLe: return is_u ? b_.CreateICmpULE(a, y) : b_.CreateICmpSLE(a, y);
      case BinaryOp::kGt: return is_u ? b_.CreateICmpUGT(a, y) : b_.CreateICmpSGT(a, y);
      case BinaryOp::kGe: return is_u ? b_.CreateICmpUGE(a, y) : b_.CreateICmpSGE(a, y);
    }
    return nullptr;
  }
  // Never traps: a divisor of 0 counts as 1, and -1 is handled apart (the smallest number divided by it overflows).
  Value* int_division(const Binary& e, Value* a, Value* y, bool is_u) {
    llvm::Type* type = a->getType();
    Value *one = llvm::ConstantInt::get(type, 1), *zero = llvm::Constant::getNullValue(type);
    Expr divisor = e.b;
    if (const auto* broadcast = divisor.as<Broadcast>()) divisor = broadcast->value;
    const auto known = as_int(divisor);
    const bool remainder = e.op == BinaryOp::kTruncMod || e.op == BinaryOp::kFloorMod;
    if (!known || *known == 0) y = b_.CreateSelect(b_.CreateICmpEQ(y, zero), one, y);
    if (is_u) return remainder ? b_.CreateURem(a, y) : b_.CreateUDiv(a, y);
    Value* minus = nullptr;
    Value* d = y;
    if (!known || *known <= 0) {
      minus = b_.CreateICmpEQ(y, llvm::Constant::getAllOnesValue(type));
      d = b_.CreateSelect(minus, one, y);
    }
    Value *q = b_.CreateSDiv(a, d), *r = b_.CreateSub(a, b_.CreateMul(q, d));
    if (e.op == BinaryOp::kFloorDiv || e.op == BinaryOp::kFloorMod) {
      Value* adjust = b_.CreateAnd(b_.CreateICmpNE(r, zero), b_.CreateICmpSLT(b_.CreateXor(r, d), zero));
      if (remainder) r = b_.CreateSelect(adjust, b_.CreateAdd(r, d), r);
      else q = b_.CreateSelect(adjust, b_.CreateSub(q, one), q);
    }
    if (remainder) return minus ? b_.CreateSelect(minus, zero, r) : r;
    return minus ? b_.CreateSelect(minus, b_.CreateNeg(a), q) : q;
  }
  Value* shift(const Binary& e, Value* a, Value* y, bool is_u) {
    llvm::Type* type = a->getType();
    const auto bits = static_cast<uint64_t>(8 * byte_size(e.a.dtype()));
    Value* within = b_.CreateICmpULT(y, llvm::ConstantInt::get(type, bits));
    Value* amount = b_.CreateSelect(within, y, llvm::Constant::getNullValue(type));
    Value* r = e.op == BinaryOp::kShl ? b_.CreateShl(a, amount) : is_u ? b_.CreateLShr(a, amount) : b_.CreateAShr(a, amount);
    return b_.CreateSelect(within, r, llvm::Constant::getNullValue(type));
  }
  // Square and multiply over the bits of the exponent; a negative exponent gives 0 but for bases 1 and -1.
  Value* int_power(Value* a, Value* y) {
    llvm::Type* type = a->getType();
    Value *one = llvm::ConstantInt::get(type, 1), *zero = llvm::Constant::getNullValue(type), *result = one, *base = a, *rest = y;
    const unsigned bits = type->getScalarSizeInBits();
    for (unsigned k = 0; k < std::min(bits, 6u); ++k) {  // beyond 2^6 all but 0, 1, -1 and even numbers wrap to noise
      Value* odd = b_.CreateICmpNE(b_.CreateAnd(rest, one), zero);
      result = b_.CreateSelect(odd, b_.CreateMul(result, base), result);
      base = b_.CreateMul(base, base);
      rest = b_.CreateLShr(rest, one);
    }
    Value* negative = b_.CreateICmpSLT(y, zero);
    Value* unit = b_.CreateOr(b_.CreateICmpEQ(a, one), b_.CreateICmpEQ(a, llvm::Constant::getAllOnesValue(type)));
    return b_.CreateSelect(b_.CreateAnd(negative, b_.CreateNot(unit)), zero, result);
  }

  Value* emit_reduce_lanes(const ReduceLanes& r) {
    Value* v = expr(r.value);
    const DType t = r.type.dtype;
    // Halves are folded together, a fixed order whatever the target.
    for (int lanes = r.value.lanes(); lanes > 1;) {
      const int half = lanes / 2, rest = lanes - 2 * half;
      auto part = [&](int from, int n) {
        std::vector<int> at;
        for (int i = 0; i < n; ++i) at.push_back(from + i);
        return n == 1 ? b_.CreateExtractElement(v, static_cast<uint64_t>(from)) : b_.CreateShuffleVector(v, at);
      };
      Value* folded = combine_values(r.op, part(0, half), part(half, half), t);
      if (rest) {  // an odd lane joins the first
        Value* last = b_.CreateExtractElement(v, static_cast<uint64_t>(lanes - 1));
        if (half == 1) folded = combine_values(r.op, folded, last, t);
        else {
          Value* first = combine_values(r.op, b_.CreateExtractElement(folded, static_cast<uint64_t>(0)), last, t);
          folded = b_.CreateInsertElement(folded, first, static_cast<uint64_t>(0));
        }
      }
      v = folded;
      lanes = half;
    }
    return v;
  }
  Value* combine_values(BinaryOp op, Value* a, Value* y, DType t) {
    const bool is_u = is_unsigned(t);
    switch (op) {
      case BinaryOp::kAdd: return is_float(t) ? b_.CreateFAdd(a, y) : b_.CreateAdd(a, y);
      case BinaryOp::kMul: return is_float(t) ? b_.CreateFMul(a, y) : b_.CreateMul(a, y);
      case BinaryOp::kMax: return b_.CreateBinaryIntrinsic(is_float(t) ? llvm::Intrinsic::maximum : is_u ? llvm::Intrinsic::umax : llvm::Intrinsic::smax, a, y);
      case BinaryOp::kMin: return b_.CreateBinaryIntrinsic(is_float(t) ? llvm::Intrinsic::minimum : is_u ? llvm::Intrinsic::umin : llvm::Intrinsic::smin, a, y);
      case BinaryOp::kAnd: return b_.CreateAnd(a, y);
      case BinaryOp::kOr: return b_.CreateOr(a, y);
      default: break;
    }
    TW_CHECK(!"no combiner");
    return nullptr;
  }

  const Kernel& kernel_;
  const MachineDescription& machine_;
  llvm::Module& module_;
  llvm::LLVMContext& c_;
  llvm::IRBuilder<> b_;
  Frame f_;
  std::unordered_map<const ExprNode*, Value*> memo_;
  Value* guard_ = nullptr;  // loads are real only where it is true
  Expr call_bytes_ = 0, worker_bytes_ = 0;
  int bodies_ = 0;
};

}  // namespace

Result<KernelWorkspace> emit_kernel(const Kernel& kernel, const MachineDescription& machine, llvm::Module& module) {
  return Emitter(kernel, machine, module).run();
}

}  // namespace tilewright::cpu
