// The C interface over Session. Nothing that C++ throws crosses it: every entry runs in `guarded`,
// which turns errors and exceptions into a status and this thread's message.
#include "runtime/c_api.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

#include "runtime/core/printable.h"
#include "runtime/session.h"

using namespace tilewright;

namespace {

// A ValueInfo with its strings as C sees them.
struct CValue {
  ValueInfo info;
  std::vector<const char*> dim_names;
};

// A tensor with the DLTensor that describes it.
struct CTensor {
  Tensor tensor;
  Shape shape;
  DLTensor view{};
};

thread_local std::string last_error;

tw_status fail(tw_status status, const char* message) noexcept {
  try {
    last_error = message;
  } catch (...) {
    last_error.clear();  // out of memory: the status alone has to do
  }
  return status;
}

tw_status fail(const Error& error) {
  const std::string text = printable(error.to_string());
  switch (error.kind) {
    case ErrorKind::kInvalid: return fail(TW_INVALID, text.c_str());
    case ErrorKind::kUnsupported: return fail(TW_UNSUPPORTED, text.c_str());
    case ErrorKind::kIo: return fail(TW_IO, text.c_str());
    case ErrorKind::kLimit: return fail(TW_LIMIT, text.c_str());
    case ErrorKind::kInternal: return fail(TW_INTERNAL, text.c_str());
  }
  return fail(TW_INTERNAL, text.c_str());
}

// Runs a function that returns Status; nothing it throws gets out.
template <typename Body>
tw_status guarded(Body body) noexcept {
  try {
    const Status status = body();
    return status.ok() ? TW_OK : fail(status.error());
  } catch (const std::bad_alloc&) {
    return fail(TW_LIMIT, "out of memory");
  } catch (const std::exception& e) { return fail(TW_INTERNAL, e.what()); } catch (...) {
    return fail(TW_INTERNAL, "unknown exception");
  }
}

std::vector<CValue> make_values(std::vector<ValueInfo> infos) {
  std::vector<CValue> values;
  values.reserve(infos.size());  // the pointers below point into elements that do not move
  for (ValueInfo& i : infos) {
    CValue& v = values.emplace_back(CValue{std::move(i), {}});
    for (const std::string& n : v.info.dim_names) v.dim_names.push_back(n.c_str());
  }
  return values;
}

tw_status query(const std::vector<CValue>& values, size_t index, tw_value_info* info) {
  if (!info || index >= values.size()) return fail(TW_INVALID, "no such input or output");
  const CValue& v = values[index];
  *info = {v.info.name.c_str(), to_dlpack(v.info.dtype),
           static_cast<int32_t>(v.info.extents.size()), v.info.extents.data(), v.dim_names.data()};
  return TW_OK;
}

void describe(CTensor& c) {
  c.shape = c.tensor.shape();
  c.view = {c.tensor.data(),
            {kDLCPU, 0},
            static_cast<int32_t>(c.shape.size()),
            to_dlpack(c.tensor.dtype()),
            c.shape.data(),
            nullptr,
            0};
}

}  // namespace

struct tw_model {
  std::shared_ptr<const Executable> executable;
  std::vector<CValue> inputs, outputs;
};

struct tw_session {
  std::unique_ptr<Session> session;
  std::mutex mutex;            // guards what follows
  std::vector<CTensor> owned;  // one per output
  std::string table;
};

