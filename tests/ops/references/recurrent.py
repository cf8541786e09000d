"""Recurrent layers by their recurrences, step by step and batch by batch."""
import numpy as np

import onnx_results
from cases import Family, TYPES, Want

A = {"sigmoid": lambda x, a, b: 1 / (1 + np.exp(-x)), "tanh": lambda x, a, b: np.tanh(x),
     "relu": lambda x, a, b: np.maximum(x, 0), "affine": lambda x, a, b: a * x + b,
     "leakyrelu": lambda x, a, b: np.where(x < 0, a * x, x),
     "thresholdedrelu": lambda x, a, b: np.where(x >= a, x, 0),
     "scaledtanh": lambda x, a, b: a * np.tanh(b * x),
     "hardsigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
     "elu": lambda x, a, b: np.where(x < 0, a * np.expm1(x), x),
     "softsign": lambda x, a, b: x / (1 + np.abs(x)), "softplus": lambda x, a, b: np.log1p(np.exp(x))}
DEFAULT = {"rnn": ["tanh"], "gru": ["sigmoid", "tanh"], "lstm": ["sigmoid", "tanh", "tanh"]}


def through_bytes(h):
    """All of h as 8 bits of one range that holds 0, and back."""
    low, high = min(h.min(), 0), max(h.max(), 0)
    scale = (high - low or 1) / 255
    zero = np.rint(-low / scale)
    return (np.clip(np.rint(h / scale) + zero, 0, 255) - zero) * scale


def run(kind, x, r, a, h, lens, c=None, peep=None, bias=None, keep=None):
    """keep: gets what entered activations, the inner product of a GRU or the cells, by step."""
    keep = {} if keep is None else keep
    steps, batch, n = x.shape[0], x.shape[1], r.shape[0]
    names = a.get("activations", DEFAULT[kind])
    alpha, beta = a.get("alpha", [0.0] * 3), a.get("beta", [0.0] * 3)
    limit = a.get("clip", np.inf)
    act = lambda k, v: A[names[k]](np.clip(v, -limit, limit) if not (kind == "lstm" and k == 2) else v, alpha[k], beta[k])
    h = np.zeros((batch, n)) if h is None else h.astype("f8")
    c = np.zeros((batch, n)) if c is None else c.astype("f8")
    p = np.zeros((3, n)) if peep is None else peep.astype("f8").reshape(3, n)
    y = np.zeros((steps, batch, n))
    keep.update(entered=np.zeros(x.shape), inner=np.zeros(y.shape), before=np.zeros(y.shape))
    for t in range(steps):
        entered = through_bytes(h) if a.get("quantize_state") else h
        h2, c2 = h.copy(), c.copy()
        for b in range(batch):
            length = steps if lens is None else lens[b]
            if t >= length:
                continue
            at = length - 1 - t if a.get("reverse") else t
            g, s = x[at, b].astype("f8").reshape(-1, n), h[b]
            R = r.astype("f8").reshape(n, -1, n).transpose(1, 0, 2)
            e = entered[b]
            keep["before"][at, b] = s
            keep["entered"][at, b] = (g + np.stack([e @ k for k in R])).reshape(-1)
            if kind == "rnn":
                h2[b] = act(0, g[0] + e @ R[0])
            elif kind == "gru":
                z, q = act(0, g[0] + s @ R[0]), act(0, g[1] + s @ R[1])
                inner = q * (s @ R[2] + (0 if bias is None else bias)) if a.get("linear_before_reset") else (q * s) @ R[2]
                new = act(1, g[2] + inner)
                keep["entered"][at, b, 2 * n:] = g[2] + inner
                keep["inner"][at, b] = (s @ R[2] + (0 if bias is None else bias)) if a.get("linear_before_reset") else q * s
                h2[b] = (1 - z) * new + z * s
            else:
                i = act(0, g[0] + e @ R[0] + p[0] * c[b])
                forget = 1 - i if a.get("input_forget") else act(0, g[2] + e @ R[2] + p[2] * c[b])
                c2[b] = forget * c[b] + i * act(1, g[3] + e @ R[3])
                h2[b] = act(0, g[1] + e @ R[1] + p[1] * c2[b]) * act(2, c2[b])
                keep["inner"][at, b] = c2[b]
            y[at, b] = h2[b]
        h, c = h2, c2
    return y, h, c


