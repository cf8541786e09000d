"""Element by element: NumPy's functions in f64, integers in Python's unbounded ones."""
import math

import numpy as np

from cases import FLOATS, TYPES, Family, Want

erf = np.vectorize(math.erf, otypes=["f8"])
FUNCTIONS = {
    "sqrt": np.sqrt, "exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "erf": erf,
    "expm1": np.expm1, "log1p": np.log1p, "sigmoid": lambda x: 1 / (1 + np.exp(-x))}
EXACT = {"neg": np.negative, "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "round": np.rint,
         "trunc": np.trunc, "relu": lambda x: np.where(x < 0, 0.0, x), "identity": lambda x: x,
         "stop_gradient": lambda x: x}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.25]


def unary(f):
    for t in FLOATS:
        for name, x in [("special", np.array(SPECIAL, TYPES[t])),
                        ("wide", f.random(f"unary_{t}", t, (3, 7), -6, 6))]:
            wide = x.astype("f8")
            nodes = [(op, ["x"], {}, [Want(fn(wide), t)]) for op, fn in FUNCTIONS.items()]
            nodes += [(op, ["x"], {}, [Want(fn(wide), t, exact=True)]) for op, fn in EXACT.items()]
            nodes += [("is_nan", ["x"], {}, [Want(np.isnan(wide), "bool")]),
                      ("is_inf", ["x"], {}, [Want(np.isinf(wide), "bool")])]
            f.graph(f"unary_{name}_{t}", {"x": x}, nodes)
    for t, values in [("i8", [0, 1, -1, 127, -127]), ("i32", [0, 5, -5, 2**31 - 1, 1 - 2**31]),
                      ("i64", [0, 5, -5, 2**63 - 1, 1 - 2**63])]:
        x = np.array(values, TYPES[t])
        f.graph(f"unary_{t}", {"x": x}, [
            ("neg", ["x"], {}, [Want([-v for v in values], t)]),
            ("abs", ["x"], {}, [Want([abs(v) for v in values], t)]),
            ("not", ["x"], {}, [Want([-v - 1 for v in values], t)]),
            ("relu", ["x"], {}, [Want([max(v, 0) for v in values], t)]),
            ("identity", ["x"], {}, [Want(values, t)])])
    f.op("not_bool", "not", [np.array([True, False, True])], {}, Want([False, True, False], "bool"))
    f.op("not_u8", "not", [np.array([0, 1, 200, 255], "u1")], {}, Want([255, 254, 55, 0], "u8"))
    f.op("watched_special", "watched", [np.array(SPECIAL, "f4")], {}, Want(SPECIAL, exact=True))
    f.op("sqrt_empty", "sqrt", [np.zeros((0, 3), "f4")], {}, Want(np.zeros((0, 3))))


def wrapped(values, t):
    """Unbounded integers as the low bits of a type."""
    bits, signed = TYPES[t].itemsize * 8, TYPES[t].kind == "i"
    low = [int(v) % 2**bits for v in values]
    return Want(np.array([v - 2**bits if signed and v >= 2**(bits - 1) else v for v in low],
                         TYPES[t]), t)


