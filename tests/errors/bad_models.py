"""Models that break rules or ask for too much: (name, bytes, exit statuses allowed, phrases of the message)."""
import struct

from model_writer import BOOL, FLOAT, INT64, attribute, field, graph, ints, model, node, scalar, simple, tensor, value

HUGE = 1 << 40


def good():
    return simple([node("Relu", ["x"], ["y"], "r")])


def deep_graphs(depth):
    inner = graph([node("Identity", ["x"], ["z"])], outputs=[value("z", None)])
    for _ in range(depth):
        body = node("If", ["c"], ["z"], then_branch=("graph", inner), else_branch=("graph", inner if len(inner) < 4000 else graph([])))
        inner = graph([body], outputs=[value("z", None)])
    return simple([node("If", ["c"], ["y"], then_branch=("graph", inner), else_branch=("graph", graph([])))],
                  inputs=[value("c", [], BOOL), value("x", [1])])


def long_chain(length):
    nodes = [node("Relu", ["x" if i == 0 else f"v{i}"], [f"v{i + 1}"]) for i in range(length)]
    return simple(nodes + [node("Relu", [f"v{length}"], ["y"])])


def doubling(steps):
    """Concatenates a value with itself: 2^steps elements from few bytes."""
    nodes = [node("Concat", [f"v{i}", f"v{i}"], [f"v{i + 1}"], axis=0) for i in range(steps)]
    return simple([node("Identity", ["x"], ["v0"])] + nodes + [node("Identity", [f"v{steps}"], ["y"])])


