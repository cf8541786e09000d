#!/usr/bin/env python3
"""Optimisers that change weights where their gradients are computed, without storing these: the same bits as
with stored gradients."""
from training import DATA, INS, MODEL, OUTPUT, OUTS, Training, job_text, main

import numpy as np
import onnx
from onnx import helper, numpy_helper


class Updates(Training):
    OPTIMIZERS = ({"name": '"sgd"', "lr": 0.1}, {"name": '"sgd"', "lr": 0.01, "momentum": 0.9, "nesterov": "true"},
                  {"name": '"rmsprop"', "lr": 0.01, "momentum": 0.5}, {"name": '"adam"', "lr": 0.01, "clip_value": 0.01},
                  {"name": '"adamw"', "lr": 0.01, "weight_decay": 0.1, "no_decay": '["b*"]'},
                  {"name": '"lamb"', "lr": 0.01}, {"name": '"sgd"', "lr": 0.1, "clip_norm": 0.1})
    WIDTH = 96

    def setUp(self):
        super().setUp()
        random = np.random.default_rng(4)
        normal = lambda *shape: (random.normal(size=shape) / np.sqrt(shape[0])).astype("f4")
        sizes = {"w1": (INS, self.WIDTH), "b1": (self.WIDTH,), "w2": (self.WIDTH, self.WIDTH), "b2": (self.WIDTH,)}
        self.w, self.b = normal(self.WIDTH, OUTS), normal(OUTS)
        layer = lambda x, n, y: [helper.make_node("Gemm", [x, f"w{n}", f"b{n}"], [f"{y}s"]),
                                 helper.make_node("Tanh", [f"{y}s"], [y])]
        self.write_model([*layer("x", 1, "h"), *layer("h", 2, "i"), *layer("i", 2, "j"),  # w2 has two readers
                          helper.make_node("Gemm", ["j", "w", "b"], ["y"])],
                         [numpy_helper.from_array(normal(*shape), name) for name, shape in sizes.items()])

    def trained(self, top, optimizer, gradients, threads):
        output = {**OUTPUT} if gradients else {k: v for k, v in OUTPUT.items() if k != "gradients"}
        done = self.train(job_text({**MODEL, **top}, DATA, optimizer, output), threads=threads)
        self.assertEqual(done.returncode, 0, done.stderr)
        model = onnx.load(self.path("trained.onnx"))
        return self.log(), {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}

    def test_same_bits_as_of_gradients_that_are_stored(self):
        for optimizer in self.OPTIMIZERS:
            for top in ({}, {"batch": 6, "accumulate": 3}):
                if top:
                    np.save(self.path("order.npy"), self.order[:, :6])
                with self.subTest(optimizer=optimizer, top=top):
                    stored = self.trained(top, optimizer, True, 1)
                    for threads in (1, 3):
                        log, model = self.trained(top, optimizer, False, threads)
                        self.assertEqual(log, stored[0])
                        for name, value in stored[1].items():
                            np.testing.assert_array_equal(model[name], value, name)
            np.save(self.path("order.npy"), self.order)


if __name__ == "__main__":
    main()
