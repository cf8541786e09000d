"""Functions of one element, or of a few, in f64, accurate also in their tails: the second opinion where ONNX Runtime's
polynomials in f32, or formulas that cancel, are further from the result than we may be."""
import math

import numpy

erfc = numpy.vectorize(math.erfc, otypes=[float])


def sigmoid(x):
    small = numpy.exp(-numpy.abs(x))
    return numpy.where(x >= 0, 1 / (1 + small), small / (1 + small))


def softplus(x):
    return numpy.logaddexp(0, x)


def gelu(x, tanh):
    if tanh:
        return x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))
    return 0.5 * x * erfc(-x / math.sqrt(2))


def elu(x, alpha, gamma=1.0):
    return gamma * numpy.where(x < 0, alpha * numpy.expm1(numpy.minimum(x, 0)), x)


def local_response(x, alpha, beta, bias, size):
    channels = x.shape[1]
    squares = numpy.zeros_like(x)
    for c in range(channels):
        squares[:, c] = (x[:, max(0, c - (size - 1) // 2):min(channels, c + size // 2 + 1)] ** 2).sum(axis=1)
    return x / (bias + alpha / size * squares) ** beta


# operator: (attributes with their defaults, function of the operands and these)
FUNCTIONS = {
    "Sigmoid": ({}, sigmoid),
    "Softplus": ({}, softplus),
    "Mish": ({}, lambda x: x * numpy.tanh(softplus(x))),
    "Swish": ({"alpha": 1.0}, lambda x, alpha: x * sigmoid(alpha * x)),
    "QuickGelu": ({"alpha": 1.702}, lambda x, alpha: x * sigmoid(alpha * x)),
    "Elu": ({"alpha": 1.0}, elu),
    "Selu": ({"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}, elu),
    "Celu": ({"alpha": 1.0}, lambda x, alpha: numpy.where(x < 0, alpha * numpy.expm1(numpy.minimum(x, 0) / alpha), x)),
    "Gelu": ({"approximate": b"none"}, lambda x, approximate: gelu(x, approximate == b"tanh")),
    "BiasGelu": ({}, lambda x, bias: gelu(x + bias, False)),
    "FastGelu": ({}, lambda x, bias=0.0: gelu(x + bias, True)),
    "HardSwish": ({}, lambda x: x * numpy.clip(x / 6 + 0.5, 0, 1)),
    "LRN": ({"alpha": 0.0001, "beta": 0.75, "bias": 1.0, "size": 1}, local_response),
    "Erf": ({}, numpy.vectorize(math.erf, otypes=[float])),
}


def run(node, operands):
    """The result in f64, or None for other operators."""
    if node.op_type not in FUNCTIONS:
        return None
    defaults, function = FUNCTIONS[node.op_type]
    given = {a.name: a.s if a.type == a.STRING else a.i if a.type == a.INT else a.f for a in node.attribute}
    arrays = [operands[name].astype(numpy.float64) for name in node.input if name]
    with numpy.errstate(all="ignore"):
        return numpy.asarray(function(*arrays, **{k: given.get(k, v) for k, v in defaults.items()}))