namespace {

// May a tensor be used as it lies?
bool is_borrowed(const Tensor& t, const DLTensor& from) {
  return t.bytes() == 0 || t.data() == static_cast<uint8_t*>(from.data) + from.byte_offset;
}

// Asked before a shape is copied: a rank that the model does not have may be any number.
bool has_rank(const DLTensor& given, const ValueInfo& info) {
  return given.ndim == static_cast<int64_t>(info.extents.size());
}
Error wrong_rank(const std::string& kind, const DLTensor& given, const ValueInfo& info) {
  return invalid(kind + " '" + info.name + "': rank is " + std::to_string(given.ndim) +
                 ", expected " + std::to_string(info.extents.size()));
}

Result<std::vector<Tensor>> import_inputs(const Session& session, const DLTensor* const* inputs,
                                          size_t count) {
  if (count > session.inputs().size())
    return invalid("got " + std::to_string(count) + " inputs, expected " +
                   std::to_string(session.inputs().size()));
  std::vector<Tensor> tensors(count);
  for (size_t i = 0; i < count; ++i) {
    if (!inputs || !inputs[i]) continue;  // the session names the missing input
    const ValueInfo& info = session.inputs()[i];
    if (!has_rank(*inputs[i], info)) return wrong_rank("input", *inputs[i], info);
    TW_ASSIGN(tensors[i], import_dltensor(*inputs[i]));
    if (info.updated && !is_borrowed(tensors[i], *inputs[i]))
      return invalid("input '" + info.name +
                     "' is updated by the run: the tensor given is not row-major");
  }
  return tensors;
}

// A caller's output tensor; it must be usable as it lies.
Result<Tensor> borrow_output(const DLTensor& tensor, const ValueInfo& info) {
  if (!has_rank(tensor, info)) return wrong_rank("output", tensor, info);
  TW_ASSIGN(Tensor t, import_dltensor(tensor));
  if (!is_borrowed(t, tensor))
    return invalid("output '" + info.name +
                   "': the tensor given is not row-major or not aligned to its elements");
  return t;
}

// Replaces a tensor of the caller that does not fit by an error.
Status check_kept(const Tensor& given, const Tensor& now, const std::string& name) {
  if (now.data() == given.data() && now.dtype() == given.dtype() && now.shape() == given.shape())
    return {};
  return invalid("output '" + name + "': is " + std::string(tilewright::name(now.dtype())) +
                 to_string(now.shape()) + ", the tensor given is " +
                 std::string(tilewright::name(given.dtype())) + to_string(given.shape()));
}

Status check_output_count(const Session& session, const void* outputs, size_t count) {
  if ((outputs || count == 0) && count == session.outputs().size()) return {};
  return invalid("got " + std::to_string(outputs ? count : 0) + " outputs, expected " +
                 std::to_string(session.outputs().size()));
}

Status run(tw_session& s, const DLTensor* const* inputs, size_t input_count, DLTensor** outputs,
           size_t output_count) {
  std::lock_guard lock(s.mutex);
  TW_RETURN_IF_ERROR(check_output_count(*s.session, outputs, output_count));
  TW_ASSIGN(const std::vector<Tensor> in, import_inputs(*s.session, inputs, input_count));
  std::vector<Tensor> out(output_count), given(output_count);
  for (size_t i = 0; i < output_count; ++i) {
    if (outputs[i]) { TW_ASSIGN(given[i], borrow_output(*outputs[i], s.session->outputs()[i])); }
    out[i] = outputs[i] ? given[i] : s.owned[i].tensor;
  }
  TW_RETURN_IF_ERROR(s.session->run(in, out));
  for (size_t i = 0; i < output_count; ++i)
    if (outputs[i]) TW_RETURN_IF_ERROR(check_kept(given[i], out[i], s.session->outputs()[i].name));
  for (size_t i = 0; i < output_count; ++i) {
    if (outputs[i]) continue;
    s.owned[i].tensor = out[i];
    describe(s.owned[i]);
    outputs[i] = &s.owned[i].view;
  }
  return {};
}

Status run_managed(tw_session& s, const DLTensor* const* inputs, size_t input_count,
                   DLManagedTensorVersioned** outputs, size_t output_count) {
  TW_RETURN_IF_ERROR(check_output_count(*s.session, outputs, output_count));
  TW_ASSIGN(const std::vector<Tensor> in, import_inputs(*s.session, inputs, input_count));
  std::vector<Tensor> out;
  TW_RETURN_IF_ERROR(s.session->run(in, out));
  for (size_t i = 0; i < output_count; ++i) outputs[i] = export_dlpack_versioned(out[i]);
  return {};
}

// Of a caller who knows an older form, the fields there are.
constexpr size_t kOldestOptions = offsetof(tw_session_options, seed);
SessionOptions convert(const tw_session_options& given) {
  tw_session_options o{};
  std::memcpy(&o, &given, std::min(given.struct_size, sizeof o));
  SessionOptions options;
  options.seed = o.seed;
  options.threads = o.threads;
  options.profile = o.profile != 0;
  if (o.dynamic_limit > 0) options.dynamic_limit = o.dynamic_limit;
  return options;
}

}  // namespace