def broken():
    """Files that are no models, and models whose parts do not fit each other."""
    yield "empty", b"", {1}, ["no graph|empty|not a"]
    yield "text", b"hello, this is no model\n" * 10, {1}, ["not a|protobuf|graph"]
    yield "truncated", good()[:-7], {1}, ["truncated"]
    yield "no_opset", field(1, 8) + field(7, graph([node("Relu", ["x"], ["y"])], [value("x", [1])], [value("y", None)])), {1}, ["operator set"]
    yield "future_opset", simple([node("Relu", ["x"], ["y"])], opset=9999), {1, 3}, ["opset"]
    yield "cyclic", simple([node("Add", ["x", "b"], ["a"], "first"), node("Relu", ["a"], ["b"], "second"), node("Relu", ["b"], ["y"])]), {1}, ["'b'"]
    yield "missing_name", simple([node("Relu", ["nowhere"], ["y"], "r")]), {1}, ["'nowhere'", "'r'"]
    yield "duplicate_name", simple([node("Relu", ["x"], ["y"]), node("Abs", ["x"], ["y"])]), {1}, ["'y'"]
    yield "duplicate_initializer", simple([node("Add", ["x", "w"], ["y"])], [ints("w", [1]), ints("w", [2])]), {1}, ["'w'", "twice"]
    yield "missing_output", simple([node("Relu", ["x"], ["z"])]), {1}, ["'y'"]
    yield "unknown_operator", simple([node("Frobnicate", ["x"], ["y"], "f")]), {3}, ["Frobnicate"]
    yield "unknown_operators", simple([node("Frob", ["x"], ["a"]), node("Nicate", ["x"], ["b"]), node("Add", ["a", "b"], ["y"])]), {3}, ["Frob", "Nicate"]
    yield "few_inputs", simple([node("Add", ["x"], ["y"], "sum")]), {1}, ["sum"]
    yield "many_inputs", simple([node("Relu", ["x", "x"], ["y"], "r")]), {1}, ["'r'", "2 operands", "expected 1"]
    yield "left_out_inputs", simple([node("Relu", ["x", "", ""], ["y"], "r")]), {0}, []
    yield "many_outputs", simple([node("Relu", ["x"], ["y", "z"], "r")]), {1}, ["'r'", "2 results", "expected 1"]
    yield "unknown_attribute", simple([node("Relu", ["x"], ["y"], "r", alpha=1.0)]), {1}, ["'r'", "no attribute 'alpha'"]
    yield "attribute_kind", simple([node("Concat", ["x", "x"], ["y"], "c", axis=1.5)]), {1}, ["'c'", "an integer", "'axis'", "a float"]
    yield "missing_attribute", simple([node("Concat", ["x", "x"], ["y"], "c")]), {1}, ["'c'", "'axis'"]
    yield "auto_pad", simple([node("MaxPool", ["x"], ["y"], "p", kernel_shape=[2], auto_pad="SAME")], inputs=[value("x", [1, 1, 8])]), {1}, ["'p'", "SAME_UPPER"]
    then = graph([node("Identity", ["x"], ["t"])], outputs=[value("t", [2, 3])])
    other = graph([node("Shape", ["x"], ["t"])], outputs=[value("t", [2], INT64)])
    choice = node("If", ["c"], ["y"], "choice", then_branch=("graph", then), else_branch=("graph", other))
    yield "branch_types", simple([choice], [tensor("c", [], b"\1", BOOL)]), {1}, ["'choice'", "f32", "i64"]
    yield "wrong_types", simple([node("Add", ["x", "w"], ["y"], "sum")], [ints("w", [1, 2, 3])]), {1}, ["sum", "type"]
    yield "wrong_shapes", simple([node("MatMul", ["x", "w"], ["y"], "product")], [tensor("w", [4, 5], bytes(80))]), {1}, ["product", r"\[2, 3\]", r"\[4, 5\]"]
    yield "no_broadcast", simple([node("Add", ["x", "w"], ["y"], "sum")], [tensor("w", [2], bytes(8))]), {1}, ["sum", "broadcast"]
    yield "axis_out_of_range", simple([node("Softmax", ["x"], ["y"], "s", axis=7)]), {1}, ["axis", "7"]
    yield "bad_permutation", simple([node("Transpose", ["x"], ["y"], "t", perm=[0, 0])]), {1}, ["permutation"]
    yield "string_attribute", simple([node("Softmax", ["x"], ["y"], "s", axis="one")]), {1}, ["axis"]
    yield "reshape_count", simple([node("Reshape", ["x", "s"], ["y"], "r")], [ints("s", [4, 5])]), {1}, ["'r'", "6"]
    yield "reshape_two_open", simple([node("Reshape", ["x", "s"], ["y"], "r")], [ints("s", [-1, -1])]), {1}, ["-1"]
    yield "negative_extent", simple([node("Relu", ["x"], ["y"])], inputs=[value("x", [-5, 3])]), {0}, []  # exporters write -1 for unknown ones
    yield "zero_strides", simple([node("MaxPool", ["x"], ["y"], "p", kernel_shape=[2], strides=[0])], inputs=[value("x", [1, 1, 8])]), {1}, ["strides"]
    yield "zero_group", simple([node("Conv", ["x", "w"], ["y"], "c", group=0)], [tensor("w", [1, 1, 1], bytes(4))], [value("x", [1, 1, 8])]), {1}, ["group"]
    yield "large_window", simple([node("MaxPool", ["x"], ["y"], "p", kernel_shape=[1 << 40])], inputs=[value("x", [1, 1, 8])]), {1}, ["window|pads|kernel"]
    yield "data_too_short", simple([node("Add", ["x", "w"], ["y"])], [tensor("w", [100], bytes(8))]), {1}, ["'w'", "8"]
    yield "size_overflow", simple([node("Add", ["x", "w"], ["y"])], [tensor("w", [1 << 62, 1 << 62], bytes(8))]), {1}, ["'w'"]
    yield "negative_size", simple([node("Add", ["x", "w"], ["y"])], [tensor("w", [-1], bytes(8))]), {1}, ["'w'"]
    for name, path in {"parent": "../../etc/passwd", "absolute": "/etc/passwd", "device": "/dev/zero", "missing": "nothing.bin", "folder": "."}.items():
        w = tensor("w", [4], external=[("location", path)])
        yield "external_" + name, simple([node("Add", ["x", "w"], ["y"])], [w]), {1}, ["'w'"]
    w = tensor("w", [4], external=[("location", "model.onnx"), ("offset", "-8"), ("length", "99999999999999999999")])
    yield "external_range", simple([node("Add", ["x", "w"], ["y"])], [w]), {1}, ["'w'"]


def alone_in(op):
    """A graph whose one result comes from an operator that nobody knows."""
    return ("graph", graph([node(op, ["x"], ["t"])], outputs=[value("t", None)]))


