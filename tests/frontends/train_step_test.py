#!/usr/bin/env python3
"""A step that is compiled to a file and called from C (tutorials/train_step.c): the same bits as `tilewright train`."""
import argparse
import json
import os
import subprocess

from training import BATCH, DATA, INS, MODEL, OPTIONS, OUTPUT, OUTS, STEPS, Training, job_text, main
import numpy as np
import onnx
from onnx import helper, numpy_helper


class Step(Training):
    def compiled(self, text):
        with open(self.path("job.toml"), "w", encoding="utf-8") as file:
            file.write(text)
        return subprocess.run([OPTIONS.cli, "compile", "--train", self.path("job.toml"), "-o", self.path("step.so"),
                               "--threads", "1"], capture_output=True, text=True, check=False)

    def test_called_from_c_it_trains_as_the_command_does(self):
        self.check(1)

    def test_a_part_and_the_update_are_called_in_turn(self):
        self.check(BATCH)

    # Adam has the step's number in its formulas, Dropout draws by it, and running statistics are a second state.
    def check(self, parts):
        names = ["scale", "shift", "mean", "var"]
        self.write_model(
            [helper.make_node("Gemm", ["x", "w", "b"], ["h"]), helper.make_node("Dropout", ["h"], ["d"]),
             helper.make_node("BatchNormalization", ["d", *names], ["y"])],
            [numpy_helper.from_array(np.full(3, value, "f4"), name) for name, value in zip(names, (1, 0, 0, 1))])
        text = job_text({**MODEL, "accumulate": parts}, DATA, {"name": '"adam"', "lr": 0.05}, OUTPUT)
        self.assertEqual(self.train(text).returncode, 0)
        done = self.compiled(text)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.x[self.order].tofile(self.path("x.bin"))
        self.t[self.order].tofile(self.path("targets.bin"))
        self.order.astype("i8").tofile(self.path("sample_ids.bin"))
        update = ["./step-update.so", str(parts)] if parts > 1 else []
        done = subprocess.run([OPTIONS.program, "./step.so", "./step-start.so", "0.05", str(STEPS), *update],
                              cwd=self.folder.name, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        losses = [float(line.split()[1]) for line in done.stderr.decode().splitlines()]
        np.testing.assert_array_equal(np.array(losses, "f4"), np.array([line["loss"] for line in self.log()], "f4"))
        flat = np.frombuffer(done.stdout, "f4")
        trained = {i.name: numpy_helper.to_array(i) for i in onnx.load(self.path("trained.onnx")).graph.initializer}
        with open(self.path("step-state.json"), encoding="utf-8") as file:
            state = json.load(file)
        self.assertEqual(set(state), {"parameters", "statistics", "mean", "square", "gradients"})
        self.assertEqual(state["parameters"]["elements"], flat.size)
        self.assertEqual({t["name"] for t in state["statistics"]["tensors"]}, {"mean", "var"})
        self.assertEqual({t["name"] for t in state["parameters"]["tensors"]}, set(trained) - {"mean", "var"})
        for same in ("mean", "square", "gradients"):
            self.assertEqual(state[same], state["parameters"])
        for t in state["parameters"]["tensors"]:
            value = trained[t["name"]]
            self.assertEqual(tuple(t["shape"]), value.shape)
            stored = value.transpose(t["order"]).ravel()
            np.testing.assert_array_equal(flat[t["offset"]:t["offset"] + value.size], stored, t["name"])

    # Of two layers, the first lies as its product reads it, in all states; models and checkpoints have it as it was.
    def test_weights_lie_as_the_step_reads_them(self):
        first = np.random.default_rng(5).normal(size=(4, INS)).astype("f4")
        self.w = np.random.default_rng(6).normal(size=(OUTS, 4)).astype("f4")
        text = job_text(MODEL, DATA, {"name": '"adam"', "lr": 0.05}, OUTPUT, checkpoint={"folder": '"kept"', "every": 9})
        left = []
        for is_plain in (False, True):
            layer = [helper.make_node("MatMul", ["x", "first"], ["h"])] if is_plain else [
                helper.make_node("Gemm", ["x", "first"], ["h"], transB=1)]
            self.write_model([*layer, helper.make_node("Relu", ["h"], ["r"]),
                              helper.make_node("Gemm", ["r", "w", "b"], ["y"], transB=1)],
                             [numpy_helper.from_array(first.T.copy() if is_plain else first, "first")])
            self.assertEqual(self.train(text, "--fresh").returncode, 0)
            with np.load(os.path.join(self.path("kept"), sorted(os.listdir(self.path("kept")))[-1])) as found:
                kept = {name: found[name] for name in found.files}
            with np.load(self.path("gradients.npz")) as found:
                gradients = {name: found[name] for name in found.files}
            trained = {i.name: numpy_helper.to_array(i) for i in onnx.load(self.path("trained.onnx")).graph.initializer}
            for name, value in trained.items():
                np.testing.assert_array_equal(kept["parameters/" + name], value)
            for value in (trained, gradients, kept):
                name = "parameters/first" if value is kept else "first"
                value["first"] = value[name].T if is_plain else value[name]
            left.append([trained["first"], trained["w"], gradients["first"], kept["mean/w"]])
            self.assertEqual(self.compiled(text).returncode, 0)
            with open(self.path("step-state.json"), encoding="utf-8") as file:
                orders = {t["name"]: t["order"] for t in json.load(file)["square"]["tensors"]}
            self.assertEqual(orders, {"first": [0, 1] if is_plain else [1, 0], "w": [0, 1], "b": [0]})
        for of_transposed, of_plain in zip(*left):
            np.testing.assert_array_equal(of_transposed, of_plain)

    def test_mistakes(self):
        done = self.compiled(self.job({"model": '"none.onnx"'}))
        self.assertEqual(done.returncode, 1)
        self.assertIn("none.onnx", done.stderr)
        self.assertFalse(os.path.exists(self.path("step.so")))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    main(parser)
