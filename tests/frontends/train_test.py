#!/usr/bin/env python3
"""Trains small models as a user would: against NumPy in f64, what is written, and what mistakes in a job cost. Options
together: train_options_test.py."""
import json
import os
import subprocess

from training import DATA, INS, MODEL, OPTIONS, OUTPUT, OUTS, SGD, STEPS, Training, job_text, main
from training_model import loss_and_slope, update
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Train(Training):
    # With an optimiser, against the same in f64.
    def check(self, o):
        done = self.train(self.job(optimizer={k: json.dumps(v) for k, v in o.items()}))
        self.assertEqual(done.returncode, 0, done.stderr)
        w, b, kept, losses, first = self.w.astype("f8"), self.b.astype("f8"), ({}, {}), [], None
        for step, ids in enumerate(self.order):
            x = self.x[ids].astype("f8")
            value, slope = loss_and_slope("mean_squares", x @ w + b, self.t[ids])
            losses.append(value)
            g = [x.T @ slope, slope.sum(0)]
            first = first or g
            w, b = update(o, step, w, g[0], kept[0]), update(o, step, b, g[1], kept[1])
        log = self.log()
        self.assertEqual([line["step"] for line in log], list(range(STEPS)))
        np.testing.assert_allclose([line["loss"] for line in log], losses, rtol=2e-5, atol=1e-6)
        with np.load(self.path("gradients.npz")) as found:
            np.testing.assert_allclose(found["w"], first[0], rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(found["b"], first[1], rtol=1e-5, atol=1e-6)
        trained = onnx.load(self.path("trained.onnx"))
        self.assertEqual(trained.doc_string, "kept")
        found = {i.name: numpy_helper.to_array(i) for i in trained.graph.initializer}
        np.testing.assert_allclose(found["w"], w, rtol=1e-4, atol=2e-5)
        np.testing.assert_allclose(found["b"], b, rtol=1e-4, atol=2e-5)

    def test_parts_divide_a_batch(self):
        self.refused(self.job({"accumulate": 3}), "'accumulate' does not divide batch, 7")

    # The same layer sample by sample, and as a sum over inputs; parameters are captured.
    def test_loops_are_trained(self):
        value, node = helper.make_tensor_value_info, helper.make_node
        row = helper.make_graph(
            [node("MatMul", ["row", "w"], ["p"]), node("Add", ["p", "b"], ["q"])], "row",
            [value("row", TensorProto.FLOAT, [INS])], [value("q", TensorProto.FLOAT, [OUTS])])
        self.write_model([node("Scan", ["x"], ["y"], body=row, num_scan_inputs=1)])
        self.check({"name": "sgd", "lr": 0.1})
        term = helper.make_graph(
            [node("Gather", ["columns", "i"], ["c"]), node("Unsqueeze", ["c", "last"], ["column"]),
             node("Gather", ["w", "i"], ["weights"]), node("Mul", ["column", "weights"], ["p"]),
             node("Add", ["sum", "p"], ["more"]), node("Identity", ["go"], ["on"])], "term",
            [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []),
             value("sum", TensorProto.FLOAT, ["batch", OUTS])],
            [value("on", TensorProto.BOOL, []), value("more", TensorProto.FLOAT, ["batch", OUTS])])
        self.write_model(
            [node("Transpose", ["x"], ["columns"]), node("Shape", ["x"], ["dims"], end=1),
             node("Concat", ["dims", "outs"], ["shape"], axis=0), node("Expand", ["b", "shape"], ["start"]),
             node("Loop", ["ins", "", "start"], ["y"], body=term)],
            [numpy_helper.from_array(np.array(v), name)
             for name, v in (("ins", INS), ("outs", [OUTS]), ("last", [1]))])
        self.check({"name": "adam", "lr": 0.01})

    def test_extents_that_the_model_leaves_open_are_those_of_the_data(self):
        self.write_model([helper.make_node("Gemm", ["x", "w", "b"], ["y"])], ins="any")
        self.check({"name": "sgd", "lr": 0.1})
        np.savez(self.path("data.npz"), t=self.t)
        done = self.train(self.job())
        self.assertEqual(done.returncode, 3)
        self.assertIn("input 'x' of the model: an extent of a sample is not known: any", done.stderr)

    def test_weights_that_are_nodes_are_trained(self):
        self.assertEqual(self.train(self.job()).returncode, 0)
        as_usual, model = onnx.load(self.path("trained.onnx")), onnx.load(self.path("model.onnx"))
        for tensor in model.graph.initializer:
            model.graph.node.insert(0, helper.make_node("Constant", [], [tensor.name], value=tensor))
        del model.graph.initializer[:]
        onnx.save(model, self.path("model.onnx"))
        done = self.train(self.job())
        self.assertEqual(done.returncode, 0, done.stderr)
        nodes = onnx.load(self.path("trained.onnx")).graph.node
        found = {n.output[0]: numpy_helper.to_array(n.attribute[0].t) for n in nodes if n.op_type == "Constant"}
        for tensor in as_usual.graph.initializer:
            np.testing.assert_array_equal(found[tensor.name], numpy_helper.to_array(tensor))

    # The classes of [batch, classes, 1] and [batch, 1, classes].
    def test_classes_lie_along_any_dimension(self):
        np.savez(self.path("data.npz"), x=self.x, c=self.classes[:, None])
        held_back = {"kind": '"arrays"', "file": '"data.npz"', "targets": '"c"', "every": STEPS}
        found = []
        for axes, top in (([1], {}), ([2], {"class_axis": 1})):
            self.write_model([helper.make_node("Gemm", ["x", "w", "b"], ["h"]),
                              helper.make_node("Unsqueeze", ["h", "axes"], ["y"])],
                             [numpy_helper.from_array(np.array(axes), "axes")])
            done = self.train(self.job({"loss": '"cross_entropy"', **top}, {"targets": '"c"'}, evaluation=held_back))
            self.assertEqual(done.returncode, 0, done.stderr)
            found.append(self.log())
        self.assertEqual(found[0], found[1])
        np.savez(self.path("data.npz"), x=self.x, t=self.t, c=self.classes)
        for top, status, message in (
                ({"loss": '"cross_entropy"', "class_axis": 3}, 1, "has no dimension 3, the job's class_axis"),
                ({"class_axis": 1}, 1, "is for the loss cross_entropy"),
                ({"loss": '"cross_entropy"', "class_axis": 0}, 1, "class_axis")):
            done = self.train(self.job(top))
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(message, done.stderr)

    def test_only_what_matches_is_trained(self):
        done = self.train(self.job({"parameters": '["b*"]'}))
        self.assertEqual(done.returncode, 0, done.stderr)
        found = {i.name: numpy_helper.to_array(i) for i in onnx.load(self.path("trained.onnx")).graph.initializer}
        np.testing.assert_array_equal(found["w"], self.w)
        self.assertFalse((found["b"] == self.b).any())

    def test_without_an_order_epochs_are_shuffled_by_the_seed(self):
        def losses(seed):
            data = {k: v for k, v in DATA.items() if k != "order"}
            done = self.train(job_text({**MODEL, "seed": seed}, data, SGD, OUTPUT))
            self.assertEqual(done.returncode, 0, done.stderr)
            return self.log()
        self.assertEqual(losses(5), losses(5))
        self.assertNotEqual(losses(5), losses(6))

    def test_steps_are_timed(self):
        done = self.train(self.job(), "--bench", "--seconds", "0.1", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        line = json.loads(done.stdout.splitlines()[-1])
        for key in ("median_ms", "min_ms", "compile_s", "peak_rss_mib"):
            self.assertGreater(line[key], 0)
        self.assertFalse(os.path.exists(self.path("log.jsonl")))

    def test_exact_steps_do_not_depend_on_caches(self):
        logs = []
        for l2 in (1 << 16, 1 << 20):
            machine = json.loads(subprocess.run([OPTIONS.cli, "devices", "--json"], capture_output=True, text=True,
                                                check=True).stdout)
            with open(self.path("machine.json"), "w", encoding="utf-8") as file:
                json.dump({**machine, "l2_bytes": l2}, file)
            done = self.train(self.job(), "--numerics", "exact", "--machine", self.path("machine.json"))
            self.assertEqual(done.returncode, 0, done.stderr)
            logs.append(self.log())
        self.assertEqual(*logs)
        done = self.train(self.job(), "--numerics", "sloppy")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("sloppy not in {exact,standard,relaxed}", done.stderr)

    def test_mistakes_are_one_clear_error(self):
        for text, message in (
                (self.job({"stepz": 3}), "'stepz' is no key here; there are: model, loss"),
                (self.job({"steps": '"many"'}), "job.toml:3: 'steps' is not an integer"),
                (self.job({"batch": 0}), "'batch' is 0, expected at least 1"),
                (self.job({"loss": '"hinge"'}), "'loss' is 'hinge', expected one of cross_entropy"),
                (self.job(schedule={"kind": '"stepp"'}), "'schedule.kind' is 'stepp', expected one of constant, step"),
                (self.job(schedule={"kind": '"step"', "gamma": 0.5}), "'schedule.every' is missing"),
                (self.job(schedule={"kind": '"cosine"', "least": 0.2}), "'schedule.least' is above optimizer.lr"),
                (self.job(schedule={"kind": '"cosine"', "gamma": 0.2}), "'schedule.gamma' is no key here"),
                (self.job({"parameters": '["q*"]'}), "no float initialiser of the model matches 'q*'"),
                (self.job({"model": '"none.onnx"'}), "none.onnx"),
                (self.job(data={"targets": '"u"'}), "there is no array 'u'; there are: x, t, c, p"),
                (self.job(data={"targets": '"x"'}), "array 'x' is f32[40, 5], 'targets' wants rows of f32[3]"),
                (self.job(data={"inputs": '{ z = "x" }'}), "'z' of data.inputs is no input of the model"),
                (self.job(data={"kind": '"tables"'}), "'data.kind' is 'tables', expected one of arrays, tokens"),
                (self.job({"batch": 8}), "is i64[15, 7], expected i64[15, 8] (steps, batch)"),
                (self.job(optimizer={"name": '"adamm"'}), "'optimizer.name' is 'adamm'"),
                (self.job(optimizer={"momentum": 2}), "'optimizer.momentum' is 2.0"),
                (self.job(optimizer={"betas": "[0.9, 0.9]"}), "'optimizer.betas' is no key here"),
                (self.job(optimizer={"no_decay": '["q"]'}), "no parameter matches 'q' of optimizer.no_decay"),
                (self.job({"loss": '"cross_entropy"'}), "'targets' wants rows of i64[]"),
                (job_text(MODEL, DATA, {"name": '"sgd"'}, OUTPUT), "'optimizer.lr' is missing"),
                ("steps = = 3", "job.toml:1")):
            with self.subTest(message=message):
                self.refused(text, message)

    def test_a_class_that_there_is_not(self):
        np.savez(self.path("data.npz"), x=self.x, t=np.where(np.arange(40) == 11, 3, self.classes))
        self.refused(self.job({"loss": '"cross_entropy"'}),
                     "element 11 of 't' is 3, the model has the classes 0 to 2")

    def test_a_loss_that_is_no_number_ends_the_run(self):
        done = self.train(self.job(optimizer={"lr": 1e5}, top={"steps": STEPS}))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "the loss of step [0-9]+ is (inf|-?nan)")


if __name__ == "__main__":
    main()
