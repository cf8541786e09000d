"""Results of ONNX's own reference implementation."""
import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator


def run(op, inputs, outputs=1, opset=22, **attributes):
    """One node on arrays (None: absent); its results."""
    names = ["" if v is None else f"x{i}" for i, v in enumerate(inputs)]
    node = helper.make_node(op, names, [f"y{k}" for k in range(outputs)], **attributes)
    given = {n: v for n, v in zip(names, inputs) if n}
    values = [helper.make_tensor_value_info(
        n, helper.np_dtype_to_tensor_dtype(v.dtype), list(v.shape)) for n, v in given.items()]
    unknown = [helper.make_empty_tensor_value_info(f"y{k}") for k in range(outputs)]
    graph = helper.make_graph([node], "one", values, unknown)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    with np.errstate(all="ignore"):
        results = ReferenceEvaluator(model).run(None, given)
    return results[0] if outputs == 1 else results
