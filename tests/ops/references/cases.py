"""Writing reference cases: a graph in Tilewright's text form, its operands, what must come out."""
import zlib

import ml_dtypes
import numpy as np

BF16 = np.dtype(ml_dtypes.bfloat16)
NAMES = {np.dtype(t): n for t, n in [
    ("f4", "f32"), ("f8", "f64"), ("f2", "f16"), (BF16, "bf16"), ("i1", "i8"), ("i2", "i16"),
    ("i4", "i32"), ("i8", "i64"), ("u1", "u8"), ("u2", "u16"), ("u4", "u32"), ("u8", "u64"),
    ("?", "bool")]}
TYPES = {n: t for t, n in NAMES.items()}
FLOATS = ["f32", "f64", "f16", "bf16"]


def is_float(dtype):
    return NAMES[np.dtype(dtype)] in FLOATS


class Const:
    """An operand that is known at compile time (extents, axes)."""

    def __init__(self, values, dtype="i64"):
        self.array = np.asarray(values, TYPES[dtype])


class Want:
    """A result; terms: summed up or rounded on the way, magnitude: of their absolute values' sum."""

    def __init__(self, value, dtype="f32", exact=False, terms=0, magnitude=None):
        with np.errstate(all="ignore"):
            self.array = np.asarray(value).astype(TYPES[dtype])
        finite = np.abs(np.asarray(value, dtype="f8")) if is_float(self.array.dtype) else np.zeros(0)
        finite = finite[np.isfinite(finite)]
        self.exact = exact or not is_float(self.array.dtype)
        self.terms = terms
        self.magnitude = magnitude if magnitude is not None else finite.max(initial=0)
        self.dims = None  # text of the extents, where these hang on data
        self.hidden = False  # computed, but no output of the graph: its elements are not defined


def element(v):
    """The shortest decimal that gives the same bits back."""
    if v.dtype == BF16:
        v = np.float32(v)
    if v.dtype.kind != "f":
        return str(int(v))
    text = str(v)
    return text[:-2] if text.endswith(".0") else text


def rows(array):
    line, lines = " ", []
    for v in np.asarray(array).reshape(-1):
        word = element(v)
        if len(line) + 1 + len(word) > 100:
            lines.append(line)
            line = " "
        line += " " + word
    return lines + ([line] if line.strip() else [])


def type_text(array, dims=None):
    return f"{NAMES[array.dtype]}[{dims if dims is not None else ', '.join(map(str, array.shape))}]"


def attribute(value):
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        if not value:
            return "ints[]"
        return "[" + ", ".join(map(attribute, value)) + "]"
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    return str(int(value))


class Family:
    def __init__(self, name):
        self.name = name
        self.text = [f"# {name}: written by write_references.py; not to be edited."]

    def random(self, name, dtype, shape, low=-2.0, high=2.0):
        """Numbers of two decimals, or integers in [low, high], by the name alone."""
        rng = np.random.default_rng(zlib.crc32(f"{self.name}/{name}".encode()))
        if dtype == "bool":
            return rng.integers(0, 2, shape).astype(bool)
        if dtype in FLOATS:
            return np.round(rng.uniform(low, high, shape), 2).astype(TYPES[dtype])
        return rng.integers(int(low), int(high) + 1, shape).astype(TYPES[dtype])

    def graph(self, name, operands, nodes):
        """operands: name -> array or Const; nodes: (op, operand names, attributes, results),
        and a label where a later node reads the result (chain). A result is a Want, or None for one that is not asked for."""
        lines = ["", f"case {name}", f"graph {name} {{"]
        given, results = [], []
        for key, v in operands.items():
            if isinstance(v, Const):
                digits = [element(x) for x in v.array.reshape(-1)]
                if is_float(v.array.dtype):
                    digits = [d if set(d) & set(".en") else d + ".0" for d in digits]
                lines.append(f"  const {key}: {type_text(v.array)} = [{', '.join(digits)}]")
            else:
                lines.append(f"  input {key}: {type_text(v)}")
                given.append((key, v))
        for k, (op, names, attributes, wants, *label) in enumerate(nodes):
            left, symbols = [], []
            for w in wants:
                if w is None:
                    left.append("_")
                    continue
                y = label[0] if label else f"hidden{k}" if w.hidden else f"y{len(results)}"
                if not w.hidden and (not label or k + 1 == len(nodes)):
                    results.append((y, w))
                left.append(f"{y}: {type_text(w.array, w.dims)}")
                symbols += [s for s in (w.dims or "").replace(",", " ").split()
                            if s.isidentifier() and s not in symbols]
            line = f"  {', '.join(left)} = {op}({', '.join(n or '_' for n in names)})"
            if attributes:
                line += " {" + ", ".join(f"{k} = {attribute(v)}" for k, v in attributes.items()) + "}"
            if symbols:
                line += f" defines({', '.join(symbols)})"
            lines.append(line)
        lines += [f"  output {y} as \"{y}\"" for y, _ in results] + ["}"]
        for key, v in given:
            lines += [f"given {key} {NAMES[v.dtype]} {' '.join(map(str, v.shape))}".rstrip()] + rows(v)
        for y, w in results:
            a = w.array
            head = f"expect {y} {NAMES[a.dtype]} " + "".join(f"{e} " for e in a.shape)
            head += "exact" if w.exact else f"terms {w.terms} of {w.magnitude:.4g}"
            lines += [head] + rows(a)
        self.text += lines

    def op(self, name, op, operands, attributes, wants):
        """One node; its operands are arrays, Consts, or None where one is absent."""
        names = [None if v is None else f"x{i}" for i, v in enumerate(operands)]
        given = {n: v for n, v in zip(names, operands) if n}
        if not isinstance(wants, (list, tuple)):
            wants = [wants]
        self.graph(name, given, [(op, names, attributes, wants)])

    def chain(self, name, operands, nodes):
        """Nodes that read each other: (result's name, op, operand names, attributes, Want); the last
        result is the graph's output, of the others the Want says the type alone."""
        self.graph(name, operands, [(op, names, attributes, [want], label)
                                    for label, op, names, attributes, want in nodes])
