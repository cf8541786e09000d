"""Elements moved to other places: NumPy's indexing, and ONNX's reference implementation."""
import itertools

import numpy as np

import onnx_results
from cases import Const, Family, TYPES, Want


def moved(f, label, op, operands, attributes, value, t="f32"):
    f.op(label, op, operands, attributes, Want(value, t, exact=True))


def shapes(f):
    for t in ["f32", "f16", "i64", "u8", "bool"]:
        x = f.random(f"shapes_{t}", t, (2, 5, 7), 0, 9)
        nodes = [("transpose", ["x"], {"perm": list(p)}, [Want(x.transpose(p), t, exact=True)])
                 for p in itertools.permutations(range(3))]
        nodes += [("shape", ["x"], {}, [Want([2, 5, 7], "i64")]),
                  ("reshape", ["x", "flat"], {}, [Want(x.reshape(-1), t, exact=True)]),
                  ("reshape", ["x", "kept"], {}, [Want(x.reshape(2, 7, 5), t, exact=True)]),
                  ("expand", ["x", "wide"], {}, [Want(np.broadcast_to(x, (3, 2, 5, 7)), t, exact=True)]),
                  ("concat", ["x", "x"], {"axis": -2}, [Want(np.concatenate([x, x], 1), t, exact=True)]),
                  ("concat", ["x", "x"], {"axis": 2, "interleave": 1},
                   [Want(np.repeat(x, 2, axis=2), t, exact=True)])]
        f.graph(f"shapes_{t}", {"x": x, "flat": Const([-1]), "kept": Const([0, 7, -1]),
                                "wide": Const([3, 1, 5, 7])}, nodes)
    moved(f, "reshape_zero", "reshape", [np.zeros((0, 3), "f4"), Const([3, 0])], {"allowzero": 1},
          np.zeros((3, 0)))
    a, b, c = (f.random(f"c{n}", "f32", (2, n)) for n in (3, 0, 4))
    moved(f, "concat_three", "concat", [a, b, c], {"axis": 1}, np.concatenate([a, b, c], 1))
    p, q = f.random("p", "i32", (2, 3), -9, 9), f.random("q", "i32", (2, 3), -9, 9)
    moved(f, "concat_interleaved", "concat", [p, q], {"axis": 1, "interleave": 1},
          np.stack([p, q], -1).reshape(2, 6), "i32")
    f.op("extents", "extents", [], {"extents": [3, 0, 17]}, Want([3, 0, 17], "i64"))


def slices(f):
    x = f.random("slice", "f32", (5, 7, 3))
    n = 2**63 - 1
    for label, start, end, axes, step in [
            ("plain", [1, 2], [4, 6], None, None), ("negative", [-3], [-1], [1], None),
            ("strided", [0, 1], [n, n], [0, 1], [2, 3]), ("backward", [-1, n], [-n, 1], [0, -2], [-1, -2]),
            ("empty", [4], [2], [0], None), ("beyond", [-100], [100], [2], None)]:
        at = [slice(None)] * 3
        for a, s, e, d in zip(axes or range(9), start, end, step or [1] * 9):
            at[a] = slice(s, e, d)
        operands = [x] + [Const(v) if v else None for v in (start, end, axes, step)]
        while operands[-1] is None:
            operands.pop()
        moved(f, f"slice_{label}", "slice", operands, {}, x[tuple(at)])


