// Writes the C source of a compiled model, y = factor * x for x[n], as the compiler would lay it out; a
// caller may leave out the factor, which is 2.5 then.
// Usage: make_model FILE.c ABI|current [FEATURE]; make_model --seal FILE.so, when it has been linked
#include <cstdio>
#include <cstdlib>

#include "runtime/seal.h"
#include "tests/runtime/session_models.h"

using namespace tilewright;
using namespace tilewright::testing;

namespace {

Executable scale_model(const char* feature) {
  Executable e;
  e.producer = "make_model";
  e.model_name = "scale";
  e.constants_bytes = 4;
  if (feature) e.cpu_features = {feature};
  Variant v;
  v.symbols = {"n"};
  v.buffers = {make_buffer("x", DType::kFloat32, {symbol_size(0)}, BufferKind::kInput),
               make_buffer("factor", DType::kFloat32, {}, BufferKind::kInput),
               make_buffer("y", DType::kFloat32, {symbol_size(0)}, BufferKind::kOutput),
               make_buffer("factor", DType::kFloat32, {}, BufferKind::kConstant)};
  v.buffers[1].default_buffer = 3;
  v.buffers[3].constant_offset = 0;
  v.inputs = {0, 1};
  v.outputs = {2};
  v.kernels = {{"scale", nullptr, {}, {}, ""}};
  v.blocks = {{call(0, {0, 1, 2}, {symbol_size(0)})}};
  v.blocks[0][0].profile = 0;
  v.profile = {{"mul_0", "scale", symbol_size(0), {}}};
  e.variants = {std::move(v)};
  return e;
}

constexpr const char* kKernel = R"(
#define EXPORT __attribute__((visibility("default")))
static void scale(TwKernelContext* context, void* const* buffers, const int64_t* scalars) {
  (void)context;
  for (int64_t i = 0; i < scalars[0]; ++i)
    ((float*)buffers[2])[i] = ((const float*)buffers[0])[i] * *(const float*)buffers[1];
}
EXPORT const TwKernel tilewright_kernels[] = {scale};
EXPORT const uint64_t tilewright_kernel_count = 1;
EXPORT const float tilewright_constants[] __attribute__((aligned(64))) = {2.5f};
EXPORT const uint64_t tilewright_constants_size = 4;
)";

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  if (argv[1] == std::string("--seal")) return append_seal(argv[2], {}).ok() ? 0 : 1;
  std::FILE* file = std::fopen(argv[1], "w");
  if (!file) return 1;
  const std::vector<uint8_t> metadata =
      serialize_executable(scale_model(argc > 3 ? argv[3] : nullptr));
  const std::string abi =
      argv[2] == std::string("current") ? std::to_string(kExecutableAbi) : argv[2];
  std::fprintf(file,
               "#include \"runtime/kernel_abi.h\"\n%sEXPORT const uint32_t tilewright_abi = %s;\n",
               kKernel, abi.c_str());
  std::fprintf(file, "EXPORT const uint64_t tilewright_metadata_size = %zu;\n", metadata.size());
  std::fprintf(file, "EXPORT const uint8_t tilewright_metadata[] = {");
  for (uint8_t b : metadata) std::fprintf(file, "%d,", b);
  std::fprintf(file, "};\n");
  return std::fclose(file) == 0 ? 0 : 1;
}
