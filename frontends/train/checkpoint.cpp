// The hash is over names, types, shapes and elements, not over the bytes of the zip file: what it does
// not see, such as dates of entries, does not matter either.
#include "frontends/train/checkpoint.h"

#include <algorithm>
#include <map>

#include "codegen/cache/content_hash.h"
#include "frontends/tensor_files/npz.h"

namespace tilewright::train {

namespace {

std::string hash_of(const NamedTensors& arrays) {
  cache::ContentHash hash;
  for (const auto& [name, t] : arrays) {
    hash.add(name).add(tilewright::name(t.dtype)).add(t.shape.size());
    for (const int64_t extent : t.shape) hash.add(extent);
    hash.add(t.bytes);
  }
  return hash.hex();
}

HostTensor from_text(const std::string& text) {
  HostTensor t(DType::kUInt8, {static_cast<int64_t>(text.size())});
  std::copy(text.begin(), text.end(), t.bytes.begin());
  return t;
}

// Removes the array of this name from the list. Errors: there is none, or it is of another type.
Result<HostTensor> taken(NamedTensors& arrays, const std::string& name, DType dtype, size_t rank) {
  const auto it =
      std::find_if(arrays.begin(), arrays.end(), [&](const auto& a) { return a.first == name; });
  if (it == arrays.end()) return invalid("there is no array '" + name + "'");
  if (it->second.dtype != dtype || it->second.shape.size() != rank)
    return invalid("array '" + name + "' is " + std::string(tilewright::name(it->second.dtype)) +
                   to_string(it->second.shape));
  HostTensor t = std::move(it->second);
  arrays.erase(it);
  return t;
}
Result<std::string> taken_text(NamedTensors& arrays, const std::string& name) {
  TW_ASSIGN(const HostTensor t, taken(arrays, name, DType::kUInt8, 1));
  return std::string(t.bytes.begin(), t.bytes.end());
}

Result<Checkpoint> checked(NamedTensors arrays) {
  TW_ASSIGN(const std::string hash, taken_text(arrays, "hash"));
  if (hash != hash_of(arrays)) return invalid("is damaged: its contents are not as hashed");
  Checkpoint c;
  TW_ASSIGN(c.job, taken_text(arrays, "job"));
  TW_ASSIGN(const HostTensor step, taken(arrays, "step", DType::kInt64, 0));
  c.step = *step.data<int64_t>();
  if (c.step < 1) return invalid("'step' is " + std::to_string(c.step));
  for (const auto& [name, t] : arrays)
    if (t.dtype == DType::kFloat32 && !all_finite(t.data<float>(), *element_count(t.shape)))
      return invalid("its array " + quote(name) + " is not finite");
  c.arrays = std::move(arrays);
  return c;
}

}  // namespace

Result<Checkpoint> take_checkpoint(int64_t step, std::string job,
                                   const std::vector<StatePart>& parts) {
  uint64_t bytes = 0;
  for (const StatePart& part : parts) bytes += static_cast<uint64_t>(part.flat.bytes());
  // Half a percent is left for what an archive says of its arrays.
  if (bytes > kMaxNpzBytes - kMaxNpzBytes / 200)
    return limit_error("a checkpoint of " + std::to_string(bytes) + " bytes, at most " +
                       std::to_string(kMaxNpzBytes));
  Checkpoint c{step, std::move(job), {}};
  for (const StatePart& part : parts)
    for (auto& [name, t] : take_apart(*part.layout, part.flat.data_as<float>()))
      c.arrays.emplace_back(part.prefix + "/" + name, std::move(t));
  return c;
}

Status restore(const Checkpoint& checkpoint, const std::vector<StatePart>& parts) {
  std::map<std::string, const HostTensor*> left;
  for (const auto& [name, t] : checkpoint.arrays) left[name] = &t;
  struct Copy {
    const Parameter* to;
    float* flat;
    const HostTensor* values;
  };
  std::vector<Copy> copies;
  for (const StatePart& part : parts)
    for (const Parameter& p : part.layout->members) {
      const std::string name = part.prefix + "/" + p.name;
      const auto it = left.find(name);
      if (it == left.end()) return invalid("there is no array '" + name + "'");
      const HostTensor& t = *it->second;
      if (t.dtype != DType::kFloat32 || t.shape != p.shape)
        return invalid("array '" + name + "' is " + std::string(tilewright::name(t.dtype)) +
                       to_string(t.shape) + ", expected f32" + to_string(p.shape));
      copies.push_back({&p, part.flat.data_as<float>(), &t});
      left.erase(it);
    }
  if (!left.empty()) return invalid("array '" + left.begin()->first + "' is none of this job's");
  for (const Copy& c : copies) put(*c.to, c.values->data<float>(), c.flat);
  return {};
}

Status write_checkpoint(const std::filesystem::path& path, Checkpoint checkpoint) {
  NamedTensors& arrays = checkpoint.arrays;
  HostTensor step(DType::kInt64, {});
  *step.data<int64_t>() = checkpoint.step;
  arrays.emplace_back("step", std::move(step));
  arrays.emplace_back("job", from_text(checkpoint.job));
  arrays.emplace_back("hash", from_text(hash_of(arrays)));
  return write_npz(path, arrays, Durability::kOnDisk);
}

Result<Checkpoint> read_checkpoint(const std::filesystem::path& path) {
  TW_ASSIGN(NamedTensors arrays, read_npz(path));
  auto checkpoint = checked(std::move(arrays));
  if (!checkpoint.ok()) checkpoint.error().location = path.string();
  return checkpoint;
}

}  // namespace tilewright::train
