#include "tests/runtime/session_models.h"

#include <algorithm>

namespace tilewright::testing {
namespace {

alignas(64) const float kBias[4] = {1, 2, 3, 4};

// buffers: x, t; scalars: count. Each worker writes its part by way of its own workspace.
void relu(TwKernelContext* context, void* const* buffers, const int64_t* scalars) {
  struct Closure {
    const float* x;
    float* t;
  } closure{static_cast<const float*>(buffers[0]), static_cast<float*>(buffers[1])};
  std::memset(context->call_workspace, 0xcd, 100);
  context->parallel(
      context, scalars[0],
      [](TwKernelContext* c, void* data, int64_t begin, int64_t end, int64_t worker) {
        const auto* k = static_cast<const Closure*>(data);
        auto* slot =
            reinterpret_cast<float*>(c->worker_workspace + worker * c->worker_workspace_stride);
        for (int64_t i = begin; i < end; ++i) {
          *slot = std::max(k->x[i], 0.0f);
          k->t[i] = *slot;
        }
      },
      &closure);
}

void add_bias(TwKernelContext*, void* const* buffers, const int64_t* scalars) {
  const auto* t = static_cast<const float*>(buffers[0]);
  const auto* c = static_cast<const float*>(buffers[1]);
  auto* y = static_cast<float*>(buffers[2]);
  for (int64_t i = 0; i < scalars[0]; ++i) y[i] = t[i] + c[i % 4];
}

Variant add_relu_variant(const SizeExpr& batch, std::vector<std::string> symbols) {
  Variant v;
  v.symbols = std::move(symbols);
  const SizeExpr four = constant_size(4);
  v.buffers = {make_buffer("x", DType::kFloat32, {batch, four}, BufferKind::kInput),
               make_buffer("c", DType::kFloat32, {four}, BufferKind::kConstant),
               make_buffer("t", DType::kFloat32, {batch, four}, BufferKind::kTemporary),
               make_buffer("y", DType::kFloat32, {batch, four}, BufferKind::kOutput)};
  v.buffers[1].constant_offset = 0;
  v.inputs = {0};
  v.outputs = {3};
  v.kernels = {{"relu", relu, constant_size(100), constant_size(4), ""},
               {"add_bias", add_bias, {}, {}, ""}};
  SizeExpr count = batch;
  count.insert(count.end(), {{SizeOp::kConstant, 4}, {SizeOp::kMul}});
  v.blocks = {{call(0, {0, 2}, {count}), call(1, {2, 1, 3}, {count})}};
  v.blocks[0][0].profile = 0;
  v.blocks[0][1].profile = 1;
  v.profile = {{"relu_0", "relu", count, {}}, {"add_0", "add_bias", count, {}}};
  return v;
}

void set_constants(Executable& e) {
  e.constants = reinterpret_cast<const uint8_t*>(kBias);
  e.constants_bytes = sizeof kBias;
}

// buffers: x, n (i64 scalar); scalars: batch.
void count_positive(TwKernelContext*, void* const* buffers, const int64_t* scalars) {
  const auto* x = static_cast<const float*>(buffers[0]);
  *static_cast<int64_t*>(buffers[1]) =
      std::count_if(x, x + scalars[0], [](float f) { return f > 0; });
}

// buffers: x, y; scalars: batch, n. Goes through the call workspace of n floats.
void keep_positive(TwKernelContext* context, void* const* buffers, const int64_t* scalars) {
  const auto* x = static_cast<const float*>(buffers[0]);
  auto* kept = reinterpret_cast<float*>(context->call_workspace);
  std::copy_if(x, x + scalars[0], kept, [](float f) { return f > 0; });
  std::copy_n(kept, scalars[1], static_cast<float*>(buffers[1]));
}

void twice(TwKernelContext*, void* const* buffers, const int64_t*) {
  for (int i = 0; i < 3; ++i)
    static_cast<float*>(buffers[1])[i] = 2 * static_cast<const float*>(buffers[0])[i];
}
void square(TwKernelContext*, void* const* buffers, const int64_t*) {
  for (int i = 0; i < 3; ++i) {
    const float x = static_cast<const float*>(buffers[0])[i];
    static_cast<float*>(buffers[1])[i] = x * x;
  }
}

// buffers: a, b, limit, sum, cond.
void add_and_compare(TwKernelContext*, void* const* buffers, const int64_t*) {
  const int64_t sum =
      *static_cast<const int64_t*>(buffers[0]) + *static_cast<const int64_t*>(buffers[1]);
  *static_cast<int64_t*>(buffers[3]) = sum;
  *static_cast<uint8_t*>(buffers[4]) = sum <= *static_cast<const int64_t*>(buffers[2]);
}

}  // namespace

Executable add_relu_model() {
  Executable e;
  e.model_name = "add_relu";
  set_constants(e);
  e.variants = {add_relu_variant(symbol_size(0), {"batch"})};
  return e;
}

Executable add_relu_two_variants() {
  Executable e = add_relu_model();
  e.variants.insert(e.variants.begin(), add_relu_variant(constant_size(2), {}));
  e.variants[0].profile[0].nodes = "specialised";
  return e;
}

Executable compact_model() {
  Executable e;
  Variant v;
  v.symbols = {"batch", "n"};
  v.buffers = {make_buffer("x", DType::kFloat32, {symbol_size(0)}, BufferKind::kInput),
               make_buffer("n", DType::kInt64, {}, BufferKind::kTemporary),
               make_buffer("y", DType::kFloat32, {symbol_size(1)}, BufferKind::kOutput)};
  v.buffers[2].dynamic = true;
  v.inputs = {0};
  v.outputs = {2};
  v.kernels = {{"count_positive", count_positive, {}, {}, ""},
               {"keep_positive",
                keep_positive,
                {{SizeOp::kSymbol, 1}, {SizeOp::kConstant, 4}, {SizeOp::kMul}},
                {}}};
  v.blocks = {{call(0, {0, 1}, {symbol_size(0)}), define(1, 1, 0, 1000), allocate(2),
               call(1, {0, 2}, {symbol_size(0), symbol_size(1)})}};
  e.variants = {std::move(v)};
  return e;
}

Executable branch_model() {
  Executable e;
  Variant v;
  const SizeExpr three = constant_size(3);
  v.buffers = {make_buffer("flag", DType::kBool, {}, BufferKind::kInput),
               make_buffer("x", DType::kFloat32, {three}, BufferKind::kInput),
               make_buffer("y", DType::kFloat32, {three}, BufferKind::kOutput)};
  v.inputs = {0, 1};
  v.outputs = {2};
  v.kernels = {{"twice", twice, {}, {}, ""}, {"square", square, {}, {}, ""}};
  v.blocks = {{branch(0, 1, 2)}, {call(0, {1, 2})}, {call(1, {1, 2})}};
  e.variants = {std::move(v)};
  return e;
}

Executable fibonacci_model() {
  Executable e;
  Variant v;
  v.symbols = {"count"};
  auto scalar = [](const char* name, BufferKind kind, DType t = DType::kInt64) {
    return make_buffer(name, t, {}, kind);
  };
  v.buffers = {scalar("a0", BufferKind::kInput),
               scalar("b0", BufferKind::kInput),
               scalar("trips", BufferKind::kInput),
               scalar("limit", BufferKind::kInput),
               scalar("a", BufferKind::kOutput),
               scalar("b", BufferKind::kOutput),
               scalar("sum", BufferKind::kTemporary),
               scalar("more", BufferKind::kTemporary, DType::kBool),
               make_buffer("seen", DType::kInt64, {symbol_size(0)}, BufferKind::kOutput),
               scalar("i", BufferKind::kTemporary),
               make_buffer("numbers", DType::kInt64, {symbol_size(0)}, BufferKind::kOutput)};
  v.buffers[8].dynamic = v.buffers[10].dynamic = true;
  v.inputs = {0, 1, 2, 3};
  v.outputs = {4, 5, 8, 10};
  v.kernels = {{"add_and_compare", add_and_compare, {}, {}, ""}};
  v.blocks = {{copy(4, 0), copy(5, 1), loop(0)}, {call(0, {4, 5, 3, 6, 7})}};
  LoopDesc l;
  l.trip_count = 2;
  l.iteration = 9;
  l.body = 1;
  l.body_cond = 7;
  l.carried = {{5, 6}, {4, 5}};  // b before a: a still gets the old b
  l.scans = {{4, 8}, {9, 10}};
  l.count_symbol = 0;
  v.loops = {l};
  e.variants = {std::move(v)};
  return e;
}

namespace {

// buffers: indices, farthest (u64[1]); scalars: k, rows.
void farthest_index(TwKernelContext*, void* const* buffers, const int64_t* scalars) {
  const auto* indices = static_cast<const int64_t*>(buffers[0]);
  uint64_t farthest = 0;
  for (int64_t k = 0; k < scalars[0]; ++k)
    farthest =
        std::max(farthest, static_cast<uint64_t>(indices[k]) + static_cast<uint64_t>(scalars[1]));
  *static_cast<uint64_t*>(buffers[1]) = farthest;
}
// buffers: x, indices, y; scalars: k, rows.
void gather(TwKernelContext*, void* const* buffers, const int64_t* scalars) {
  const auto* indices = static_cast<const int64_t*>(buffers[1]);
  for (int64_t k = 0; k < scalars[0]; ++k)
    static_cast<float*>(buffers[2])[k] =
        static_cast<const float*>(buffers[0])[indices[k] + (indices[k] < 0 ? scalars[1] : 0)];
}

}  // namespace

Executable gather_model() {
  Executable e;
  e.model_name = "gather";
  Variant v;
  v.symbols = {"rows", "k"};
  const SizeExpr rows = symbol_size(0), k = symbol_size(1);
  v.buffers = {make_buffer("x", DType::kFloat32, {rows}, BufferKind::kInput),
               make_buffer("indices", DType::kInt64, {k}, BufferKind::kInput),
               make_buffer("farthest", DType::kUInt64, {constant_size(1)}, BufferKind::kTemporary),
               make_buffer("y", DType::kFloat32, {k}, BufferKind::kOutput)};
  v.inputs = {0, 1};
  v.outputs = {3};
  v.kernels = {{"farthest", farthest_index, {}, {}, ""}, {"gather", gather, {}, {}, ""}};
  Instruction few, check;
  few.op = Op::kRequire;
  few.scalars = {rows, constant_size(8)};
  few.index = 1;
  few.message = "gather 'g': extents rows and 8";
  check.op = Op::kCheckIndices;
  check.buffers = {1, 2};
  check.scalars = {rows};
  check.message = "gather 'g'";
  v.blocks = {{few, call(0, {1, 2}, {k, rows}), check, call(1, {0, 1, 3}, {k, rows})}};
  e.variants = {std::move(v)};
  return e;
}

}  // namespace tilewright::testing
