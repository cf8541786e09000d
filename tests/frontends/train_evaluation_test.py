#!/usr/bin/env python3
"""Held-back samples: runs with and without them, those that go on, what is refused; and the page with the curves of a
run. Loss and accuracy against NumPy: train_options_test.py."""
import os
import shutil
import xml.etree.ElementTree

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from training import BATCH, DATA, INS, MODEL, OUTPUT, OUTS, SGD, Training, job_text, main

SHUFFLED = {k: v for k, v in DATA.items() if k != "order"}
HELD_BACK = {"kind": '"arrays"', "file": '"held_back.npz"', "inputs": '{ x = "seen" }', "every": 4}


def cross_entropy(logits, targets):
    """Of f64; all leading dimensions are samples."""
    off = logits - logits.max(-1, keepdims=True)
    logs = off - np.log(np.exp(off).sum(-1, keepdims=True))
    return -np.take_along_axis(logs, targets[..., None], -1).mean()


class Evaluation(Training):
    def hold_back(self, samples):
        random = np.random.default_rng(samples)
        np.savez(self.path("held_back.npz"), seen=random.normal(size=(samples, INS)).astype("f4"),
                 t=random.normal(size=(samples, OUTS)).astype("f4"), c=random.integers(0, OUTS, samples))

    def run_to(self, steps, loss, array, **more):
        top = {**MODEL, "steps": steps, "loss": f'"{loss}"'}
        done = self.train(job_text(top, {**SHUFFLED, "targets": f'"{array}"'}, SGD, OUTPUT,
                                   evaluation={**HELD_BACK, "targets": f'"{array}"'}, **more))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def parameters(self):
        graph = onnx.load(self.path("trained.onnx")).graph
        return {i.name: numpy_helper.to_array(i).astype("f8") for i in graph.initializer}

    def test_training_is_the_same_without(self):
        self.hold_back(10)
        self.run_to(10, "cross_entropy", "c")
        log, parameters = self.log(), self.parameters()
        done = self.train(job_text({**MODEL, "steps": 10, "loss": '"cross_entropy"'}, {**SHUFFLED, "targets": '"c"'},
                                   SGD, OUTPUT))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line["loss"] for line in log], [line["loss"] for line in self.log()])
        for name, value in self.parameters().items():
            np.testing.assert_array_equal(value, parameters[name])

    def test_a_run_that_goes_on_evaluates_alike(self):
        self.hold_back(10)
        kept = {"checkpoint": {"folder": '"kept"', "every": 3}}
        self.run_to(8, "cross_entropy", "c", **kept)
        self.run_to(14, "cross_entropy", "c", **kept)
        log = self.log()
        self.run_to(14, "cross_entropy", "c")
        self.assertEqual(log, self.log())

    def test_each_byte_of_a_text_counts_once(self):
        length, classes, random = 6, 9, np.random.default_rng(2)
        value = helper.make_tensor_value_info
        table = random.normal(size=(classes, 4)).astype("f4")
        out = random.normal(size=(4, classes)).astype("f4")
        graph = helper.make_graph(
            [helper.make_node("Gather", ["table", "x"], ["e"]), helper.make_node("MatMul", ["e", "out"], ["y"])],
            "bytes", [value("x", TensorProto.INT64, ["batch", length])],
            [value("y", TensorProto.FLOAT, ["batch", length, classes])],
            [numpy_helper.from_array(table, "table"), numpy_helper.from_array(out, "out")])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), self.path("model.onnx"))
        for name, size in (("text", 200), ("other", 77)):
            random.integers(0, classes, size).astype("u1").tofile(self.path(name))
        tokens = {"kind": '"tokens"', "file": '"text"', "input": '"x"', "length": length}
        done = self.train(job_text({**MODEL, "steps": 5, "loss": '"cross_entropy"'}, tokens, SGD, OUTPUT,
                                   evaluation={**tokens, "file": '"other"', "every": 5}))
        self.assertEqual(done.returncode, 0, done.stderr)
        other, p = np.fromfile(self.path("other"), "u1").astype("i8"), self.parameters()
        y = p["table"][other[:72]] @ p["out"]
        line = self.log()[-1]
        np.testing.assert_allclose(line["held_back_loss"], cross_entropy(y, other[1:73]), rtol=1e-6)
        self.assertAlmostEqual(line["held_back_accuracy"], (y.argmax(-1) == other[1:73]).mean(), places=14)

    # Of the report: its titles, and for each chart how many points its curves have.
    def page(self):
        with open(self.path("curves.html"), encoding="utf-8") as file:
            first, rest = file.read().split("\n", 1)
        self.assertEqual(first, "<!DOCTYPE html>")
        for no in ("http", "<script", 'nan"', 'inf"', "nan ", "inf "):
            self.assertNotIn(no, rest)
        page, charts = xml.etree.ElementTree.fromstring(rest), {}
        for section in page.iter("section"):
            paths = section.findall(".//path[@class='curve']") + section.findall(".//path[@class='second']")
            charts[section.find("h2").text] = [p.get("d").count("L") + 1 for p in paths if " " in p.get("d")
                                               and "h" not in p.get("d")]
        return page, charts

    def test_curves(self):
        self.hold_back(10)
        shutil.move(self.path("model.onnx"), self.path("a & <b>.onnx"))
        report = {**OUTPUT, "report": '"curves.html"'}

        def run_to(steps, **more):
            done = self.train(job_text(
                {**MODEL, "model": '"a & <b>.onnx"', "steps": steps, "loss": '"cross_entropy"'},
                {**SHUFFLED, "targets": '"c"'}, SGD, report, evaluation={**HELD_BACK, "targets": '"c"'}, **more))
            self.assertEqual(done.returncode, 0, done.stderr)
            return self.page()
        page, charts = run_to(12)
        self.assertEqual(page.find(".//h1").text, "a & <b>.onnx")
        self.assertEqual(charts, {"Loss": [12, 3], "Accuracy": [3], "Learning rate": [12], "Speed": [12]})
        # However long a run is, a chart is small; one that goes on shows all steps.
        self.assertLess(max(sum(run_to(5000)[1].values(), [])), 1300)
        kept = {"checkpoint": {"folder": '"kept"', "every": 5}}
        run_to(8, **kept)
        self.assertEqual(run_to(12, **kept)[1]["Loss"], [12, 3])
        self.assertFalse([name for name in os.listdir(self.folder.name) if "partial" in name])

    def test_curves_of_a_run_that_fails(self):
        output = {**OUTPUT, "report": '"curves.html"'}
        done = self.train(self.job(optimizer={"lr": 1e5}, output=output))
        self.assertEqual(done.returncode, 1)
        self.assertIn("the loss of step", done.stderr)
        self.assertIn("Loss", self.page()[1])
        output["report"] = '"none/curves.html"'
        self.assertIn("none/curves.html: cannot be written", self.train(self.job(output=output)).stderr)

    def test_mistakes(self):
        self.hold_back(10)

        def text(table, **top):
            return job_text({**MODEL, "steps": 10, **top}, SHUFFLED, SGD, OUTPUT, evaluation=table)
        self.refused(text({k: v for k, v in HELD_BACK.items() if k != "every"}), "'evaluation.every' is missing")
        self.refused(text(HELD_BACK), "held_back.npz: data.targets is missing: the loss has targets")
        self.refused(text({**HELD_BACK, "targets": '"c"'}), "array 'c' is i64[10], 'targets' wants rows of f32[3]")
        self.refused(text({**HELD_BACK, "order": '"order.npy"'}), "'evaluation.order' is no key here")


if __name__ == "__main__":
    main()
