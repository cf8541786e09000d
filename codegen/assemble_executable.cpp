// The last step of compiling: programs become tables (flatten_program), kernels become machine code
// (the backend), constants become one section, and all of it one executable, either in this process
// (LLVM's ORC JIT) or in a file:
//
//    model.so   tilewright_metadata    the tables, serialised (runtime/executable.cpp)
//               tilewright_constants   read-only data, packed by layouts
//               tilewright_kernels     an array of pointers to functions, variant by variant
//               tilewright_abi         what a runtime checks first
//               the seal               behind the ELF file: a checksum of all of it (runtime/seal.h)
//
// The file needs no other library and runs no code when it is opened, which load_executable checks.
#include "codegen/assemble_executable.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "codegen/compile_cached.h"
#include "codegen/elf_data.h"
#include "codegen/flatten_program.h"
#include "codegen/link_output.h"
#include "runtime/core/host_tensor.h"
#include "runtime/core/temporary_folder.h"
#include "runtime/core/write_file.h"
#include "runtime/seal.h"

namespace tilewright::codegen {

namespace {

// What both forms are put together from.
struct Parts {
  const Backend* backend = nullptr;
  Executable executable;
  ConstantSection constants;
  std::vector<std::vector<uint8_t>> objects;
  std::vector<std::string> symbols;  // of all kernels, variant by variant
};

void add_defaults(Variant& v, const std::map<std::string, ir::ConstantRef>& defaults,
                  ConstantSection& constants) {
  for (const auto& [name, constant] : defaults) {
    const auto input = std::find_if(v.inputs.begin(), v.inputs.end(), [&](int32_t b) {
      return v.buffers[static_cast<size_t>(b)].name == name;
    });
    if (input == v.inputs.end()) continue;
    v.buffers[static_cast<size_t>(*input)].default_buffer = static_cast<int32_t>(v.buffers.size());
    BufferDesc d;
    d.name = name;
    d.dtype = constant->dtype;
    for (int64_t extent : constant->shape) d.dims.push_back({{SizeOp::kConstant, extent}});
    d.bytes = {{SizeOp::kConstant, static_cast<int64_t>(constant->bytes)}};
    d.kind = BufferKind::kConstant;
    d.constant_offset = constants.add(constant, {});
    v.buffers.push_back(std::move(d));
  }
}

// Kernels are called by their contents, so that equal ones of several variants are there once.
Result<Parts> make_parts(std::vector<ir::Program> programs, const AssembleOptions& options) {
  Parts parts;
  parts.backend = options.backend;
  if (!parts.backend) { TW_ASSIGN(parts.backend, open_backend()); }
  std::vector<ir::Kernel> kernels;
  for (ir::Program& program : programs) {
    TW_ASSIGN(Variant variant, flatten_program(program, parts.constants));
    add_defaults(variant, options.defaults, parts.constants);
    parts.executable.variants.push_back(std::move(variant));
    for (ir::Kernel& k : program.kernels) {
      k.name = content_symbol(k);
      parts.symbols.push_back(k.name);
      kernels.push_back(std::move(k));
    }
  }
  std::vector<const ir::Kernel*> distinct;
  std::set<std::string> names;
  for (const ir::Kernel& k : kernels)
    if (names.insert(k.name).second) distinct.push_back(&k);
  TW_ASSIGN(std::vector<CompiledKernel> code,
            compile_cached(*parts.backend, distinct, options.machine, options.compile_threads,
                           options.progress, options.cache));
  for (size_t i = 0; options.on_code && i < code.size(); ++i)
    options.on_code(distinct[i]->name, object_code(code[i], distinct[i]->name));
  std::set<std::string> used;
  for (CompiledKernel& c : code) {
    used.insert(c.features.begin(), c.features.end());
    parts.objects.push_back(std::move(c.object));
  }
  size_t next = 0;
  for (Variant& v : parts.executable.variants)
    for (KernelDesc& k : v.kernels) {
      const ir::Workspace& w = kernels[next].workspace;
      TW_ASSIGN(k.call_workspace, flatten_size(w.call, kernels[next].scalars));
      TW_ASSIGN(k.worker_workspace, flatten_size(w.worker, kernels[next].scalars));
      ++next;
    }
  parts.executable.producer = "tilewright " TILEWRIGHT_VERSION;
  parts.executable.model_name = options.model_name;
  parts.executable.cpu = options.machine.cpu;
  for (const std::string& f : options.machine.features)
    if (used.count(f)) parts.executable.cpu_features.push_back(f);
  parts.executable.schedule_threads = options.machine.threads;
  parts.executable.numerics = programs[0].numerics;
  parts.executable.constants_bytes = parts.constants.bytes();
  return parts;
}

}  // namespace

Result<std::shared_ptr<Executable>> assemble_in_memory(std::vector<ir::Program> programs,
                                                       const AssembleOptions& options) {
  TW_ASSIGN(Parts parts, make_parts(std::move(programs), options));
  struct Owner {
    std::shared_ptr<LoadedCode> code;
    AlignedBytes constants;
  };
  auto owner = std::make_shared<Owner>();
  TW_ASSIGN(owner->code, parts.backend->load(parts.objects));
  owner->constants.resize(static_cast<size_t>(std::max<int64_t>(parts.constants.bytes(), 64)));
  parts.constants.move_to(owner->constants.data());
  auto executable = std::make_shared<Executable>(std::move(parts.executable));
  executable->constants = owner->constants.data();
  size_t next = 0;
  for (Variant& v : executable->variants)
    for (KernelDesc& k : v.kernels) {
      k.function = reinterpret_cast<TwKernel>(owner->code->find(parts.symbols[next]));
      if (!k.function)
        return internal_error("kernel '" + parts.symbols[next] + "' is not in the loaded code");
      ++next;
    }
  executable->owner = owner;
  return executable;
}

Status assemble_shared_object(std::vector<ir::Program> programs, const AssembleOptions& options,
                              const std::string& path) {
  TW_ASSIGN(FileWriter file, FileWriter::create(path));
  TW_ASSIGN(Parts parts, make_parts(std::move(programs), options));
  TW_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make());
  std::vector<std::string> files;
  const auto write_object = [](const std::string& to, const std::vector<uint8_t>& object) {
    return write_mapped(to, object.size(),
                        [&](uint8_t* at) { std::memcpy(at, object.data(), object.size()); });
  };
  for (size_t i = 0; i < parts.objects.size(); ++i) {
    files.push_back(folder.file("kernel" + std::to_string(i) + ".o"));
    TW_RETURN_IF_ERROR(write_object(files.back(), parts.objects[i]));
  }
  TW_ASSIGN(std::vector<uint8_t> table,
            parts.backend->emit_function_table(parts.symbols, "tilewright_kernels",
                                               "tilewright_kernel_count", options.machine));
  files.push_back(folder.file("table.o"));
  TW_RETURN_IF_ERROR(write_object(files.back(), table));
  const std::vector<uint8_t> metadata = serialize_executable(parts.executable);
  auto add_data = [&](const std::string& name, int64_t bytes,
                      const std::function<void(uint8_t*)>& fill) {
    files.push_back(folder.file(name + ".o"));
    return write_elf_data(files.back(), name, bytes, fill);
  };
  TW_RETURN_IF_ERROR(
      add_data("tilewright_metadata", static_cast<int64_t>(metadata.size()),
               [&](uint8_t* at) { std::memcpy(at, metadata.data(), metadata.size()); }));
  TW_RETURN_IF_ERROR(add_data("tilewright_constants", parts.constants.bytes(),
                              [&](uint8_t* at) { parts.constants.move_to(at); }));
  TW_RETURN_IF_ERROR(
      add_data("tilewright_abi", 4, [&](uint8_t* at) { std::memcpy(at, &kExecutableAbi, 4); }));
  TW_RETURN_IF_ERROR(link_output(*parts.backend, files, file));
  TW_RETURN_IF_ERROR(file.close());
  TW_RETURN_IF_ERROR(append_seal(file.path(), options.seal_label));
  return file.commit();
}

}  // namespace tilewright::codegen
