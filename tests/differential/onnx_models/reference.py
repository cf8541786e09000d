"""What ONNX Runtime makes of one node on given operands.

Graph optimisations are off, so that none of its fusions hides anything. A type that it lacks for an
operator is computed in a wider one and converted back, as it does itself for half precision: f32 for
halves, i32 or i64 for small integers, whose overflow wraps the same way. What it lacks altogether, ONNX's
own reference implementation computes."""
import ctypes

import numpy
import onnxruntime
from onnx import defs, helper, reference

import element_types as et

IR_VERSION = {**{opset: 8 for opset in range(1, 19)}, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12, 25: 13, 26: 13}
NEWEST_OPSET = 26
onnxruntime.set_default_logger_severity(4)


class Refused(Exception):
    """The model or node is invalid, or the reference lacks it."""


def options():
    o = onnxruntime.SessionOptions()
    o.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    o.intra_op_num_threads = o.inter_op_num_threads = 1
    o.log_severity_level = 4
    return o


OPTIONS = options()


def to_value(array):
    array = numpy.ascontiguousarray(array) if array.ndim else array
    if array.dtype == et.BF16:
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(et.U16), et.code(et.BF16))
    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


def from_value(value):
    if value.element_type() != et.code(et.BF16):
        return numpy.array(value.numpy())
    shape = tuple(value.shape())
    size = int(numpy.prod(shape, dtype=int))
    raw = ctypes.string_at(value.data_ptr(), size * 2) if size else b""
    return numpy.frombuffer(raw, et.BF16).reshape(shape).copy()


def run_model(model, feeds):
    """Outputs by name, of a ModelProto."""
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), OPTIONS, providers=["CPUExecutionProvider"])
        wanted = [o.name for o in session.get_outputs()]
        values = session.run_with_ort_values(wanted, {name: to_value(a) for name, a in feeds.items()})
        return {name: from_value(v) for name, v in zip(wanted, values)}
    except Exception as error:  # its exceptions have no common class
        raise Refused(str(error).replace("\n", " ")) from error


def make_model(nodes, operands, outputs, opset, constants=(), functions=()):
    """operands: {name: array}; those in `constants` are given as initializers."""
    from onnx import numpy_helper
    inputs = [helper.make_tensor_value_info(n, et.code(a.dtype), None) for n, a in operands.items() if n not in constants]
    initializers = [numpy_helper.from_array(a, n) for n, a in operands.items() if n in constants]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info(n) for n in outputs], initializers)
    domains = {n.domain for n in nodes} - {"", "local"}
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in domains]
    if functions:
        imports.append(helper.make_opsetid("local", 1))
    return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION.get(opset, 13), functions=list(functions))


def run_nodes(nodes, operands, outputs, opset, constants):
    model = make_model(nodes, operands, outputs, opset, constants)
    results = run_model(model, {n: a for n, a in operands.items() if n not in constants})
    return [results[name] for name in outputs]


def wider(dtype):
    if dtype in et.HALVES:
        return et.F32
    if dtype in (et.I8, et.I16, et.U8, et.U16):
        return et.I32
    return et.I64 if dtype in (et.U32, et.I32) else et.F64 if dtype == et.F32 else None


def parameter_of(formals, index):
    if not formals:
        return None
    return formals[min(index, len(formals) - 1)].type_str


def widened(node, operands, opset, to_wide):
    """The node with the operands of one type parameter converted; None when nothing can be."""
    schema = defs.get_schema(node.op_type, opset, node.domain)
    wide = {parameter_of(schema.inputs, i): operands[name].dtype for i, name in enumerate(node.input)
            if name in operands and to_wide(operands[name].dtype)}
    wide = {p: t for p, t in wide.items() if p and "(" not in p}
    if not wide:
        return None
    nodes, inner = [], type(node)()
    inner.CopyFrom(node)
    for i, name in enumerate(node.input):
        p = parameter_of(schema.inputs, i)
        if name and p in wide:
            inner.input[i] = f"wide_{i}"
            nodes.append(helper.make_node("Cast", [name], [f"wide_{i}"], to=et.code(to_wide(operands[name].dtype))))
    nodes.append(inner)
    for i, name in enumerate(node.output):
        p = parameter_of(schema.outputs, i)
        if name and p in wide:
            inner.output[i] = f"wide_{name}"
            nodes.append(helper.make_node("Cast", [f"wide_{name}"], [name], to=et.code(wide[p])))
    return nodes


def run_by_onnx(node, operands, outputs, opset):
    """Halves in f32, as ONNX Runtime has it."""
    try:
        nodes = widened(node, operands, opset, lambda t: et.F32 if t in et.HALVES else None) or [node]
        model = make_model(nodes, operands, outputs, opset)
        results = reference.ReferenceEvaluator(model).run(None, dict(operands))
    except Exception as error:
        raise Refused(str(error)) from error
    return [numpy.asarray(r) for r in results]


def run_widened(node, operands, outputs, opset, constants):
    for step in (wider, lambda t: et.I64 if t in et.INTEGERS and t not in (et.I64, et.U64) else None,
                 lambda t: et.F64 if t in et.FLOATS and t != et.F64 else None):
        nodes = widened(node, operands, opset, step)
        if nodes is None:
            continue
        try:
            return run_nodes(nodes, operands, outputs, opset, constants)
        except Refused:
            pass
    return None


def run_exact(node, operands, opset):
    """The node in f64, each result rounded once to its type; None where no reference has it. What ONNX Runtime
    makes of f64 itself is held against ONNX's own reference."""
    outputs = [name for name in node.output if name]
    if node.domain or any(a.HasField("g") for a in node.attribute):
        return None
    nodes = widened(node, operands, opset, lambda t: et.F64 if t in et.FLOATS and t != et.F64 else None)
    try:
        if nodes is not None:
            return run_nodes(nodes, operands, outputs, opset, ())
    except Refused:
        pass
    try:
        nodes = nodes or [node]
        results = reference.ReferenceEvaluator(make_model(nodes, operands, outputs, opset)).run(None, dict(operands))
        return [numpy.asarray(r) for r in results]
    except Exception:  # the reference implementation raises what it likes
        return None


def run_node(node, operands, opset, constants=()):
    """(outputs that the node names, which reference gave them: 'direct', 'wide' or 'onnx')."""
    outputs = [name for name in node.output if name]
    constants = [n for n in constants if n in operands]
    if opset > NEWEST_OPSET:
        return run_by_onnx(node, operands, outputs, opset), "onnx"
    try:
        return run_nodes([node], operands, outputs, opset, constants), "direct"
    except Refused as error:
        missing = any(text in str(error) for text in ("NOT_IMPLEMENTED", "NotImplemented", "Type Error"))
        if not missing or node.domain or any(a.HasField("g") for a in node.attribute):
            raise
    results = run_widened(node, operands, outputs, opset, constants)
    if results is not None:
        return results, "wide"
    return run_by_onnx(node, operands, outputs, opset), "onnx"
