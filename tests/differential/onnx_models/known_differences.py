"""Differences from ONNX Runtime that are no fault of ours, each as narrow as it can be said.

A rule is (operator, condition, reason); the conditions are in difference_conditions.py."""

import re

import difference_conditions as when

REDUCTIONS = ["ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum",
              "ReduceLogSumExp", "ArgMax", "ArgMin"]
RULES = [
    *[(op, when.in_f32, "ONNX Runtime has the constants of this formula in f32 only, also for f64") for op in ("HannWindow", "HammingWindow", "BlackmanWindow")],
    ("GroupNormalization", when.in_f32, "the stage of the statistics is f32 by the standard (stash_type); ours is f64 for f64"),
    *[(op, when.empty, "ONNX Runtime gives an empty tensor back as it is, whatever axes are reduced") for op in REDUCTIONS],
    ("ReduceMean", when.mean_of_none, "the mean of no elements is undefined: NaN as in NumPy; ONNX Runtime gives 0"),
    *[(op, when.no_terms, "a sum of no terms is 0; ONNX Runtime leaves its memory as it was") for op in ("MatMul", "MatMulInteger", "ConvInteger")],
    ("MatMul", when.no_batches, "extents 1 and 0 broadcast to 0, as in NumPy; ONNX Runtime keeps the 1 where there are no terms"),
    *[(op, when.no_quantised_terms, "a sum of no terms is 0; ONNX Runtime leaves its memory as it was") for op in ("QLinearMatMul", "QLinearConv")],
    ("Mod", when.exact_remainder, "ONNX Runtime divides integers by fmod of f64, which rounds them beyond 2^53"),
    ("MeanVarianceNormalization", when.no_deviation, "the standard adds 1e-9 to the deviation, ONNX Runtime nothing"),
    *[(op, when.of_nan, "the index of NaN, as in NumPy and PyTorch; ONNX Runtime passes it over unless it is the first") for op in ("ArgMax", "ArgMin")],
    *[(op, when.exact_extreme, "ONNX Runtime compares some integers of 64 bits by their low half") for op in ("Max", "Min")],
    *[(op, when.exact_reduced, "ONNX Runtime compares some unsigned integers as signed ones") for op in ("ReduceMax", "ReduceMin")],
    ("QuantizeLinear", when.quantised_nan, "the integer for NaN is undefined by the standard; here the zero point"),
    ("MaxPool", when.window_of_padding, "the largest of no elements is -inf; ONNX Runtime gives the lowest number"),
    ("Shrink", when.rounded_to_f32, "ONNX Runtime shifts integers as f32"),
    *[(op, when.nan_in_operand, "the largest and the least of NaN and a number is NaN, as in NumPy; ONNX Runtime keeps the number")
      for op in ("ScatterElements", "ScatterND")],
    ("LpPool", when.partial_windows, "ONNX's reference scales the last windows, which ceil_mode cuts off, by their extent"),
    ("ReduceLogSumExp", when.nan_in_operand, "the sum of NaN is NaN; ONNX Runtime passes it over where there is an infinity"),
    *[(op, when.positions_in_f32, "ONNX's reference has positions in f32, also for f64") for op in ("Resize", "GridSample")],
    *[(op, when.states_overflow, "states overflow to infinity, and from there to NaN; ONNX Runtime holds them at the largest number")
      for op in ("RNN", "GRU", "LSTM")],
    ("Unique", when.unordered, "NaN is the last and one element, as in NumPy; ONNX Runtime loses elements beside it"),
    *[(op, when.beyond_integers, "floats out of range and NaN are undefined by the standard; here the nearest integer and 0")
      for op in ("Cast", "CastLike")],
    ("ConvTranspose", when.bias_of_first_group, "ONNX's reference adds the bias of the first group to all"),
    ("Gemm", when.rounded_to_f64, "ONNX's reference multiplies integers by alpha in f64, which rounds beyond 2^53"),
    ("Gemm", when.no_gemm_terms, "a sum of no terms is 0 and C counts beta times; ONNX Runtime gives C itself"),
    *[(op, when.wide_window, "a window larger than the image has no position; ONNX Runtime divides -1 by the stride to 0, and counts one")
      for op in ("MaxPool", "AveragePool", "LpPool")],
    *[(op, when.wide_stride, "SAME with strides beyond the window: ONNX Runtime crops by negative pads, or refuses (MaxPool); here, as in TensorFlow, none")
      for op in ("MaxPool", "AveragePool", "LpPool")],
    ("Loop", when.no_iteration, "rows of a loop that runs no iteration have no extents of their own; ONNX Runtime puts 0 for those that the body leaves open"),
    ("OneHot", when.one_rounding, "ONNX's reference adds off and (on - off), which rounds; both are stored as they are"),
    *[(op, when.saturated_pairs, "sums are exact; ONNX Runtime adds two products of u8 and i8 in 16 bits, which saturate, where the CPU lacks VNNI")
      for op in ("MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv", "DynamicQuantizeLSTM")],
    ("AffineGrid", when.one_position, "corners of a single position are undefined: the distance of positions is 2 / 0"),
]


# What the command refuses by its own rules though ONNX Runtime runs it: (phrase of the message, reason).
REFUSALS = [
    (re.compile(r"loop 'Scan[^']*': extents"), "states of Scan keep their shape by the standard"),
    (re.compile(r"the loop ends after \d+ iterations, and its result \d+ is .* then, but .* after more"), "the rank of a result is known before the run"),
    (re.compile(r"Squeeze.*would change the rank"), "the rank of a result is known before the run"),
    (re.compile(r"DFT.*transform of length 0"), "a transform of no numbers, which NumPy refuses, too; ONNX Runtime gives an empty result"),
    (re.compile(r"gather_nd .*is out of range for dimension \d+ of 0 elements"), "ONNX Runtime does not look at indices where there is nothing to gather"),
    (re.compile(r"'(SoftmaxCrossEntropy|NegativeLogLikelihood)Loss[^']*': extents"), "ONNX Runtime does not compare the extents of scores and labels"),
]


def refusal(message):
    """The reason, or None."""
    return next((reason for phrase, reason in REFUSALS if phrase.search(message)), None)


def find(node, operands, ours, expected, index):
    """The reason, or None."""
    for op, condition, reason in RULES:
        if op in (node.proto.op_type, "*") and condition(node.proto, operands, ours, expected, index):
            return reason
    return None
