"""Operators that gradients are made of: adjoints by the matrices of what they transpose, others by central
differences of the forward definitions."""
import numpy as np

import recurrent
import regions
import windows
from cases import Const, Family, Want


def matrix(fn, shape):
    """Of a linear map: column k is what it makes of element k."""
    n = int(np.prod(shape))
    return np.stack([fn(row.reshape(shape)).reshape(-1) for row in np.eye(n)], 1)


def adjoint(f, name, op, fn, shape, dy, others, operand, attributes):
    dx = (matrix(fn, shape).T @ dy.astype("f8").reshape(-1)).reshape(shape)
    size = (np.abs(matrix(fn, shape)).T @ np.abs(dy.astype("f8")).reshape(-1)).max()
    operands = [dy] + others
    f.op(f"transposed_{name}", "transposed", operands,
         {**attributes, "transposed_extents": list(shape), "transposed_op": op, "transposed_operand": operand},
         Want(dx, "f32", terms=dy.size, magnitude=size))


def adjoints(f):
    ids = np.array([0, 4, 1, 1, 3, -1])
    adjoint(f, "gather", "gather", lambda x: x[ids], (5, 3), f.random("gather", "f32", (6, 3)), [ids], 0, {})
    adjoint(f, "gather_columns", "gather", lambda x: x[:, ids], (2, 5), f.random("columns", "f32", (2, 6)), [ids],
            0, {"axis": 1})
    adjoint(f, "slice", "slice", lambda x: x[6:0:-2, 1:4], (7, 5), f.random("slice", "f32", (3, 3)),
            [Const([6, 1]), Const([0, 4]), Const([0, 1]), Const([-2, 1])], 0, {})
    adjoint(f, "pad", "pad", lambda x: np.pad(x, ((1, 2), (2, 0)), "edge"), (3, 4), f.random("pad", "f32", (6, 6)),
            [Const([1, 2, 2, 0])], 0, {"mode": "edge"})
    adjoint(f, "tile", "tile", lambda x: np.tile(x, (2, 3)), (2, 3), f.random("tile", "f32", (4, 9)), [Const([2, 3])],
            0, {})
    a = {"kernel_shape": [3, 2], "pads": [1, 0, 0, 1], "strides": [2, 1]}
    mean = lambda x: windows.pool(x, a["kernel_shape"], a, lambda v, _: np.mean(v))
    adjoint(f, "average_pool", "average_pool", mean, (1, 2, 6, 4), f.random("pool", "f32", (1, 2, 3, 4)), [], 0, a)
    x = f.random("conv_x", "f32", (2, 3, 7))
    dy = f.random("conv_dy", "f32", (2, 4, 3))
    conv = lambda w: np.stack([[np.sum(w[o] * x[n].astype("f8")[:, 2 * i:2 * i + 3]) for i in range(3)]
                               for n in range(2) for o in range(4)]).reshape(2, 4, 3)
    adjoint(f, "conv_weights", "conv", conv, (4, 3, 3), dy, [x], 1, {"strides": [2]})
    dw = np.einsum("noi,ncik->ock", dy.astype("f8"), np.stack([x[:, :, 2 * i:2 * i + 3] for i in range(3)], 2))
    f.op("weights_gradient", "conv_weights_gradient", [dy, x], {"kernel_shape": [3], "strides": [2]},
         Want(dw, terms=6, magnitude=24))
    # Winograd's form of it is off by at most 8 times as much.
    x, dy = f.random("winograd_x", "f32", (2, 3, 7, 8)), f.random("winograd_dy", "f32", (2, 5, 7, 8))
    padded = np.pad(x.astype("f8"), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows_of = np.stack([np.stack([padded[:, :, i:i + 7, j:j + 8] for j in range(3)]) for i in range(3)])
    dw = np.einsum("noyx,ijncyx->ocij", dy.astype("f8"), windows_of)
    size = np.einsum("noyx,ijncyx->ocij", np.abs(dy.astype("f8")), np.abs(windows_of)).max()
    for m in [2, 4]:
        f.op(f"winograd_{m}_weights_gradient", "winograd_weights_gradient", [dy, x],
             {"tile": m, "pads": [1, 1, 1, 1]}, Want(dw, "f32", terms=8 * 112, magnitude=size))


def largest(f):
    """The first of equals; each passes on what its windows get."""
    for label, xs, kernel, a in windows.POOLS:
        extents, found = windows.windows(xs, kernel, a)
        x = np.round(f.random(f"taps_{label}", "f32", xs))  # many are equal
        taps = np.zeros(xs[:2] + tuple(extents), "i4")
        dy = f.random(f"taps_dy_{label}", "f32", taps.shape)
        y, dx = np.zeros(taps.shape, "f4"), np.zeros(xs)
        for n, c in np.ndindex(*xs[:2]):
            for o, places in found.items():
                values = [-np.inf if p is None else x[(n, c) + p] for p, _ in places]
                at = int(np.argmax(values))
                taps[(n, c) + o] = at
                y[(n, c) + o] = values[at]
                dx[(n, c) + places[at][0]] += dy[(n, c) + o]
        f.op(f"taps_{label}", "max_pool_taps", [x, y], {"kernel_shape": kernel, **a}, Want(taps, "i32"))
        f.op(f"max_pool_gradient_{label}", "max_pool_gradient", [dy, taps],
             {"extents": list(xs), "kernel_shape": kernel, **a}, Want(dx, terms=len(kernel) ** 2 + 9, magnitude=20))


def normalised(f):
    """By slopes of the sum of y * dy, y from the definitions."""
    def softmax(x, axis):
        e = np.exp(x - x.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    for label, shape, axis in [("", (3, 2, 7), -1), ("_one", (4, 1), -1), ("_long", (2, 67), -1),
                               ("_axis", (3, 5, 2), 1)]:
        x, dy = f.random(f"softmax{label}_x", "f32", shape), f.random(f"softmax{label}_dy", "f32", shape)
        y = softmax(x.astype("f8"), axis).astype("f4")
        terms = shape[axis] + 8
        f.op(f"softmax_gradient{label}", "softmax_gradient", [dy, y], {"axis": axis},
             Want(all_slopes(lambda v: (softmax(v, axis) * dy).sum(), x.astype("f8")), terms=terms, magnitude=4))
        f.op(f"log_softmax_gradient{label}", "softmax_gradient", [dy, np.log(y)], {"axis": axis, "logarithm": 1},
             Want(all_slopes(lambda v: (np.log(softmax(v, axis)) * dy).sum(), x.astype("f8")), terms=terms,
                  magnitude=2 * shape[axis]))

    def norm(x, axis, rms):
        axes = tuple(range(axis, x.ndim))
        mean = np.zeros(x.shape[:axis] + (1,) * len(axes)) if rms else x.mean(axes, keepdims=True)
        return mean, 1 / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + 1e-5)

    for label, shape, axis, scaled, rms in [("", (2, 3, 7), 2, True, 0), ("_plain", (3, 67), 1, False, 0),
                                            ("_rms", (5, 8), 1, True, 1), ("_two", (2, 3, 2, 6), 2, True, 0)]:
        x, dy = f.random(f"norm{label}_x", "f32", shape), f.random(f"norm{label}_dy", "f32", shape)
        scale = f.random(f"norm{label}_scale", "f32", shape[axis:]) if scaled else np.ones(shape[axis:], "f4")

        def loss(v, axis=axis, rms=rms, scale=scale, dy=dy):
            mean, inverse = norm(v, axis, rms)
            return ((v - mean) * inverse * scale * dy).sum()

        of_rows = [v.astype("f4") for v in norm(x.astype("f8"), axis, rms)]
        f.op(f"layer_norm_gradient{label}", "layer_norm_gradient", [dy, x] + of_rows + [scale] * scaled,
             {"axis": axis, "rms": rms},
             Want(all_slopes(loss, x.astype("f8")), terms=4 * int(np.prod(shape[axis:])), magnitude=20))


def minors(f):
    """Determinants of what is left without a row and a column."""
    def of(x):
        found = np.zeros(x.shape)
        for i, j in np.ndindex(x.shape):
            found[i, j] = (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(x.astype("f8"), i, 0), j, 1))
        return found
    x = f.random("cofactors", "f32", (3, 5, 5))
    f.op("cofactors", "cofactors", [x], {}, Want(np.stack([of(m) for m in x]), "f32", terms=250, magnitude=100))
    f.op("cofactors_one", "cofactors", [np.array([[3.5]], "f4")], {}, Want(np.ones((1, 1)), "f32"))
    # Of rank 3 and 2 among 4: the former have rank 1, the latter are 0.
    rows = f.random("rank", "f32", (4, 4), -3, 3).round()
    for rank in (3, 2):
        x = rows.copy()
        x[rank:] = x[:4 - rank] * -2
        f.op(f"cofactors_rank_{rank}", "cofactors", [x], {}, Want(of(x), "f32", terms=250, magnitude=100))


