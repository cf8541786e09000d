"""The least forms of what the random models found; each says what was wrong."""
import dataclasses
import typing

import numpy
from onnx import helper

import element_types as et
import reference

node = helper.make_node


@dataclasses.dataclass
class Run:
    feeds: dict


@dataclasses.dataclass
class Found:
    name: str
    nodes: list
    operands: dict                      # name: array
    outputs: dict                       # name: element type
    constants: tuple = ()               # operands that are initializers
    symbols: typing.Optional[dict] = None  # input: its dimensions, with names among them
    more: list = dataclasses.field(default_factory=list)  # inputs of further runs
    options: list = dataclasses.field(default_factory=lambda: [()])  # of the command, each tried
    expected: typing.Optional[dict] = None  # where ONNX Runtime has no answer
    slack: float = 0.0
    opset: int = 21

    def model(self):
        m = reference.make_model(self.nodes, self.operands, list(self.outputs), self.opset, self.constants)
        for i in m.graph.input:
            array = self.operands[i.name]
            i.CopyFrom(helper.make_tensor_value_info(i.name, et.code(array.dtype), (self.symbols or {}).get(i.name, array.shape)))
        for o in m.graph.output:
            o.CopyFrom(helper.make_tensor_value_info(o.name, et.code(self.outputs[o.name]), None))
        return m

    def runs(self):
        first = {n: a for n, a in self.operands.items() if n not in self.constants}
        return [Run(first)] + [Run(feeds) for feeds in self.more]


def array(values, dtype=et.F32):
    return numpy.array(values, dtype)


def quantized(dtype):
    return Found(f"known elements that are quantised to {dtype.name} saturate", [node("QuantizeLinear", ["x", "s", "z"], ["y"])],
                 {"x": array([-70000, -3, 2.5, 3.5, 300, 70000]), "s": array(1), "z": array(1, dtype)}, {"y": dtype}, ("x", "s", "z"))


LEVELS = [("--cpu", cpu) for cpu in ("x86-64", "x86-64-v3", "native")]
numbers = array([1 + 2.0 ** -8 + 2.0 ** -30, 1 + 2.0 ** -11 + 2.0 ** -30, 1.1, -3.3, 1e-3], et.F64)
BF16_ROWS = array(numpy.arange(-6, 6).reshape(4, 3, 1), et.BF16)


def moved_bf16(name, nodes, operands, expected, constants=()):
    return Found(f"bf16 for CPUs without bf16: {name}", nodes, operands, {"y": et.BF16}, constants, options=LEVELS, expected={"y": expected})


def value(name, dtype, shape):
    return helper.make_tensor_value_info(name, et.code(dtype), shape)


def number(name, value, dtype=et.I64):
    return node("Constant", [], [name], value=helper.make_tensor(name, et.code(dtype), (), [value]))


def branch(nodes, output):
    return helper.make_graph(nodes, output, [], [value(output, et.F32, None)])


def untaken_branch():
    """A convolution that is larger than the image, in the branch that is not taken then."""
    run = branch([node("Conv", ["x", "w"], ["run"])], "run")
    keep = branch([node("Identity", ["x"], ["keep"])], "keep")
    nodes = [node("Shape", ["x"], ["n"], start=2, end=3), number("three", 3), node("GreaterOrEqual", ["n", "three"], ["wide"]),
             node("Squeeze", ["wide"], ["is_wide"]), node("If", ["is_wide"], ["y"], then_branch=run, else_branch=keep)]
    x = array(numpy.arange(8).reshape(1, 1, 8))
    return Found("a branch that is not taken has extents below 0", nodes, {"x": x, "w": array(numpy.ones((1, 1, 3)))}, {"y": et.F32}, ("w",),
                 symbols={"x": (1, 1, "n")}, more=[{"x": x[:, :, :n]} for n in (1, 2, 3)])


def loop_of_sequences(k):
    """Appends what an If gives to a sequence; the iteration number is i64[1]."""
    choose = node("If", ["c"], [f"r{k}"], then_branch=branch([node("Gather", ["x", f"i{k}"], [f"t{k}"])], f"t{k}"),
                  else_branch=branch([node("Unsqueeze", ["z", "zero"], [f"e{k}"])], f"e{k}"))
    body = helper.make_graph(
        [choose, node("Identity", [f"g{k}"], [f"more{k}"]), node("SequenceInsert", [f"s{k}", f"r{k}"], [f"next{k}"])], f"body{k}",
        [value(f"i{k}", et.I64, [1]), value(f"g{k}", et.BOOL, []), helper.make_tensor_sequence_value_info(f"s{k}", et.code(et.F32), None)],
        [value(f"more{k}", et.BOOL, []), helper.make_tensor_sequence_value_info(f"next{k}", et.code(et.F32), None)])
    return [node("SequenceEmpty", [], [f"empty{k}"]), node("Loop", ["trips", "", f"empty{k}"], [f"all{k}"], body=body),
            node("ConcatFromSequence", [f"all{k}"], [f"y{k}"], axis=0)]


