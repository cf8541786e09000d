#!/usr/bin/env python3
"""What layers do in training and not in inference: BatchNormalization's statistics, against NumPy in f64, and
which elements Dropout drops."""
import os
import subprocess

from training import BATCH, DATA, INS, MODEL, OPTIONS, OUTPUT, OUTS, SGD, STEPS, Training, job_text, main

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CHANNELS, PLACES = 3, 4
FLAT = {"scale": CHANNELS, "bias": CHANNELS, "mean": CHANNELS, "var": CHANNELS}


def save(path, nodes, constants, ins, outs, opset=17):
    value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", *shape])
    graph = helper.make_graph(nodes, "layers", [value("x", ins)], [value("y", outs)],
                              [numpy_helper.from_array(v.astype("f4"), k) for k, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)


class Layers(Training):
    def run_job(self, top=None, threads=1, data=None, **more):
        done = self.train(job_text({**MODEL, **(top or {})}, DATA if data is None else data, SGD, OUTPUT, **more),
                          threads=threads)
        self.assertEqual(done.returncode, 0, done.stderr)
        losses = [line["loss"] for line in self.log()]
        trained = onnx.load(self.path("trained.onnx"))
        return losses, {i.name: numpy_helper.to_array(i) for i in trained.graph.initializer}


class BatchNormalization(Layers):
    # Two layers that share their running statistics, by a copy, over x and twice x.
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(8)
        self.constants = {name: random.uniform(0.5, 2, size) for name, size in FLAT.items()}
        self.x = random.normal(1, 2, (40, CHANNELS, PLACES)).astype("f4")
        self.t = random.normal(size=(40, CHANNELS, PLACES)).astype("f4")
        np.savez(self.path("data.npz"), x=self.x, t=self.t)

    def save(self, last=None, opset=17, **attributes):
        node = helper.make_node
        norm = lambda x, mean, *out: node("BatchNormalization", [x, "scale", "bias", mean, "var"], list(out),
                                          momentum=0.7, epsilon=1e-3, **attributes)
        more = ["m", "v"] if attributes.get("training_mode") else []
        save(self.path("model.onnx"),
             [node("Identity", ["mean"], ["mean2"]), node("Add", ["x", "x"], ["x2"]),
              norm("x", "mean", "a", *more), norm("x2", "mean2", "b"), node("Add", ["a", "b"], ["sum"]),
              *(last or [node("Identity", ["sum"], ["y"])])],
             self.constants, [CHANNELS, PLACES], [CHANNELS, PLACES], opset)

    def reference(self, batch_statistics, parts=1):
        c = {k: v.astype("f4").astype("f8")[:, None] for k, v in self.constants.items()}
        losses = []
        for batch in self.order:
            loss, gradients = 0, {"scale": 0, "bias": 0}
            for ids in np.split(batch, parts):
                x, t, normal, y = self.x[ids].astype("f8"), self.t[ids].astype("f8"), [], 0
                for k in (1, 2):
                    mean, var = c["mean"], c["var"]
                    if batch_statistics:
                        mean, var = (k * x).mean((0, 2))[:, None], (k * x).var((0, 2))[:, None]
                        c["mean"], c["var"] = 0.7 * c["mean"] + 0.3 * mean, 0.7 * c["var"] + 0.3 * var
                    normal.append((k * x - mean) / np.sqrt(var + 1e-3))
                    y = y + normal[-1] * c["scale"] + c["bias"]
                loss += ((y - t) ** 2).mean() / parts
                slope = 2 * (y - t) / y.size / parts
                for name, g in (("scale", slope * sum(normal)), ("bias", 2 * slope)):
                    gradients[name] += g.sum((0, 2))[:, None]
            losses.append(loss)
            for name, g in gradients.items():
                c[name] = c[name] - SGD["lr"] * g
        return losses, c

    def check(self, statistics, opset=17, accumulate=1, **attributes):
        self.save(opset=opset, **attributes)
        losses, found = self.run_job({"statistics": f'"{statistics}"', "accumulate": accumulate})
        wanted, constants = self.reference(statistics == "batch", accumulate)
        np.testing.assert_allclose(losses, wanted, rtol=2e-5)
        for name, value in constants.items():
            np.testing.assert_allclose(found[name], value[:, 0], rtol=2e-5, atol=1e-6, err_msg=name)
        if statistics == "running":
            for name in ("mean", "var"):
                np.testing.assert_array_equal(found[name], self.constants[name].astype("f4"))

    def test_statistics_of_the_batch_and_running_means(self):
        for opset, attributes in ((17, {}), (17, {"training_mode": 1}), (9, {})):
            with self.subTest(opset=opset, **attributes):
                self.check("batch", opset, **attributes)

    # Of a batch in parts, statistics are those of each part, one after the other.
    def test_statistics_of_parts(self):
        for statistics in ("batch", "running"):
            self.check(statistics, accumulate=BATCH)

    def test_running_statistics_can_stay(self):
        for attributes in ({}, {"training_mode": 1}):
            with self.subTest(**attributes):
                self.check("running", **attributes)

    def test_the_trained_model_gives_the_last_evaluation_elsewhere(self):
        try:
            import onnxruntime
        except ImportError as missing:
            self.skipTest(str(missing))
        self.save([helper.make_node("Dropout", ["sum"], ["y"])])
        held_back = {"kind": '"arrays"', "file": '"data.npz"', "targets": '"t"', "every": STEPS}
        self.run_job(evaluation=held_back)
        y = onnxruntime.InferenceSession(self.path("trained.onnx")).run(None, {"x": self.x})[0]
        found = self.log()[-1]["held_back_loss"]
        np.testing.assert_allclose(found, ((y.astype("f8") - self.t) ** 2).mean(), rtol=1e-5)
        np.savez(self.path("x.npz"), x=self.x)
        subprocess.run([OPTIONS.cli, "run", self.path("trained.onnx"), "--inputs", self.path("x.npz"), "--outputs",
                        self.path("y.npz")], check=True, capture_output=True)
        with np.load(self.path("y.npz")) as ours:
            np.testing.assert_allclose(ours["y"], y, rtol=1e-5, atol=1e-5)

    def test_threads_change_nothing(self):
        self.save()
        one, three = (self.run_job(threads=n) for n in (1, 3))
        self.assertEqual(one[0], three[0])
        for name, value in one[1].items():
            np.testing.assert_array_equal(value, three[1][name])

    def test_a_statistic_is_no_parameter(self):
        self.save()
        self.refused(self.job({"parameters": '["scale", "mean"]'}),
                     "'mean' is a running statistic of BatchNormalization, no parameter")

    def test_a_run_goes_on_with_its_statistics_and_numbers(self):
        self.save([helper.make_node("Dropout", ["sum"], ["y"])])
        shuffled = {k: v for k, v in DATA.items() if k != "order"}
        for parts in (1, BATCH):
            kept = {"checkpoint": {"folder": f'"kept{parts}"', "every": 3}}
            whole = self.run_job({"accumulate": parts}, data=shuffled)
            self.run_job({"steps": 6, "accumulate": parts}, data=shuffled, **kept)
            resumed = self.run_job({"accumulate": parts}, data=shuffled, **kept)
            self.assertEqual(whole[0], resumed[0])
            for name, value in whole[1].items():
                np.testing.assert_array_equal(value, resumed[1][name], name)


# Two layers over x and twice x, and a product, as they are before any training: scales and variances are 1, biases
# and means 0, both matrices the same. Exporters merge what is equal.
class MergedTensors(Layers):
    ONES = ["scale1", "var1", "scale2", "var2"]
    ZEROS = ["bias1", "mean1", "bias2", "mean2"]

    def setUp(self):
        super().setUp()
        random = np.random.default_rng(5)
        self.w = random.normal(size=(PLACES, PLACES))
        self.constants = {**{k: np.ones(CHANNELS) for k in self.ONES}, **{k: np.zeros(CHANNELS) for k in self.ZEROS},
                          "w1": self.w, "w2": self.w}
        np.savez(self.path("data.npz"), x=random.normal(1, 2, (40, CHANNELS, PLACES)).astype("f4"),
                 t=random.normal(size=(40, CHANNELS, PLACES)).astype("f4"))

    def save(self, copied=(), producer="", renamed=(), ir_version=8):
        """copied: tensors that are nodes, copies of others; renamed: others that nodes use in their stead."""
        node, use = helper.make_node, lambda name: dict(renamed).get(name, name)
        norm = lambda x, k, out: node("BatchNormalization", [x, *(use(f"{name}{k}") for name in FLAT)], [out],
                                      momentum=0.7, name=f"norm{k}")
        save(self.path("model.onnx"),
             [*(node("Identity", [of], [name]) for name, of in dict(copied).items()), node("Add", ["x", "x"], ["x2"]),
              norm("x", 1, "a"), norm("x2", 2, "b"), node("MatMul", ["a", "w1"], ["c"]),
              node("MatMul", ["b", "w2"], ["d"]), node("Add", ["c", "d"], ["y"])],
             {k: v for k, v in self.constants.items() if k not in dict(copied) and k not in dict(renamed)},
             [CHANNELS, PLACES], [CHANNELS, PLACES])
        model = onnx.load(self.path("model.onnx"))
        model.producer_name, model.ir_version = producer, ir_version
        if ir_version < 4:
            model.graph.input.extend(helper.make_tensor_value_info(i.name, i.data_type, i.dims)
                                     for i in model.graph.initializer)
        onnx.save(model, self.path("model.onnx"))

    def merged(self):
        return {**{k: self.ONES[0] for k in self.ONES[1:]}, **{k: self.ZEROS[0] for k in self.ZEROS[1:]}}

    def test_copies_of_uniform_tensors_are_tensors_of_their_own(self):
        self.save()
        wanted = self.run_job()
        for ir_version in (3, 8):
            self.save(self.merged(), ir_version=ir_version)
            losses, found = self.run_job()
            self.assertEqual(losses, wanted[0])
            self.assertEqual(sorted(found), sorted(wanted[1]))
            for name, value in wanted[1].items():
                np.testing.assert_array_equal(found[name], value, name)
            trained = onnx.load(self.path("trained.onnx"))
            onnx.checker.check_model(trained)
            self.assertNotIn("Identity", [n.op_type for n in trained.graph.node])
        # What was written trains on.
        os.replace(self.path("trained.onnx"), self.path("model.onnx"))
        self.assertEqual(sorted(self.run_job()[1]), sorted(wanted[1]))

    def test_copies_of_other_tensors_are_where_pytorch_wrote_them(self):
        self.save()
        wanted = self.run_job()
        self.save({"w2": "w1"}, producer="pytorch")
        losses, found = self.run_job()
        self.assertEqual(losses, wanted[0])
        np.testing.assert_array_equal(found["w2"], wanted[1]["w2"])
        self.save({"w2": "w1"})  # meant: one matrix, which gets both gradients
        losses, found = self.run_job()
        self.assertNotIn("w2", found)
        self.assertNotEqual(losses, wanted[0])
        with np.load(self.path("gradients.npz")) as gradients:
            self.assertEqual(sorted(gradients.files), ["bias1", "bias2", "scale1", "scale2", "w1"])

    def test_a_tensor_that_is_used_by_a_copy_alone_keeps_its_name(self):
        self.save({"scale2": "one"})
        model = onnx.load(self.path("model.onnx"))
        model.graph.initializer.append(numpy_helper.from_array(np.ones(CHANNELS, "f4"), "one"))
        onnx.save(model, self.path("model.onnx"))
        found = self.run_job()[1]
        self.assertNotIn("scale2", found)
        self.assertTrue((found["one"] != 1).any())

    def test_a_statistic_that_is_a_scale_as_well_is_refused(self):
        self.save(renamed={"var1": "scale1"})
        self.refused(self.job(), "initialiser 'scale1' is a running statistic of BatchNormalization, and scale or bias "
                                 "of BatchNormalization 'a'; exporters merge tensors that are equal")

    def test_scales_of_several_layers_are_one_and_a_note_says_so(self):
        self.save(renamed={"scale2": "scale1", "bias2": "bias1"})
        done = self.train(self.job())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("note: 'bias1' and 1 more: used by several normalisations, and trained as one", done.stderr)
        self.save()
        self.assertNotIn("note", self.train(self.job()).stderr)


# y = Dropout(x * w): where w is 1 and does not change, the loss, a mean, tells by its bits what was dropped.
class Dropout(Layers):
    INS = 4  # of 16 elements of a batch each has a bit of its own

    def save(self, opset=17, **attributes):
        node, inputs, constants = helper.make_node, ["h"], {"w": np.ones(self.INS)}
        if opset >= 12:
            inputs.append("ratio")
            constants["ratio"] = np.array(0.5)
        else:
            attributes["ratio"] = 0.5
        save(self.path("model.onnx"), [node("Mul", ["x", "w"], ["h"]), node("Dropout", inputs, ["y"], **attributes)],
             constants, [self.INS], [self.INS], opset)

    def kept(self, ids, top=None, threads=1):
        """bool [steps, batch, ins] for the samples of each step."""
        batch = len(ids[0])
        x = np.zeros((40, self.INS), "f4")
        for sample in range(40):  # those of a batch differ by 4
            x[sample] = 2.0 ** (np.arange(self.INS) + self.INS * (sample % batch))
        np.savez(self.path("data.npz"), x=x)
        np.save(self.path("order.npy"), np.array(ids))
        losses, _ = self.run_job({"loss": '"output"', "batch": batch, "steps": len(ids), 
                                  **(top or {})}, threads=threads, data={k: v for k, v in DATA.items() if k != "targets"})
        masks = []
        for row, loss in zip(ids, losses):
            bits = round(loss * batch * self.INS / 2)
            self.assertAlmostEqual(loss * batch * self.INS / 2, bits)
            masks.append([[bits >> i + self.INS * (s % batch) & 1 for i in range(self.INS)] for s in row])
        return np.array(masks)

    def setUp(self):
        super().setUp()
        SGD["lr"] = 0.0
        self.addCleanup(SGD.update, lr=0.1)

    IDS = [[0, 1, 2, 3], [4, 5, 6, 7]] * 10

    def test_half_is_dropped_and_steps_differ(self):
        for opset, attributes in ((17, {}), (17, {"seed": 3}), (10, {})):
            with self.subTest(opset=opset, **attributes):
                self.save(opset, **attributes)
                kept = self.kept(self.IDS)
                self.assertLess(abs(kept.mean() - 0.5), 0.125)  # over 4 deviations of 320 draws
                self.assertEqual(len({m.tobytes() for m in kept}), len(kept))

    def test_what_is_dropped_of_a_sample_depends_on_step_and_seed_alone(self):
        self.save()
        kept = self.kept(self.IDS)
        turned = self.kept([row[::-1] for row in self.IDS])
        np.testing.assert_array_equal(kept, turned[:, ::-1])
        np.testing.assert_array_equal(kept, self.kept(self.IDS, threads=3))
        np.testing.assert_array_equal(kept[:, 2:], self.kept([row[2:] for row in self.IDS]))
        self.assertFalse((kept == self.kept(self.IDS, {"seed": 2})).all())


# A network as PyTorch exports it to be trained: Dropout is told to drop, BatchNormalization to take the batch. Held-back
# samples and the model that is written have neither.
class Inference(Layers):
    def save(self, opset=17, inside=False, written_out=None):
        node, random = helper.make_node, np.random.default_rng(3)
        value = lambda name, shape, t=TensorProto.FLOAT: helper.make_tensor_value_info(name, t, shape)
        constants = {"w": random.normal(size=(INS, CHANNELS)), "scale": random.uniform(0.5, 2, CHANNELS),
                     "bias": random.normal(size=CHANNELS), "mean": random.normal(size=CHANNELS),
                     "var": random.uniform(0.5, 2, CHANNELS), "last": random.normal(size=(CHANNELS, OUTS)),
                     "ratio": np.array(0.4)}
        many = ["n", "m", "v"] if opset >= 14 else ["n", "m", "v", "sm", "sv"]
        mode = {"training_mode": 1} if opset >= 14 else {}
        drop = [node("Dropout", ["r", "ratio", "on"], ["d", "kept"])]
        if written_out:  # as PyTorch's exporter writes dropout in place, with a mask of elements or of channels
            constants["part"] = np.array(0.6)
            like = node("Identity" if written_out == "elements" else "ReduceMax", ["r"], ["like"],
                        **({} if written_out == "elements" else {"axes": [1]}))
            drop = [like, node("RandomUniformLike", ["like"], ["u"]), node("CastLike", ["part", "u"], ["p"]),
                    node("Less", ["u", "p"], ["sampled"]), node("CastLike", ["sampled", "r"], ["mask"]),
                    node("Constant", [], ["by"], value_float=0.6), node("Div", ["mask", "by"], ["scaled"]),
                    node("Mul", ["r", "scaled"], ["d"])]
        if inside:
            branch = lambda x: helper.make_graph([node("Dropout", [x, "ratio", "on"], ["inner"])], "branch", [],
                                                 [value("inner", None)])
            drop = [node("If", ["on"], ["d"], then_branch=branch("r"), else_branch=branch("h"))]
        nodes = [node("MatMul", ["x", "w"], ["h"]),
                 node("BatchNormalization", ["h", "scale", "bias", "mean", "var"], many, momentum=0.7, **mode),
                 node("Relu", ["n"], ["r"]), node("Constant", [], ["on"], value=numpy_helper.from_array(np.array(True))),
                 *drop, node("MatMul", ["d", "last"], ["y"]), node("Identity", ["m"], ["seen"]),
                 node("SoftmaxCrossEntropyLoss", ["y", "labels"], ["loss"])]
        graph = helper.make_graph(nodes, "to_train", [value("x", ["batch", INS]),
                                                      value("labels", ["batch"], TensorProto.INT64)],
                                  [value("loss", []), value("y", ["batch", OUTS]), value("seen", [CHANNELS])],
                                  [numpy_helper.from_array(v.astype("f4"), k) for k, v in constants.items()])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8),
                  self.path("model.onnx"))
        self.x, self.classes = self.x[:5 * BATCH], self.classes[:5 * BATCH]
        np.savez(self.path("data.npz"), x=self.x, labels=self.classes)
        np.save(self.path("order.npy"), self.order % (5 * BATCH))

    def run_inference(self, outputs=OUTPUT):
        text = job_text({**MODEL, "loss": '"output"'}, {k: v for k, v in DATA.items() if k != "targets"}, SGD, outputs,
                        evaluation={"kind": '"arrays"', "file": '"data.npz"', "every": STEPS})
        done = self.train(text)
        self.assertEqual(done.returncode, 0, done.stderr)
        trained = onnx.load(self.path("trained.onnx"))
        onnx.checker.check_model(trained, full_check=True)
        return trained, {i.name: numpy_helper.to_array(i).astype("f8") for i in trained.graph.initializer}

    def logits(self, c):
        h = (self.x.astype("f8") @ c["w"] - c["mean"]) / np.sqrt(c["var"] + 1e-5) * c["scale"] + c["bias"]
        return np.maximum(h, 0) @ c["last"]

    def test_held_back_samples_and_the_written_model(self):
        for opset, inside, written_out in ((13, False, None), (17, False, None), (17, True, None),
                                           (17, False, "elements"), (17, False, "channels")):
            with self.subTest(opset=opset, inside=inside, written_out=written_out):
                self.save(opset, inside, written_out)
                trained, c = self.run_inference()
                if written_out:
                    self.assertNotIn("RandomUniformLike", [n.op_type for n in trained.graph.node])
                logits = self.logits(c)
                logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
                wanted = -logs[np.arange(5 * BATCH), self.classes].mean()
                self.assertAlmostEqual(self.log()[-1]["held_back_loss"], wanted, delta=1e-5)
                np.savez(self.path("in.npz"), x=self.x, labels=self.classes)
                run = subprocess.run([OPTIONS.cli, "run", self.path("trained.onnx"), "--inputs", self.path("in.npz"),
                                      "--outputs", self.path("out.npz")], capture_output=True, text=True, check=False)
                self.assertEqual(run.returncode, 0, run.stderr)
                with np.load(self.path("out.npz")) as out:
                    np.testing.assert_allclose(out["y"], logits, atol=1e-5)
                    np.testing.assert_allclose(out["seen"], c["mean"], atol=1e-6)
                    self.assertAlmostEqual(float(out["loss"]), wanted, delta=1e-5)
                # What training needs is still there, but for masks that are written out: what was written trains on.
                os.replace(self.path("trained.onnx"), self.path("model.onnx"))
                self.run_inference()

    def test_chosen_outputs(self):
        self.save()
        for outputs, inputs, ops in ((["y"], ["x"], 5), (["r", "n"], ["x"], 3), (["loss"], ["x", "labels"], 6),
                                     (["y", "seen"], ["x"], 7)):
            text = "[" + ", ".join(f'"{o}"' for o in outputs) + "]"
            trained, c = self.run_inference({**OUTPUT, "outputs": text})
            self.assertEqual([o.name for o in trained.graph.output], outputs)
            self.assertEqual([i.name for i in trained.graph.input], inputs)
            self.assertEqual(len(trained.graph.node), ops)
            if "y" in outputs:
                np.savez(self.path("in.npz"), x=self.x)
                subprocess.run([OPTIONS.cli, "run", self.path("trained.onnx"), "--inputs", self.path("in.npz"),
                                "--outputs", self.path("out.npz")], check=True, capture_output=True)
                with np.load(self.path("out.npz")) as out:
                    np.testing.assert_allclose(out["y"], self.logits(c), atol=1e-5)
            else:
                self.assertEqual(set(c) & {"last"}, {"last"} if outputs == ["loss"] else set())
        for text, message in (('["q"]', "no node of the model gives 'q'; its outputs are 'loss', 'y', 'seen'"),
                              ('["y", "y"]', "output 'y' is given twice"), ('["x"]', "no node of the model gives 'x'")):
            os.remove(self.path("log.jsonl"))
            done = self.train(job_text({**MODEL, "loss": '"output"'}, {"kind": '"arrays"', "file": '"data.npz"'}, SGD,
                                       {**OUTPUT, "outputs": text}))
            self.assertEqual(done.returncode, 1)
            self.assertIn(message, done.stderr)
            self.assertFalse(os.path.exists(self.path("log.jsonl")))
            open(self.path("log.jsonl"), "w", encoding="utf-8").close()
        done = self.train(job_text(MODEL, DATA, SGD, {"log": OUTPUT["log"], "outputs": '["y"]'}))
        self.assertIn("'output.outputs' is for the model that is written, output.model", done.stderr)


if __name__ == "__main__":
    main()