def toward_zero(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


INTEGERS = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": toward_zero, "mod": lambda a, b: a - b * (a // b),
    "fmod": lambda a, b: a - b * toward_zero(a, b), "min": min, "max": max,
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b}
COMPARISONS = {"equal": np.equal, "not_equal": np.not_equal, "less": np.less,
               "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal}


def binary(f):
    for t in FLOATS:
        a = f.random(f"a_{t}", t, (3, 5), -4, 4)
        b = f.random(f"b_{t}", t, (3, 1), 0.5, 3)
        a[0, :4] = [0, -0.0, 2, -3]
        x, y = a.astype("f8"), b.astype("f8")
        nodes = [("add", ["a", "b"], {}, [Want(x + y, t)]), ("sub", ["a", "b"], {}, [Want(x - y, t)]),
                 ("mul", ["a", "b"], {}, [Want(x * y, t)]), ("div", ["a", "b"], {}, [Want(x / y, t)]),
                 ("fmod", ["a", "b"], {}, [Want(np.fmod(x, y), t, terms=1, magnitude=4)]),
                 ("mod", ["a", "b"], {}, [Want(np.mod(x, y), t, terms=1, magnitude=4)]),
                 ("min", ["a", "b"], {}, [Want(np.broadcast_to(np.minimum(x, y), (3, 5)), t, True)]),
                 ("max", ["a", "b"], {}, [Want(np.maximum(x, y), t, True)])]
        nodes += [(op, ["a", "b"], {}, [Want(fn(x, y), "bool")]) for op, fn in COMPARISONS.items()]
        f.graph(f"binary_{t}", {"a": a, "b": b}, nodes)
        e = f.random(f"exponent_{t}", t, (4, 3), -2, 3)
        base = f.random(f"base_{t}", t, (4, 3), 0.1, 4)
        e[0], base[1] = [2, 3, -2], [-2, 0, 1]
        e[1] = [3, 0, np.inf]
        p = np.power(base.astype("f8"), e.astype("f8"))
        f.op(f"pow_{t}", "pow", [base, e], {}, Want(p, t, terms=4))
    s = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1, -2])
    a, b = (np.ascontiguousarray(v).astype("f4") for v in np.broadcast_arrays(s[:, None], s[None]))
    x, y = a.astype("f8"), b.astype("f8")
    signless = {op: Want(fn(x, y)) for op, fn in [("add", np.add), ("sub", np.subtract), (
        "mul", np.multiply), ("div", np.divide), ("min", np.minimum), ("max", np.maximum)]}
    nodes = [(op, ["a", "b"], {}, [w]) for op, w in signless.items()]
    nodes += [(op, ["a", "b"], {}, [Want(fn(x, y), "bool")]) for op, fn in COMPARISONS.items()]
    f.graph("binary_special_f32", {"a": a, "b": b}, nodes)
    for t in ["i8", "u8", "i16", "i32", "u32", "i64", "u64"]:
        info = np.iinfo(TYPES[t])
        low = [info.min + 1, -7, -3] if info.min < 0 else [0, 9, 4]
        first, second = low + [0, 1, 7, info.max], [3, 2, -2 if info.min < 0 else 5, info.max]
        pairs = [(p, q) for p in first for q in second]
        a, b = np.array(first, TYPES[t])[:, None], np.array(second, TYPES[t])[None]
        nodes = []
        for op, fn in INTEGERS.items():
            w = wrapped([fn(p, q) for p, q in pairs], t)
            w.array = w.array.reshape(len(first), len(second))
            nodes.append((op, ["a", "b"], {}, [w]))
        nodes += [(op, ["a", "b"], {}, [Want(fn(a, b), "bool")]) for op, fn in COMPARISONS.items()]
        f.graph(f"binary_{t}", {"a": a, "b": b}, nodes)
    a, b = np.array([[True], [False]]), np.array([True, False])
    f.graph("binary_bool", {"a": a, "b": b}, [
        ("and", ["a", "b"], {}, [Want(a & b, "bool")]), ("or", ["a", "b"], {}, [Want(a | b, "bool")]),
        ("xor", ["a", "b"], {}, [Want(a ^ b, "bool")]),
        ("equal", ["a", "b"], {}, [Want(a == b, "bool")])])


def shifts(f):
    for t, values in [("u8", [1, 129, 255]), ("u32", [1, 2**31 + 5, 77]), ("u64", [3, 2**63 + 9, 77]),
                      ("i32", [1, -7, 2**30 + 1])]:
        by = [0, 1, 3, 7]
        for op, fn in [("shift_left", lambda v, n: v << n), ("shift_right", lambda v, n: v >> n)]:
            w = wrapped([fn(v, n) for v in values for n in by], t)
            w.array = w.array.reshape(3, 4)
            f.op(f"{op}_{t}", op, [np.array(values, TYPES[t])[:, None], np.array(by, TYPES[t])], {}, w)
    f.op("shift_right_beyond", "shift_right", [np.array([-8, 8], "i4"), np.array([40, 32], "i4")], {},
         Want([-1, 0], "i32"))
    f.op("shift_left_beyond", "shift_left", [np.array([5, 1], "u4"), np.array([32, 31], "u4")], {},
         Want([0, 2**31], "u32"))


