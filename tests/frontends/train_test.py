#!/usr/bin/env python3
"""Trains small models as a user would: each optimiser and loss against NumPy in f64, what is written, and
what mistakes in a job cost."""
import json
import os
import subprocess

from training import BATCH, DATA, INS, MODEL, OPTIONS, OUTPUT, OUTS, SGD, STEPS, Training, job_text, main
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def loss_and_slope(kind, y, t):
    """Of a mean over a batch, and its derivative by y."""
    if kind == "mean_squares":
        return ((y - t) ** 2).mean(), 2 * (y - t) / y.size
    if kind == "logistic":
        return (np.logaddexp(0, y) - y * t).mean(), (1 / (1 + np.exp(-y)) - t) / y.size
    if kind == "output":
        return y.mean(), np.full(y.shape, 1 / y.size)
    p, rows = softmax(y), np.arange(len(y))
    return -np.log(p[rows, t]).mean(), (p - np.eye(y.shape[1])[t]) / len(y)


def update(o, step, p, g, s):
    """torch.optim, step by step, and LAMB's paper; s: what the optimiser keeps."""
    usual = {"adagrad": 1e-10, "lamb": 1e-6}.get(o["name"], 1e-8)
    decay, lr, eps = o.get("weight_decay", 0), o["lr"], o.get("eps", usual)
    if o["name"] == "adamw":
        p = p * (1 - lr * decay)
    elif o["name"] != "lamb":
        g = g + decay * p
    if o["name"] == "sgd":
        s["m"] = o.get("momentum", 0) * s.get("m", 0) + g
        return p - lr * (g + o.get("momentum", 0) * s["m"] if o.get("nesterov") else s["m"])
    if o["name"] == "adagrad":
        s["v"] = s.get("v", 0) + g * g
        return p - lr * g / (np.sqrt(s["v"]) + eps)
    if o["name"] == "rmsprop":
        alpha = o.get("alpha", 0.99)
        s["v"] = alpha * s.get("v", 0) + (1 - alpha) * g * g
        s["m"] = o.get("momentum", 0) * s.get("m", 0) + g / (np.sqrt(s["v"]) + eps)
        return p - lr * s["m"]
    b1, b2 = o.get("betas", [0.9, 0.999])
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0) + (1 - b2) * g * g
    mean, square = s["m"] / (1 - b1 ** (step + 1)), s["v"] / (1 - b2 ** (step + 1))
    change = mean / (np.sqrt(square) + eps)
    if o["name"] == "lamb":
        change = change + decay * p
        if p.any() and change.any():
            change = change * np.linalg.norm(p) / np.linalg.norm(change)
    return p - lr * change


