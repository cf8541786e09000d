/* A library whose constructor leaves a trace: loading a model must not run it. */
#include <stdlib.h>

__attribute__((constructor)) static void mark(void) {
  setenv("TILEWRIGHT_CONSTRUCTOR_RAN", "1", 1);
}