def gathers(f):
    for t in ["f32", "i64", "bool"]:
        x = f.random(f"gather_{t}", t, (4, 5, 3), 0, 9)
        i = np.array([[0, -1], [2, 1], [-3, 3]])
        for axis in [0, 1, -1]:
            at = np.where(i >= 0, i, i + x.shape[axis]) % x.shape[axis] if axis == -1 else i
            moved(f, f"gather_{axis % 3}_{t}", "gather", [x, at.astype("i4") if axis else at],
                  {"axis": axis}, np.take(x, at, axis), t)
            j = f.random(f"j{axis}", "i64", (4, 5, 3), -x.shape[axis], x.shape[axis] - 1)
            moved(f, f"gather_elements_{axis % 3}_{t}", "gather_elements", [x, j], {"axis": axis},
                  np.take_along_axis(x, np.where(j < 0, j + x.shape[axis], j), axis), t)
        moved(f, f"gather_scalar_{t}", "gather", [x, np.array(-2)], {"axis": 1}, x[:, -2], t)
        k = np.array([[0, 1], [-1, -2], [2, 4]])
        moved(f, f"gather_nd_{t}", "gather_nd", [x, k], {}, x[k[:, 0], k[:, 1]], t)
        k = np.array([[[1], [-1]], [[0], [2]], [[4], [3]], [[2], [2]]])
        moved(f, f"gather_nd_batch_{t}", "gather_nd", [x, k], {"batch_dims": 1},
              onnx_results.run("GatherND", [x, k], batch_dims=1), t)
    x = f.random("clamped", "f32", (5, 2))
    moved(f, "gather_clamped", "gather", [x, np.array([-9, 0, 4, 7])], {"clamps": 1}, x[[0, 0, 4, 4]])


def scatters(f):
    for t in ["f32", "i32", "f16"]:
        x = f.random(f"scatter_{t}", t, (4, 5), 1, 9)
        u = f.random(f"updates_{t}", t, (2, 5), -3, 3)
        for axis in [0, -1]:
            i = np.array([[0, 1, 2, -1, 1], [0, 1, 3, 2, -2]] if axis == 0 else
                         [[0, 1, 2, -1, 1], [4, 1, 1, 1, -2]])
            fresh = np.array([[0, 1, 2, -1, 1], [1, 0, 3, 0, 2]] if axis == 0 else
                             [[0, 1, 2, -1, 3], [4, 3, 2, 1, -5]])
            for how, fn in [("none", None), ("add", np.add), ("mul", np.multiply), ("min", np.minimum),
                            ("max", np.maximum)]:
                y, at = x.astype("f8"), fresh if fn is None else i
                for r, c in np.ndindex(2, 5):
                    place = (at[r, c], c) if axis == 0 else (r, at[r, c])
                    y[place] = u[r, c] if fn is None else fn(y[place], np.float64(u[r, c]))
                f.op(f"scatter_elements_{how}_{axis % 2}_{t}", "scatter_elements", [x, at, u],
                     {"axis": axis, "reduction": how},
                     Want(y, t, exact=how in ("none", "min", "max"), terms=4, magnitude=90))
        k = np.array([[1], [-1]])
        for how in ["none", "add", "mul", "min", "max"]:
            y = onnx_results.run("ScatterND", [x.astype("f8"), k, u.astype("f8")], reduction=how)
            f.op(f"scatter_nd_{how}_{t}", "scatter_nd", [x, k, u], {"reduction": how},
                 Want(y, t, exact=how in ("none", "min", "max"), terms=1))
    x, u = f.random("nd_x", "f32", (2, 3, 2)), f.random("nd_u", "f32", (2, 2))
    k = np.array([[0, 2], [1, -3]])
    y = x.copy()
    y[0, 2], y[1, 0] = u
    moved(f, "scatter_nd_tuples", "scatter_nd", [x, k, u], {}, y)
    cache, update = f.random("cache", "f32", (2, 6, 3)), f.random("update", "f32", (2, 2, 3))
    for mode, start in [("linear", [0, 4]), ("linear", [3, 1]), ("circular", [5, 2])]:
        y = cache.copy()
        for b in range(2):
            for s in range(2):
                y[b, (start[b] + s) % 6] = update[b, s]
        moved(f, f"tensor_scatter_{mode}_{start[0]}", "tensor_scatter", [cache, update, np.array(start)],
              {"mode": mode}, y)
    y = cache.copy()
    y[:, :2] = update
    moved(f, "tensor_scatter_start", "tensor_scatter", [cache, update], {"axis": 1}, y)


