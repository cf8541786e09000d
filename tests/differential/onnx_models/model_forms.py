"""Makers of models of one form each, and what must hold for them. Each is called with (rng, cli, folder) and
returns None, or what is wrong."""
import os
import subprocess

import numpy
from onnx import TensorProto, helper, numpy_helper

import reference
from loop_forms import draw_loop

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node, info = helper.make_node, helper.make_tensor_value_info


def constant(name, array, dtype=numpy.float32):
    return numpy_helper.from_array(numpy.asarray(array, dtype), name)


def model_of(nodes, inputs, outputs, initializers=(), opset=18, ir_version=8):
    graph = helper.make_graph(nodes, "form", inputs, outputs, list(initializers))
    return helper.make_model(graph, ir_version=ir_version, opset_imports=[helper.make_opsetid("", opset)])


class Command:
    """The command on one model's files."""

    def __init__(self, cli, folder, model, feeds):
        self.cli, self.folder = cli, folder
        self.model, self.inputs, self.so, self.out = (os.path.join(folder, n) for n in ("m.onnx", "in.npz", "m.so", "out.npz"))
        with open(self.model, "wb") as file:
            file.write(model.SerializeToString())
        numpy.savez(self.inputs, **feeds)

    def call(self, *arguments):
        done = subprocess.run([self.cli, *arguments], capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stderr.strip()

    def run(self, path, *options):
        """(outputs or None, message)"""
        status, message = self.call("run", path, "--inputs", self.inputs, "--outputs", self.out, "--threads", "1", *options)
        if status:
            return None, f"exit {status}: {message}"
        with numpy.load(self.out) as archive:
            return dict(archive), ""

    def compiled(self, *options):
        status, message = self.call("compile", self.model, "-o", self.so, *options)
        return (None, f"compile, exit {status}: {message}") if status else self.run(self.so)


def shapes_of(feeds):
    return [a for name, array in feeds.items() if array.ndim for a in ("--shape", f"{name}={'x'.join(map(str, array.shape))}")]


def difference(ours, expected, ranks_may_differ=False):
    if set(ours) != set(expected):
        return f"outputs {sorted(ours)}, expected {sorted(expected)}"
    for name, array in expected.items():
        a, b = ours[name], array
        if a.dtype != b.dtype or (a.shape != b.shape and not (a.size == b.size and (ranks_may_differ or a.size == 0))):
            return f"{name} is {a.dtype}{a.shape}, expected {b.dtype}{b.shape}"
        if not numpy.allclose(a.reshape(-1), b.reshape(-1), rtol=1e-5, atol=1e-5):
            return f"{name} differs: {a.reshape(-1)[:4]}, expected {b.reshape(-1)[:4]}"
    return None


def judge(cli, folder, model, feeds, overrides=(), may_refuse="", ranks_may_differ=False):
    """In memory, compiled with open extents, and with all bound."""
    try:
        expected = reference.run_model(model, feeds)
    except reference.Refused:
        return None
    command = Command(cli, folder, model, feeds)
    named = [a for o in overrides for a in ("--override", o)]
    ways = {"run": lambda: command.run(command.model), "open": lambda: command.compiled(*named),
            "bound": lambda: command.compiled(*named, *shapes_of(feeds))}
    for way, call in ways.items():
        ours, message = call()
        if ours is None and may_refuse and may_refuse in message:
            continue
        wrong = message if ours is None else difference(ours, expected, ranks_may_differ)
        if wrong:
            return f"{way}: {wrong}"
    return None


def floats(rng, shape):
    return numpy.array([rng.randint(-4, 5) for _ in range(int(numpy.prod(shape, dtype=int)))], numpy.float32).reshape(shape)


def loops(rng, cli, folder):
    """What ends before shapes stay may have no type, or another rank for what is one element."""
    model, feeds, is_stable = draw_loop(rng)
    return judge(cli, folder, model, feeds, may_refuse="" if is_stable else "no one type fits it", ranks_may_differ=not is_stable)


def branches(rng, cli, folder):
    """One element in both branches, of different ranks, that only broadcasts; what nothing reads may have any types."""
    x = floats(rng, rng.choice([(4,), (2, 3), (1, 5)]))
    ranks = rng.sample([(), (1,), (1, 1)][: x.ndim + 1], 2)
    kind = rng.choice([FLOAT, INT64, BOOL])
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    graphs = []
    for prefix, rank in zip("te", ranks):
        nodes = [node("Constant", [], [prefix + "v"], value=constant("v", numpy.full(rank, rng.randint(0, 2)), dtype)),
                 node("Reshape", ["x", prefix + "s"], [prefix + "u"]) if prefix == "t" else node("Identity", ["x"], [prefix + "u"])]
        if prefix == "t":
            nodes.insert(1, node("Constant", [], [prefix + "s"], value=constant("s", [1] * 4 + [-1], numpy.int64)))
        graphs.append(helper.make_graph(nodes, prefix, [], [info(prefix + "v", kind, []), info(prefix + "u", FLOAT, None)]))
    condition = numpy.full(rng.choice([(), (1,)]), rng.random() < 0.5)
    nodes = [node("If", ["c"], ["r", "unread"], then_branch=graphs[0], else_branch=graphs[1])]
    if kind == BOOL and rng.random() < 0.5:
        nodes += [node("If", ["r"], ["y"], then_branch=helper.make_graph([node("Neg", ["x"], ["ty"])], "a", [], [info("ty", FLOAT, None)]),
                       else_branch=helper.make_graph([node("Abs", ["x"], ["ey"])], "b", [], [info("ey", FLOAT, None)]))]
    else:
        nodes += [node("Cast", ["r"], ["f"], to=FLOAT), node("Add", ["x", "f"], ["y"])]
    model = model_of(nodes, [info("x", FLOAT, [f"d{i}" for i in range(x.ndim)]), info("c", BOOL, condition.shape)], [info("y", FLOAT, None)])
    return judge(cli, folder, model, {"x": x, "c": condition})


def signature(rng, cli, folder):
    """Outputs listed twice, inputs and initialisers as outputs, a domain imported twice under both of its names."""
    x = floats(rng, (3,))
    outputs = [rng.choice(["y", "x", "w", "z"]) for _ in range(rng.randint(1, 6))]
    model = model_of([node("Relu", ["x"], ["y"]), node("Add", ["y", "w"], ["z"])], [info("x", FLOAT, rng.choice([[3], ["n"]]))],
                     [info(o, FLOAT, None) for o in outputs], [constant("w", [1, 2, 3])])
    for _ in range(rng.randint(0, 2)):
        model.opset_import.append(helper.make_opsetid(rng.choice(["", "ai.onnx"]), 18))
    command = Command(cli, folder, model, {"x": x})
    y = numpy.maximum(x, 0)
    values = {"x": x, "y": y, "w": numpy.array([1, 2, 3], numpy.float32)}
    values["z"] = y + values["w"]
    expected = {o: values[o] for o in outputs}
    for way, call in {"run": lambda: command.run(command.model), "open": command.compiled,
                      "bound": lambda: command.compiled("--shape", "x=3")}.items():
        ours, message = call()
        wrong = message if ours is None else difference(ours, expected)
        if wrong:
            return f"{way}: {wrong}"
    model.opset_import.append(helper.make_opsetid("ai.onnx", 13))
    status, message = Command(cli, folder, model, {"x": x}).call("info", command.model)
    return None if status == 1 and "18 and 13" in message else f"two versions of a domain, exit {status}: {message}"


def defaults(rng, cli, folder):
    """Any of the initialisers that are inputs may be given, and compiled to be."""
    n = rng.randint(1, 4)
    names = [f"w{i}" for i in range(n)]
    listed = [w for w in names if rng.random() < 0.8] or names[:1]
    x = floats(rng, (2, 3))
    values = {w: floats(rng, rng.choice([(3,), (2, 3), (1, 3)])) for w in names}
    nodes = [node(rng.choice(["Add", "Mul", "Sub"]), [f"v{i - 1}" if i else "x", w], [f"v{i}"]) for i, w in enumerate(names)]
    model = model_of(nodes, [info("x", FLOAT, ["a", "b"])] + [info(w, FLOAT, values[w].shape) for w in listed],
                     [info(f"v{n - 1}", FLOAT, None)], [constant(w, a) for w, a in values.items()])
    given = [w for w in listed if rng.random() < 0.6]
    feeds = {"x": x, **{w: floats(rng, values[w].shape) for w in given}}
    wrong = judge(cli, folder, model, feeds, listed if rng.random() < 0.5 else given)
    if wrong or not given:
        return wrong
    command = Command(cli, folder, model, feeds)
    ours, message = command.compiled()
    if ours is not None or f"--override {given[0]}" not in message:
        return f"given and not compiled to be: {message}"
    model.ir_version = 3  # constants, though inputs
    command = Command(cli, folder, model, feeds)
    ours, message = command.run(command.model)
    return None if ours is None and "IR version 4" in message else f"IR version 3: {message}"


def cures(rng, cli, folder):
    """What an error advises makes the model compile, and where it says that nothing does, nothing does."""
    n, k = rng.randint(2, 6), rng.randint(1, 3)
    scalar = constant("zero", 0, numpy.int64)
    shape_nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["d"])]
    kind = rng.randrange(5)
    feeds, extra, initializers = {"x": floats(rng, (n,))}, [], [scalar]
    if kind == 0:    # the values of an input say how often
        nodes = [node("ReduceSum", ["k"], ["r"], keepdims=1), node("Tile", ["x", "r"], ["y"])]
        feeds["k"], extra = numpy.ones(k, numpy.int64), [info("k", INT64, ["k"])]
    elif kind == 1:  # an extent by way of floats
        initializers += [constant("low", -9), constant("i0", 0, numpy.int32), constant("i1", 1, numpy.int32)]
        nodes = shape_nodes + [node("Cast", ["d"], ["f"], to=FLOAT), node("Max", ["f", "low"], ["m"]),
                               node("Cast", ["m"], ["e"], to=TensorProto.INT32), node("Range", ["i0", "e", "i1"], ["y"])]
    elif kind == 2:  # an extent must be known
        initializers.append(constant("axis", [0], numpy.int64))
        nodes = shape_nodes + [node("Unsqueeze", ["d", "axis"], ["r"]), node("Tile", ["x", "r"], ["y"])]
    elif kind == 3:  # only a run knows
        initializers.append(constant("axis", [0], numpy.int64))
        nodes = [node("NonZero", ["x"], ["z"]), node("Shape", ["z"], ["zs"]), node("ReduceMax", ["zs"], ["r"], keepdims=1),
                 node("Tile", ["x", "r"], ["y"])]
    else:            # an extent must be 1
        initializers += [constant("a", numpy.ones(7)), constant("b", numpy.ones(5))]
        nodes = [node("Add", ["x", "a"], ["p"]), node("Add", ["x", "b"], ["q"]), node("Concat", ["p", "q"], ["y"], axis=0)]
    model = model_of(nodes, [info("x", FLOAT, ["n"]), *extra], [info("y", TensorProto.INT32 if kind == 1 else FLOAT, None)], initializers)
    command = Command(cli, folder, model, feeds)
    status, message = command.call("compile", command.model, "-o", command.so)
    bound, after = command.call("compile", command.model, "-o", command.so, *shapes_of(feeds))
    if status == 0:
        return None
    if "must be bound with --shape" in message:
        return None if status == 1 and bound == 0 else f"advised --shape with exit {status}, then exit {bound}: {after}"
    if "it compiles with --shape n=1" in message:
        one, after = command.call("compile", command.model, "-o", command.so, "--shape", "n=1")
        return None if one == 0 else f"advised n=1, then exit {one}: {after}"
    if "no --shape helps" not in message or status != 3 or bound != 3:
        return f"exit {status}: {message}; bound, exit {bound}"
    ours, after = command.run(command.model)
    if "`tilewright run`" in message and ours is None:
        return f"advised run, then {after}"
    return None


FORMS = [loops, branches, loops, signature, loops, defaults, loops, cures]
