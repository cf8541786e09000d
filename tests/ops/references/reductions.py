"""Sums, extremes and normalisations over axes."""
import numpy as np

import onnx_results
from cases import TYPES, Const, Family, Want

REDUCE = {"reduce_sum": np.sum, "reduce_prod": np.prod, "reduce_max": np.max, "reduce_min": np.min,
          "reduce_mean": np.mean}


def reduce(f):
    for t in ["f32", "f64", "f16", "bf16"]:
        x = f.random(f"reduce_{t}", t, (3, 7, 5), -1.5, 1.5)
        w = x.astype("f8")
        for label, axes, keep in [("middle", [1], 1), ("outer", [0, -1], 0), ("all", None, 1)]:
            at = tuple(axes) if axes else None
            attributes = {"keepdims": keep, **({"axes": axes} if axes else {})}
            n = x.size if axes is None else int(np.prod([x.shape[a] for a in axes]))
            nodes = []
            for op, fn in REDUCE.items():
                v = fn(w, axis=at, keepdims=bool(keep))
                if op == "reduce_sum":
                    want = Want(v, t, terms=n, magnitude=np.abs(w).sum(axis=at).max())
                elif op == "reduce_mean":
                    want = Want(v, t, terms=n, magnitude=np.abs(w).mean(axis=at).max())
                elif op == "reduce_prod":
                    want = Want(v, t, terms=n)
                else:
                    want = Want(v, t, exact=True)
                nodes.append((op, ["x"], attributes, [want]))
            f.graph(f"reduce_{label}_{t}", {"x": x}, nodes)
    for t in ["i32", "i64", "u8", "u32", "i8"]:
        x = f.random(f"reduce_{t}", t, (2, 4, 3), 0 if t[0] == "u" else -3, 3)
        wide = x.astype("i8")
        nodes = [(op, ["x"], {"axes": [-2], "keepdims": 0}, [Want(REDUCE[op](wide, axis=1), t)])
                 for op in ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min"]]
        f.graph(f"reduce_{t}", {"x": x}, nodes)
    e = np.zeros((2, 0, 3), "f4")
    f.graph("reduce_empty", {"x": e}, [
        ("reduce_sum", ["x"], {"axes": [1]}, [Want(np.zeros((2, 1, 3)), exact=True)]),
        ("reduce_prod", ["x"], {"axes": [1]}, [Want(np.ones((2, 1, 3)), exact=True)]),
        ("reduce_max", ["x"], {"axes": [1]}, [Want(np.full((2, 1, 3), -np.inf), exact=True)]),
        ("reduce_min", ["x"], {"axes": [1]}, [Want(np.full((2, 1, 3), np.inf), exact=True)])])
    n = np.array([[1, np.nan, 3], [np.inf, 2, -np.inf], [-1, -2, -3]], "f4")
    f.graph("reduce_special", {"x": n}, [
        (op, ["x"], {"axes": [1], "keepdims": 0}, [Want(REDUCE[op](n.astype("f8"), axis=1))])
        for op in ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_mean"]])


def args(f):
    for t in ["f32", "f16", "i32", "u8"]:
        x = f.random(f"arg_{t}", t, (3, 7, 2), 0, 3)
        nodes = []
        for op, pick in [("arg_max", np.argmax), ("arg_min", np.argmin)]:
            w = x.astype("f8")
            nodes += [
                (op, ["x"], {}, [Want(pick(w, 0)[None], "i64")]),
                (op, ["x"], {"axis": -2, "keepdims": 0}, [Want(pick(w, 1), "i64")]),
                (op, ["x"], {"axis": 1, "keepdims": 0, "select_last_index": 1},
                 [Want(6 - pick(w[:, ::-1], 1), "i64")])]
        f.graph(f"arg_{t}", {"x": x}, nodes)
    n = np.array([[1, np.nan, 3], [np.inf, 2, -np.inf], [0, -0.0, 0]], "f4")
    f.graph("arg_special", {"x": n}, [
        ("arg_max", ["x"], {"axis": 1, "keepdims": 0}, [Want([1, 0, 0], "i64")]),
        ("arg_min", ["x"], {"axis": 1, "keepdims": 0}, [Want([1, 2, 0], "i64")])])


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def softmaxes(f):
    for t in ["f32", "f64", "f16", "bf16"]:
        x = f.random(f"softmax_{t}", t, (2, 5, 7), -8, 8)
        w = x.astype("f8")
        nodes = []
        # exp of a difference of magnitude 16 that was rounded: off by its half unit, 16 times.
        for axis in [-1, 0, 1]:
            s = softmax(w, axis)
            with np.errstate(all="ignore"):
                log = w - w.max(axis, keepdims=True)
                log = log - np.log(np.exp(log).sum(axis, keepdims=True))
            n = x.shape[axis]
            nodes += [("softmax", ["x"], {"axis": axis}, [Want(s, t, terms=16 + n, magnitude=1)]),
                      ("log_softmax", ["x"], {"axis": axis}, [Want(log, t, terms=n, magnitude=16)])]
        nodes.append(("softmax", ["x"], {}, [Want(softmax(w, -1), t, terms=23, magnitude=1)]))
        f.graph(f"softmax_{t}", {"x": x}, nodes)
    i = np.inf
    m = np.array([[-i, -i, -i], [0, -i, 0], [1e4, -1e4, 0], [np.nan, 0, 0]], "f4")
    with np.errstate(all="ignore"):
        plain = softmax(m.astype("f8"), -1)
    zeros = plain.copy()
    zeros[0] = 0
    f.graph("softmax_masked", {"x": m}, [
        ("softmax", ["x"], {}, [Want(plain)]),
        ("softmax", ["x"], {"zero_masked": 1}, [Want(zeros)])])
    one = np.array([[3.0], [-7.5]], "f4")
    f.op("softmax_one", "softmax", [one], {}, Want(np.ones((2, 1))))


def masks(f):
    x = f.random("mask", "f32", (2, 3, 5, 7))
    q, k = np.arange(5)[:, None], np.arange(7)[None]
    for label, offset, lengths, left, right in [
            ("causal", [2, 0], None, None, 0), ("band", None, None, 1, 2),
            ("lengths", [1, -2], [4, 7], 2, None), ("all", [0, 3], [0, 5], 3, 1)]:
        keep = np.ones((2, 1, 5, 7), bool)
        for b in range(2):
            at = q + (offset[b] if offset else 0)
            if right is not None:
                keep[b, 0] &= k <= at + right
            if left is not None:
                keep[b, 0] &= k >= at - left
            if lengths:
                keep[b, 0] &= np.broadcast_to(k < lengths[b], (5, 7))
        bounds = {n: v for n, v in [("left", left), ("right", right)] if v is not None}
        operands = [x] + [None if v is None else np.array(v) for v in (offset, lengths)]
        while operands[-1] is None:
            operands.pop()
        f.op(f"mask_{label}", "mask_window", operands, bounds,
             Want(np.where(keep, x, -np.inf), exact=True))


def layer_norms(f):
    for t in ["f32", "f64", "f16"]:
        x = f.random(f"norm_{t}", t, (2, 3, 8))
        for label, axis, rms, eps, affine in [("last", -1, 0, 1e-5, True), ("two", 1, 0, 0.01, False),
                                              ("rms", -1, 1, 1e-3, True)]:
            w = x.astype("f8")
            at = tuple(range(axis % 3, 3))
            mean = w.mean(at, keepdims=True) * (0 if rms else 1)
            inverse = 1 / np.sqrt(((w - mean)**2).mean(at, keepdims=True) + eps)
            y = (w - mean) * inverse
            operands = [x]
            if affine:
                s, b = (f.random(f"norm_{n}_{t}", t, (8,)) for n in "sb")
                y = y * s.astype("f8") + b.astype("f8")
                operands += [s, b]
            n = int(np.prod([3, 8][-len(at):]))
            wants = [Want(y, t, terms=n + 8)]
            if not rms:
                wide = "f64" if t == "f64" else "f32"
                wants += [Want(mean, wide, terms=n, magnitude=2), Want(inverse, wide, terms=n + 8)]
            f.op(f"layer_norm_{label}_{t}", "layer_norm", operands,
                 {"axis": axis, "epsilon": float(eps), **({"rms": 1} if rms else {})}, wants)
    x = f.random("norm_onnx", "f32", (2, 5))
    s, b = f.random("s", "f32", (5,)), f.random("b", "f32", (5,))
    f.op("layer_norm_onnx", "layer_norm", [x, s, b], {},
         Want(onnx_results.run("LayerNormalization", [x, s, b]), terms=13))


def scans(f):
    for t in ["f32", "f64", "f16", "i32", "i64"]:
        low, high = (-1.5, 1.5) if t[0] == "f" else (-3, 3)
        x = f.random(f"scan_{t}", t, (3, 5, 2), low, high)
        w = x.astype("f8" if t[0] == "f" else "i8")
        for axis in [0, -2]:
            for label, reverse, exclusive in [("plain", 0, 0), ("reverse", 1, 0), ("exclusive", 0, 1),
                                              ("both", 1, 1)]:
                d = axis % 3
                turned = np.flip(w, d) if reverse else w
                nodes = []
                for op, fn, first in [("cumulative_sum", np.cumsum, 0), ("cumulative_product",
                                                                         np.cumprod, 1)]:
                    y = fn(turned, d)
                    if exclusive:
                        start = np.full_like(np.take(y, [0], d), first)
                        y = np.concatenate([start, np.delete(y, -1, d)], d)
                    y = np.flip(y, d) if reverse else y
                    nodes.append((op, ["x", "axis"], {"reverse": reverse, "exclusive": exclusive},
                                  [Want(y, t, terms=5, magnitude=7.5)]))
                if t != "f64" and (t == "f32" or axis == 0):
                    f.graph(f"scan_{label}_{d}_{t}", {"x": x, "axis": Const([axis])}, nodes)


def write():
    f = Family("reductions")
    with np.errstate(all="ignore"):
        for part in (reduce, args, softmaxes, masks, layer_norms, scans):
            part(f)
    return [f]
