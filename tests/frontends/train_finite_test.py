#!/usr/bin/env python3
"""A step that makes a gradient or a state infinite or NaN ends the run: it is named with its step and tensor, no
checkpoint and no model has it, and a run that goes on takes the last state that was whole."""
import itertools
import os
import random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from training import BATCH, DATA, INS, MODEL, OUTPUT, SGD, Training, job_text, main

STEPS, EVERY = 12, 3
OWN = {k: v for k, v in DATA.items() if k != "targets"}


class Finite(Training):
    def save(self, nodes, constants):
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            nodes, "not_finite", [value("x", TensorProto.FLOAT, ["batch", INS])], [value("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(np.array(v, "f4"), k) for k, v in constants.items()])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
                  self.path("model.onnx"))
        np.save(self.path("order.npy"), np.random.default_rng(0).integers(1, 40, (STEPS, BATCH)))

    # The root of what is 0 for one row of the data: the loss is finite, its derivative is 0 times infinity.
    def save_root(self):
        node = helper.make_node
        self.save([node("MatMul", ["x", "w"], ["h"]), node("Add", ["h", "b"], ["z"]), node("Mul", ["z", "z"], ["q"]),
                   node("Gather", ["x", "first"], ["mark"], axis=1), node("Abs", ["mark"], ["a"]),
                   node("Sign", ["a"], ["s"]), node("Mul", ["q", "s"], ["k"]), node("Sqrt", ["k"], ["y"])],
                  {"w": self.w, "b": self.b})
        model = onnx.load(self.path("model.onnx"))
        model.graph.initializer.append(numpy_helper.from_array(np.array([0]), "first"))
        onnx.save(model, self.path("model.onnx"))
        self.x[0, 0] = 0
        np.savez(self.path("data.npz"), x=self.x)

    def text(self, optimizer, steps=STEPS, **top):
        return job_text({**MODEL, "loss": '"output"', "steps": steps, **top}, OWN, optimizer,
                        {"log": OUTPUT["log"], "model": OUTPUT["model"]}, checkpoint={"folder": '"kept"', "every": EVERY})

    def kept(self):
        return sorted(os.listdir(self.path("kept")))

    def test_the_step_and_the_tensor_are_named(self):
        self.save_root()
        rolls = random.Random(4)
        optimizers = [("sgd", {}), ("sgd", {"momentum": 0.9}), ("adagrad", {}), ("rmsprop", {}), ("adam", {}),
                      ("adamw", {}), ("lamb", {})]
        clips = [{}, {"clip_norm": 1}, {"clip_value": 0.5}]
        for (name, more), clip, accumulate in itertools.product(optimizers, clips, (1, 7)):
            bad, threads = rolls.randrange(STEPS), rolls.randrange(1, 4)
            order = np.random.default_rng(bad).integers(1, 40, (STEPS, BATCH))
            order[bad, rolls.randrange(BATCH)] = 0
            np.save(self.path("order.npy"), order)
            optimizer = {"name": f'"{name}"', "lr": 1e-3, **more, **clip}
            with self.subTest(accumulate=accumulate, bad=bad, threads=threads, **optimizer):
                text = self.text(optimizer, accumulate=accumulate)
                done = self.train(text, "--fresh", threads=threads)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr, f"step {bad} makes (parameter|the gradient of|the optimiser's '[a-z]+' of) "
                                              "'[wb]' NaN")
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertFalse(os.path.exists(self.path("trained.onnx")))
                # The step itself has a loss; no line follows it.
                self.assertEqual([line["step"] for line in self.log()], list(range(bad + 1)))
                last = bad // EVERY * EVERY
                self.assertEqual(self.kept()[-1:], [f"step-{last:09}.npz"] if last else [])
                for file in self.kept():
                    with np.load(os.path.join(self.path("kept"), file)) as arrays:
                        for key in arrays.files:
                            self.assertTrue(arrays[key].dtype != "f4" or np.isfinite(arrays[key]).all(), key)
                # The same command goes on from there, to the same end.
                again = self.train(text, threads=threads)
                self.assertEqual((again.returncode, again.stderr), (1, done.stderr))

    # Of a job that ends with that step, too.
    def test_the_last_step(self):
        self.save_root()
        order = np.random.default_rng(1).integers(1, 40, (5, BATCH))
        order[4, 2] = 0
        np.save(self.path("order.npy"), order)
        done = self.train(self.text(SGD, steps=5))
        self.assertEqual(done.returncode, 1)
        self.assertIn("step 4 makes parameter 'b' NaN", done.stderr)
        self.assertFalse(os.path.exists(self.path("trained.onnx")))
        self.assertEqual(self.kept(), ["step-000000003.npz"])

    # The derivative of sqrt(x + b) at x = -b, whatever the bounds of gradients.
    def test_infinite_gradients(self):
        node = helper.make_node
        self.save([node("Add", ["x", "b"], ["z"]), node("Sqrt", ["z"], ["y"])], {"b": np.ones(INS)})
        self.x = np.full((40, INS), -1, "f4")
        np.savez(self.path("data.npz"), x=self.x)
        for clip in ({}, {"clip_value": 0.1}, {"clip_norm": 1}):
            done = self.train(self.text({**SGD, **clip}), "--fresh")
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, "step 0 makes parameter 'b' (NaN|infinite)")

    # Of the first step, too, where a job writes its gradients.
    def test_no_gradients_of_a_step_that_is_not_finite(self):
        self.save_root()
        for bad, rows in ((True, [0] * BATCH), (False, [1] * BATCH)):
            np.save(self.path("order.npy"), np.array([rows] * 2))
            done = self.train(job_text({**MODEL, "loss": '"output"', "steps": 2}, OWN, SGD, OUTPUT))
            self.assertEqual(done.returncode, int(bad), done.stderr)
            self.assertEqual(os.path.exists(self.path("gradients.npz")), not bad)
        # Nor of a loss that is not finite.
        os.remove(self.path("gradients.npz"))
        np.savez(self.path("data.npz"), x=np.full((40, INS), np.inf, "f4"))
        done = self.train(job_text({**MODEL, "loss": '"output"', "steps": 2}, OWN, SGD, OUTPUT))
        self.assertRegex(done.stderr, "the loss of step 0 is (nan|inf)")
        self.assertFalse(os.path.exists(self.path("gradients.npz")))

    # Gradients whose squares overflow; values whose variance does.
    def test_states_that_overflow(self):
        node = helper.make_node
        self.save([node("Mul", ["x", "w"], ["y"])], {"w": np.ones(INS)})
        np.savez(self.path("data.npz"), x=np.full((40, INS), 1e21, "f4"))
        for name, state in (("adam", "square"), ("adagrad", "sum"), ("rmsprop", "square")):
            done = self.train(self.text({"name": f'"{name}"', "lr": 1e-3}), "--fresh")
            self.assertIn(f"step 0 makes the optimiser's '{state}' of 'w' infinite", done.stderr)
        self.save([node("Unsqueeze", ["x", "axis"], ["h"]),
                   node("BatchNormalization", ["h", "scale", "bias", "mean", "var"], ["y"], epsilon=1.0)],
                  {"scale": [1], "bias": [0], "mean": [0], "var": [1]})
        model = onnx.load(self.path("model.onnx"))
        model.graph.initializer.append(numpy_helper.from_array(np.array([1]), "axis"))
        onnx.save(model, self.path("model.onnx"))
        np.savez(self.path("data.npz"), x=np.random.default_rng(2).normal(0, 1e25, (40, INS)).astype("f4"))
        done = self.train(self.text(SGD), "--fresh")
        self.assertIn("step 0 makes running statistic 'var' infinite", done.stderr)

    def test_initial_values(self):
        for value in (np.inf, -np.inf, np.nan):
            self.w[1, 2] = value
            self.write_model([helper.make_node("Gemm", ["x", "w", "b"], ["y"])])
            self.refused(self.job(), "initialiser 'w' holds an infinity or NaN, and cannot be trained")


if __name__ == "__main__":
    main()
