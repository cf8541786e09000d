"""Transposed convolutions: every element of x adds its multiple of the kernel to a window of y."""
import numpy as np

import onnx_results
from cases import Family, Want
from products import bounded


def transposed(x, w, strides, pads, dilations, group):
    """In scatter form: for each kernel element, the whole of x lies in y a stride apart."""
    r = x.ndim - 2
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations)]
    spans = [(n - 1) * s + 1 for n, s in zip(x.shape[2:], strides)]
    y = np.zeros((x.shape[0], group * w.shape[1], *[a + b - 1 for a, b in zip(spans, reach)]))
    for k in np.ndindex(*w.shape[2:]):
        at = tuple(slice(k[d] * dilations[d], k[d] * dilations[d] + spans[d], strides[d]) for d in range(r))
        parts = [np.einsum("nc...,co->no...", a, b) for a, b in
                 zip(np.split(x, group, 1), np.split(w[(slice(None), slice(None)) + k], group, 0))]
        y[(slice(None), slice(None)) + at] += np.concatenate(parts, 1)
    more = [(0, 0)] * 2 + [(max(-pads[d], 0), max(-pads[d + r], 0)) for d in range(r)]
    cut = tuple(slice(max(pads[d], 0), y.shape[2 + d] - max(pads[d + r], 0)) for d in range(r))
    return np.pad(y[(slice(None), slice(None)) + cut], more)


# Ends below 0 are output padding.
CASES = [("plain", (2, 5, 4, 6), (5, 7, 3, 3), {}),
         ("stride2", (1, 4, 5, 6), (4, 3, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
         ("unequal_phases", (1, 3, 4, 5), (3, 17, 3, 3), {"strides": [2, 2], "pads": [1, 1, 0, 0]}),
         ("stride3", (2, 2, 5), (2, 3, 4), {"strides": [3], "pads": [2, 1]}),
         ("strides", (1, 2, 4, 5), (2, 3, 3, 5), {"strides": [1, 3], "pads": [0, 2, 1, 0]}),
         ("beyond_the_kernel", (1, 3, 4, 3), (3, 2, 2, 1), {"strides": [3, 2], "pads": [0, 0, -1, 0]}),
         ("one_element", (2, 3, 4), (3, 5, 1), {"strides": [2]}),
         ("dilated", (1, 3, 5, 4), (3, 2, 3, 2), {"dilations": [2, 3], "pads": [1, 0, 2, 1]}),
         ("dilated_strides", (1, 2, 4, 5), (2, 3, 3, 3),
          {"strides": [2, 3], "dilations": [3, 2], "pads": [2, 2, 2, 2]}),
         ("groups", (1, 6, 4, 3), (6, 5, 3, 2), {"group": 3, "strides": [2, 1], "pads": [1, 0, 1, 0]}),
         ("depthwise", (2, 4, 5, 3), (4, 1, 3, 4), {"group": 4, "strides": [2, 2], "pads": [1, 1, 1, 1]}),
         ("output_padding", (1, 2, 3, 4), (2, 3, 3, 3), {"strides": [2, 3], "pads": [1, 1, 0, -2]}),
         ("negative_pads", (1, 2, 3), (2, 2, 2), {"strides": [2], "pads": [-2, -3]}),
         ("cropped_to_nothing", (1, 2, 3), (2, 2, 3), {"strides": [2], "pads": [4, 3]}),
         ("cropped_beyond_the_kernel", (1, 2, 7, 6), (2, 3, 2, 2), {"strides": [2, 2], "pads": [4, 2, 2, 4]}),
         ("volume", (1, 2, 3, 2, 4), (2, 3, 2, 3, 2), {"strides": [1, 2, 3], "pads": [0, 1, 0, 1, 0, 0]})]


def onnx_can_say(ws, attributes):
    """Nothing is added at the begin, and groups have one result (its reference has but one each)."""
    pads = attributes.get("pads", [])
    r = len(ws) - 2
    return (attributes.get("group", 1) == 1 or ws[1] == 1) and all(p >= 0 for p in pads[:r])


def cases(f):
    for label, xs, ws, attributes in CASES:
        r, group = len(xs) - 2, attributes.get("group", 1)
        pads = attributes.get("pads", [0] * 2 * r)
        how = [attributes.get("strides", [1] * r), pads, attributes.get("dilations", [1] * r), group]
        for t in ["f32", "f64", "f16", "bf16"] if label in ("stride3", "unequal_phases") else ["f32"]:
            x, w = (f.random(f"{label}_{k}_{t}", t, s) for k, s in [("x", xs), ("w", ws)])
            p, q = x.astype("f8"), w.astype("f8")
            y = transposed(p, q, *how)
            if onnx_can_say(ws, attributes) and y.size:
                theirs = onnx_results.run("ConvTranspose", [p, q], **{
                    **attributes, "pads": [max(e, 0) for e in pads],
                    "output_padding": [max(-e, 0) for e in pads[r:]]})
                assert np.allclose(y, theirs), label
            f.op(f"{label}_{t}", "conv_transpose", [x, w], attributes,
                 bounded(y, t, int(xs[1] // group * np.prod(ws[2:])), transposed(np.abs(p), np.abs(q), *how)))
    x, w = (f.random(f"wide_{k}", "f16", s) for k, s in [("x", (1, 3, 4)), ("w", (3, 2, 3))])
    p, q = x.astype("f8"), w.astype("f8")
    how = [[2], [1, 0], [1], 1]
    f.op("sums_of_halves_in_f32", "conv_transpose", [x, w], {"strides": [2], "pads": [1, 0], "out_dtype": "f32"},
         bounded(transposed(p, q, *how), "f32", 9, transposed(np.abs(p), np.abs(q), *how)))
    x, w = (f.random(f"whole_{k}", "i32", s, -9, 9) for k, s in [("x", (1, 3, 4)), ("w", (3, 2, 3))])
    f.op("whole_numbers", "conv_transpose", [x, w], {"strides": [2]},
         Want(transposed(x, w, [2], [0, 0], [1], 1), "i32"))


def write():
    f = Family("transposed")
    cases(f)
    return [f]
