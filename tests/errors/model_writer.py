"""ONNX models as bytes, written field by field: no package is needed, and nothing stops a model from breaking rules.

Field numbers are those of onnx.proto (frontends/onnx/onnx.proto holds the ones that are read)."""
import struct

FLOAT, INT64, BOOL, STRING = 1, 7, 9, 8


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while True:
        out.append(value & 127 | (128 if value > 127 else 0))
        value >>= 7
        if not value:
            return bytes(out)


def field(number, value):
    """An int as varint, a float in 4 bytes, text or bytes with their length."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor(name, shape, data=b"", dtype=FLOAT, external=()):
    out = b"".join(field(1, d) for d in shape) + field(2, dtype) + field(8, name)
    if external:
        entries = b"".join(field(13, field(1, k) + field(2, v)) for k, v in external)
        return out + entries + field(14, 1)
    return out + field(9, data)


def ints(name, values):
    return tensor(name, [len(values)], struct.pack(f"<{len(values)}q", *values), INT64)


def scalar(name, value, dtype=INT64):
    return tensor(name, [], struct.pack("<q" if dtype == INT64 else "<f", value), dtype)


def attribute(name, value):
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, 2)
    if isinstance(value, float):
        return field(1, name) + field(2, value) + field(20, 1)
    if isinstance(value, str):
        return field(1, name) + field(4, value) + field(20, 3)
    if isinstance(value, list):
        return field(1, name) + b"".join(field(8, v) for v in value) + field(20, 7)
    if value[0] == "graph":
        return field(1, name) + field(6, value[1]) + field(20, 5)
    return field(1, name) + field(5, value[1]) + field(20, 4)


def node(op, inputs, outputs, name="", domain="", **attributes):
    out = b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs)
    out += field(3, name) + field(4, op) + (field(7, domain) if domain else b"")
    return out + b"".join(field(5, attribute(k, v)) for k, v in attributes.items())


def value(name, shape, dtype=FLOAT):
    """shape: ints and symbols; None: of unknown rank."""
    dims = b"" if shape is None else b"".join(
        field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in shape)
    inner = field(1, dtype) + (b"" if shape is None else field(2, dims))
    return field(1, name) + field(2, field(1, inner))


def graph(nodes, inputs=(), outputs=(), initializers=(), name="g"):
    out = b"".join(field(1, n) for n in nodes) + field(2, name)
    out += b"".join(field(5, t) for t in initializers)
    return out + b"".join(field(11, i) for i in inputs) + b"".join(field(12, o) for o in outputs)


def model(graph_bytes, opset=17, ir_version=8):
    return field(1, ir_version) + field(7, graph_bytes) + field(8, field(2, opset))


def simple(nodes, initializers=(), inputs=None, outputs=None, opset=17):
    """x: f32[2, 3] to y, unless said otherwise."""
    return model(graph(nodes, inputs if inputs is not None else [value("x", [2, 3])],
                       outputs or [value("y", None)], initializers), opset)
