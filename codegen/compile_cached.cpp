#include "codegen/compile_cached.h"

#include <algorithm>
#include <optional>

#include "codegen/cache/content_hash.h"
#include "ir/program/kernel_name.h"
#include "ir/text/printer_loops.h"

namespace tilewright::codegen {

namespace {

// What backends read of a machine: speeds and caches have shaped the schedule and are of the past.
std::string machine_key(const Backend& backend, const ir::MachineDescription& m) {
  cache::ContentHash hash;
  hash.add("kernel").add(backend.version()).add(m.cpu);
  for (const std::string& f : m.features) hash.add(f);
  hash.add(m.vector_bytes).add(m.vector_registers).add(m.has_masks).add(m.has_fma);
  return hash.hex();
}

// A cached kernel: the features, one a line, an empty line, the object.
std::vector<uint8_t> to_bytes(const CompiledKernel& k) {
  std::string features;
  for (const std::string& f : k.features) features += f + "\n";
  features += "\n";
  std::vector<uint8_t> bytes(features.begin(), features.end());
  bytes.insert(bytes.end(), k.object.begin(), k.object.end());
  return bytes;
}
std::optional<CompiledKernel> from_bytes(const std::vector<uint8_t>& bytes) {
  CompiledKernel k;
  for (auto at = bytes.begin(); at != bytes.end();) {
    const auto end = std::find(at, bytes.end(), '\n');
    if (end == bytes.end()) break;
    if (end == at) {
      k.object.assign(end + 1, bytes.end());
      return k;
    }
    k.features.emplace_back(at, end);
    at = end + 1;
  }
  return std::nullopt;
}

}  // namespace

std::string content_symbol(const ir::Kernel& kernel) {
  ir::Kernel unnamed = kernel;
  unnamed.name = "k";
  return ir::unnumbered_name(kernel.name) + "_" +
         cache::ContentHash().add(ir::to_text(unnamed)).hex();
}

// Symbols of one kernel's forms are of one length, so that objects of the same code differ in them alone.
std::string object_code(const CompiledKernel& compiled, const std::string& symbol) {
  std::string object(compiled.object.begin(), compiled.object.end());
  for (size_t at = 0; (at = object.find(symbol, at)) != std::string::npos; at += symbol.size())
    std::fill_n(object.begin() + static_cast<std::ptrdiff_t>(at), symbol.size(), '?');
  return cache::ContentHash().add("object").add(object).hex();
}

Result<std::vector<CompiledKernel>> compile_cached(
    const Backend& backend, const std::vector<const ir::Kernel*>& kernels,
    const ir::MachineDescription& machine, int threads,
    const std::function<void(size_t, size_t)>& progress, cache::FileCache* cache) {
  if (!cache || backend.version().empty())
    return backend.compile(kernels, machine, threads, progress);
  const std::string key = machine_key(backend, machine);
  const auto name = [&](const ir::Kernel& k) {
    return cache::ContentHash().add(key).add(k.name).hex();
  };
  // Kernels come back in the order that they were given, whoever had them.
  std::vector<CompiledKernel> all(kernels.size());
  std::vector<const ir::Kernel*> missing;
  std::vector<size_t> places;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const auto bytes = cache->read(name(*kernels[i]));
    auto known = bytes ? from_bytes(*bytes) : std::nullopt;
    if (known) {
      all[i] = std::move(*known);
    } else {
      missing.push_back(kernels[i]);
      places.push_back(i);
    }
  }
  TW_ASSIGN(std::vector<CompiledKernel> compiled,
            backend.compile(missing, machine, threads, progress));
  for (size_t i = 0; i < compiled.size(); ++i) {
    cache->write(name(*missing[i]), to_bytes(compiled[i]));
    all[places[i]] = std::move(compiled[i]);
  }
  return all;
}

}  // namespace tilewright::codegen
