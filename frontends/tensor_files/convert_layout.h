// Rearrangements of foreign element layouts into the one of HostTensor.
#pragma once

#include "runtime/core/host_tensor.h"

namespace tilewright {

// Reverses the bytes of every element.
void swap_byte_order(HostTensor& tensor);

// `tensor.bytes` holds the elements of tensor.shape first index fastest; they become row-major.
void fortran_to_row_major(HostTensor& tensor);

// Bytes other than 0 become 1. Any other value would be undefined in generated code.
void normalize_bools(HostTensor& tensor);

}  // namespace tilewright
