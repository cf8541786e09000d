"""A drawn model as ModelProto, with the inputs of each run.

Some nodes are put into functions of the model's own; some inputs have symbolic extents, for which the
inputs of other sizes are drawn and run through the reference again."""
import dataclasses

import numpy
from onnx import helper, numpy_helper

import element_types as et
import reference
from model_sampler import MOST_ELEMENTS, SYMBOL_EXTENTS, Sampler
from reference import Refused

CHAINING = {"math", "activation", "shape", "movement", "selection", "reduction"}  # these take values of any shape
# ONNX Runtime takes an extent of 1 for others, too, where the standard asks for equal ones (of Scan: a state
# that grows in the first iteration).
LENIENT = {"AffineGrid", "BatchNormalization", "CausalConvWithState", "Conv", "ConvInteger", "ConvTranspose", "DeformConv", "GatherND",
           "GroupNormalization", "InstanceNormalization", "LayerNormalization", "LinearAttention", "NegativeLogLikelihoodLoss",
           "QLinearConv", "RMSNormalization", "RotaryEmbedding", "Scan", "SoftmaxCrossEntropyLoss"}
LATEST = 18  # operator sets are drawn from 13 to the newest, half of them from the last few


@dataclasses.dataclass
class Run:
    feeds: dict      # input name: array
    values: dict     # every value's array, as the reference has it


@dataclasses.dataclass
class Model:
    sampler: Sampler
    proto: object
    outputs: list    # names
    runs: list       # the drawn sizes first

    @property
    def nodes(self):
        return self.sampler.nodes

    @property
    def is_symbolic(self):
        return any(isinstance(d, str) for v in self.sampler.values for d in v.dims)

    @property
    def constants(self):
        return {v.name: v.array for v in self.sampler.values if v.is_constant}


def draw_opset(rng, row):
    if row.alone:
        return row.alone
    low = max(13, row.first)
    return rng.randint(max(low, LATEST), reference.NEWEST_OPSET) if rng.random() < 0.5 else rng.randint(low, reference.NEWEST_OPSET)


def sample(rows, seed, number):
    """Model `number` of this seed: its star operator goes round the table, the others are drawn. None: the star was refused."""
    names = sorted(rows)
    star = rows[names[(number * 59 + 7) % len(names)]]  # 59: neighbours in the table come far apart
    s = Sampler(f"{seed}/{number}", 0)
    s.opset = draw_opset(s.rng, star)
    count = 1 if star.alone else s.pick([1, 1, 2, 3, 4, 5, 6, 8])
    at = s.int(0, count - 1)
    others = [r for r in rows.values() if not r.alone and r.first <= s.opset]
    chaining = [r for r in others if r.family in CHAINING]
    for i in range(count):
        if not s.add_node(star if i == at else s.pick(chaining if s.chance(0.6) else others)) and i == at:
            return s, None
    return s, finish(s)


def drop_unused(s):
    used = {name for n in s.nodes for name in list(n.proto.input) + n.captured}
    s.values = [v for v in s.values if v.source == "node" or v.name in used]
    return used


def wrap_in_functions(s):
    """(nodes, functions): now and then a node becomes a call of a function that holds it."""
    nodes, functions = [], []
    for n in s.nodes:
        if n.captured or not n.proto.input or not s.chance(0.04):
            nodes.append(n.proto)
            continue
        name = f"F{len(functions)}"
        given = [i for i in dict.fromkeys(n.proto.input) if i]
        made = [o for o in n.proto.output if o]
        domains = [helper.make_opsetid("", s.opset)] + ([helper.make_opsetid(n.proto.domain, 1)] if n.proto.domain else [])
        functions.append(helper.make_function("local", name, given, made, [n.proto], domains))
        nodes.append(helper.make_node(name, given, made, name=f"call_{name}", domain="local"))
    return nodes, functions


