"""Why Tilewright accepts what ONNX Runtime refuses, and where results differ and ours is right.

A rule is (pattern, reason): the pattern is found in "FILE: CHANGE: what ONNX Runtime says"."""
import re

RULES = [
    # ONNX Runtime lacks something.
    (r"NOT_IMPLEMENTED|ScalesValidation .* mode only supports|Unsupported pooling size|exclude_outside",
     "ONNX Runtime has no kernel for this type, rank or mode"),
    (r"the process ended|RUNTIME_EXCEPTION .* Status Message: $", "ONNX Runtime fails without a message"),
    (r"'utf-8' codec can't decode", "ONNX Runtime takes no text that is not UTF-8, also where it means nothing"),
    (r"block_size = 0: .*Unrecognized attribute",
     "ONNX Runtime lacks the default of this attribute in earlier opsets"),
    # Of other opsets.
    (r"No Op registered for", "an operator of a later opset is taken as in its first one"),
    (r"ValidateOpsetForDomain", "ONNX Runtime lacks the opset"),
    (r"deprecated in domain_version", "an operator that an opset removes is taken as it was"),
    (r"mode .* not supported, expect linear", "names of modes of all opsets are taken"),
    (r"^[^:]*(centercroppad|meanvariancenormalization): .*Type parameter \(T\) of Optype",
     "ONNX Runtime expands the operator to nodes of one type"),
    (r"Type '[^']*' of input parameter .* is invalid", "element types of later opsets are taken in earlier ones"),
    # Lists and scalars.
    (r"K input must be a one-dimensional tensor|k tensor should be a 1D|GetEffectiveAxes|tensor/squeeze.h",
     "a scalar is a list of one element, and lists may have other ranks"),
    (r"axes is empty: .*Number of scan (in|out)put axes|has one less: .*Number of scan (in|out)put axes",
     "an empty list is one that is left out"),
    (r"(is empty|has one less): .*(perm size|incorrect size|does not match the number of axes|No valid axes)",
     "an empty list is one that is left out"),
    (r"squeeze: constant '\w+': dimension 0 is 0: .*instead of",
     "an empty list of axes removes none, as in NumPy; ONNX Runtime removes all of extent 1"),
    (r"Indices tensor must have rank", "a scalar without an axis is one element"),
    # Extents of 0 and windows that do not fit.
    (r"size input must be greater than", "a window of size 0 is empty"),
    (r"SetOutputSize|Scale value should be greater than|matmul_integer.cc", "extents of 0 are legal"),
    (r"reshape_helper.h|must be a positive multiple of prod|"
     r"reducesumsquare: .*dimension \d is 0: .*instead of float32|roi_batch_id < batch_size",
     "extents of 0 are legal"),
    (r"left operand cannot broadcast", "extents 1 and 0 broadcast to 0, as in NumPy"),
    (r"Size of X.shape.axis:. must be at least", "the mean of one element is that element"),
    (r"Conv node.*Invalid input shape", "a window larger than the image has no position"),
    (r"PoolAttributes::PoolAttributes|pads must not contain negative",
     "windows may lie in the padding, and pads below 0 crop"),
    (r"modulo by zero", "the remainder of a division by 0 is stated in `tilewright ops`"),
    (r"lppool.*instead of float32|maxunpool: constant 'v0': dimension \d is 1: .*other values",
     "a window larger than the image has no position; ONNX Runtime divides -1 by the stride to 0, and counts one"),
    (r"input 'v8': rank 0: v9: int64\[0, 1\] instead of int64\[1, 1\]",
     "positions in a scalar have no dimension by the standard"),
    # Branches that are never taken, declarations.
    (r"Op \((If|Loop)\) \[TypeInferenceError\]",
     "a branch that a known condition never takes, and a body without an iteration, is not compiled"),
    (r"Can't merge shape info", "declared extents inside bodies are hints"),
    # Numbers.
    (r"GRU.*clip_ > 0|LSTM.*clip_ > 0", "a clip of 0 clips nothing"),
    (r"(alpha|gamma) = (inf|nan|-?1\d{20,}\.0+|0\.0+): .*other values",
     "factors of 0, infinite or that overflow: NaN is where both factors make one"),
    (r"einsum: .*: v2: other values",
     "sums of products of integers wrap, as in NumPy; ONNX Runtime goes through f32"),
    (r"maxunpool: constant 'v3': element 3 is 64: .*other values",
     "indices count in the extents that the window gives, as in the standard's example"),
    (r"lstm: constant 'v0': dimension 0 is 0: .*other values",
     "the last state of no steps is the first one; ONNX Runtime leaves its memory as it was"),
    (r"MaxUnpool lacks operand|DynamicQuantizeLSTM has an operand less",
     "an operand that is left out last may be named by an empty name"),
    (r"slice: constant 'v7': element 0 is \d+: v8: float16\[0\]",
     "a slice backwards from the last element to behind it is empty, as in NumPy"),
]


def reason(text):
    """None, or why the difference is right. text: "FILE: CHANGE: what ONNX Runtime says"."""
    return next((why for pattern, why in RULES if re.search(pattern, text)), None)
