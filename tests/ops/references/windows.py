"""Pools, columns of windows, and what undoes them."""
import itertools
import math

import numpy as np

import onnx_results
from cases import Const, Family, TYPES, Want

POOLS = [("plain", (1, 3, 9, 9), [3, 3], {}), ("line", (2, 2, 11), [4], {"strides": [3]}),
         ("padded", (1, 2, 7, 6), [3, 2], {"pads": [1, 0, 2, 1], "strides": [2, 1]}),
         ("ceil", (1, 1, 8, 7), [3, 3], {"strides": [2, 2], "ceil_mode": 1, "pads": [0, 1, 0, 1]}),
         ("dilated", (1, 2, 9, 8), [2, 3], {"dilations": [3, 2]}),
         ("volume", (1, 2, 4, 5, 3), [2, 3, 2], {"strides": [2, 1, 1]})]


def windows(xs, kernel, attributes):
    """For each result its window: lists of the elements' places, those outside x being None."""
    r = len(kernel)
    strides, dilations = (attributes.get(k, [1] * r) for k in ("strides", "dilations"))
    pads = attributes.get("pads", [0] * 2 * r)
    extents = []
    for d in range(r):
        room = xs[2 + d] + pads[d] + pads[d + r] - dilations[d] * (kernel[d] - 1) - 1
        n = (-(-room // strides[d]) if attributes.get("ceil_mode") else room // strides[d]) + 1
        if attributes.get("ceil_mode") and (n - 1) * strides[d] >= xs[2 + d] + pads[d]:
            n -= 1  # a window that starts in the padding after x
        extents.append(n)
    found = {}
    for o in np.ndindex(*extents):
        places = []
        for k in np.ndindex(*kernel):
            at = [o[d] * strides[d] + k[d] * dilations[d] - pads[d] for d in range(r)]
            inside = all(0 <= a < n for a, n in zip(at, xs[2:]))
            padded = all(-pads[d] <= at[d] < xs[2 + d] + pads[d + r] for d in range(r))
            places.append((tuple(at) if inside else None, padded))
        found[o] = places
    return extents, found


def pool(x, kernel, attributes, fn):
    extents, found = windows(x.shape, kernel, attributes)
    y = np.empty(x.shape[:2] + tuple(extents))
    for n, c in np.ndindex(*x.shape[:2]):
        for o, places in found.items():
            y[(n, c) + o] = fn([x[(n, c) + p] for p, _ in places if p is not None], places)
    return y


def places_of_largest(x, kernel, attributes, order):
    """Numbers of elements of the whole of x, counted by rows or (within a channel) by columns."""
    extents, found = windows(x.shape, kernel, attributes)
    y = np.empty(x.shape[:2] + tuple(extents), "i8")
    image = math.prod(x.shape[2:])
    for n, c in np.ndindex(*x.shape[:2]):
        for o, places in found.items():
            best = max((p for p, _ in places if p is not None), key=lambda p: x[(n, c) + p])
            within = np.ravel_multi_index(best, x.shape[2:], order=order)
            y[(n, c) + o] = (n * x.shape[1] + c) * image + within
    return y


def pools(f):
    for label, xs, kernel, attributes in POOLS:
        a = {"kernel_shape": kernel, **attributes}
        n = math.prod(kernel)
        for t in ["f32", "f64", "f16", "bf16"] if label == "padded" else ["f32"]:
            x = f.random(f"{label}_{t}", t, xs)
            w = x.astype("f8")
            largest = pool(w, kernel, attributes, lambda v, p: max(v))
            assert np.array_equal(largest, onnx_results.run("MaxPool", [w], **a)), label
            mean = pool(w, kernel, attributes, lambda v, p: sum(v) / len(v))
            padded = pool(w, kernel, attributes, lambda v, p: sum(v) / sum(i for _, i in p))
            total = pool(w, kernel, attributes, lambda v, p: sum(v))
            f.graph(f"pool_{label}_{t}", {"x": x}, [
                ("max_pool", ["x"], a, [Want(largest, t, exact=True)]),
                ("average_pool", ["x"], a, [Want(mean, t, terms=n, magnitude=2)]),
                ("average_pool", ["x"], {**a, "count_include_pad": 1}, [Want(padded, t, terms=n, magnitude=2)]),
                ("sum_pool", ["x"], a, [Want(total, t, terms=n, magnitude=2 * n)])])
            i = places_of_largest(w, kernel, attributes, "C")
            column = {}
            if len(kernel) == 2:
                j = places_of_largest(w, kernel, attributes, "F")
                column = {f"pool_columns_{label}_{t}": (dict(a, storage_order=1), j)}
            for name, (b, k) in {f"pool_indices_{label}_{t}": (a, i), **column}.items():
                f.op(name, "max_pool_indices", [x], b, [Want(largest, t, exact=True), Want(k, "i64")])
    for t in ["i8", "u8"]:
        x = f.random(f"max_{t}", t, (1, 2, 5, 5), 0 if t == "u8" else -99, 99)
        f.op(f"max_pool_{t}", "max_pool", [x], {"kernel_shape": [2, 2], "pads": [1, 1, 0, 0]},
             Want(pool(x, [2, 2], {"pads": [1, 1, 0, 0]}, lambda v, p: max(v)), t))
    x = np.array([[[1, np.nan, 3, -np.inf, 2, 0]]], "f4")
    f.op("max_pool_special", "max_pool", [x], {"kernel_shape": [2]},
         Want([[[np.nan, np.nan, 3, 2, 2]]], exact=True))


def unpools(f):
    x, i = np.array([[[[1, 2], [3, 4]]]], "f4"), np.array([[[[5, 7], [13, 15]]]])
    y = np.zeros(16)
    y[i.reshape(-1)] = x.reshape(-1)
    f.op("max_unpool", "max_unpool", [x, i, Const([1, 1, 4, 4]), Const([1, 1, 4, 4])], {},
         Want(y.reshape(1, 1, 4, 4), exact=True))
    y = np.zeros((1, 1, 5, 5))
    y[0, 0, [1, 1, 3, 3], [1, 3, 1, 3]] = [1, 2, 3, 4]
    f.op("max_unpool_larger", "max_unpool", [x, i, Const([1, 1, 5, 5]), Const([1, 1, 4, 4])], {},
         Want(y, exact=True))


def columns(f):
    for label, image, block, a in [("plain", [4, 4], [2, 2], {}),
                                   ("strided", [5, 6], [3, 2], {"strides": [2, 2], "pads": [1, 0, 1, 0]}),
                                   ("dilated", [6, 5], [2, 3], {"dilations": [2, 1], "pads": [0, 1, 0, 1]})]:
        s, p, d = a.get("strides", [1, 1]), a.get("pads", [0] * 4), a.get("dilations", [1, 1])
        steps = [(image[k] + p[k] + p[k + 2] - d[k] * (block[k] - 1) - 1) // s[k] + 1 for k in (0, 1)]
        x = f.random(label, "f32", (2, 2 * math.prod(block), math.prod(steps)))
        y = np.zeros((2, 2, image[0] + p[0] + p[2], image[1] + p[1] + p[3]))
        v = x.astype("f8").reshape(2, 2, *block, *steps)
        for i, j in np.ndindex(*block):
            y[:, :, i * d[0]:i * d[0] + steps[0] * s[0]:s[0], j * d[1]:j * d[1] + steps[1] * s[1]:s[1]] += v[:, :, i, j]
        y = y[:, :, p[0]:p[0] + image[0], p[1]:p[1] + image[1]]
        theirs = onnx_results.run("Col2Im", [x.astype("f8"), np.array(image), np.array(block)], **a)
        assert np.allclose(y, theirs), label
        f.op(f"col2im_{label}", "col2im", [x, Const(image), Const(block)], a,
             Want(y, terms=math.prod(block), magnitude=2 * math.prod(block)))


def bilinear(image, r, c):
    """Zero outside."""
    total = 0.0
    for i, j in itertools.product((math.floor(r), math.floor(r) + 1), (math.floor(c), math.floor(c) + 1)):
        if 0 <= i < image.shape[0] and 0 <= j < image.shape[1]:
            total += (1 - abs(r - i)) * (1 - abs(c - j)) * image[i, j]
    return total


def deform(f):
    for label, group, masked, s, d, p in [("plain", 1, False, [1, 1], [1, 1], [0] * 4),
                                          ("groups", 2, True, [2, 1], [1, 2], [1, 1, 0, 1])]:
        kernel, xs = [2, 2], (1, 2, 5, 6)
        out = [(xs[2 + k] + p[k] + p[k + 2] - d[k] * (kernel[k] - 1) - 1) // s[k] + 1 for k in (0, 1)]
        x = f.random(label, "f32", xs)
        offset = f.random(f"{label}_o", "f32", (1, group * 8, *out), -2.5, 2.5)
        mask = f.random(f"{label}_m", "f32", (1, group * 4, *out), 0, 1)
        y = np.zeros((1, 2, 2, 2, *out))
        for c, i, j, h, w in np.ndindex(2, 2, 2, *out):
            g = c // (2 // group)
            o = offset.astype("f8").reshape(group, 2, 2, 2, *out)[g, i, j, :, h, w]
            v = bilinear(x[0, c].astype("f8"), h * s[0] - p[0] + i * d[0] + o[0], w * s[1] - p[1] + j * d[1] + o[1])
            y[0, c, i, j, h, w] = v * (mask.astype("f8").reshape(group, 2, 2, *out)[g, i, j, h, w] if masked else 1)
        f.op(f"deform_columns_{label}", "deform_columns", [x, offset] + ([mask] if masked else []),
             {"kernel_shape": kernel, "strides": s, "dilations": d, "pads": p, "offset_group": group},
             Want(y, terms=16, magnitude=2 * 8))


def write():
    f = Family("windows")
    for part in (pools, unpools, columns, deform):
        part(f)
    return [f]