def classes():
    return Found("pairs of 32 bits in stores of constant masks", [node("SoftmaxCrossEntropyLoss", ["x", "t", "w"], ["y"])],
                 {"x": array(numpy.sin(numpy.arange(242)).reshape(11, 11, 2)), "t": array(numpy.arange(22).reshape(11, 2) % 11, et.I32),
                  "w": array(numpy.linspace(0.5, 1.5, 11))}, {"y": et.F32}, slack=2.0 ** -20)


ONE_CHANNEL = {n: ("n",) if n == "x" else (f"{n}0",) for n in ("x", "scale", "bias", "mean", "var")}

FOUND = [
    untaken_branch(), classes(),
    Found("loops side by side that append to sequences", [number("trips", 2), *loop_of_sequences(1), *loop_of_sequences(2)],
          {"x": array([1, 2, 3]), "z": array(7), "c": array(True, et.BOOL), "zero": array([0], et.I64)}, {"y1": et.F32, "y2": et.F32}, ("zero",),
          more=[{"x": array([1, 2, 3]), "z": array(7), "c": array(False, et.BOOL)}]),
    Found("an image of one dimension has one channel", [node("BatchNormalization", list(ONE_CHANNEL), ["y"])],
          {"x": array([1, 2, 3]), "scale": array([2]), "bias": array([3]), "mean": array([1]), "var": array([4])}, {"y": et.F32},
          symbols=ONE_CHANNEL, slack=2.0 ** -20),
    moved_bf16("Relu", [node("Relu", ["x"], ["y"])], {"x": BF16_ROWS}, numpy.maximum(BF16_ROWS, 0)),
    moved_bf16("Where", [node("Where", ["c", "x", "z"], ["y"])], {"c": BF16_ROWS > 0, "x": BF16_ROWS, "z": BF16_ROWS * 0 + 1},
               numpy.where(BF16_ROWS > 0, BF16_ROWS, BF16_ROWS * 0 + 1)),
    moved_bf16("Gather", [node("Gather", ["x", "i"], ["y"], axis=2)], {"x": BF16_ROWS, "i": array(numpy.zeros((4, 1)), et.I64)},
               BF16_ROWS.repeat(4, 2).reshape(4, 3, 4, 1), ("i",)),
    moved_bf16("Mod", [node("Mod", ["x", "w"], ["y"], fmod=1)], {"x": BF16_ROWS, "w": array(2.5, et.BF16)}, numpy.fmod(BF16_ROWS, et.BF16.type(2.5)), ("w",)),
    *[Found(f"f64 is rounded to f32, and that to {t.name}", [node("Cast", ["x"], ["w"], to=1), node("Cast", ["w"], ["y"], to=et.code(t))],
            {"x": numbers}, {"y": t}, options=LEVELS, expected={"y": numbers.astype(et.F32).astype(t)}) for t in et.HALVES],
    *[quantized(t) for t in (et.U8, et.I8, et.U16, et.I16)],
    Found("a constant whose second result nothing reads", [node("TopK", ["x", "k"], ["y", "unread"])],
          {"x": array([1, 3, 2]), "k": array([2], et.I64)}, {"y": et.F32}, ("x", "k")),
    Found("unsigned numbers are not below -lambd", [node("Shrink", ["x"], ["y"], lambd=2.0)], {"x": array([0, 1, 2, 3, 9], et.U32)}, {"y": et.U32}),
    Found("integers and fractional lambd and bias", [node("Shrink", ["x"], ["y"], lambd=1.5, bias=0.5)],
          {"x": array([-3, -2, -1, 0, 1, 2, 3], et.I32)}, {"y": et.I32}),
    Found("constant halves and a factor of their f32 product", [node("Gemm", ["a", "b"], ["y"], alpha=0.3)],
          {"a": array([[1, 2]], et.F16), "b": array([[1, 2, 3], [4, 5, 6]], et.F16)}, {"y": et.F16}, ("b",), slack=2.0 ** -9),
    Found("integers beyond the digits of f64", [node("Shrink", ["x"], ["y"], lambd=0.5, bias=1.0)], {"x": array([2 ** 60 + 1, 5], et.I64)},
          {"y": et.I64}, expected={"y": array([2 ** 60, 4], et.I64)}),
]
