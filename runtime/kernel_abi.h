/* The binary interface between a compiled kernel and the runtime. Plain C: generated code follows
   it field by field. A kernel needs nothing from outside: all it may call comes through its
   context. What changes here raises kExecutableAbi (executable.h). */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a kernel is given besides its operands: memory and workers. */
typedef struct TwKernelContext TwKernelContext;

/* Work on iterations [begin, end) of a parallel axis; `worker` is in [0, worker_count). */
typedef void (*TwParallelBody)(TwKernelContext* context, void* closure, int64_t begin, int64_t end,
                               int64_t worker);

/* Work of several phases, walked through by each worker of a team. */
typedef void (*TwTeamBody)(TwKernelContext* context, void* closure);

struct TwKernelContext {
  /* Runs body over [0, count), divided among the workers; returns when all is done. A call from
   * inside such a body runs serially on the calling worker. */
  void (*parallel)(TwKernelContext* context, int64_t count, TwParallelBody body, void* closure);
  uint8_t* call_workspace;   /* as many bytes as the kernel states, 64-byte aligned, shared by the
                                workers of this call */
  uint8_t* worker_workspace; /* worker w owns [w * worker_workspace_stride, (w + 1) *
                                worker_workspace_stride) of it */
  int64_t worker_workspace_stride; /* bytes, a multiple of 64 */
  int64_t worker_count;
  /* One fork for several parallel calls: runs body on the caller and, as far as they come in time,
   * on the other workers, each of which makes the same `parallel` calls in the same order. Each
   * call is a phase: it ends, for all of them, when the last of its iterations is done. What the
   * body does outside of these calls must be the same for all and store nothing that they share. */
  void (*team)(TwKernelContext* context, TwTeamBody body, void* closure);
  /* Set to 1, by any worker, where a kernel meets an infinity or a NaN among values that it watches;
   * lanes that lie beyond a tensor may count. Never set back by kernels. */
  int32_t not_finite;
};

/* buffers: one pointer per buffer parameter of the kernel, 64-byte aligned for what the session
   allocates. scalars: one value per scalar (symbol) parameter. */
typedef void (*TwKernel)(TwKernelContext* context, void* const* buffers, const int64_t* scalars);

#ifdef __cplusplus
}
#endif
