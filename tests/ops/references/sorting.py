"""Sorted, chosen and counted elements."""
import numpy as np

from cases import Const, Family, TYPES, Want


def sized(array, t, dims):
    w = Want(array, t, exact=True)
    w.dims = dims
    return w


def best(x, k, axis, largest):
    """By value, then by index: a stable sort. NaN is larger than all numbers."""
    key = np.where(np.isnan(x), np.inf, x) if x.dtype.kind == "f" else x.astype(object)
    nan = np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
    y = np.empty(x.shape, int)
    moved = [np.moveaxis(v, axis, -1) for v in (key, nan)]
    order = np.moveaxis(y, axis, -1)
    for at in np.ndindex(order.shape[:-1]):
        rank = [(b, v) for v, b in zip(moved[0][at], moved[1][at])]
        by = sorted(range(len(rank)), key=lambda i: rank[i])
        if largest:
            by = sorted(range(len(rank)), key=lambda i: rank[i], reverse=True)  # stable too
        order[at] = by
    return np.take(y, range(k), axis)


def top_k(f):
    for t in ["f32", "f64", "f16", "i32", "i64", "u8"]:
        x = f.random(f"top_{t}", t, (3, 9, 2), 0, 4)
        w = x.astype("f8") if t[0] == "f" else x
        for k, axis, largest in [(1, 1, 1), (4, -2, 0), (9, 1, 1), (2, 0, 0), (0, 1, 1)]:
            if t != "f32" and k in (0, 2):
                continue
            i = best(w, k, axis, largest)
            f.op(f"top_{k}_{axis % 3}_{largest}_{t}", "top_k", [x, Const([k])],
                 {"axis": axis, "largest": largest},
                 [Want(np.take_along_axis(x, i, axis), t, exact=True), Want(i, "i64")])
    x = np.array([1, np.nan, -np.inf, np.inf, 0, np.nan, -2], "f4")
    for largest in [0, 1]:
        i = best(x, 7, 0, largest)
        f.op(f"top_special_{largest}", "top_k", [x, Const([7])], {"largest": largest},
             [Want(x[i], exact=True), Want(i, "i64")])
    i = best(x[2:5], 2, 0, 1)
    f.op("top_run", "top_k", [x[2:5], np.array([2])], {},
         [sized(x[2:5][i], "f32", "k"), sized(i, "i64", "k")])


def unique(x, axis, order):
    """Slices as tuples: their first places, ranks and numbers."""
    lists = x.reshape(-1, 1) if axis is None else np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)
    keys = [tuple(v.tolist()) for v in lists]
    kept = list(dict.fromkeys(keys))
    if order:
        kept.sort()
    first = [keys.index(k) for k in kept]
    y = np.take(x.reshape(-1) if axis is None else x, first, axis or 0)
    return y, first, [kept.index(k) for k in keys], [keys.count(k) for k in kept]


def uniques(f):
    for t in ["f32", "i64", "i8"]:
        x = f.random(f"unique_{t}", t, (4, 3), 0, 3)
        x = np.round(x).astype(TYPES[t])
        x[3] = x[1]
        for axis in [None, 0, -1]:
            for order in [1, 0]:
                a = {"sorted": order, **({} if axis is None else {"axis": axis})}
                y, first, inverse, counts = unique(x, axis, order)
                dims = ["count" if d == (axis or 0) % y.ndim else str(e) for d, e in enumerate(y.shape)]
                if axis == -1:
                    dims = [str(y.shape[0]), "count"]
                f.op(f"unique_{axis}_{order}_{t}".replace("-", "m"), "unique", [x], a,
                     [sized(y, t, ", ".join(dims)), sized(first, "i64", "count"), Want(inverse, "i64"),
                      sized(counts, "i64", "count")])


def chosen(f):
    for t in ["f32", "i32", "u8", "bool"]:
        x = f.random(f"nonzero_{t}", t, (3, 4), 0, 2)
        x = np.round(x).astype(TYPES[t])
        f.op(f"nonzero_{t}", "nonzero", [x], {}, sized(np.array(np.nonzero(x)), "i64", "2, count"))
    f.op("nonzero_special", "nonzero", [np.array([0, -0.0, np.nan, np.inf], "f4")], {},
         sized([[2, 3]], "i64", "1, count"))
    f.op("nonzero_none", "nonzero", [np.zeros((2, 3), "i4")], {}, sized(np.zeros((2, 0)), "i64", "2, count"))
    x = f.random("compress", "f32", (3, 4))
    keep = np.array([True, False, True])
    f.op("compress_rows", "compress", [x, keep], {"axis": 0}, sized(x[keep], "f32", "count, 4"))
    f.op("compress_columns", "compress", [x, keep], {"axis": -1}, sized(x[:, [0, 2]], "f32", "3, count"))
    f.op("compress_list", "compress", [x, np.array([False, True, True, False, True])], {},
         sized(x.reshape(-1)[[1, 2, 4]], "f32", "count"))


def write():
    f = Family("sorting")
    for part in (top_k, uniques, chosen):
        part(f)
    return [f]
