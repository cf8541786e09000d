// The suites: each registers its benchmarks. One image, one sentence or one step a run.
#pragma once

namespace tilewright::performance {

void add_gemm();         // f32, the second operand constant
void add_convolution();  // the layers of ResNet-50 and MobileNet-v2, with bias and relu
void add_pointwise();    // over 64 MB, so that memory is the limit
void add_reduction();    // sums of rows and columns, softmax, layer normalisation
void add_movement();     // transposes, concatenations
void add_attention();    // the heads of BERT-base between their projections
void add_recurrent();    // one LSTM layer
void add_training();     // what steps add: gradients of products and layers, an optimiser
void add_int8();         // products of 8 bits, alone and between quantisation nodes

}  // namespace tilewright::performance
