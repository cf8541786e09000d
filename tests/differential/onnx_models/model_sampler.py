"""Draws one model: nodes are added one by one and run by the reference at once, so that later ones are
drawn knowing the shapes and values of earlier ones."""
import dataclasses
import os
import random

import numpy
from onnx import defs, helper

import element_types as et
import reference
from reference import Refused

MOST_ELEMENTS = 6000
EXTENTS = [1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 31, 32, 33, 65]
OPEN_MODELS = float(os.environ.get("TILEWRIGHT_OPEN", "0.15"))
SYMBOL_EXTENTS = [5, 6, 7, 9, 11, 13, 17, 19, 33]


@dataclasses.dataclass
class Value:
    name: str
    array: numpy.ndarray
    source: str              # "input", "initializer" or "node"
    fill: object = "normal"
    dims: tuple = ()         # of an input: extents and symbols

    @property
    def dtype(self):
        return self.array.dtype

    @property
    def shape(self):
        return tuple(self.array.shape)

    @property
    def rank(self):
        return self.array.ndim

    @property
    def is_constant(self):
        return self.source == "initializer"


@dataclasses.dataclass
class Node:
    proto: object
    row: object
    captured: list           # names that its sub-graphs take from outside
    judge: str               # the reference that ran it


class Sampler:
    def __init__(self, key, opset):
        self.rng = random.Random(key)
        self.generator = numpy.random.default_rng(self.rng.getrandbits(64))
        self.opset = opset
        self.values, self.nodes, self.refused = [], [], 0
        self.row = None
        self.special = self.chance(0.15)
        self.empty = self.chance(0.08)
        # Every extent of an input is a symbol of its own. Drawn apart, so that the rest does not depend on it.
        self.open = random.Random(f"{key}/open").random() < OPEN_MODELS
        self.symbols = {}    # extent: name
        if self.chance(0.2):
            for name in ("n", "m")[: self.rng.choice([1, 1, 2])]:
                self.symbols[self.rng.choice(SYMBOL_EXTENTS)] = name

    # --- draws

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, options):
        return self.rng.choice(list(options))

    def int(self, low, high):
        return self.rng.randint(low, high)

    def maybe(self, p, value):
        """The value with probability p, else None: an attribute or operand that is left out."""
        return value if self.chance(p) else None

    def extent(self):
        if self.empty and self.chance(0.15):
            return 0
        if self.symbols and self.chance(0.5):
            return self.pick(self.symbols)
        return self.pick(EXTENTS) if self.chance(0.6) else self.int(1, 6)

    def shape(self, low=0, high=5, most=2000):
        rank = self.int(low, high) if self.chance(0.3) else min(max(self.pick([1, 2, 2, 3, 3, 4]), low), high)
        while True:
            shape = [self.extent() for _ in range(rank)]
            if numpy.prod(shape, dtype=int) <= most:
                return tuple(shape)
            most *= 1.1

    def dtype(self, among):
        among = list(among)
        return self.rng.choices(among, [et.WEIGHTS.get(t, 1) for t in among])[0]

    def types(self, op, parameter="T", domain=""):
        """Those that the standard allows for a type parameter at this operator set."""
        schema = defs.get_schema(op, self.opset, domain)
        for constraint in schema.type_constraints:
            if constraint.type_param_str == parameter:
                return [t for t in map(et.from_schema, constraint.allowed_type_strs) if t is not None]
        raise KeyError(f"{op} has no type parameter {parameter}")

    def axis(self, rank, low=0):
        """An axis of [low, rank), sometimes counted from the end."""
        a = self.int(low, rank - 1)
        return a - rank if self.chance(0.4) else a

    # --- operands

    def add(self, array, source, fill="normal", dims=None):
        value = Value(f"v{len(self.values)}", array, source, fill, dims if dims is not None else tuple(array.shape))
        self.values.append(value)
        return value

    def leaf(self, dtype, shape, fill="normal", constant=None):
        """A new input or initializer. constant: None draws which; symbols among the extents make it an input."""
        array = et.tensor(self.generator, dtype, shape, fill)
        dims = tuple(self.symbols.get(d, d) for d in array.shape)
        if constant is None:
            constant = self.chance(0.3)
        if constant and not (set(array.shape) & set(self.symbols)):
            return self.add(array, "initializer", fill)
        return self.add(array, "input", fill, dims)

    def constant(self, array, dtype=None):
        """An operand of known values, for the most part an initializer."""
        array = numpy.asarray(array, dtype)
        if self.chance(0.93):
            return self.add(array, "initializer")
        return self.add(array, "input", array)  # the same array at every run

    def ints(self, values, dtype=et.I64):
        return self.constant(numpy.array(values, dtype).reshape(len(values)))

    def candidates(self, dtypes, low, high, where):
        return [v for v in self.values if v.dtype in dtypes and low <= v.rank <= high and (where is None or where(v.array))
                and not isinstance(v.fill, numpy.ndarray)]

    def operand(self, dtypes, rank=(0, 5), where=et.tame, fill="normal", fresh=0.15, most=2000):
        """An earlier value of one of these types and ranks for which `where` holds, or a new one.
        `where` None: any values, also NaN and infinities."""
        if not self.chance(fresh):
            found = self.candidates(dtypes, *rank, where)
            made = [v for v in found if v.source == "node"]
            if made and self.chance(0.8):  # chains are what is fused
                return made[-1] if self.chance(0.5) else self.pick(made)
            if found and self.chance(0.6):
                return self.pick(found)
        if where is None and self.special and self.chance(0.7):
            fill = "special"
        elif fill == "normal" and self.chance(0.1):
            fill = "halves"
        value = self.leaf(self.dtype(dtypes), self.shape(*rank, most=most), fill)
        if where is not None and not where(value.array):
            raise Refused("the values drawn do not suit")
        return value

    def like(self, value, shape=None, where=et.tame, fill="normal", constant=None):
        """Of the type of `value` and of this shape (its own): an earlier one, or a new one."""
        shape = value.shape if shape is None else tuple(shape)
        found = [v for v in self.values if v.dtype == value.dtype and v.shape == shape and (where is None or where(v.array))
                 and (constant is None or v.is_constant == constant)]
        if found and self.chance(0.5):
            return self.pick(found)
        if where is None and self.special and self.chance(0.5):
            fill = "special"
        return self.leaf(value.dtype, shape, fill, constant)

    def broadcastable(self, shape):
        """A shape that broadcasts with this one."""
        if self.chance(0.35):
            return tuple(shape)
        kept = list(shape[self.int(0, len(shape)):] if self.chance(0.5) else shape)
        other = [1 if self.chance(0.3) else d for d in kept]
        if self.chance(0.1) and len(other) == len(shape) < 5 and numpy.prod(shape, dtype=int) < 500:
            other = [self.int(1, 3)] + other
        return tuple(self.int(2, 4) if d == 1 and self.chance(0.1) else d for d in other)

    def broadcast_like(self, value, **how):
        return self.like(value, self.broadcastable(value.shape), **how)

    # --- nodes

    def emit(self, op, inputs, outputs=1, domain=None, captured=(), **attributes):
        """Adds a node and runs it. outputs: how many, or which are wanted as booleans. Results: its values (None: unwanted).
        An operand or attribute that is None is left out."""
        domain = self.row.domain if domain is None else domain
        wanted = [True] * outputs if isinstance(outputs, int) else list(outputs)
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        names = [v.name if v is not None else "" for v in inputs]
        first = len(self.values)
        result_names = [f"v{first + sum(wanted[:i])}" if w else "" for i, w in enumerate(wanted)]
        while result_names and not result_names[-1]:
            result_names.pop()
        attributes = {k: v for k, v in attributes.items() if v is not None}
        proto = helper.make_node(op, names, result_names, name=f"{op}_{len(self.nodes)}", domain=domain, **attributes)
        needed = [v for v in list(inputs) + list(captured) if v is not None]
        operands = {v.name: v.array for v in needed}
        arrays, judge = reference.run_node(proto, operands, self.opset, {v.name for v in needed if v.is_constant})
        if any(a.size > MOST_ELEMENTS or a.ndim > 8 for a in arrays):
            raise Refused("too large")
        self.nodes.append(Node(proto, self.row, [v.name for v in captured], judge))
        made = iter([self.add(a, "node") for a in arrays])
        return [next(made) if w else None for w in wanted]

    def add_node(self, row, attempts=15):
        """One node of this row. False: no draw was accepted."""
        for attempt in range(attempts):
            self.empty = self.empty and attempt < 5
            values, nodes, self.row = len(self.values), len(self.nodes), row
            try:
                row.sample(self, row.op)
                return True
            except Refused:
                self.refused += 1
                del self.values[values:], self.nodes[nodes:]
        return False