def finish(s):
    used = drop_unused(s)
    made = [v for v in s.values if v.source == "node"]
    outputs = [v for v in made if v.name not in used or s.chance(0.1)]
    nodes, functions = wrap_in_functions(s)
    runs = [Run({v.name: v.array for v in s.values if v.source == "input"}, {v.name: v.array for v in s.values})]
    s.open = s.open and not any(rank_of_run(n.proto) for n in s.nodes)
    if s.open:
        open_all(s)
    runs += other_sizes(s)
    if len(runs) == 1 and not s.open:
        for v in s.values:
            v.dims = v.shape
    inputs = [helper.make_tensor_value_info(v.name, et.code(v.dtype), v.dims) for v in s.values if v.source == "input"]
    shaped = len(runs) == 1 and s.chance(0.5)
    results = [helper.make_tensor_value_info(v.name, et.code(v.dtype), v.shape if shaped else None) for v in outputs]
    constants = [numpy_helper.from_array(v.array, v.name) for v in s.values if v.is_constant]
    graph = helper.make_graph(nodes, "drawn", inputs, results, constants)
    domains = sorted({n.domain for n in nodes} | {o.domain for f in functions for o in f.opset_import} - {"", "local"})
    imports = [helper.make_opsetid("", s.opset)] + [helper.make_opsetid(d, 1) for d in domains if d]
    proto = helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=reference.IR_VERSION.get(s.opset, 13))
    return Model(s, proto, [v.name for v in outputs], runs)


def open_all(s):
    """Every extent of an input becomes a symbol of its own, but for operands of known values."""
    for v in s.values:
        if v.source == "input" and not isinstance(v.fill, numpy.ndarray):
            v.dims = tuple(f"{v.name}_{d}" for d in range(v.rank))


def rank_of_run(node):
    """Whether the rank of the node's result depends on extents: known before the run only if they are."""
    return node.op_type == "Squeeze" and len([i for i in node.input if i]) < 2 and not node.attribute


def is_lenient(node, operands):
    """Whether the reference accepts what the standard does not: extents of an empty operand of Concat, windows
    larger than the image."""
    if node.op_type == "Concat":
        axis = next(a.i for a in node.attribute if a.name == "axis")
        others = {tuple(numpy.delete(operands[name].shape, axis)) for name in node.input}
        return len(others) > 1
    if node.op_type in ("MaxPool", "AveragePool", "LpPool"):
        kernel = next(a.ints for a in node.attribute if a.name == "kernel_shape")
        pads = next((a.ints for a in node.attribute if a.name == "pads"), [0] * (2 * len(kernel)))
        dilations = next((a.ints for a in node.attribute if a.name == "dilations"), [1] * len(kernel))
        image = operands[node.input[0]].shape[2:]
        return any(d + p + q < (k - 1) * by + 1 for d, k, by, p, q in zip(image, kernel, dilations, pads, pads[len(kernel):]))
    return False


def drawn_extents(s, named):
    """Of the symbols, for one more run. Where all are open most combinations are wrong: some extents become 1."""
    if s.open:
        sizes = {d: size for v in s.values if v.source == "input" for d, size in zip(v.dims, v.shape)}
        strict = any(n.proto.op_type in LENIENT for n in s.nodes)
        return {name: 1 if not strict and s.chance(0.3) else sizes[name] for name in sorted(named)}
    return {name: s.pick([2, 3] + SYMBOL_EXTENTS + ([0, 1] if s.chance(0.3) else [])) for name in sorted(named)}


def other_sizes(s):
    """Runs with other extents for the symbols, those that the reference accepts."""
    named = {d for v in s.values if v.source == "input" for d in v.dims if isinstance(d, str)}
    if not named:
        return []
    runs = []
    for _ in range(12 if s.open else 4):
        extents = drawn_extents(s, named)
        try:
            run = resized(s, extents)
        except Refused:
            continue
        if run:
            runs.append(run)
        if len(runs) == 2:
            break
    return runs


def resized(s, extents):
    values = {}
    for v in s.values:
        if v.source == "input" and any(isinstance(d, str) for d in v.dims):
            values[v.name] = et.tensor(s.generator, v.dtype, [extents.get(d, d) for d in v.dims], v.fill)
        elif v.source != "node":
            values[v.name] = v.array
    if any(a.size > MOST_ELEMENTS for a in values.values()):
        return None
    feeds = {v.name: values[v.name] for v in s.values if v.source == "input"}
    for n in s.nodes:
        operands = {name: values[name] for name in list(n.proto.input) + n.captured if name}
        arrays, _ = reference.run_node(n.proto, operands, s.opset, {v.name for v in s.values if v.is_constant})
        if any(a.size > MOST_ELEMENTS or a.ndim > 8 for a in arrays) or s.open and is_lenient(n.proto, operands):
            return None
        values.update(zip([o for o in n.proto.output if o], arrays))
    return Run(feeds, values)


def with_all_outputs(model):
    """The same model with every value as an output."""
    proto = type(model.proto)()
    proto.CopyFrom(model.proto)
    known = set(model.outputs)
    for v in model.sampler.values:
        if v.source == "node" and v.name not in known:
            proto.graph.output.append(helper.make_tensor_value_info(v.name, et.code(v.dtype), None))
    return proto
