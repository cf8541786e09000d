/* The C interface from C11: no C++ here. Usage: test_runtime_c_api MODEL. Prints what fails and
 * returns 1. */
#define _POSIX_C_SOURCE 200809L
#include "runtime/c_api.h"

#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures = 0;

#define EXPECT(condition)                                                            \
  do {                                                                               \
    if (!(condition)) {                                                              \
      printf("%s:%d: failed: %s (last error: %s)\n", __FILE__, __LINE__, #condition, \
             tw_last_error());                                                       \
      ++failures;                                                                    \
    }                                                                                \
  } while (0)

static DLTensor floats(float* data, int64_t* shape, int32_t rank) {
  DLTensor t;
  memset(&t, 0, sizeof t);
  t.data = data;
  t.device.device_type = kDLCPU;
  t.ndim = rank;
  t.dtype.code = kDLFloat;
  t.dtype.bits = 32;
  t.dtype.lanes = 1;
  t.shape = shape;
  return t;
}

static void test_queries(const tw_model* model) {
  tw_value_info info;
  EXPECT(tw_version() / 100 == TW_C_API_VERSION / 100);
  EXPECT(strcmp(tw_model_name(model), "scale") == 0);
  EXPECT(tw_model_input_count(model) == 2);
  EXPECT(tw_model_output_count(model) == 1);
  EXPECT(tw_model_input(model, 0, &info) == TW_OK);
  EXPECT(strcmp(info.name, "x") == 0);
  EXPECT(info.dtype.code == kDLFloat && info.dtype.bits == 32 && info.dtype.lanes == 1);
  EXPECT(info.rank == 1 && info.extents[0] == -1 && strcmp(info.dim_names[0], "n") == 0);
  EXPECT(tw_model_output(model, 0, &info) == TW_OK);
  EXPECT(strcmp(info.name, "y") == 0);
  EXPECT(tw_model_input(model, 1, &info) == TW_OK);
  EXPECT(strcmp(info.name, "factor") == 0 && info.rank == 0);
  EXPECT(!tw_model_input_has_default(model, 0) && tw_model_input_has_default(model, 1));
  EXPECT(!tw_model_input_has_default(model, 2) && !tw_model_input_has_default(NULL, 1));
  EXPECT(tw_model_input(model, 2, &info) == TW_INVALID);
  EXPECT(tw_model_input(NULL, 0, &info) == TW_INVALID);
}

static void test_runs(tw_session* session) {
  alignas(64) float x[4] = {1, 2, 3, 4}, y[4] = {0};
  int64_t shape[1] = {4}, wrong[1] = {3};
  DLTensor in = floats(x, shape, 1), out = floats(y, shape, 1);
  const DLTensor* inputs[1] = {&in};
  DLTensor* given[1] = {&out};
  DLTensor* owned[1] = {NULL};
  DLManagedTensorVersioned* managed[1] = {NULL};

  EXPECT(tw_session_run(session, inputs, 1, given, 1) == TW_OK);
  EXPECT(y[0] == 2.5f && y[3] == 10.0f);

  float three = 3;
  DLTensor factor = floats(&three, NULL, 0);
  const DLTensor* both[2] = {&in, &factor};
  EXPECT(tw_session_run(session, both, 2, given, 1) == TW_OK);
  EXPECT(y[0] == 3.0f && y[3] == 12.0f);
  both[1] = NULL; /* the model's own again */
  EXPECT(tw_session_run(session, both, 2, given, 1) == TW_OK);
  EXPECT(y[0] == 2.5f && y[3] == 10.0f);

  EXPECT(tw_session_run(session, inputs, 1, owned, 1) == TW_OK);
  EXPECT(owned[0] && owned[0]->ndim == 1 && owned[0]->shape[0] == 4 &&
         ((float*)owned[0]->data)[1] == 5.0f);

  EXPECT(tw_session_run_managed(session, inputs, 1, managed, 1) == TW_OK);
  EXPECT(managed[0] && managed[0]->version.major == 1 &&
         ((float*)managed[0]->dl_tensor.data)[2] == 7.5f);
  if (managed[0]) managed[0]->deleter(managed[0]);

  int64_t stride[1] = {2}, two[1] = {2};
  DLTensor strided = floats(x, two, 1);
  strided.strides = stride;
  inputs[0] = &strided;
  owned[0] = NULL;
  EXPECT(tw_session_run(session, inputs, 1, owned, 1) == TW_OK);
  EXPECT(owned[0] && owned[0]->shape[0] == 2 && ((float*)owned[0]->data)[1] == 7.5f);
  inputs[0] = &in;

  out.shape = wrong;
  EXPECT(tw_session_run(session, inputs, 1, given, 1) == TW_INVALID);
  EXPECT(strcmp(tw_last_error(), "output 'y': is f32[4], the tensor given is f32[3]") == 0);
  EXPECT(tw_session_run(session, NULL, 0, owned, 1) == TW_INVALID);
  EXPECT(strcmp(tw_last_error(), "missing input 'x' (input 1 of 2)") == 0);
  EXPECT(tw_session_run(session, inputs, 1, owned, 2) == TW_INVALID);
  in.dtype.bits = 64;
  EXPECT(tw_session_run(session, inputs, 1, owned, 1) == TW_INVALID);
  EXPECT(strcmp(tw_last_error(), "input 'x': element type is f64, expected f32") == 0);
  in.device.device_type = kDLCUDA;
  EXPECT(tw_session_run(session, inputs, 1, owned, 1) == TW_UNSUPPORTED);
}

