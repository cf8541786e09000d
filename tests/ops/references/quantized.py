"""Affine quantisation, in exact arithmetic: fractions, halves to even."""
from fractions import Fraction

import numpy as np

from cases import Family, TYPES, Want


def quantize(x, scale, zero, t):
    """The quotient rounded to f32, as both are; then exact."""
    info = np.iinfo(TYPES[t])
    out = np.empty(x.shape, "i8")
    for at in np.ndindex(x.shape):
        q = np.float32(x[at]) / np.float32(scale[at])
        if np.isinf(q):
            out[at] = info.max if q > 0 else info.min
        else:
            out[at] = min(max(round(Fraction(float(q))) + int(zero[at]), info.min), info.max)
    return out


def write():
    f = Family("quantized")
    x = np.array([0, -0.0, 0.25, -0.25, 0.75, -0.75, 1.25, 63.75, 64, -64.25, 1e9, -1e9, np.inf, -np.inf, 31.4], "f4")
    for t in ["i8", "u8", "i16", "u16"]:
        for zero in [0, 3, 100]:
            z = np.array(zero, TYPES[t])
            full = lambda v: np.broadcast_to(v, x.shape)
            f.op(f"quantize_ties_{zero}_{t}", "quantize", [x, np.array(0.5, "f4"), z], {"to": t},
                 Want(quantize(x, full(np.float32(0.5)), full(zero), t), t))
        f.op(f"quantize_plain_{t}", "quantize", [x], {"to": t},
             Want(quantize(x, np.ones(x.shape), np.zeros(x.shape, int), t), t))
        f.op(f"quantize_no_zero_{t}", "quantize", [x, np.array(0.1, "f4")], {"to": t},
             Want(quantize(x, np.full(x.shape, 0.1), np.zeros(x.shape, int), t), t))
    y = f.random("axis", "f32", (2, 5, 3), -4, 4)
    s = np.array([0.02, 0.5, 0.1, 0.0625, 3], "f4").reshape(5, 1)
    z = np.array([0, 3, -7, 20, -1], "i1").reshape(5, 1)
    f.op("quantize_axis", "quantize", [y, s, z], {"to": "i8"},
         Want(quantize(y, np.broadcast_to(s, y.shape), np.broadcast_to(z, y.shape), "i8"), "i8"))
    f.op("quantize_f16", "quantize", [y.astype("f2"), np.array(0.25, "f2")], {"to": "i8"},
         Want(quantize(y.astype("f2"), np.full(y.shape, 0.25), np.zeros(y.shape, int), "i8"), "i8"))
    for t in ["i8", "u8", "i16", "u16", "i32"]:
        q = f.random(f"stored_{t}", t, (2, 5, 3), 0 if t[0] == "u" else -120, 250 if t != "i8" else 120)
        k = np.arange(5).astype(TYPES[t]).reshape(5, 1)
        exact = q.astype("f8") - k
        f.op(f"dequantize_{t}", "dequantize", [q, s, k], {}, Want(exact * s.astype("f8"), exact=True))
        f.op(f"dequantize_no_zero_{t}", "dequantize", [q, np.array(0.5, "f2")], {},
             Want(q * 0.5, "f16", exact=True))
        f.op(f"dequantize_to_f32_{t}", "dequantize", [q, np.array(0.5, "f2")], {"to": "f32"},
             Want(q * 0.5, "f32", exact=True))
    for levels in [None, 127, 7]:
        most = levels or 32767
        for attempt in range(100):  # until rounding the scale to f32 decides no half-way case
            rows = f.random(f"rows{attempt}", "f32", (3, 2, 7), -3, 3)
            rows[1, 1] = 0
            w = rows.astype("f8")
            scale = np.abs(w).max(-1, keepdims=True) / most
            ratio = np.divide(w, scale, out=np.zeros_like(w), where=scale > 0)
            if not (np.abs(ratio - np.floor(ratio) - 0.5) < 3e-7 * most).any():
                break
        f.op(f"round_rows_{most}", "round_rows", [rows], {} if levels is None else {"levels": levels},
             [Want(np.rint(ratio), "i16"), Want(scale)])
    bad = np.array([[1, np.nan, 2], [np.inf, 0, 1]], "f4")
    undefined = Want(np.zeros((2, 3)), "i16")
    undefined.hidden = True
    f.op("round_rows_special", "round_rows", [bad], {}, [undefined, Want([[np.nan], [np.inf]])])
    return [f]
