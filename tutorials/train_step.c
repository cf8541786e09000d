/* Trains with a step that `tilewright compile --train job.toml -o step.so` made. What the step updates
   belongs to this program; compiler, Python and the model's file are not needed any more.

     train_step step.so step-start.so 0.01 300 > parameters.bin

   Of each input that is a batch (whatever the model has, `targets`, `sample_ids`) there is a file NAME.bin
   here, batch after batch, as the elements lie in memory; it begins anew where it ends. Losses go to
   standard error, the trained parameters to standard output. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/c_api.h"

enum { kMostInputs = 32 };

static void fail(const char* what) {
  fprintf(stderr, "train_step: %s\n", what);
  exit(1);
}
static void check(tw_status status) {
  if (status != TW_OK) fail(tw_last_error());
}

/* Zeros of an input's type, aligned as tensors that are updated in place have to be. */
static DLTensor allocate(const tw_value_info* info) {
  DLTensor t = {.device = {kDLCPU, 0},
                .ndim = info->rank,
                .dtype = info->dtype,
                .shape = (int64_t*)info->extents};
  size_t bytes = info->dtype.bits / 8;
  for (int32_t d = 0; d < info->rank; ++d) bytes *= (size_t)info->extents[d];
  t.data = aligned_alloc(64, (bytes + 64) / 64 * 64);
  if (!t.data) fail("out of memory");
  memset(t.data, 0, bytes);
  return t;
}
static size_t bytes_of(const DLTensor* t) {
  size_t bytes = t->dtype.bits / 8;
  for (int32_t d = 0; d < t->ndim; ++d) bytes *= (size_t)t->shape[d];
  return bytes;
}

static FILE* open_batches(const char* name) {
  char path[256];
  snprintf(path, sizeof path, "%s.bin", name);
  FILE* file = fopen(path, "rb");
  if (!file) fail(path);
  return file;
}
static void read_batch(FILE* file, DLTensor* t) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (fread(t->data, 1, bytes_of(t), file) == bytes_of(t)) return;
    rewind(file);
  }
  fail("a file of batches is shorter than one batch");
}

/* Parameters and running statistics as they are in the model; all else begins as 0. */
static void begin(const char* path, const tw_value_info* infos, DLTensor* tensors, size_t count) {
  tw_model* start = NULL;
  tw_session* session = NULL;
  DLTensor* values[kMostInputs] = {NULL};
  check(tw_model_load(path, &start));
  check(tw_session_create(start, NULL, &session));
  const size_t outputs = tw_model_output_count(start);
  if (outputs > kMostInputs) fail("too many states");
  check(tw_session_run(session, NULL, 0, values, outputs));
  for (size_t k = 0; k < outputs; ++k) {
    tw_value_info info;
    check(tw_model_output(start, k, &info));
    for (size_t i = 0; i < count; ++i)
      if (strcmp(infos[i].name, info.name) == 0 && bytes_of(&tensors[i]) == bytes_of(values[k]))
        memcpy(tensors[i].data, values[k]->data, bytes_of(values[k]));
  }
  tw_session_free(session);
  tw_model_free(start);
}

int main(int argc, char** argv) {
  if (argc != 5) fail("expected STEP.so START.so LEARNING_RATE STEPS");
  tw_model* model = NULL;
  tw_session* session = NULL;
  check(tw_model_load(argv[1], &model));
  check(tw_session_create(model, NULL, &session));
  const size_t count = tw_model_input_count(model);
  if (count > kMostInputs) fail("too many inputs");
  tw_value_info infos[kMostInputs];
  DLTensor tensors[kMostInputs];
  const DLTensor* inputs[kMostInputs];
  FILE* batches[kMostInputs] = {NULL};
  int64_t* step = NULL;
  DLTensor* parameters = NULL;
  for (size_t i = 0; i < count; ++i) {
    check(tw_model_input(model, i, &infos[i]));
    tensors[i] = allocate(&infos[i]);
    inputs[i] = &tensors[i];
    if (strcmp(infos[i].name, "step") == 0)
      step = tensors[i].data;
    else if (strcmp(infos[i].name, "lr") == 0)
      *(float*)tensors[i].data = strtof(argv[3], NULL);
    else if (!tw_model_input_is_updated(model, i))
      batches[i] = open_batches(infos[i].name);
    else if (strcmp(infos[i].name, "parameters") == 0)
      parameters = &tensors[i];
  }
  if (!step || !parameters) fail("this is no step of training");
  begin(argv[2], infos, tensors, count);
  const size_t outputs = tw_model_output_count(model);
  for (*step = 0; *step < strtoll(argv[4], NULL, 10); ++*step) {
    DLTensor* results[kMostInputs] = {NULL}; /* the loss, then the gradients */
    for (size_t i = 0; i < count; ++i)
      if (batches[i]) read_batch(batches[i], &tensors[i]);
    check(tw_session_run(session, inputs, count, results, outputs));
    fprintf(stderr, "%lld %.9g\n", (long long)*step, *(const float*)results[0]->data);
  }
  if (fwrite(parameters->data, 1, bytes_of(parameters), stdout) != bytes_of(parameters))
    fail("standard output cannot be written");
  return 0;
}
