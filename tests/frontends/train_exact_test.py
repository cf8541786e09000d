#!/usr/bin/env python3
"""A hundred steps of a transformer with dropout and clipping, and of a convolutional net with running statistics and
LAMB: exact sums leave the same bytes for 1 to 4 ranks on each engine, other ranges and threads, and other parts."""
import itertools

from rank_jobs import RankJobs, launchers, missing
from training import main

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

STEPS, BATCH, SAMPLES, CLASSES = 100, 24, 60, 5
LENGTH, WIDTH, HEADS = 6, 16, 2
CHANNELS, SIZE = 3, 8
node = helper.make_node


class Net:
    """A graph in the making: nodes and initialisers, each named once."""

    def __init__(self):
        self.random, self.nodes, self.constants, self.values = np.random.default_rng(7), [], [], itertools.count()

    def weight(self, *shape, scale=None):
        name = f"w{next(self.values)}"
        values = self.random.normal(size=shape) * (shape[0] ** -0.5 if scale is None else scale)
        self.constants.append(numpy_helper.from_array(values.astype("f4"), name))
        return name

    def filled(self, value, *shape):
        name = f"w{next(self.values)}"
        self.constants.append(numpy_helper.from_array(np.full(shape, value, "f4"), name))
        return name

    def ints(self, *values):
        name = f"i{next(self.values)}"
        self.constants.append(numpy_helper.from_array(np.array(values, "i8"), name))
        return name

    def op(self, kind, *inputs, **attributes):
        name = f"v{next(self.values)}"
        self.nodes.append(node(kind, list(inputs), [name], **attributes))
        return name

    def linear(self, x, ins, outs):
        return self.op("Add", self.op("MatMul", x, self.weight(ins, outs)), self.filled(0, outs))

    def save(self, path, shape, result):
        value = helper.make_tensor_value_info
        self.nodes.append(node("Identity", [result], ["y"]))
        graph = helper.make_graph(self.nodes, "net", [value("x", TensorProto.FLOAT, ["batch", *shape])],
                                  [value("y", TensorProto.FLOAT, ["batch", CLASSES])], self.constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def transformer(path):
    n = Net()
    x = n.linear("x", CHANNELS, WIDTH)
    for _ in range(2):
        h = n.op("LayerNormalization", x, n.filled(1, WIDTH), n.filled(0, WIDTH))
        split = [n.op("Transpose", n.op("Reshape", n.linear(h, WIDTH, WIDTH), n.ints(0, LENGTH, HEADS, WIDTH // HEADS)),
                      perm=perm) for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])]
        scores = n.op("Softmax", n.op("Mul", n.op("MatMul", split[0], split[1]), n.filled(0.3)), axis=-1)
        mixed = n.op("Transpose", n.op("MatMul", n.op("Dropout", scores, n.filled(0.1)), split[2]), perm=[0, 2, 1, 3])
        x = n.op("Add", x, n.linear(n.op("Reshape", mixed, n.ints(0, LENGTH, WIDTH)), WIDTH, WIDTH))
        h = n.op("LayerNormalization", x, n.filled(1, WIDTH), n.filled(0, WIDTH))
        h = n.linear(n.op("Relu", n.linear(h, WIDTH, 2 * WIDTH)), 2 * WIDTH, WIDTH)
        x = n.op("Add", x, n.op("Dropout", h, n.filled(0.2)))
    n.save(path, (LENGTH, CHANNELS), n.linear(n.op("ReduceMean", x, axes=[1], keepdims=0), WIDTH, CLASSES))


def convolutional(path):
    n, x, ins = Net(), "x", CHANNELS
    for outs in (8, 12):
        x = n.op("Conv", x, n.weight(outs, ins, 3, 3, scale=0.2), pads=[1, 1, 1, 1])
        x = n.op("Relu", n.op("BatchNormalization", x, n.filled(1, outs), n.filled(0, outs), n.filled(0, outs),
                              n.filled(1, outs), momentum=0.9))
        x, ins = n.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), outs
    n.save(path, (CHANNELS, SIZE, SIZE), n.linear(n.op("ReduceMean", x, axes=[2, 3], keepdims=0), ins, CLASSES))


class Exact(RankJobs):
    def write(self, make, shape):
        make(self.path("model.onnx"))
        random = np.random.default_rng(3)
        classes = random.integers(0, CLASSES, SAMPLES)
        centres = random.normal(size=(CLASSES, *shape))
        np.savez(self.path("data.npz"), x=(centres[classes] + random.normal(size=(SAMPLES, *shape))).astype("f4"),
                 c=classes)

    def check(self, make, shape, optimizer):
        self.write(make, shape)
        job = {"steps": STEPS, "optimizer": optimizer, "top": {"batch": BATCH}}

        def runs():
            """Launcher, options and threads of each run; ranges and threads take turns."""
            for ranks in range(1, 5):
                for engine, launcher in launchers(ranks).items():
                    if not missing(engine):
                        yield f"{engine}, {ranks} ranks", launcher, ()
                yield f"local, {ranks} ranks", [], ("--ranks", str(ranks))
        for parts in (4, 6, 8):
            want = self.left([], accumulate=parts, **job)
            self.assertEqual(len(want["log"]), STEPS)
            for n, (name, launcher, more) in enumerate(runs()):
                if parts != 4 and launcher:
                    continue
                bucket = ("--bucket-bytes", "600") if n % 2 else ()
                with self.subTest(run=name, parts=parts, bucket=bucket):
                    self.same(want, self.left(launcher, *more, *bucket, threads=1 + n // 2 % 2, accumulate=parts, **job))

    def test_transformer_with_dropout_and_clipping(self):
        self.check(transformer, (LENGTH, CHANNELS), 2)

    def test_convolutional_net_with_statistics_and_lamb(self):
        self.check(convolutional, (CHANNELS, SIZE, SIZE), 1)


if __name__ == "__main__":
    main()
