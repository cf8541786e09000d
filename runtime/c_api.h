/* The C interface of the Tilewright runtime: load a compiled model, make sessions, run them. Plain
   C11.

   Every function that can fail returns a status; tw_last_error() then says why, in words, until the
   next failing call of the same thread. Handles may be passed between threads. Sessions of one
   model run concurrently; calls on one session wait for each other. Strings and arrays that a query
   returns live as long as the handle queried.

   fork: the child may use and free models and sessions of the parent as long as no other thread of
   the parent was inside a call on them. It has none of the parent's threads: sessions made before
   run on the calling thread alone until tw_session_set_threads gives them new ones.

     tw_model* model = NULL;
     tw_session* session = NULL;
     if (tw_model_load("model.so", &model) || tw_session_create(model, NULL, &session))
       puts(tw_last_error());
     const DLTensor* inputs[] = {&x};
     DLTensor* outputs[] = {NULL};
     if (tw_session_run(session, inputs, 1, outputs, 1)) puts(tw_last_error());
     ... outputs[0]->data ...
     tw_session_free(session);
     tw_model_free(model);

   Stability: functions and constants are added, never changed or removed, while TW_C_API_VERSION's
   hundreds stay. */
#ifndef TILEWRIGHT_C_API_H_
#define TILEWRIGHT_C_API_H_

#include <stddef.h>
#include <stdint.h>

#include "dlpack_abi.h" /* beside this header, also where it is installed */

#ifdef TILEWRIGHT_BUILD_SHARED
#define TW_API __attribute__((visibility("default")))
#else
#define TW_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What this header declares; tw_version() tells what the library at hand has. */
#define TW_C_API_VERSION 104 /* major * 100 + minor */

/* What a call came to. For all but TW_OK, tw_last_error() says why. */
typedef enum {
  TW_OK = 0,
  TW_INVALID = 1,     /* an argument, an input or a file breaks a rule */
  TW_IO = 2,          /* a file cannot be read or written */
  TW_UNSUPPORTED = 3, /* legal, but not for this runtime or this CPU */
  TW_LIMIT = 4,       /* a limit of memory or size is exceeded */
  TW_INTERNAL = 5     /* the model's program contradicts itself */
} tw_status;

/* A loaded model: read-only, so that any number of sessions and threads may use it at once. */
typedef struct tw_model tw_model;
/* What runs a model: its threads, its memory and the plans for the sizes it has met. */
typedef struct tw_session tw_session;

/* The runtime's TW_C_API_VERSION; compare its hundreds with the header's. */
TW_API int tw_version(void);

/* Of this thread's latest failed call; "" when there was none. Valid until the next failing call of
 * this thread. */
TW_API const char* tw_last_error(void);

/* Loads a compiled model. Checks before any code of it runs that the file is the one that was
   compiled, by the checksum at its end, that its ABI is this runtime's and that the CPU has what it
   was compiled for. Sessions keep what they need: a model may be freed before them. The file stays
   mapped, and one descriptor of it open, until the last of them is freed. It may be replaced by
   renaming another file over it, which the next load then gives. Writing into it, as cp does,
   changes the code that sessions run; loading it again meanwhile is TW_INVALID. */
TW_API tw_status tw_model_load(const char* path, tw_model** model);
TW_API void tw_model_free(tw_model* model); /* NULL: nothing */

/* What a model says of one of its inputs or outputs. The strings and arrays are the model's. */
typedef struct {
  const char* name;             /* as in the ONNX graph */
  DLDataType dtype;             /* of the elements; lanes is 1 */
  int32_t rank;                 /* number of extents and of dim_names; 0: a scalar */
  const int64_t* extents;       /* -1: symbolic */
  const char* const* dim_names; /* the symbol of a symbolic extent, else "" */
} tw_value_info;

/* The signature, in the order in which tw_session_run takes it. Of a NULL model there are 0 inputs
   and outputs, and the name is ""; an index that does not exist is TW_INVALID. */
TW_API size_t tw_model_input_count(const tw_model* model);
TW_API size_t tw_model_output_count(const tw_model* model);
TW_API tw_status tw_model_input(const tw_model* model, size_t index, tw_value_info* info);
TW_API tw_status tw_model_output(const tw_model* model, size_t index, tw_value_info* info);
TW_API const char* tw_model_name(const tw_model* model);
/* since 1.2: not 0 for inputs that hold new contents after a run, as the parameters of a training step
   do. Tensors given for them are row-major, aligned to 64 bytes and overlap nothing else. */
TW_API int tw_model_input_is_updated(const tw_model* model, size_t index);
/* since 1.3: not 0 for inputs that a run may be given NULL for, as the initialisers that
   `tilewright compile --override` names: they are then what the model has for them. They stand
   behind the other inputs, so that input_count may also be smaller. */
TW_API int tw_model_input_has_default(const tw_model* model, size_t index);

/* Set struct_size to sizeof(tw_session_options) and what is not needed to 0. */
typedef struct {
  size_t struct_size;
  int32_t threads; /* workers, the calling thread included; 0: one per CPU available to the process;
                      at most 4 for each of these, or 16 where that is more (tw_session_threads) */
  int32_t profile; /* not 0: record the time of each kernel call */
  int64_t dynamic_limit; /* bytes of buffers whose size the run decides; 0: 8 GiB */
  uint64_t seed; /* since 1.1; of random numbers, but for nodes with a seed of their own: run k is
                    equal to run k of any session with this seed; 0: drawn from the system */
} tw_session_options;

/* options: NULL for all defaults. */
TW_API tw_status tw_session_create(const tw_model* model, const tw_session_options* options,
                                   tw_session** session);
TW_API void tw_session_free(
    tw_session* session); /* NULL: nothing; no call on it may be under way */
TW_API tw_status tw_session_set_threads(tw_session* session, int32_t threads);
/* since 1.4: the workers that the session has, which are fewer than were asked for where that was
   more than the bound or than the system grants. 0 for NULL. */
TW_API int32_t tw_session_threads(const tw_session* session);

/* Runs the model. inputs: in the model's order, in CPU memory; one that is not row-major is copied
   first. outputs[i]: NULL, then it is set to a tensor that the session owns, valid until the next
   run or the session's end; or a row-major tensor with the right element type and shape, which is
   filled (fastest when aligned to 64 bytes). Output tensors may overlap inputs, not each other.
   After a failure the contents of outputs are undefined. */
TW_API tw_status tw_session_run(tw_session* session, const DLTensor* const* inputs,
                                size_t input_count, DLTensor** outputs, size_t output_count);

/* As tw_session_run, but each outputs[i] is set to a new tensor that the caller owns: call its
 * deleter. */
TW_API tw_status tw_session_run_managed(tw_session* session, const DLTensor* const* inputs,
                                        size_t input_count, DLManagedTensorVersioned** outputs,
                                        size_t output_count);

/* Writes what was profiled: a Chrome trace (also for ui.perfetto.dev). */
TW_API tw_status tw_session_write_trace(tw_session* session, const char* path);
/* What was profiled as a table of text; valid until the next call of this function on the session.
 */
TW_API const char* tw_session_profile_table(tw_session* session);

#ifdef __cplusplus
}
#endif
#endif