class Train(Training):
    # The same training in f64: losses, the first gradients, and what the parameters are at the end.
    # rate: the learning rate of a step; None: always the optimiser's.
    def reference(self, loss, targets, o, rate=None):
        w, b, kept, losses, first = self.w.astype("f8"), self.b.astype("f8"), ({}, {}), [], None
        for step, ids in enumerate(self.order):
            x = self.x[ids].astype("f8")
            value, slope = loss_and_slope(loss, x @ w + b, targets[ids])
            losses.append(value)
            g = [x.T @ slope, slope.sum(0)]
            first = first or g
            if "clip_value" in o:
                g = [np.clip(k, -o["clip_value"], o["clip_value"]) for k in g]
            if "clip_norm" in o:
                norm = np.sqrt(sum((k * k).sum() for k in g))
                g = [k * min(1, o["clip_norm"] / (norm + 1e-6)) for k in g]
            now = {**o, "lr": rate(step)} if rate else o
            of_b = {**now, "weight_decay": 0} if "b" in o.get("no_decay", ()) else now
            w, b = update(now, step, w, g[0], kept[0]), update(of_b, step, b, g[1], kept[1])
        return losses, first, w, b

    def check(self, o, loss="mean_squares", array="t", rate=None, accumulate=1, **more):
        targets = {"t": self.t, "c": self.classes, "p": (self.t > 0).astype("f8")}[array]
        done = self.train(self.job({"loss": f'"{loss}"', "accumulate": accumulate}, {"targets": f'"{array}"'},
                                   {k: json.dumps(v) for k, v in o.items()}, **more))
        self.assertEqual(done.returncode, 0, done.stderr)
        losses, gradients, w, b = self.reference(loss, targets, o, rate)
        log = self.log()
        if rate:
            np.testing.assert_allclose([line["lr"] for line in log], [rate(k) for k in range(STEPS)], rtol=1e-14)
        self.assertEqual([line["step"] for line in log], list(range(STEPS)))
        np.testing.assert_allclose([line["loss"] for line in log], losses, rtol=2e-5, atol=1e-6)
        with np.load(self.path("gradients.npz")) as found:
            np.testing.assert_allclose(found["w"], gradients[0], rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(found["b"], gradients[1], rtol=1e-5, atol=1e-6)
        trained = onnx.load(self.path("trained.onnx"))
        self.assertEqual(trained.doc_string, "kept")
        found = {i.name: numpy_helper.to_array(i) for i in trained.graph.initializer}
        np.testing.assert_allclose(found["w"], w, rtol=1e-4, atol=2e-5)
        np.testing.assert_allclose(found["b"], b, rtol=1e-4, atol=2e-5)

    def test_optimisers_are_those_of_torch(self):
        for o in ({"name": "sgd", "lr": 0.1},
                  {"name": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 0.01},
                  {"name": "sgd", "lr": 0.05, "momentum": 0.8, "nesterov": True},
                  {"name": "adagrad", "lr": 0.1, "weight_decay": 0.02},
                  {"name": "rmsprop", "lr": 0.01, "alpha": 0.9},
                  {"name": "rmsprop", "lr": 0.01, "momentum": 0.5, "weight_decay": 0.1},
                  {"name": "adam", "lr": 0.05, "weight_decay": 0.1},
                  {"name": "adam", "lr": 0.05, "betas": [0.5, 0.9], "eps": 1e-4},
                  {"name": "adamw", "lr": 0.05, "weight_decay": 0.3},
                  {"name": "adamw", "lr": 0.05, "weight_decay": 0.3, "no_decay": ["b"]},
                  {"name": "sgd", "lr": 0.1, "weight_decay": 0.3, "no_decay": ["b"]},
                  {"name": "lamb", "lr": 0.05},
                  {"name": "lamb", "lr": 0.05, "weight_decay": 0.2, "no_decay": ["b"]},
                  {"name": "sgd", "lr": 0.1, "clip_norm": 0.5},
                  {"name": "adam", "lr": 0.1, "clip_value": 0.05}):
            with self.subTest(**o):
                self.check(o)

    # One sample at a time: the mean of parts of equal size is that of the batch.
    def test_parts_of_a_batch_make_its_step(self):
        for o in ({"name": "sgd", "lr": 0.1, "momentum": 0.9}, {"name": "adam", "lr": 0.05, "clip_norm": 0.5},
                  {"name": "lamb", "lr": 0.05, "weight_decay": 0.2, "no_decay": ["b"]}):
            self.check(o, accumulate=BATCH)
        self.check({"name": "adamw", "lr": 0.05, "weight_decay": 0.1}, "cross_entropy", "c", accumulate=BATCH)

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

    def test_losses(self):
        for loss, array in (("mean_squares", "t"), ("cross_entropy", "c"), ("logistic", "p"), ("output", "t")):
            with self.subTest(loss=loss):
                self.check({"name": "sgd", "lr": 0.1}, loss, array)

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

    def test_schedules(self):
        def warm(warmup, rate):
            return lambda step: 0.1 * (step + 1) / warmup if step < warmup else rate(step - warmup)
        for table, rate in (
                ({"kind": '"constant"'}, lambda step: 0.1),
                ({"kind": '"constant"', "warmup": 4}, warm(4, lambda t: 0.1)),
                ({"kind": '"step"', "every": 3, "gamma": 0.5, "warmup": 2}, warm(2, lambda t: 0.1 * 0.5 ** (t // 3))),
                ({"kind": '"cosine"'}, lambda t: 0.05 * (1 + np.cos(np.pi * t / STEPS))),
                ({"kind": '"cosine"', "least": 0.02, "warmup": 5},
                 warm(5, lambda t: 0.02 + 0.04 * (1 + np.cos(np.pi * t / (STEPS - 5)))))):
            with self.subTest(**table):
                for optimizer in ({"name": "sgd", "lr": 0.1}, {"name": "adam", "lr": 0.1}):
                    self.check(optimizer, rate=rate, schedule=table)

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