def regions_backwards(f):
    shape, rois, batch = (2, 1, 5, 4), np.array([[0.5, 1, 3.25, 5.5], [2, 2, 2.5, 2.25]], "f4"), np.array([1, 1])
    for ratio, scale, half in [(2, 1.0, 1), (0, 0.5, 0)]:
        mean = matrix(lambda x: regions.align(x, rois, batch, 2, 3, ratio, scale, half, "avg"), shape)
        dy = f.random(f"align_{ratio}", "f32", (2, 1, 2, 3))
        dx = (mean.T @ dy.astype("f8").reshape(-1)).reshape(shape)
        f.op(f"roi_align_gradient_{ratio}", "roi_align_gradient", [dy, rois, batch],
             {"extents": list(shape), "half_pixel": half, "sampling_ratio": ratio, "spatial_scale": scale},
             Want(dx, "f32", terms=48, magnitude=24))


def slope(fn, x, k, h=1e-3):
    """d fn / d x[k] by Richardson's extrapolation of central differences."""
    def sides(step):
        up, down = x.copy(), x.copy()
        up[k] += step
        down[k] -= step
        return (fn(up) - fn(down)) / (2 * step)
    return (4 * sides(h / 2) - sides(h)) / 3


def all_slopes(fn, x):
    return np.stack([slope(fn, x, k) for k in np.ndindex(*x.shape)]).reshape(x.shape)