def layers(f, kind, gates, variants):
    for label, t, a, parts in variants:
        count = len(DEFAULT[kind])
        a = {"activations": DEFAULT[kind], "alpha": [0.0] * count, "beta": [0.0] * count, **a}
        steps, batch, n = 4, 2, 5
        x = f.random(f"{kind}_x_{t}", t, (steps, batch, gates * n))
        r = f.random(f"{kind}_r_{t}", t, (n, gates * n), -1, 1)
        h = f.random(f"{kind}_h_{t}", t, (batch, n), -1, 1) if "h" in parts else None
        lens = np.array([2, 4], "i4") if "l" in parts else None
        c = f.random(f"{kind}_c_{t}", t, (batch, n), -1, 1) if "c" in parts else None
        p = f.random(f"{kind}_p_{t}", t, (3 * n,), -1, 1) if "p" in parts else None
        bias = f.random(f"{kind}_b_{t}", t, (n,), -1, 1) if "b" in parts else None
        operands = [x, r, h, lens] + ([c, p] if kind == "lstm" else [bias] if kind == "gru" else [])
        y, last, cell = run(kind, x, r, a, h, lens, c, p, bias)
        if "q" in parts:
            w = f.random(f"{kind}_q", "i8", (n, gates * n), -100, 100)
            s = f.random(f"{kind}_s", "f32", (gates * n,), 0.01, 0.02)
            y, last, cell = run(kind, x, w.astype("f8") * s.astype("f8"), {**a, "quantize_state": 1}, h, lens)
            operands = [x, w, h, lens, None, None, s, w.astype("i4").sum(0).astype("i4")]
        while operands[-1] is None:
            operands.pop()
        terms = steps * (n + 4)
        wants = [Want(y, t, terms=terms, magnitude=4), Want(last, t, terms=terms, magnitude=4)]
        if kind == "lstm":
            wants.append(Want(cell, t, terms=terms, magnitude=4))
        f.op(f"{kind}_{label}_{t}", f"{kind}_steps", operands, a, wants)


def unary_variants():
    for name in A:
        a = {"activations": [name]}
        if name in ("affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu"):
            a["alpha"] = [0.5]
        if name in ("affine", "scaledtanh", "hardsigmoid"):
            a["beta"] = [0.25]
        yield name, "f32", a, "h"


def theirs(f):
    """Our recurrences against ONNX's layers, on the same weights."""
    x, w, r = (f.random(f"onnx_{k}", "f64", s, -1, 1) for k, s in [("x", (4, 2, 3)), ("w", (1, 20, 3)), ("r", (1, 20, 5))])
    for kind, op, gates in [("rnn", "RNN", 1), ("lstm", "LSTM", 4)]:
        W, R = w[:, :gates * 5], r[:, :gates * 5]
        got = onnx_results.run(op, [x, W, R], 2, hidden_size=5)[0][:, 0]
        y = run(kind, x @ W[0].T, R[0].T, {}, None, None)[0]
        assert np.allclose(got, y), kind


def write():
    f = Family("recurrent")
    theirs(f)
    layers(f, "rnn", 1, [("plain", "f32", {}, ""), ("plain", "f64", {}, "h"), ("lengths", "f32", {}, "hl"),
                         ("reverse", "f32", {"reverse": 1}, "h"), ("reverse_lengths", "f32", {"reverse": 1}, "hl"),
                         ("clip", "f32", {"clip": 0.5}, "h")] + list(unary_variants()))
    layers(f, "gru", 3, [("plain", "f32", {}, ""), ("plain", "f64", {}, "h"), ("lengths", "f32", {"reverse": 1}, "hl"),
                         ("after", "f32", {"linear_before_reset": 1}, "hb"), ("clip", "f32", {"clip": 0.75}, "h"),
                         ("other", "f32", {"activations": ["hardsigmoid", "softsign"], "alpha": [0.2, 0.0],
                                           "beta": [0.5, 0.0]}, "h")])
    layers(f, "lstm", 4, [("plain", "f32", {}, ""), ("plain", "f64", {}, "hc"), ("lengths", "f32", {"reverse": 1}, "hlc"),
                          ("peepholes", "f32", {}, "hcp"), ("coupled", "f32", {"input_forget": 1}, "hc"),
                          ("clip", "f32", {"clip": 0.5}, "hc"), ("rounded", "f32", {"quantize_state": 1}, "hc"),
                          ("bytes", "f32", {}, "hq")])
    return [f]