def unsupported():
    """Legal models that need what is not there: the message lists all of it, each thing once, by name."""
    yield "unknown_chain", simple([node("Frob", ["x"], ["a"]), node("Relu", ["a"], ["b"]), node("Nicate", ["b"], ["y"])]), {3}, ["needs 2 things", "Frob", "Nicate"]
    yield "unknown_repeated", simple([node("Frob", ["x"], ["a"], "one"), node("Frob", ["a"], ["b"], "two"), node("Frob", ["b"], ["y"])]), {3}, \
        ["node 'one'.*Frob.*also at 2 other nodes"]
    choice = node("If", ["c"], ["a"], "choice", then_branch=alone_in("Frob"), else_branch=alone_in("Nicate"))
    known_by_run = [node("ReduceMax", ["x"], ["m"], keepdims=0), node("Cast", ["m"], ["c"], to=BOOL)]
    yield "unknown_in_branches", simple([*known_by_run, choice, node("Ate", ["a"], ["y"])]), {3}, \
        ["needs 3 things", "Frob", "Nicate", "Ate"]
    hidden = [node("Frob", ["x"], ["c"]), node("If", ["c"], ["y"], then_branch=alone_in("Nicate"), else_branch=alone_in("Ate"))]
    yield "unknown_behind_condition", simple(hidden), {3}, ["needs 3 things", "Frob", "Nicate", "Ate"]
    yield "int4_initializer", simple([node("Add", ["x", "w"], ["y"])], [tensor("w", [2], b"\x21", 22)]), {3}, ["'w'", "element type int4"]
    yield "float8_input", simple([node("Cast", ["x"], ["a"], to=1), node("Frob", ["a"], ["y"])], inputs=[value("x", [2], 17)]), {3}, ["'x'", "float8e4m3fn", "Frob"]
    yield "float8_cast", simple([node("Cast", ["x"], ["y"], "c", to=19)]), {3}, ["'c'", "float8e5m2"]
    two = [field(8, field(1, domain) + field(2, version)) for domain, version in (("ai.onnx", 13), ("", 17))]
    yield "two_opsets", simple([node("Relu", ["x"], ["y"])]) + two[0], {1}, ["ai.onnx", "17 and 13"]
    yield "opset_twice", simple([node("Relu", ["x"], ["y"])]) + two[1], {0}, []
    yield "one_channel", simple([node("BatchNormalization", ["x", "w", "w", "w", "w"], ["y"], "b")], [tensor("w", [2], bytes(8))], [value("x", [2])]), {1}, \
        ["'b'", "one channel"]


def large():
    """Little files that ask for much memory or time."""
    one = tensor("value", [1], struct.pack("<f", 1))
    shape = ints("s", [HUGE])
    yield "constant_of_shape", simple([node("ConstantOfShape", ["s"], ["y"], "fill", value=("tensor", one))], [shape]), {1, 3}, ["fill|y|limit|memory"]
    yield "expand", simple([node("Expand", ["x", "s"], ["y"], "wide")], [ints("s", [1 << 20, 1 << 20, 2, 3])]), {1, 3}, ["limit|memory"]
    yield "expand_overflow", simple([node("Expand", ["x", "s"], ["y"], "wide")], [ints("s", [1 << 40, 1 << 40, 2, 3])]), {1, 3}, ["limit|memory|overflow|large"]
    yield "expand_folded", simple([node("Expand", ["w", "s"], ["z"], "wide"), node("ReduceSum", ["z"], ["r"], keepdims=0), node("Add", ["x", "r"], ["y"])],
                                  [scalar("w", 1.0, FLOAT), shape]), {1, 3}, ["limit|memory"]
    yield "range", simple([node("Range", ["a", "b", "c"], ["y"], "count")], [scalar("a", 0), scalar("b", HUGE), scalar("c", 1)]), {1, 3}, ["limit|memory|Range"]
    yield "tile", simple([node("Tile", ["x", "s"], ["y"], "many")], [ints("s", [HUGE, 8])]), {1, 3}, ["limit|memory|Tile"]
    yield "pad", simple([node("Pad", ["x", "s"], ["y"], "edge")], [ints("s", [0, 0, HUGE, 0])]), {1, 3}, ["limit|memory|Pad"]
    yield "resize", simple([node("Resize", ["x", "", "", "s"], ["y"], "zoom", mode="nearest")], [ints("s", [1 << 20, 1 << 20])]), {1, 3}, ["limit|memory|Resize"]
    yield "doubling", doubling(45), {1, 3}, ["limit|memory"]
    yield "outer_product", simple([node("Reshape", ["w", "c"], ["u"]), node("MatMul", ["u", "w"], ["y"], "outer")],
                                  [ints("c", [-1, 1])], [value("x", [1]), value("w", [1, 1 << 20])]), {1, 3}, ["limit|memory|random"]
    yield "large_input", simple([node("Relu", ["x"], ["y"])], inputs=[value("x", [1 << 20, 1 << 20])]), {1, 3}, ["limit|memory|large"]
    yield "deep_graphs", deep_graphs(3000), {1, 3}, ["deep|nest"]
    yield "long_chain", long_chain(300), {0}, []


def all_models():
    yield from broken()
    yield from unsupported()
    yield from large()
