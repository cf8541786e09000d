#include "runtime/executable.h"

#include "runtime/byte_stream.h"
#include "runtime/executable_check.h"

namespace tilewright {
namespace {

constexpr uint32_t kMagic = 0x45585754;  // "TWXE"

}  // namespace

// The fields of each structure, in the order of the file. Serving both directions, they take
// non-const references.

template <typename A>
void fields(A& a, SizeStep& s) {
  a.enumeration(s.op, SizeOp::kSelect);
  a(s.value);
}

template <typename A>
void fields(A& a, BufferDesc& b) {
  a(b.name);
  a.enumeration(b.dtype, DType::kBool);
  a(b.dims);
  a(b.bytes);
  a.enumeration(b.kind, BufferKind::kRunKey);
  a(b.constant_offset);
  a(b.alias_of);
  a(b.alias_offset);
  a(b.dynamic);
  a(b.updated);
  a(b.default_buffer);
  a(b.first_use);
  a(b.last_use);
}

template <typename A>
void fields(A& a, Instruction& i) {
  a.enumeration(i.op, Op::kStart);
  a(i.target);
  a(i.buffers);
  a(i.scalars);
  a(i.index);
  a(i.limit);
  a(i.block_a);
  a(i.block_b);
  a(i.profile);
  a(i.message);
}

template <typename A>
void fields(A& a, LoopDesc::Scan& s) {
  a(s.element);
  a(s.result);
}

template <typename A>
void fields(A& a, LoopDesc& l) {
  a(l.trip_count);
  a(l.initial_cond);
  a(l.iteration);
  a(l.body);
  a(l.body_cond);
  a(l.carried);
  a(l.scans);
  a(l.count_symbol);
}

template <typename A>
void fields(A& a, KernelDesc& k) {  // the function is resolved at load
  a(k.name);
  a(k.call_workspace);
  a(k.worker_workspace);
  a(k.schedule);
}

template <typename A>
void fields(A& a, ProfileRow& r) {
  a(r.nodes);
  a(r.kernel);
  a(r.flops);
  a(r.bytes);
}

template <typename A>
void fields(A& a, Variant& v) {
  a(v.symbols);
  a(v.buffers);
  a(v.inputs);
  a(v.outputs);
  a(v.kernels);
  a(v.blocks);
  a(v.loops);
  a(v.profile);
}

template <typename A>
void fields(A& a, Executable& e) {
  a(e.producer);
  a(e.model_name);
  a(e.cpu);
  a(e.cpu_features);
  a(e.schedule_threads);
  a.enumeration(e.numerics, Numerics::kRelaxed);
  a(e.variants);
  a(e.constants_bytes);
}

std::vector<uint8_t> serialize_executable(const Executable& executable) {
  ByteWriter writer;
  uint32_t magic = kMagic, version = kExecutableAbi;
  writer(magic);
  writer(version);
  writer(const_cast<Executable&>(executable));  // a writer changes nothing
  return writer.take();
}

Result<Executable> deserialize_executable(const uint8_t* data, size_t size) {
  ByteReader reader(data, size);
  uint32_t magic = 0, version = 0;
  reader(magic);
  reader(version);
  if (!reader.ok() || magic != kMagic) return invalid("not the metadata of a tilewright model");
  if (version != kExecutableAbi)
    return unsupported("the model has format version " + std::to_string(version) +
                       ", this runtime reads version " + std::to_string(kExecutableAbi));
  Executable executable;
  reader(executable);
  if (!reader.ok())
    return invalid("damaged model metadata: what stands at byte " +
                   std::to_string(reader.position()) + " " + reader.problem());
  if (!reader.at_end())
    return invalid("damaged model metadata: " + std::to_string(size - reader.position()) +
                   " bytes too many");
  if (Status status = check_executable(executable); !status.ok()) {
    status.error().kind = ErrorKind::kInvalid;  // of the file, not of a pass
    return std::move(status.error());
  }
  return executable;
}

}  // namespace tilewright