def edges(f):
    for t in ["f32", "i32", "u8"]:
        x = f.random(f"pad_{t}", t, (3, 5), 0, 9)
        for mode, name in [("constant", "constant"), ("reflect", "reflect"), ("edge", "edge"), ("wrap", "wrap")]:
            moved(f, f"pad_{mode}_{t}", "pad", [x, Const([1, 2, 0, 3])], {"mode": mode},
                  np.pad(x, [(1, 0), (2, 3)], name), t)
        moved(f, f"pad_value_{t}", "pad", [x, Const([2, -1, 1, -2]), np.array(7, TYPES[t])], {},
              np.pad(x[:, 1:-2], [(2, 1), (0, 0)], constant_values=7), t)
        moved(f, f"pad_axes_{t}", "pad", [x, Const([1, 2]), None, Const([-1])], {"mode": "edge"},
              np.pad(x, [(0, 0), (1, 2)], "edge"), t)
        moved(f, f"tile_{t}", "tile", [x, Const([2, 3])], {}, np.tile(x, (2, 3)), t)
        moved(f, f"repeat_{t}", "repeat", [x], {"factors": [2, 3]}, x.repeat(2, 0).repeat(3, 1), t)
        moved(f, f"trilu_upper_{t}", "trilu", [x], {}, np.triu(x), t)
        moved(f, f"trilu_lower_{t}", "trilu", [x, np.array(-1)], {"upper": 0}, np.tril(x, -1), t)
        moved(f, f"trilu_above_{t}", "trilu", [x, np.array(2)], {"upper": 1}, np.triu(x, 2), t)
        moved(f, f"eye_like_{t}", "eye_like", [x], {"k": -1}, np.eye(3, 5, -1), t)
        moved(f, f"eye_like_to_{t}", "eye_like", [x], {"k": 2, "to": "f64"}, np.eye(3, 5, 2), "f64")
    x = f.random("sequence", "f32", (4, 3, 2))
    n = np.array([1, 4, 2])
    for time, batch in [(0, 1), (1, 0)]:
        turned = x if time == 0 else np.ascontiguousarray(x.swapaxes(0, 1))
        moved(f, f"reverse_sequence_{time}", "reverse_sequence", [turned, n],
              {"time_axis": time, "batch_axis": batch},
              onnx_results.run("ReverseSequence", [turned, n], time_axis=time, batch_axis=batch))
    for axis in [-1, 0, 1]:
        i = np.array([[0, 2], [-1, 5]])
        moved(f, f"one_hot_{axis % 3}", "one_hot", [i, Const([3]), np.array([-1, 4], "f4")], {"axis": axis},
              np.moveaxis(np.where(np.where(i < 0, i + 3, i)[..., None] == np.arange(3), 4, -1), -1, axis))
    for label, t, s, e, d in [("up", "i64", 2, 11, 3), ("down", "i32", 5, -4, -2), ("none", "i64", 3, 3, 1),
                              ("real", "f32", 0.5, 2.75, 0.5)]:
        a = [np.array(v, TYPES[t]) for v in (s, e, d)]
        want = Want(np.arange(s, e, d, "f8"), t)
        f.op(f"range_{label}", "range", [Const(v, t) for v in a], {}, want)
        want = Want(np.arange(s, e, d, "f8"), t)
        want.dims = "count"
        f.op(f"range_run_{label}", "range", a, {}, want)
    i = np.array([[0, 3], [-2, 1], [4, -5]])
    moved(f, "farthest_index", "farthest_index", [i], {"extents": [7]}, [11], "u64")
    moved(f, "farthest_index_tuples", "farthest_index", [i], {"extents": [5, 6]}, [9, 9], "u64")
    moved(f, "farthest_index_outside", "farthest_index", [i], {"extents": [3]}, [2**64 - 2], "u64")
    moved(f, "farthest_place", "farthest_index", [abs(i)], {"extents": [7], "from_zero": 1}, [5], "u64")
    moved(f, "farthest_place_outside", "farthest_index", [i], {"extents": [7], "from_zero": 1}, [2**64 - 2], "u64")
    moved(f, "within", "within", [abs(i)], {"extents": [6], "what": "an element"}, abs(i), "i64")


def write():
    f, g, h = Family("movement"), Family("indexing"), Family("edges")
    shapes(f)
    slices(f)
    gathers(g)
    scatters(g)
    edges(h)
    return [f, g, h]
