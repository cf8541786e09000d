/* The structures of DLPack 1.x (https://dmlc.github.io/dlpack/latest/c_api.html), so that tensors
   pass between libraries without copies. A program that includes the original dlpack.h includes it
   before this header. */
#ifndef TILEWRIGHT_DLPACK_ABI_H_
#define TILEWRIGHT_DLPACK_ABI_H_

#ifndef DLPACK_DLPACK_H_

#include <stdint.h>

#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 0
#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)

#ifdef __cplusplus
extern "C" {
#endif

/* Of the structure's layout: readers refuse another major version; minor ones only add codes. */
typedef struct {
  uint32_t major;
  uint32_t minor;
} DLPackVersion;

#ifdef __cplusplus
/* Where memory lies. Of DLPack's list those that this runtime tells apart. */
typedef enum : int32_t {
#else
typedef enum {
#endif
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3
} DLDeviceType;

/* A device and, of several of its kind, which one. */
typedef struct {
  DLDeviceType device_type; /* kDLCPU and kDLCUDAHost are memory of the host */
  int32_t device_id;        /* 0 for the host */
} DLDevice;

/* DLDataType.code; with `bits` it makes an element type: kDLFloat of 32 bits is f32. */
typedef enum {
  kDLInt = 0U,
  kDLUInt = 1U,
  kDLFloat = 2U,
  kDLBfloat = 4U,
  kDLBool = 6U
} DLDataTypeCode;

/* An element type: `lanes` values of `bits` bits of the kind `code` (DLDataTypeCode). Tilewright's
   have one lane. */
typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

/* A strided view of memory that somebody else owns. Element (i, j, ...) lies at `data` +
   `byte_offset` + (i * `strides`[0] + j * strides[1] + ...) * size of `dtype`; `shape` and strides
   have `ndim` numbers each, `device` tells whose memory it is. */
typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides; /* in elements; NULL: row-major */
  uint64_t byte_offset;
} DLTensor;

/* A tensor with its owner (DLPack 0.x): who receives it calls `deleter` on it, once, when it is
   done with `dl_tensor`; `manager_ctx` is the producer's own. */
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;

/* The same since DLPack 1.0: `version` comes first, so that a reader can refuse what follows, and
   `flags` holds DLPACK_FLAG_BITMASK bits. As before, the receiver calls `deleter` once,
   `manager_ctx` is the producer's, and `dl_tensor` is the view. */
typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

#ifdef __cplusplus
}
#endif

#endif /* DLPACK_DLPACK_H_ */
#endif