int tw_version(void) { return TW_C_API_VERSION; }

const char* tw_last_error(void) { return last_error.c_str(); }

tw_status tw_model_load(const char* path, tw_model** model) {
  if (!path || !model) return fail(TW_INVALID, "tw_model_load: an argument is null");
  *model = nullptr;
  return guarded([&]() -> Status {
    TW_ASSIGN(std::shared_ptr<Executable> executable, load_executable(path));
    auto m = std::make_unique<tw_model>();
    m->inputs = make_values(describe_inputs(*executable));
    m->outputs = make_values(describe_outputs(*executable));
    m->executable = std::move(executable);
    *model = m.release();
    return {};
  });
}

void tw_model_free(tw_model* model) { delete model; }

size_t tw_model_input_count(const tw_model* model) { return model ? model->inputs.size() : 0; }
size_t tw_model_output_count(const tw_model* model) { return model ? model->outputs.size() : 0; }
const char* tw_model_name(const tw_model* model) {
  return model ? model->executable->model_name.c_str() : "";
}

tw_status tw_model_input(const tw_model* model, size_t index, tw_value_info* info) {
  return model ? query(model->inputs, index, info)
               : fail(TW_INVALID, "tw_model_input: the model is null");
}

tw_status tw_model_output(const tw_model* model, size_t index, tw_value_info* info) {
  return model ? query(model->outputs, index, info)
               : fail(TW_INVALID, "tw_model_output: the model is null");
}

int tw_model_input_is_updated(const tw_model* model, size_t index) {
  return model && index < model->inputs.size() && model->inputs[index].info.updated;
}

int tw_model_input_has_default(const tw_model* model, size_t index) {
  return model && index < model->inputs.size() && model->inputs[index].info.has_default;
}

tw_status tw_session_create(const tw_model* model, const tw_session_options* options,
                            tw_session** session) {
  if (!model || !session) return fail(TW_INVALID, "tw_session_create: an argument is null");
  *session = nullptr;
  if (options && options->struct_size < kOldestOptions)
    return fail(TW_INVALID, "tw_session_create: struct_size of the options is not set");
  return guarded([&]() -> Status {
    auto s = std::make_unique<tw_session>();
    TW_ASSIGN(s->session,
              Session::create(model->executable, options ? convert(*options) : SessionOptions{}));
    s->owned.resize(s->session->outputs().size());
    *session = s.release();
    return {};
  });
}

void tw_session_free(tw_session* session) { delete session; }

tw_status tw_session_set_threads(tw_session* session, int32_t threads) {
  if (!session) return fail(TW_INVALID, "tw_session_set_threads: the session is null");
  return guarded([&]() -> Status {
    session->session->set_threads(threads);
    return {};
  });
}

int32_t tw_session_threads(const tw_session* session) {
  return session ? session->session->threads() : 0;
}

tw_status tw_session_run(tw_session* session, const DLTensor* const* inputs, size_t input_count,
                         DLTensor** outputs, size_t output_count) {
  if (!session) return fail(TW_INVALID, "tw_session_run: the session is null");
  return guarded([&] { return run(*session, inputs, input_count, outputs, output_count); });
}

tw_status tw_session_run_managed(tw_session* session, const DLTensor* const* inputs,
                                 size_t input_count, DLManagedTensorVersioned** outputs,
                                 size_t output_count) {
  if (!session) return fail(TW_INVALID, "tw_session_run_managed: the session is null");
  return guarded([&] { return run_managed(*session, inputs, input_count, outputs, output_count); });
}

tw_status tw_session_write_trace(tw_session* session, const char* path) {
  if (!session || !path) return fail(TW_INVALID, "tw_session_write_trace: an argument is null");
  return guarded([&] { return session->session->profile().write_trace(path); });
}

const char* tw_session_profile_table(tw_session* session) {
  if (!session) return "";
  const tw_status status = guarded([&]() -> Status {
    std::lock_guard lock(session->mutex);
    session->table = session->session->profile().table();
    return {};
  });
  return status == TW_OK ? session->table.c_str() : "";
}
