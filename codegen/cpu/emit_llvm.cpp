// One planned kernel as LLVM functions (SSA construction over structured loops needs no dominance
// analysis: a loop is preheader, phi, body, latch). For a kernel with one parallel loop:
//
//    k(context, buffers, scalars)          reads the pointers, calls
//    k.body(context, b0, b1, ..., s0, ...) buffers as NoAlias arguments, which loads from an array
//                                          of pointers could not be; at the parallel loop it fills
//                                          a closure and calls context->parallel(context, n,
//    k.parallel0(context, closure, begin, end, worker)      which unpacks it and calls
//    k.parallel0.body(context, workspace, begin, end, ...)  where the iterations run
//
// The .body functions are never inlined, or the NoAlias of their arguments would be lost. A team
// (one fork for several parallel loops) puts k.team and k.member between the first two.
#include "codegen/cpu/emit_llvm.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <cstddef>
#include <functional>

#include "codegen/cpu/alias_scopes.h"
#include "codegen/cpu/captured.h"
#include "codegen/cpu/emit_arithmetic.h"
#include "codegen/cpu/emit_dot.h"
#include "codegen/cpu/emit_values.h"
#include "codegen/cpu/vector_math.h"
#include "ir/loops/dot_tile.h"
#include "ir/loops/rewrite.h"
#include "ir/loops/simplify.h"
#include "runtime/kernel_abi.h"

namespace tilewright::cpu {

using namespace ir;

namespace {

using llvm::Value;

// Generated code reads the fields of TwKernelContext where the runtime's compiler put them.
enum ContextField : size_t {
  kParallelField = offsetof(TwKernelContext, parallel),
  kCallWorkspaceField = offsetof(TwKernelContext, call_workspace),
  kWorkerWorkspaceField = offsetof(TwKernelContext, worker_workspace),
  kWorkerStrideField = offsetof(TwKernelContext, worker_workspace_stride),
  kTeamField = offsetof(TwKernelContext, team),
};

class Emitter {
 public:
  Emitter(const Kernel& kernel, const MachineDescription& machine, llvm::Module& module)
      : kernel_(kernel), machine_(machine), module_(module), c_(module.getContext()), b_(c_) {
    llvm::FastMathFlags flags;
    flags.setAllowContract(!kernel.exact);
    b_.setFastMathFlags(flags);
  }

  void run() {
    auto* entry =
        make_function(kernel_.name, {ptr(), ptr(), ptr()}, llvm::Function::ExternalLinkage);
    // The kernel's body has its buffers as arguments, so that they are known not to alias.
    std::vector<llvm::Type*> types{ptr()};
    for (size_t i = 0; i < kernel_.params.size(); ++i) types.push_back(ptr());
    for (size_t i = 0; i < kernel_.scalars.size(); ++i) types.push_back(b_.getInt64Ty());
    auto* body = make_function(kernel_.name + ".body", types, llvm::Function::InternalLinkage);
    call_body(kernel_.team ? by_team(entry) : entry, body);
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
    emit_return();
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

  llvm::PointerType* ptr() { return b_.getPtrTy(); }
  llvm::Type* scalar_type(DType t, bool in_memory = false) {
    return llvm_type(b_, {emulates_halves(machine_, t) ? DType::kUInt16 : t, 1}, in_memory);
  }
  Value* i64(int64_t v) { return b_.getInt64(static_cast<uint64_t>(v)); }

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
  // The block where allocations of the stack belong: LLVM's SROA and frame layout look only there.
  static llvm::BasicBlock* block_of(llvm::Function* f) { return &f->getEntryBlock(); }
  Value* b_load(llvm::Type* t, Value* base, size_t i) {
    return b_.CreateLoad(t, b_.CreateConstInBoundsGEP1_64(t, base, i));
  }
  Value* context_field(llvm::Type* t, ContextField field) {
    return b_.CreateLoad(t, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), f_.context, field));
  }

  // --- statements
  // ------------------------------------------------------------------------------------------------------
  void emit(const Stmt& s) {
    values_.forget();
    if (s.kind() != NodeKind::kDotTile) unit_.forget_operands();
    switch (s.kind()) {
      case NodeKind::kStore: return values_.store(*s.as<Store>());
      case NodeKind::kDotTile: return emit_dot_tile(*s.as<DotTile>());
      case NodeKind::kPrefetch: return values_.prefetch(*s.as<Prefetch>());
      case NodeKind::kSeq: return emit_seq(s.as<Seq>()->stmts);
      case NodeKind::kLet: {
        const Let& l = *s.as<Let>();
        if (!values_.bind_columns(l)) f_.vars[l.var.get()] = values_.value(l.value);
        return emit(l.body);
      }
      case NodeKind::kFor:
        return s.as<For>()->loop_kind == LoopKind::kParallel ? emit_parallel(*s.as<For>())
                                                             : emit_for(*s.as<For>());
      case NodeKind::kWhile: return emit_while(*s.as<While>());
      case NodeKind::kIf: return emit_if(*s.as<If>());
      case NodeKind::kAllocate: return emit_allocate(*s.as<Allocate>());
      case NodeKind::kBlock: break;
#define TW_EXPR(Kind) \
  case NodeKind::k##Kind: break;
#include "ir/loops/nodes.def"
    }
    TW_CHECK(!"a statement of flat loops");
  }

