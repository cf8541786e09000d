"""Sums of products: matmul, einsum, convolution, attention, determinants."""
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import onnx_results
from cases import Family, TYPES, Want


def bounded(value, t, terms, magnitude):
    return Want(value, t, terms=terms, magnitude=float(np.max(magnitude, initial=0)))


def matmuls(f):
    for t in ["f32", "f64", "f16", "bf16", "i32", "i64"]:
        for label, a, b in [("vectors", (7,), (7,)), ("row", (5,), (5, 3)), ("column", (2, 5), (5,)),
                            ("batch", (2, 3, 7), (7, 5)), ("spread", (2, 1, 3, 4), (3, 4, 2)),
                            ("empty", (2, 0), (0, 3))]:
            if t not in ("f32", "i32") and label not in ("batch", "row"):
                continue
            x, w = (f.random(f"{label}_{k}_{t}", t, s, -3, 3) for k, s in [("a", a), ("b", b)])
            p, q = (v.astype("f8" if t[0] in "fb" else "i8") for v in (x, w))
            f.op(f"matmul_{label}_{t}", "matmul", [x, w], {},
                 bounded(p @ q, t, a[-1], np.abs(p) @ np.abs(q)))
    a, b = f.random("ta", "f32", (2, 5, 3)), f.random("tb", "f32", (4, 5))
    p, q = a.astype("f8").swapaxes(1, 2), b.astype("f8").T
    f.op("matmul_transposed", "matmul", [a, b], {"trans_a": 1, "trans_b": 1},
         bounded(p @ q, "f32", 5, np.abs(p) @ np.abs(q)))
    for s, u in [("u8", "i8"), ("i8", "i8"), ("u8", "u8")]:
        x = f.random(f"q_{s}{u}_a", s, (3, 13), 0 if s == "u8" else -128, 127)
        w = f.random(f"q_{s}{u}_b", u, (13, 5), 0 if u == "u8" else -128, 127)
        za, zb = np.array(3, TYPES[s]), f.random(f"q_{s}{u}_z", u, (5,), 0, 9)
        y = (x.astype("i8") - 3) @ (w.astype("i8") - zb.astype("i8"))
        f.op(f"matmul_zero_points_{s}_{u}", "matmul", [x, w, za, zb], {"out_dtype": "i32"},
             Want(y, "i32"))
        f.op(f"matmul_bytes_{s}_{u}", "matmul", [x, w], {"out_dtype": "i32"},
             Want(x.astype("i8") @ w.astype("i8"), "i32"))


def einsums(f):
    for label, equation, shapes in [
            ("diagonal", "iij,jk->ik", [(5, 5, 7), (7, 3)]), ("trace", "ii->", [(5, 5)]),
            ("three", "ab,bc,cd->ad", [(2, 3), (3, 5), (5, 4)]), ("outer", "i,j->ij", [(3,), (4,)]),
            ("heads", "bqhd,bkhd->bhqk", [(2, 3, 2, 4), (2, 5, 2, 4)]), ("turn", "abc->cab", [(2, 3, 4)])]:
        for t in ["f32", "i32"] if label in ("diagonal", "three") else ["f32"]:
            given = [f.random(f"{label}{k}{t}", t, s, -2, 2) for k, s in enumerate(shapes)]
            wide = [g.astype("f8") for g in given]
            f.op(f"einsum_{label}_{t}", "einsum", given, {"equation": equation},
                 bounded(np.einsum(equation, *wide), t, 40,
                         np.einsum(equation, *[np.abs(w) for w in wide])))


def convolution(x, w, strides, pads, dilations, group, fill=0):
    """Windows of the padded input by a strided view, then one einsum per group."""
    r = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + [(pads[d], pads[d + r]) for d in range(r)], constant_values=fill)
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations)]
    v = sliding_window_view(x, reach, tuple(range(2, 2 + r)))
    v = v[(slice(None), slice(None)) + tuple(slice(None, None, s) for s in strides)
          + tuple(slice(None, None, d) for d in dilations)]
    out, kernel = "xyz"[:r], "uvw"[:r]
    parts = [np.einsum(f"nc{out}{kernel},oc{kernel}->no{out}", a, b)
             for a, b in zip(np.split(v, group, 1), np.split(w, group, 0))]
    return np.concatenate(parts, 1)


