#include "frontends/onnx/operand_shapes.h"

namespace tilewright::onnx {

namespace {

constexpr OperandShapes kRows[] = {
    // clang-format off
    {"AffineGrid", 20, "", "theta:n,?,? size:?"},
    {"Attention", 23, "",
     "Q:b,q,?|b,?,q,d K:b,k,?|b,h,k,d V:b,k,?|b,h,k,v past_key:b,h,p,d past_value:b,h,p,v "
     "nonpad_kv_seqlen:b"},
    {"AveragePool", 7, "", "X:n,c,*x"},
    {"BatchNormalization", 7, "", "X:?|n,c,*x scale:c B:c mean:c var:c input_mean:c input_var:c"},
    {"BlackmanWindow", 17, "", "size:scalar"},
    {"CausalConvWithState", 27, "", "input:b,c,l weight:c,1,k bias:c past_state:b,c,?"},
    {"CenterCropPad", 18, "", "shape:?"},
    {"Clip", 11, "", "min:scalar max:scalar"},
    {"Col2Im", 18, "", "input:n,?,l image_shape:s block_shape:s"},
    {"Compress", 9, "", "condition:?"},
    {"ConstantOfShape", 9, "", "input:?"},
    {"Conv", 1, "", "X:n,c,*x W:m,c/group,*k B:m"},
    {"ConvInteger", 10, "", "x:n,c,*x w:m,c/group,*k x_zero_point:scalar"},
    {"ConvTranspose", 1, "", "X:n,c,*x W:c,m,*k B:m*group"},
    {"CumProd", 26, "", "axis:scalar"},
    {"CumSum", 11, "", "axis:scalar"},
    {"DFT", 17, "", "input:?,?,* dft_length:scalar axis:scalar"},
    {"DeformConv", 19, "", "X:n,c,*x W:m,c/group,*k offset:n,?,*o B:m mask:n,?,*o"},
    {"DepthToSpace", 1, "", "input:n,c,h,w"},
    {"Det", 11, "", "X:*,m,m"},
    {"Dropout", 12, "", "ratio:scalar training_mode:scalar"},
    {"Expand", 8, "", "shape:?"},
    {"EyeLike", 9, "", "input:?,?"},
    {"GRU", 7, "", "X:s,b,i W:d,3*h,i R:d,3*h,h B:d,6*h sequence_lens:b initial_h:d,b,h"},
    {"GRU", 14, "layout", "X:b,s,i W:d,3*h,i R:d,3*h,h B:d,6*h sequence_lens:b initial_h:b,d,h"},
    {"GatherElements", 11, "", "data:*d indices:*i"},
    {"Gemm", 7, "", "A:?,? B:?,?"},
    {"GlobalAveragePool", 1, "", "X:n,c,*x"},
    {"GlobalLpPool", 1, "", "X:n,c,*x"},
    {"GlobalMaxPool", 1, "", "X:n,c,*x"},
    {"GridSample", 16, "", "X:n,c,*x grid:n,*o,?"},
    {"GroupNormalization", 18, "", "X:n,c,*x scale:num_groups bias:num_groups"},
    {"GroupNormalization", 21, "", "X:n,c,*x scale:c bias:c"},
    {"HammingWindow", 17, "", "size:scalar"},
    {"HannWindow", 17, "", "size:scalar"},
    {"InstanceNormalization", 1, "", "input:n,c,*x scale:c B:c"},
    {"LRN", 1, "", "X:n,c,*x"},
    {"LSTM", 7, "",
     "X:s,b,i W:d,4*h,i R:d,4*h,h B:d,8*h sequence_lens:b initial_h:d,b,h initial_c:d,b,h P:d,3*h"},
    {"LSTM", 14, "layout",
     "X:b,s,i W:d,4*h,i R:d,4*h,h B:d,8*h sequence_lens:b initial_h:b,d,h initial_c:b,d,h P:d,3*h"},
    {"LinearAttention", 27, "",
     "query:b,t,? key:b,t,? value:b,t,? past_state:b,?,?,? decay:b,t,? beta:b,t,?"},
    {"LpPool", 2, "", "X:n,c,*x"},
    {"MaxPool", 1, "", "X:n,c,*x"},
    {"MaxRoiPool", 1, "", "X:n,c,h,w rois:?,5"},
    {"MaxUnpool", 9, "", "X:n,c,*x I:n,c,*x output_shape:?"},
    {"MelWeightMatrix", 17, "",
     "num_mel_bins:scalar dft_length:scalar sample_rate:scalar lower_edge_hertz:scalar "
     "upper_edge_hertz:scalar"},
    {"Multinomial", 7, "", "input:?,?"},
    {"NegativeLogLikelihoodLoss", 12, "", "input:n,c,*d target:n,*d weight:c"},
    {"NonMaxSuppression", 10, "",
     "boxes:b,s,4 scores:b,?,s max_output_boxes_per_class:scalar iou_threshold:scalar "
     "score_threshold:scalar"},
    {"OneHot", 9, "", "depth:scalar values:2"},
    {"Pad", 11, "", "pads:? constant_value:scalar axes:|?"},
    {"QLinearConv", 10, "",
     "x:n,c,*x x_scale:scalar x_zero_point:scalar w:m,c/group,*k w_scale:|? w_zero_point:|? "
     "y_scale:scalar y_zero_point:scalar B:m"},
    {"RNN", 7, "", "X:s,b,i W:d,h,i R:d,h,h B:d,2*h sequence_lens:b initial_h:d,b,h"},
    {"RNN", 14, "layout", "X:b,s,i W:d,h,i R:d,h,h B:d,2*h sequence_lens:b initial_h:b,d,h"},
    {"Range", 11, "", "start:scalar limit:scalar delta:scalar"},
    {"Reshape", 5, "", "shape:?"},
    {"Resize", 10, "", "roi:? scales:? sizes:?"},
    {"ReverseSequence", 10, "", "input:?,?,* sequence_lens:?"},
    {"RoiAlign", 10, "", "X:n,c,h,w rois:r,4 batch_indices:r"},
    {"RotaryEmbedding", 23, "", "X:b,s,?|b,?,s,? cos_cache:m,r|b,s,r sin_cache:m,r|b,s,r position_ids:b,s"},
    {"STFT", 17, "", "signal:b,l|b,l,? frame_step:scalar window:w frame_length:scalar"},
    {"Scatter", 9, "", "data:*d indices:*i updates:*i"},
    {"ScatterElements", 11, "", "data:*d indices:*i updates:*i"},
    {"SequenceAt", 11, "", "position:scalar"},
    {"SequenceErase", 11, "", "position:scalar"},
    {"SequenceInsert", 11, "", "position:scalar"},
    {"Slice", 10, "", "starts:k ends:k axes:k steps:k"},
    {"SoftmaxCrossEntropyLoss", 12, "", "scores:n,c,*d labels:n,*d weights:c"},
    {"SpaceToDepth", 1, "", "input:n,c,h,w"},
    {"Split", 13, "", "split:?"},
    {"SplitToSequence", 11, "", "split:|?"},
    {"Squeeze", 13, "", "axes:|?"},
    {"TensorScatter", 24, "", "past_cache:b,* update:b,* write_indices:b"},
    {"Tile", 6, "", "repeats:?"},
    {"TopK", 10, "", "K:scalar"},
    {"Trilu", 14, "", "input:*,?,? k:scalar"},
    {"Unsqueeze", 13, "", "axes:|?"},
    {"Upsample", 9, "", "scales:?"},
    // clang-format on
};
constexpr OperandShapes kMicrosoftRows[] = {
    {"BiasGelu", 1, "", "A:*,n B:n"},
    {"DynamicQuantizeLSTM", 1, "",
     "X:s,b,i W:d,i,4*h R:d,h,4*h B:d,8*h sequence_lens:b initial_h:d,b,h initial_c:d,b,h P:d,3*h "
     "W_scale:d|d,4*h W_zero_point:d|d,4*h R_scale:d|d,4*h R_zero_point:d|d,4*h"},
    {"FastGelu", 1, "", "X:*,n bias:n"},
};

}  // namespace

std::span<const OperandShapes> standard_operand_shapes() { return kRows; }
std::span<const OperandShapes> microsoft_operand_shapes() { return kMicrosoftRows; }

}  // namespace tilewright::onnx
