"""Philox4x32-10 (Salmon, Moraes, Dror and Shaw, 2011) in Python's integers."""
import math

import numpy as np

from cases import Const, Family, Want

MASK = 2**32 - 1


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & MASK, (a >> 32) ^ c[3] ^ k[1], a & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


# The known answer that the authors' library, Random123, comes with.
assert philox([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0]) == [
    0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]


def normal(w, wide):
    """Box and Muller; the radius has 53 bits (f32: 31), the angle 53 (f32: 24)."""
    if wide:
        bits = lambda a, b: (a << 21) + (b >> 11)
        u, angle = (bits(w[0], w[1]) + 0.5) / 2**53, bits(w[2], w[3]) / 2**53
    else:
        u, angle = ((w[0] >> 1) + 0.5) / 2**31, (w[1] >> 8) / 2**24
    return math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * angle)


def write():
    f = Family("random")
    key, stream = [0xa4093822, 0x299f31d0], [0x13198a2e, 0xf3707344]
    words = lambda w: np.array(w, "u4")
    for label, k, n in [("zero", [0, 0], 0), ("negative", key, -3), ("large", [MASK, MASK], 2**40 + 7)]:
        w = philox([n & MASK, n >> 32 & MASK, MASK, MASK], k)
        f.op(f"random_key_{label}", "random_key", [words(k), np.array(n)], {}, Want(w[:2], "u32"))
    f.op("random_key_words", "random_key", [words(key), words(stream)], {},
         Want(philox(stream + [MASK, MASK], key)[:2], "u32"))
    for shape in [(3, 37), (5,), (), (2, 0)]:
        size = math.prod(shape)
        all_words = [philox([i, 0] + stream, key) for i in range(size)]
        tag = "x".join(map(str, shape)) or "scalar"
        nodes = []
        for op, attributes, fn, t, exact in [
                ("random_uniform", {}, lambda w: (w[0] >> 8) / 2**24, "f32", True),
                ("random_uniform", {"bits": 8}, lambda w: (w[0] >> 24) / 2**8, "f32", True),
                ("random_uniform", {"to": "f64"}, lambda w: ((w[0] << 21) + (w[1] >> 11)) / 2**53, "f64", True),
                ("random_normal", {}, lambda w: normal(w, False), "f32", False),
                ("random_normal", {"to": "f64"}, lambda w: normal(w, True), "f64", False)]:
            y = np.array([fn(w) for w in all_words]).reshape(shape)
            # An angle up to 2 pi that is rounded moves its cosine, times a radius of at most 9.
            nodes.append((op, ["key", "stream"], {**attributes, "shape": list(shape)},
                          [Want(y, t, exact=exact, terms=7, magnitude=9)]))
        f.graph(f"random_{tag}", {"key": words(key), "stream": words(stream)}, nodes)
    y = np.array([philox([i, 0] + stream, key)[0] >> 8 for i in range(6)]) / 2**24
    f.op("random_shape_operand", "random_uniform", [words(key), words(stream), Const([2, 3])], {},
         Want(y.reshape(2, 3), exact=True))
    # By sample: two rows of the first dimension belong to each of three, or one row of the second.
    samples = np.array([7, 2**40 + 3, 0])
    for axis, shape in [(0, (6, 2)), (1, (2, 3, 2)), (0, (3,))]:
        rows, y = shape[axis] // 3, np.zeros(shape)
        for at in np.ndindex(*shape):
            inside = list(at)
            inside[axis] %= rows
            place = int(np.ravel_multi_index(inside, [*shape[:axis], rows, *shape[axis + 1:]]))
            sample = int(samples[at[axis] // rows])
            y[at] = (philox([place, sample & MASK, stream[0], stream[1] ^ sample >> 32], key)[0] >> 8) / 2**24
        f.op(f"random_by_sample_{axis}_{len(shape)}", "random_uniform", [words(key), words(stream), None, samples],
             {"axis": axis, "shape": list(shape)}, Want(y, exact=True))
    return [f]