CONVS = [("plain", (2, 5, 9, 11), (7, 5, 3, 3), {}), ("line", (1, 3, 13), (4, 3, 5), {"strides": [2]}),
         ("padded", (1, 2, 6, 7), (3, 2, 3, 3), {"pads": [1, 0, 2, 1]}),
         ("dilated", (1, 3, 11, 10), (2, 3, 3, 2), {"dilations": [2, 3], "pads": [1, 1, 1, 1]}),
         ("strided", (1, 2, 9, 8), (3, 2, 3, 4), {"strides": [3, 2], "pads": [0, 1, 0, 1]}),
         ("groups", (1, 6, 5, 5), (4, 3, 3, 3), {"group": 2, "pads": [1, 1, 1, 1]}),
         ("depthwise", (2, 5, 7, 6), (5, 1, 3, 3), {"group": 5, "pads": [1, 1, 1, 1]}),
         ("pointwise", (1, 17, 4, 5), (9, 17, 1, 1), {}),
         ("volume", (1, 2, 4, 5, 3), (3, 2, 2, 3, 2), {"strides": [1, 2, 1]}),
         ("same3x3", (1, 8, 9, 9), (8, 8, 3, 3), {"pads": [1, 1, 1, 1]})]


def convs(f):
    for label, xs, ws, attributes in CONVS:
        r = len(xs) - 2
        how = [attributes.get("strides", [1] * r), attributes.get("pads", [0] * 2 * r),
               attributes.get("dilations", [1] * r), attributes.get("group", 1)]
        for t in ["f32", "f64", "f16", "bf16"] if label in ("dilated", "line") else ["f32"]:
            x, w = (f.random(f"{label}_{k}_{t}", t, s) for k, s in [("x", xs), ("w", ws)])
            p, q = x.astype("f8"), w.astype("f8")
            y = convolution(p, q, *how)
            theirs = onnx_results.run("Conv", [p, q], **attributes)
            assert np.allclose(y, theirs), label
            f.op(f"conv_{label}_{t}", "conv", [x, w], {"kernel_shape": list(ws[2:]), **attributes},
                 bounded(y, t, int(np.prod(ws[1:])), convolution(np.abs(p), np.abs(q), *how)))
    for s in ["u8", "i8"]:
        x = f.random(f"q_x_{s}", s, (1, 3, 6, 5), 0, 100)
        w = f.random(f"q_w_{s}", "i8", (4, 3, 3, 3), -100, 100)
        zx, zw = np.array(7, TYPES[s]), np.array([1, -2, 0, 5], "i1").reshape(4, 1, 1, 1)
        p = x.astype("i8") - 7
        q = w.astype("i8") - zw.astype("i8")
        attributes = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 1]}
        f.op(f"conv_zero_points_{s}", "conv", [x, w, zx, zw], {**attributes, "out_dtype": "i32"},
             Want(convolution(p, q, [2, 1], [1] * 4, [1, 1], 1), "i32"))
    x, w = f.random("wx", "f32", (1, 3, 7, 8)), f.random("ww", "f32", (5, 3, 3, 3))
    p, q = x.astype("f8"), w.astype("f8")
    fill = np.array(0.75, "f4")
    attributes = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    f.op("conv_padding_value", "conv", [x, w, None, None, fill], attributes,
         bounded(convolution(p, q, [1, 1], [1] * 4, [1, 1], 1, 0.75), "f32", 27,
                 convolution(np.abs(p), np.abs(q), [1, 1], [1] * 4, [1, 1], 1, 0.75)))
    # Winograd's filtering is a convolution, off by at most 8 times as much (standard_error_test).
    for m in [2, 4]:
        for label, pads in [("valid", [0, 0, 0, 0]), ("same", [1, 1, 1, 1]), ("odd", [2, 0, 1, 3])]:
            y = convolution(p, q, [1, 1], pads, [1, 1], 1)
            size = np.max(convolution(np.abs(p), np.abs(q), [1, 1], pads, [1, 1], 1))
            u = Want(np.zeros((m + 2, m + 2, 3, 5)))
            f.chain(f"winograd_{m}_{label}", {"x": x, "w": w}, [
                ("u", "winograd_weights", ["w"], {"tile": m}, u),
                ("y", "winograd_conv", ["x", "u"], {"pads": pads},
                 Want(y, terms=8 * 27, magnitude=size))])


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attentions(f):
    for t in ["f32"]:
        q, k, v = (f.random(f"att_{n}_{t}", t, s) for n, s in [
            ("q", (2, 3, 7, 4)), ("k", (2, 3, 4, 11)), ("v", (2, 3, 11, 5))])
        keep = f.random("keep", "bool", (1, 1, 7, 11))
        keep[..., 0] = True
        bias = f.random(f"att_bias_{t}", t, (2, 1, 1, 11))
        for label, operands, scale, fill in [("plain", [], 1.0, 0), ("scaled", [None, bias], 0.5, 0),
                                             ("masked", [keep], 0.5, -1e4), ("both", [keep, bias], 0.25, -3)]:
            s = q.astype("f8") @ k.astype("f8") * scale
            if operands and operands[0] is not None:
                s = np.where(keep, s, fill)
            if len(operands) == 2:
                s = s + bias.astype("f8")
            attributes = {"scale": scale, "fill": float(fill)}
            # The error of a score (10 terms of at most 16) is that of its exponential, and so of y.
            f.op(f"attention_{label}_{t}", "attention", [q, k, v] + operands, attributes,
                 Want(softmax(s) @ v.astype("f8"), t, terms=4 * 16 * scale + 22, magnitude=2 * 2))
    q, k, v = (f.random(f"dead_{n}", "f32", s) for n, s in [("q", (1, 3, 2)), ("k", (1, 2, 5)),
                                                           ("v", (1, 5, 3))])
    keep = np.array([[[True] * 5, [False] * 5, [True, False] * 2 + [True]]])
    s = np.where(keep, q.astype("f8") @ k.astype("f8"), -np.inf)
    with np.errstate(all="ignore"):
        y = softmax(s) @ v.astype("f8")
    none = y.copy()
    none[0, 1] = 0
    for label, zero, want in [("nan", 0, y), ("zero", 1, none)]:
        f.op(f"attention_dead_row_{label}", "attention", [q, k, v, keep],
             {"fill": float("-inf"), "zero_masked": zero}, Want(want, terms=40, magnitude=2))
    q, k, v = (f.random(f"lin_{n}", "f32", (2, 3, 8), -1, 1) for n in "qkv")
    state = f.random("lin_state", "f32", (2, 2, 4, 4), -1, 1)
    decay, beta = f.random("lin_decay", "f32", (2, 3, 2), -1, 0), f.random("lin_beta", "f32", (2, 3, 2), 0, 1)
    keys = f.random("lin_keys", "f32", (2, 3, 8), -1, 0)
    for label, extra in [("plain", []), ("state", [state]), ("gated", [state, decay]),
                         ("delta", [state, None, beta]), ("gated_delta", [None, keys, beta])]:
        linear(f, label, q, k, v, *(extra + [None] * 3)[:3])


