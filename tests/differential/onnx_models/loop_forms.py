"""Loops whose bodies change the shape of what they carry, number and condition as scalars or vectors, alone or in
another loop."""
import numpy
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node, info = helper.make_node, helper.make_tensor_value_info


class Draw:
    """A loop in the making: operands, the body's nodes, inputs and outputs, and the names of results."""

    def __init__(self, rng):
        self.rng, self.feeds, self.inputs, self.constants = rng, {}, [], []
        self.nodes, self.body_inputs, self.body_outputs, self.initial, self.results = [], [], [], [], []
        self.rows = []  # body values that may be stacked

    def constant(self, name, array, dtype):
        self.constants.append(numpy_helper.from_array(numpy.asarray(array, dtype), name))
        return name

    def operand(self, name, array, code, constant):
        array = numpy.asarray(array, helper.tensor_dtype_to_np_dtype(code))
        if constant:
            return self.constant(name, array, array.dtype)
        self.inputs.append(info(name, code, array.shape))
        self.feeds[name] = array
        return name

    def carry(self, name, initial, result, shape=None):
        self.body_inputs.append(info(name, FLOAT, shape))
        self.body_outputs.append(info(result, FLOAT, None))
        self.initial.append(initial)
        self.results.append("y_" + name)
        self.rows.append(result)

    def carried(self, kind):
        """number: the iteration's as a float, from outside this."""
        rng = self.rng
        if kind == "vector":           # a scalar at first
            self.constant("one_element", [2], numpy.float32)
            self.nodes.append(node("Add", ["s", "one_element"], ["s_next"]))
            self.carry("s", self.constant("s_first", 1, numpy.float32), "s_next", [])
        elif kind == "placeholder":    # overwritten without being read
            self.nodes.append(node("Mul", ["x", "number"], ["p_next"]))
            self.carry("p", self.constant("p_first", 7, numpy.float32), "p_next", [])
        elif kind == "stable":
            self.nodes.append(node("Add", ["v", "number"], ["v_next"]))
            self.carry("v", "x", "v_next")
        elif kind == "read":           # of another shape at first, and read
            self.nodes += [node("ReduceSum", ["r"], ["r_sum"], keepdims=0), node("Add", ["x", "r_sum"], ["r_next"])]
            self.carry("r", self.constant("r_first", numpy.zeros(rng.choice([(0,), (1,), (1, 1)])), numpy.float32), "r_next")
        else:                          # a shape that takes two iterations to stay
            self.nodes += [node("Identity", ["b"], ["a_next"]), node("Neg", ["x"], ["b_next"])]
            self.carry("a", self.constant("a_first", 5, numpy.float32), "a_next")
            self.carry("b", self.constant("b_first", 6, numpy.float32), "b_next")
            self.rows.remove("a_next")  # rows of different shapes are no tensor


def draw_loop(rng):
    """(model, inputs, whether enough iterations are run for every value to have the shape that it keeps)."""
    d = Draw(rng)
    x = [rng.randint(-3, 4) for _ in range(24)]
    shape = rng.choice([(4,), (2, 3), (1,), ()])
    d.operand("x", numpy.reshape(x[: int(numpy.prod(shape, dtype=int))], shape), FLOAT, False)
    if rng.random() < 0.5:
        d.inputs[0] = info("x", FLOAT, [f"d{axis}" for axis in range(len(shape))])
    one = [(), (1,)]
    trips = rng.choice([0, 1, 2, 3, 5, None])
    known = rng.random() < 0.5
    count = "" if trips is None else d.operand("trips", numpy.full(rng.choice(one), trips), INT64, known)
    how = rng.choice(["constant", "input"] + ([""] if trips is not None else []))
    runs = how != "input" or rng.random() < 0.8
    condition = d.operand("runs", numpy.full(rng.choice(one), runs), BOOL, how == "constant") if how else ""
    declared = [info("i", INT64, rng.choice(one)), info("going", BOOL, rng.choice(one))]
    d.constant("scalar", [], numpy.int64)
    d.constant("axis", [0], numpy.int64)
    last = rng.choice([0, 1, 2, 3])
    d.constant("last", last, numpy.int64)
    d.nodes = [node("Reshape", ["i", "scalar"], ["i_scalar"]), node("Cast", ["i_scalar"], ["number"], to=FLOAT),
               node("Less", ["i_scalar", "last"], ["more"])]
    if not how or (rng.random() < 0.5 and trips is not None):
        d.nodes.append(node("Identity", ["going"], ["goes_on"]))
    else:
        trips = min(last + 1, last + 1 if trips is None else trips)
        d.nodes.append(node("Unsqueeze", ["more", "axis"], ["goes_on"]) if rng.random() < 0.5 else node("Identity", ["more"], ["goes_on"]))
    kinds = rng.sample(["vector", "placeholder", "stable", "read", "chain"], k=rng.randint(1, 4))
    for kind in kinds:
        d.carried(kind)
    if d.rows and rng.random() < 0.5:
        d.nodes.append(node("Abs", [rng.choice(d.rows)], ["row"]))
        d.body_outputs.append(info("row", FLOAT, None))
        d.results.append("rows")
    body = helper.make_graph(d.nodes, "body", declared + d.body_inputs, [info("goes_on", BOOL, None)] + d.body_outputs)
    loop = node("Loop", [count, condition, *d.initial], d.results, body=body)
    read = [r for r in d.results if rng.random() < 0.8] or d.results[:1]
    nodes, outputs = [loop], [info(r, FLOAT, None) for r in read]
    if rng.random() < 0.3:
        around = helper.make_graph([node("Identity", ["outer_going"], ["outer_goes_on"]), loop], "outer",
                                   [info("outer_i", INT64, []), info("outer_going", BOOL, [])], [info("outer_goes_on", BOOL, None), *outputs])
        d.constant("two", 2, numpy.int64)
        nodes, outputs = [node("Loop", ["two", ""], ["all_" + r for r in read], body=around)], [info("all_" + r, FLOAT, None) for r in read]
    graph = helper.make_graph(nodes, "loops", d.inputs, outputs, d.constants)
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 18)])
    return model, d.feeds, trips >= (2 if "chain" in kinds else 1) and runs
