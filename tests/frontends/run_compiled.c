/* Runs a compiled digits-cnn through the C interface alone. Usage: run_compiled MODEL.so IMAGES, a
 * file of floats [n, 1, 28, 28]. Prints the most likely digit of each image. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/c_api.h"

enum { kPixels = 28 * 28, kMostImages = 64, kDigits = 10 };

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, tw_last_error());
  return 1;
}

static int run(tw_session* session, float* images, int64_t count) {
  int64_t shape[4] = {count, 1, 28, 28};
  DLTensor x;
  memset(&x, 0, sizeof x);
  x.data = images;
  x.device.device_type = kDLCPU;
  x.ndim = 4;
  x.dtype.code = kDLFloat;
  x.dtype.bits = 32;
  x.dtype.lanes = 1;
  x.shape = shape;
  static float scores[kMostImages * kDigits];
  int64_t scores_shape[2] = {count, kDigits};
  DLTensor y = x;
  y.data = scores;
  y.ndim = 2;
  y.shape = scores_shape;
  const DLTensor* inputs[1] = {&x};
  DLTensor* outputs[1] = {&y};
  if (tw_session_run(session, inputs, 1, outputs, 1) != TW_OK) return fail("run");
  for (int64_t i = 0; i < count; ++i) {
    int best = 0;
    for (int d = 1; d < kDigits; ++d)
      if (scores[i * kDigits + d] > scores[i * kDigits + best]) best = d;
    printf("%d\n", best);
  }
  return 0;
}

int main(int argc, char** argv) {
  static float images[kMostImages * kPixels];
  if (argc != 3) return 2;
  FILE* file = fopen(argv[2], "rb");
  if (!file) return 2;
  const int64_t count = (int64_t)(fread(images, sizeof(float), kMostImages * kPixels, file) / kPixels);
  fclose(file);
  tw_model* model = NULL;
  tw_session* session = NULL;
  if (tw_model_load(argv[1], &model) != TW_OK) return fail("load");
  if (tw_session_create(model, NULL, &session) != TW_OK) return fail("create a session");
  const int status = run(session, images, count);
  tw_session_free(session);
  tw_model_free(model);
  return status;
}