def linear(f, label, q, k, v, state, decay, beta):
    split = lambda x: x.astype("f8").reshape(2, 3, 2, -1)
    a, b, c = split(q), split(k), split(v)
    s = np.zeros((2, 2, 4, 4)) if state is None else state.astype("f8")
    ys = []
    for t in range(3):
        if decay is not None:
            s = s * np.exp(split(decay)[:, t])[..., None]
        u = c[:, t]
        if beta is not None:
            u = beta.astype("f8")[:, t, :, None] * (u - np.einsum("bhkv,bhk->bhv", s, b[:, t]))
        s = s + np.einsum("bhk,bhv->bhkv", b[:, t], u)
        ys.append(0.5 * np.einsum("bhkv,bhk->bhv", s, a[:, t]))
    y = np.stack(ys, 1).reshape(2, 3, 8)
    operands = [q, k, v, state, decay, beta]
    while operands[-1] is None:
        operands.pop()
    f.op(f"linear_attention_{label}", "linear_attention", operands,
         {"q_heads": 2, "kv_heads": 2, "scale": 0.5}, [Want(y, terms=30, magnitude=6), Want(s, terms=30, magnitude=6)])


def determinants(f):
    for n in [1, 2, 3, 5]:
        for t in ["f32", "f64"]:
            x = f.random(f"det_{n}_{t}", t, (3, n, n))
            size = float(np.prod(np.linalg.norm(x.astype("f8"), axis=-1), -1).max())  # Hadamard's
            f.op(f"determinant_{n}_{t}", "determinant", [x], {},
                 Want(np.linalg.det(x.astype("f8")), t, terms=n**3, magnitude=size))
    x = np.array([[0, 1], [1, 0]], "f4")
    f.op("determinant_swapped", "determinant", [x], {}, Want(-1.0))
    f.op("determinant_singular", "determinant", [np.zeros((2, 3, 3), "f4")], {}, Want([0, 0], exact=True))


def write():
    f = Family("products")
    g = Family("convolutions")
    matmuls(f)
    einsums(f)
    convs(g)
    h = Family("attention")
    attentions(h)
    determinants(f)
    return [f, g, h]