def choices(f):
    x = np.array([-3, -1, -0.0, 0.5, 2, np.inf, -np.inf, np.nan], "f4")
    one = lambda v, t="f4": np.array(v, t)
    f.op("clip_f32", "clip", [x, one(-1), one(1)], {}, Want(np.clip(x, -1, 1), exact=True))
    f.op("clip_low_only", "clip", [x, one(0.25)], {}, Want(np.maximum(x, 0.25), exact=True))
    f.op("clip_high_only", "clip", [x, None, one(0.25)], {}, Want(np.minimum(x, 0.25), exact=True))
    f.op("clip_crossed", "clip", [x[:5], one(2), one(-2)], {}, Want([-2] * 5, exact=True))
    f.op("clip_i8", "clip", [one([-128, 5, 127], "i1"), one(-4, "i1"), one(4, "i1")], {},
         Want([-4, 4, 4], "i8"))
    for t in ["f32", "f16", "i64", "u8", "bool"]:
        c = f.random(f"where_c_{t}", "bool", (3, 1))
        c[:2, 0] = [True, False]
        a, b = (f.random(f"where_{k}_{t}", t, s, 1, 9) for k, s in [("a", (2, 3, 5)), ("b", (5,))])
        f.op(f"where_{t}", "where", [c, a, b], {}, Want(np.where(c, a, b), t, exact=True))


def limited(v, t):
    info = np.iinfo(TYPES[t])
    return 0 if math.isnan(v) else min(max(math.trunc(min(max(v, -1e30), 1e30)), info.min), info.max)


def casts(f):
    x = np.array([0, -0.0, 0.75, -0.75, 1.5, -2.5, 300, -300, 7e4, 3e9, -3e9, np.inf, -np.inf, np.nan])
    for t in FLOATS:
        v = x.astype(TYPES[t])
        nodes = [("cast", ["x"], {"to": to}, [Want([limited(e, to) for e in v.astype("f8")], to)])
                 for to in ["i8", "u8", "i16", "u16", "i32", "u32"]]
        nodes += [("cast", ["x"], {"to": to}, [Want(v.astype("f8"), to, exact=True)])
                  for to in FLOATS if to != t]
        nodes.append(("cast", ["x"], {"to": "bool"}, [Want(v != 0, "bool")]))
        f.graph(f"cast_{t}", {"x": v}, nodes)
    f.op("cast_i64_f32", "cast", [np.array([2**24 + 1, -(2**53) - 1, 7])], {"to": "f32"},
         Want(np.array([2**24, -(2**53), 7], "f4"), exact=True))
    for t in ["i32", "i64", "u16"]:
        values = [0, 1, 255, 256, 65535, 300] if t == "u16" else [0, -1, 255, -129, 65537, 2**31 - 1]
        nodes = [("cast", ["x"], {"to": to}, [wrapped(values, to)]) for to in ["i8", "u8", "i16"]]
        nodes.append(("cast", ["x"], {"to": "f64"}, [Want(values, "f64", exact=True)]))
        nodes.append(("cast", ["x"], {"to": "bool"}, [Want([v != 0 for v in values], "bool")]))
        f.graph(f"cast_{t}", {"x": np.array(values, TYPES[t])}, nodes)
    # 1 + 2^-11 is half-way between two f16, 1 + 2^-8 between two bf16: to even.
    ties = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 65519.99, 65520])
    f.graph("cast_ties", {"x": ties}, [("cast", ["x"], {"to": t}, [Want(ties, t, exact=True)])
                                       for t in ["f16", "bf16", "f32"]])
    f.op("cast_bool_f32", "cast", [np.array([True, False])], {"to": "f32"}, Want([1, 0], exact=True))
    for a, to in [(np.array([1.5, -0.0, np.inf], "f4"), "i32"), (np.array([1, -2**63]), "f64"),
                  (np.array([0x3C00, 0xC000], "u2"), "f16"), (np.array([-1, 5], "i1"), "u8")]:
        f.op(f"bit_cast_{a.dtype.name}_{to}", "bit_cast", [a], {"to": to},
             Want(a.view(TYPES[to]), to, exact=True))


def write():
    f = Family("pointwise")
    with np.errstate(all="ignore"):
        for part in (unary, binary, shifts, choices, casts):
            part(f)
    return [f]