def steps_backwards(f):
    for kind, gates, label, a in [("rnn", 1, "plain", {}), ("rnn", 1, "reverse", {"reverse": 1}),
                                  ("gru", 3, "plain", {}), ("gru", 3, "after", {"linear_before_reset": 1}),
                                  ("lstm", 4, "plain", {}), ("lstm", 4, "reverse", {"reverse": 1}),
                                  ("lstm", 4, "coupled", {"input_forget": 1})]:
        count = len(recurrent.DEFAULT[kind])
        a = {"activations": recurrent.DEFAULT[kind], "alpha": [0.0] * count, "beta": [0.0] * count, **a}
        shape = (3, 2, gates * 2)
        r = f.random(f"{kind}_r", "f32", (2, gates * 2), -1, 1)
        x = f.random(f"{kind}_x", "f64", shape, -1, 1)
        h, c = (f.random(f"{kind}_{n}", "f32", (2, 2), -1, 1) for n in "hc")
        peep = f.random(f"{kind}_p", "f32", (6,), -1, 1) if kind == "lstm" else None
        lens = np.array([3, 2], "i8")
        dy = f.random(f"{kind}_dy", "f32", (3, 2, 2), -1, 1)
        dh, dc = (f.random(f"{kind}_d{n}", "f32", (2, 2), -1, 1) for n in "hc")

        def loss(x=x, h=h.astype("f8"), c=c.astype("f8"), bias=None):
            y, last, cell = recurrent.run(kind, x, r, a, h, lens, c, peep, bias)
            return (y * dy).sum() + (last * dh).sum() + ((cell * dc).sum() if kind == "lstm" else 0)

        kept = {}
        recurrent.run(kind, x, r, a, h, lens, c, peep, keep=kept)
        entered = kept["entered"].astype("f4")
        operands = [entered, r, dy, dh, lens]
        want = lambda v: Want(v, terms=200, magnitude=4)
        wants = [want(all_slopes(lambda v: loss(x=v), x)), want(all_slopes(lambda v: loss(h=v), h.astype("f8")))]
        if kind == "gru":
            # What the product with the reset gate adds enters as x does; by it the gate, or nothing, weighs it.
            dn = wants[0].array[..., 4:].astype("f8")
            gate = 1 / (1 + np.exp(-kept["entered"][..., 2:4])) if a.get("linear_before_reset") else 1
            wants.append(want(dn * gate))
            operands += [kept["before"].astype("f4"), kept["inner"].astype("f4")]
        if kind == "lstm":
            wants.append(want(all_slopes(lambda v: loss(c=v), c.astype("f8"))))
            operands += [kept["inner"].astype("f4"), dc, c, peep]
        f.op(f"{kind}_backwards_{label}", f"{kind}_steps_gradient", operands, a, wants)


def write():
    f = Family("gradients")
    adjoints(f)
    largest(f)
    minors(f)
    normalised(f)
    regions_backwards(f)
    steps_backwards(f)
    return [f]
