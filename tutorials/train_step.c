/* Trains with a step that `tilewright compile --train job.toml -o step.so` made. What the step updates
   belongs to this program; compiler, Python and the model's file are not needed any more.

     train_step step.so step-start.so 0.01 300 > parameters.bin
     train_step step.so step-start.so 0.01 300 step-update.so 4 > parameters.bin

   The second form is that of a job with `accumulate = 4`: step.so is one of four parts of a step then.
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

/* A compiled model and its inputs. */
typedef struct {
  tw_model* model;
  tw_session* session;
  size_t count;
  tw_value_info infos[kMostInputs];
  DLTensor tensors[kMostInputs];
  const DLTensor* inputs[kMostInputs];
} program;

static DLTensor* find(program* p, const char* name) {
  for (size_t i = 0; i < p->count; ++i)
    if (strcmp(p->infos[i].name, name) == 0) return &p->tensors[i];
  return NULL;
}
/* Inputs that `other` has, too, are the same tensors. */
static void load(program* p, const char* path, program* other) {
  check(tw_model_load(path, &p->model));
  check(tw_session_create(p->model, NULL, &p->session));
  const size_t count = tw_model_input_count(p->model);
  if (count > kMostInputs) fail("too many inputs");
  for (; p->count < count; ++p->count) {
    const size_t i = p->count;
    check(tw_model_input(p->model, i, &p->infos[i]));
    const DLTensor* shared = other ? find(other, p->infos[i].name) : NULL;
    p->tensors[i] = shared ? *shared : allocate(&p->infos[i]);
    p->inputs[i] = &p->tensors[i];
  }
}
static void run(program* p, DLTensor** results) {
  check(tw_session_run(p->session, p->inputs, p->count, results, tw_model_output_count(p->model)));
}

/* Parameters and running statistics as they are in the model; all else begins as 0. */
static void begin(const char* path, program* step, program* update) {
  program start = {.count = 0};
  DLTensor* values[kMostInputs] = {NULL};
  load(&start, path, NULL);
  const size_t outputs = tw_model_output_count(start.model);
  if (outputs > kMostInputs) fail("too many states");
  run(&start, values);
  for (size_t k = 0; k < outputs; ++k) {
    tw_value_info info;
    check(tw_model_output(start.model, k, &info));
    DLTensor* state = find(step, info.name);
    if (!state) state = find(update, info.name);
    if (!state || bytes_of(state) != bytes_of(values[k])) fail("these are files of several jobs");
    memcpy(state->data, values[k]->data, bytes_of(values[k]));
  }
  tw_session_free(start.session);
  tw_model_free(start.model);
}

int main(int argc, char** argv) {
  if (argc != 5 && argc != 7)
    fail("expected STEP.so START.so LEARNING_RATE STEPS [UPDATE.so PARTS]");
  static program step, update;
  load(&step, argv[1], NULL);
  const long parts = argc == 7 ? strtol(argv[6], NULL, 10) : 1;
  if (argc == 7) load(&update, argv[5], &step);
  const DLTensor *number = find(&step, "step"), *part = find(&step, "part"),
                 *parameters = find(&step, "parameters"), *lr = find(&step, "lr");
  if (!lr) lr = find(&update, "lr");
  if (!number || !parameters || !lr || (part != NULL) != (argc == 7))
    fail("this is no step of training, or a part of one without its update");
  *(float*)lr->data = strtof(argv[3], NULL);
  FILE* batches[kMostInputs] = {NULL};
  for (size_t i = 0; i < step.count; ++i) {
    const DLTensor* t = &step.tensors[i];
    if (t != number && t != part && t != parameters && t != lr &&
        !tw_model_input_is_updated(step.model, i))
      batches[i] = open_batches(step.infos[i].name);
  }
  begin(argv[2], &step, &update);
  int64_t* done = number->data;
  for (*done = 0; *done < strtoll(argv[4], NULL, 10); ++*done) {
    double loss = 0;
    for (long n = 0; n < parts; ++n) {
      DLTensor* results[kMostInputs] = {NULL}; /* the loss, and the gradients where the job wants them */
      if (part) *(int64_t*)part->data = n;
      for (size_t i = 0; i < step.count; ++i)
        if (batches[i]) read_batch(batches[i], &step.tensors[i]);
      run(&step, results);
      loss += *(const float*)results[0]->data;
    }
    if (update.count) run(&update, NULL);
    fprintf(stderr, "%lld %.9g\n", (long long)*done, loss / (double)parts);
  }
  if (fwrite(parameters->data, 1, bytes_of(parameters), stdout) != bytes_of(parameters))
    fail("standard output cannot be written");
  return 0;
}
