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


FOUND = [
    *[quantized(t) for t in (et.U8, et.I8, et.U16, et.I16)],
    Found("a constant whose second result nothing reads", [node("TopK", ["x", "k"], ["y", "unread"])],
          {"x": array([1, 3, 2]), "k": array([2], et.I64)}, {"y": et.F32}, ("x", "k")),
    Found("unsigned numbers are not below -lambd", [node("Shrink", ["x"], ["y"], lambd=2.0)], {"x": array([0, 1, 2, 3, 9], et.U32)}, {"y": et.U32}),
    Found("integers and fractional lambd and bias", [node("Shrink", ["x"], ["y"], lambd=1.5, bias=0.5)],
          {"x": array([-3, -2, -1, 0, 1, 2, 3], et.I32)}, {"y": et.I32}),
]