  void emit_seq(const std::vector<Stmt>& stmts) {
    for (const Stmt& s : stmts) emit(s);
  }
  // A rotated loop (do-while): the test stands at the end, behind one before the loop that falls
  // away where the extent is a positive constant.
  void emit_for(const For& f) {
    Value* extent = values_.value(f.extent);
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
    values_.forget();
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
    values_.forget();
    b_.CreateCondBr(values_.value(w.condition), body, exit);
    b_.SetInsertPoint(body);
    emit(w.body);
    b_.CreateBr(head);
    b_.SetInsertPoint(exit);
  }
  void emit_if(const If& s) {
    Value* condition = values_.value(s.condition);
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
    values_.forget();
  }
  // Local buffers are stack memory of constant size, mostly to become registers (SROA); workspace
  // is a place that plan_workspace chose, the worker's own inside a parallel loop.
  void emit_allocate(const Allocate& a) {
    if (a.buffer->scope == Scope::kLocal) {
      Expr elements = 1;
      for (const Expr& d : a.buffer->shape) elements = elements * d;
      elements = simplify(elements);
      TW_CHECK(as_int(elements));
      llvm::IRBuilder<> at(block_of(f_.function), block_of(f_.function)->begin());
      auto* array = llvm::ArrayType::get(scalar_type(a.buffer->dtype, true),
                                         static_cast<uint64_t>(*as_int(elements)));
      auto* memory = at.CreateAlloca(array, nullptr, a.buffer->name);
      memory->setAlignment(llvm::Align(64));
      f_.buffers[a.buffer.get()] = memory;
    } else {
      Value* base = f_.worker_base ? f_.worker_base : context_field(ptr(), kCallWorkspaceField);
      f_.buffers[a.buffer.get()] =
          b_.CreateInBoundsGEP(b_.getInt8Ty(), base, values_.value(a.offset));
      mark_workspace_buffer(f_.buffers[a.buffer.get()]);
    }
    const auto* steps = a.body.as<Seq>();
    if (!steps || !unit_.starts_from_zero(a.buffer, steps->stmts)) return emit(a.body);
    values_.forget();
    emit_seq({steps->stmts.begin() + 1, steps->stmts.end()});
  }

  // A parallel loop becomes a function over a range of iterations; what it names from outside goes
  // through a closure.
  void emit_parallel(const For& f) {
    const Captured captured = captured_by(f, f_);
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
    Value* count = values_.value(f.extent);
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
    values_.forget();
  }
  // The loop over the share [begin, end) that the pool gave this call.
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
    values_.note_watched();
    if (f_.streams) b_.CreateIntrinsic(b_.getVoidTy(), llvm::Intrinsic::x86_sse_sfence, {});
    b_.CreateRetVoid();
  }
  const Kernel& kernel_;
  const MachineDescription& machine_;
  llvm::Module& module_;
  llvm::LLVMContext& c_;
  llvm::IRBuilder<> b_;
  Frame f_;
  ValueEmitter values_{b_, machine_, f_};
  MatrixUnit unit_{b_, machine_,
                   [this](const Buffer& x, const Expr& index) { return values_.address(x, index); },
                   [this](const Expr& e) { return values_.value(e); }};
  std::vector<Stmt> expanded_;  // kept alive for the tables above
  int bodies_ = 0;
};

}  // namespace

Status emit_kernel(const Kernel& kernel, const MachineDescription& machine, llvm::Module& module) {
  Status planned;
  for_each_stmt(kernel.body, [&](const Stmt& s) {
    const auto* a = s.as<Allocate>();
    if (a && a->buffer->scope == Scope::kWorkspace && !a->offset)
      planned = internal_error("buffer '" + a->buffer->name + "' has no place in the workspace",
                               "kernel '" + kernel.name + "'");
  });
  TW_RETURN_IF_ERROR(planned);
  Emitter(kernel, machine, module).run();
  return {};
}

}  // namespace tilewright::cpu