/* A rank that is not the model's is refused before any extent is looked at. */
static void test_ranks(tw_session* session) {
  const int32_t ranks[] = {0, 2, 64, INT32_MAX, -1, INT32_MIN};
  alignas(64) float x[1] = {1};
  int64_t shape[1] = {1};
  size_t i;
  for (i = 0; i < sizeof ranks / sizeof *ranks; ++i) {
    char expected[80];
    DLTensor good = floats(x, shape, 1), bad = floats(x, shape, ranks[i]);
    const DLTensor *good_input[1] = {&good}, *bad_input[1] = {&bad};
    DLTensor *own[1] = {NULL}, *bad_output[1] = {&bad};
    EXPECT(tw_session_run(session, bad_input, 1, own, 1) == TW_INVALID);
    snprintf(expected, sizeof expected, "input 'x': rank is %d, expected 1", (int)ranks[i]);
    EXPECT(strcmp(tw_last_error(), expected) == 0);
    EXPECT(tw_session_run(session, good_input, 1, bad_output, 1) == TW_INVALID);
    snprintf(expected, sizeof expected, "output 'y': rank is %d, expected 1", (int)ranks[i]);
    EXPECT(strcmp(tw_last_error(), expected) == 0);
  }
}

static float run_one(tw_session* session) {
  alignas(64) float x[4] = {1, 1, 1, 1}, y[4] = {0};
  int64_t shape[1] = {4};
  DLTensor in = floats(x, shape, 1), out = floats(y, shape, 1);
  const DLTensor* inputs[1] = {&in};
  DLTensor* given[1] = {&out};
  return tw_session_run(session, inputs, 1, given, 1) == TW_OK ? y[3] : -1;
}

static void test_threads(tw_session* session) {
  EXPECT(tw_session_threads(session) == 2 && tw_session_threads(NULL) == 0);
  EXPECT(tw_session_set_threads(session, INT32_MAX) == TW_OK);
  EXPECT(tw_session_threads(session) >= 1 && tw_session_threads(session) <= 1024);
  EXPECT(run_one(session) == 2.5f);
  EXPECT(tw_session_set_threads(session, 2) == TW_OK);
}

/* The child of a fork runs, gives a session new threads, and frees what the parent made. */
static void test_fork(const char* path) {
  tw_model* model = NULL;
  tw_session* session = NULL;
  tw_session_options options;
  pid_t child;
  int status = -1;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.threads = 4;
  EXPECT(tw_model_load(path, &model) == TW_OK);
  EXPECT(tw_session_create(model, &options, &session) == TW_OK);
  child = fork();
  if (child == 0) {
    int good;
    alarm(20);
    good = run_one(session) == 2.5f;
#ifndef __SANITIZE_THREAD__ /* which allows no threads in a child */
    good &= tw_session_set_threads(session, 2) == TW_OK && run_one(session) == 2.5f;
#endif
    tw_session_free(session);
    tw_model_free(model);
    good &= tw_model_load(path, &model) == TW_OK;
    tw_model_free(model);
    _exit(!good);
  }
  EXPECT(waitpid(child, &status, 0) == child);
  EXPECT(status == 0);
  EXPECT(run_one(session) == 2.5f);
  tw_session_free(session);
  tw_model_free(model);
}

int main(int argc, char** argv) {
  tw_model* model = NULL;
  tw_session* session = NULL;
  tw_session_options options;
  if (argc != 2) return 2;
  EXPECT(strcmp(tw_last_error(), "") == 0);
  EXPECT(tw_model_load("/nonexistent.so", &model) == TW_IO);
  EXPECT(strcmp(tw_last_error(), "/nonexistent.so: no such file") == 0);
  EXPECT(tw_model_load(NULL, &model) == TW_INVALID);
  EXPECT(tw_model_load(argv[1], &model) == TW_OK);
  if (!model) return 1;
  test_queries(model);

  memset(&options, 0, sizeof options);
  EXPECT(tw_session_create(model, &options, &session) == TW_INVALID);
  options.struct_size = sizeof options;
  options.threads = 2;
  options.profile = 1;
  EXPECT(tw_session_create(model, &options, &session) == TW_OK);
  tw_model_free(model); /* the session keeps what it needs */
  if (!session) return 1;
  test_threads(session);
  EXPECT(tw_session_set_threads(session, 1) == TW_OK);
  test_ranks(session);
  test_runs(session);
  EXPECT(strstr(tw_session_profile_table(session), "scale: mul_0") != NULL);
  EXPECT(tw_session_write_trace(session, "/nonexistent/trace.json") == TW_IO);
  tw_session_free(session);
  tw_session_free(NULL);
  tw_model_free(NULL);
  test_fork(argv[1]);
  if (failures == 0) printf("all passed\n");
  return failures != 0;
}
