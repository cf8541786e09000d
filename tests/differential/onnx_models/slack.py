"""What the results of a node may differ by from those of the reference."""
import numpy

import element_types as et
import reference
import tolerance
from reference import Refused

RECURRENT = ("RNN", "GRU", "LSTM")
CARRIED_FACTOR = 8  # how far beyond the few disturbed runs a right result may lie


def absolute_result(node, operands, opset, constants):
    """The operator on absolute values: the magnitudes of which its sums consist."""
    proto = type(node.proto)()
    proto.CopyFrom(node.proto)
    if proto.op_type == "Sub":
        proto.op_type = "Add"
    for a in proto.attribute:
        if a.type == a.FLOAT:
            a.f = abs(a.f)
    positive = {n: numpy.abs(a) if a.dtype in et.FLOATS else a for n, a in operands.items()}
    try:
        return reference.run_node(proto, positive, opset, constants)[0]
    except Refused:
        return [None] * len(proto.output)


def amplified(node, operands, results, opset, constants):
    """What results change by when the operands change by one unit: steps that feed the next ones amplify rounding."""
    random = numpy.random.default_rng(1)
    changed = {n: (a * (1 + tolerance.EPS[a.dtype] * random.choice([-1, 1], a.shape))).astype(a.dtype) if a.dtype in (et.F32, et.F64) else a
               for n, a in operands.items()}
    again = reference.run_node(node.proto, changed, opset, constants)[0]
    return [tolerance.magnitude(a.astype(et.F64) - b.astype(et.F64)) for a, b in zip(again, results)]


def of(node, operands, results, opset, constants):
    """What each result of this node may differ by."""
    rule = node.row.tolerance
    arrays = [operands[n] for n in node.proto.input if n]
    if callable(rule):
        return rule(node.proto, arrays, results)
    needs = rule.rule == "sums" and any(r.dtype in et.FLOATS for r in results)
    absolute = absolute_result(node, operands, opset, constants) if needs else [None] * len(results)
    slack = [tolerance.allowed(rule, r, arrays, a) for r, a in zip(results, absolute)]
    if node.proto.op_type in RECURRENT:
        more = amplified(node, operands, results, opset, constants)
        slack = [most + CARRIED_FACTOR * change for most, change in zip(slack, more)]
    return slack
