#!/usr/bin/env python3
"""Jobs in which any two options of training meet: optimiser, decay, clipping, schedule, parts, ranks, numbers that are
drawn, evaluation, loss, kind of data. Each against the same in NumPy and f64: what is logged, the first gradients, what
parameters and states are at the end. Among the parameters are one whose gradient is 0 and rows that no sample reads.
--jobs (or TILEWRIGHT_GRAPHS) says how many; 0: until each pair has been there once."""
import argparse
import json
import os
import random
import shutil

from training import INS, OPTIONS, OUTS, Training, job_text, main
from pairs import pairwise
from training_model import (clipped, hits, kept_states, loss_and_slope, normal, rate, run_key, step_key, uniform, update,
                            words_of_places, words_of_samples)
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SAMPLES, BATCH, ROWS, NOISE, DROPPED, SEED = 20, 6, 7, 0.25, 0.25, 1 << 39 | 5
CHOICES = {
    "optimizer": [{"name": "sgd", "lr": 0.1}, {"name": "sgd", "lr": 0.1, "momentum": 0.9},
                  {"name": "sgd", "lr": 0.05, "momentum": 0.8, "nesterov": True}, {"name": "adagrad", "lr": 0.1},
                  {"name": "rmsprop", "lr": 0.02, "alpha": 0.9}, {"name": "rmsprop", "lr": 0.01, "momentum": 0.5},
                  {"name": "adam", "lr": 0.05}, {"name": "adam", "lr": 0.05, "betas": [0.5, 0.75], "eps": 1e-3},
                  {"name": "adamw", "lr": 0.05}, {"name": "lamb", "lr": 0.05, "betas": [0.8, 0.9]}],
    "decay": [{}, {"weight_decay": 0.125}, {"weight_decay": 0.25, "no_decay": ["b", "u*"]}],
    # Bounds that no gradient reaches, and some that most do.
    "clip": [{}, {"clip_norm": 100.0}, {"clip_norm": 0.25}, {"clip_value": 0.0625},
             {"clip_value": 0.125, "clip_norm": 0.125}],
    "schedule": [{}, {"kind": "constant", "warmup": 2}, {"kind": "constant", "warmup": 9},
                 {"kind": "step", "every": 2, "gamma": 0.5, "warmup": 1}, {"kind": "cosine"},
                 {"kind": "cosine", "least": 0.01, "warmup": 1}],
    "accumulate": [None, 1, 2, 6],
    "ranks": [None, "exact", 2],
    "draws": ["", "dropout", "noise", "dropout noise"],
    "every": [None, 1, 2],  # steps between evaluations
    "held_back": [1, 5, 6, 7, 13],  # samples
    "loss": ["mean_squares", "logistic", "cross_entropy", "output"],
    "data": ["arrays", "libsvm"],
    "exclude": [[], ["s"]],
    "steps": [1, 2, 5],
}


def is_allowed(case):
    parts = case["accumulate"] or 1
    return (case["data"] == "arrays" or case["loss"] in ("cross_entropy", "output")) and (
        case["ranks"] != 2 or parts > 1)


class Options(Training):
    def setUp(self):
        super().setUp()
        self.rolls = np.random.default_rng(OPTIONS.seed)

    # The model's parameters: of table some rows are read by no sample, u has no gradient, c begins at 0.
    def draw_parameters(self, case):
        draw = lambda *shape: self.rolls.normal(scale=0.3, size=shape).astype("f4")
        self.p = {"w": draw(INS, OUTS), "b": draw(OUTS), "s": 1 + np.abs(draw(OUTS)), "c": np.zeros(OUTS, "f4"),
                  "u": np.full(OUTS, -1.5, "f4")}
        if case["data"] == "arrays":
            self.p["table"] = draw(ROWS, OUTS)

    def save_model(self, case):
        node, value = helper.make_node, helper.make_tensor_value_info
        nodes, x, h = [], "x", "h"
        if "noise" in case["draws"]:
            nodes += [node("RandomNormalLike", ["x"], ["noise"], scale=NOISE), node("Add", ["x", "noise"], ["noisy"])]
            x = "noisy"
        nodes += [node("Gemm", [x, "w", "b"], ["h"])]
        if "dropout" in case["draws"]:
            nodes += [node("Dropout", ["h", "ratio"], ["d"])]
            h = "d"
        nodes += [node("Mul", [h, "s"], ["a"]), node("Relu", ["u"], ["nothing"]), node("Add", ["c", "nothing"], ["e"])]
        inputs = [value("x", TensorProto.FLOAT, ["batch", INS])]
        if case["data"] == "arrays":
            nodes += [node("Gather", ["table", "k"], ["rows"]), node("Add", ["rows", "e"], ["f"])]
            inputs += [value("k", TensorProto.INT64, ["batch"])]
        nodes += [node("Add", ["a", "f" if case["data"] == "arrays" else "e"], ["y"])]
        constants = {**self.p, "ratio": np.array(DROPPED, "f4")}
        graph = helper.make_graph(nodes, "options", inputs, [value("y", TensorProto.FLOAT, ["batch", OUTS])],
                                  [numpy_helper.from_array(v, k) for k, v in constants.items()])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), self.path("model.onnx"))

    # Arrays, or lines of which every third has no feature at all.
    def save_data(self, case, name, samples):
        x = self.rolls.normal(size=(samples, INS)).astype("f4")
        classes = self.rolls.integers(0, OUTS, samples)
        if case["data"] == "libsvm":
            x *= self.rolls.random(x.shape) < 0.6
            x[::3] = 0
            with open(self.path(name), "w", encoding="utf-8") as file:
                for row, label in zip(x, classes):
                    features = "".join(f" {i + 1}:{v:.9g}" for i, v in enumerate(row) if v)
                    file.write(f"{10 * label + 1}{features}\n")
        t = self.rolls.normal(size=(samples, OUTS)).astype("f4")
        data = {"x": x, "k": self.rolls.integers(0, ROWS - 3, samples), "t": t, "c": classes,
                "p": (t > 0).astype("f4")}
        if case["data"] == "arrays":
            np.savez(self.path(name), **data)
        array = {"mean_squares": "t", "logistic": "p", "cross_entropy": "c", "output": None}[case["loss"]]
        table = {"kind": json.dumps(case["data"]), "file": json.dumps(name)}
        if case["data"] == "libsvm":
            table.update({"labels": "[1, 11, 21]"} if array else {})
        elif array:
            table["targets"] = json.dumps(array)
        return table, {**data, "targets": data[array] if array else None}

    def text(self, case, data, held_back):
        written = lambda table: {k: json.dumps(v) for k, v in table.items()}
        top = {"model": "model.onnx", "loss": case["loss"], "steps": case["steps"], "batch": BATCH, "seed": SEED,
               "parameters": list(self.p)}
        top.update({k: case[k] for k in ("accumulate", "exclude") if case[k]})
        more = {"checkpoint": {"folder": '"kept"', "every": 2}}
        if case["schedule"]:
            more["schedule"] = written(case["schedule"])
        if case["every"]:
            more["evaluation"] = {**held_back, "every": case["every"]}
        if case["ranks"] == "exact":
            more["distributed"] = {"exact": "true"}
        return job_text(written(top), {**data, "order": '"order.npy"'},
                        written({**case["optimizer"], **case["decay"], **case["clip"]}),
                        {"log": '"log.jsonl"', "gradients": '"gradients.npz"', "model": '"trained.onnx"'}, **more)

    # The model's output for samples of data with parameters p; x: with or without noise; mask: of dropout.
    @staticmethod
    def forward(p, data, ids, x, mask):
        h = (x @ p["w"] + p["b"]) * mask
        rows = p["table"][data["k"][ids]] if "table" in p else 0
        return h, h * p["s"] + rows + p["c"] + np.maximum(p["u"], 0)

    # What of a training step is drawn for samples.
    @staticmethod
    def drawn(case, step, data, ids):
        key, streams = step_key(SEED, step), iter(range(2))
        x, mask = data["x"][ids].astype("f8"), 1.0
        if "noise" in case["draws"]:
            x = x + NOISE * normal(words_of_samples(key, next(streams), ids, INS))
        if "dropout" in case["draws"]:
            mask = (uniform(words_of_samples(key, next(streams), ids, OUTS)) >= DROPPED) / (1 - DROPPED)
        return x, mask

    def gradients(self, case, p, data, step, ids):
        x, mask = self.drawn(case, step, data, ids)
        h, y = self.forward(p, data, ids, x, mask)
        loss, slope = loss_and_slope(case["loss"], y, None if data["targets"] is None else data["targets"][ids])
        of_h = slope * p["s"] * mask
        g = {"w": x.T @ of_h, "b": of_h.sum(0), "s": (slope * h).sum(0), "c": slope.sum(0), "u": np.zeros(OUTS)}
        if "table" in p:
            g["table"] = np.zeros((ROWS, OUTS))
            np.add.at(g["table"], data["k"][ids], slope)
        return loss, {k: v for k, v in g.items() if k not in case["exclude"]}

    # Held-back samples are not dropped from, but noise is drawn anew by the place in a batch: that of a part.
    @staticmethod
    def held_back(case, p, data):
        part, samples, loss, right = BATCH // (case["accumulate"] or 1), case["held_back"], 0, 0
        for batch in range(-(-samples // part)):
            ids = np.arange(batch * part, min(samples, (batch + 1) * part))
            x = data["x"][ids].astype("f8")
            if "noise" in case["draws"]:
                x = x + NOISE * normal(words_of_places(run_key(1, batch), 0, part, INS))[:len(ids)]
            _, y = Options.forward(p, data, ids, x, 1.0)
            t = None if data["targets"] is None else data["targets"][ids]
            loss += loss_and_slope(case["loss"], y, t)[0] * len(ids)
            found = hits(case["loss"], y, t)
            right = None if found is None else right + found.sum() / found[0].size
        return loss / samples, right if right is None else right / samples

    # All of the job's training: lines of the log, the first gradients, parameters, and what the optimiser keeps.
    def reference(self, case, data, held_back):
        p = {k: v.astype("f8") for k, v in self.p.items()}
        lines, first, states = [], None, {k: {} for k in p if k not in case["exclude"]}
        o = {**({"weight_decay": 0.01} if case["optimizer"]["name"] == "adamw" else {}), **case["optimizer"],
             **case["decay"], **case["clip"]}
        for step, ids in enumerate(self.order):
            loss, g = self.gradients(case, p, data, step, ids)
            first = first or g
            lr = rate(o["lr"], case["schedule"], case["steps"], step)
            for name, gradient in clipped(o, g).items():
                spared = name in ("b", "u") and "no_decay" in o
                p[name] = update({**o, "lr": lr, **({"weight_decay": 0} if spared else {})}, step, p[name], gradient,
                                 states[name])
            lines.append({"step": step, "loss": loss, "lr": lr})
            if case["every"] and ((step + 1) % case["every"] == 0 or step + 1 == case["steps"]):
                lines[-1]["held_back_loss"], right = self.held_back(case, p, held_back)
                lines[-1].update({} if right is None else {"held_back_accuracy": right})
        return lines, first, p, states

    def check_job(self, case):
        self.draw_parameters(case)
        self.save_model(case)
        table, data = self.save_data(case, "data.npz", SAMPLES)
        held_table, held_back = self.save_data(case, "held_back.npz", case["held_back"])
        self.order = self.rolls.integers(0, SAMPLES, (case["steps"], BATCH))
        np.save(self.path("order.npy"), self.order)
        shutil.rmtree(self.path("kept"), ignore_errors=True)
        done = self.train(self.text(case, table, held_table), *(["--ranks", "2"] if case["ranks"] == 2 else []))
        self.assertEqual(done.returncode, 0, done.stderr)
        lines, first, p, states = self.reference(case, data, held_back)
        log = self.log()
        self.assertEqual([set(k) - {"communicating", "waiting"} for k in log], [set(k) for k in lines])
        for line, wanted in zip(log, lines):
            for key, value in wanted.items():
                np.testing.assert_allclose(line[key], value, rtol=1e-14 if key == "lr" else 2e-6, atol=1e-6)
        if "held_back_accuracy" in lines[-1]:
            self.assertIn(f"accuracy {100 * lines[-1]['held_back_accuracy']:.2f} %", done.stdout)
        with np.load(self.path("gradients.npz")) as found:
            self.assertEqual(set(found.files), set(first))
            for name, g in first.items():
                np.testing.assert_allclose(found[name], g, rtol=1e-6, atol=1e-6, err_msg=name)
        trained = {i.name: numpy_helper.to_array(i) for i in onnx.load(self.path("trained.onnx")).graph.initializer}
        with np.load(os.path.join(self.path("kept"), f"step-{case['steps']:09d}.npz")) as found:
            kept = {key: found[key] for key in found.files if "/" in key}
        self.assertEqual(set(kept), {f"{part}/{name}" for name in states
                                     for part in ["parameters", *kept_states(case["optimizer"])]})
        for name, before in self.p.items():
            if name in case["exclude"]:
                np.testing.assert_array_equal(trained[name], before)
                continue
            np.testing.assert_array_equal(trained[name], kept["parameters/" + name])
            self.close(trained[name], p[name], name, 2.0 ** -23 * np.abs(before))
            for part in kept_states(case["optimizer"]):
                self.close(kept[f"{part}/{name}"], np.broadcast_to(states[name][part], before.shape), part + " " + name)

    # To a few roundings of the largest element, and exactly where that is 0.
    def close(self, found, wanted, what, more=0.0):
        np.testing.assert_array_less(np.abs(found - wanted), OPTIONS.tolerance * np.abs(wanted).max() + more + 1e-30,
                                     err_msg=what)

    def test_any_two_options_together(self):
        jobs = 0
        for case in pairwise(CHOICES, is_allowed, random.Random(OPTIONS.seed), OPTIONS.jobs or None):
            with self.subTest(seed=OPTIONS.seed, **case):
                self.check_job(case)
            jobs += 1
        print(f"{jobs} jobs")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("TILEWRIGHT_SEED", 1)))
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("TILEWRIGHT_GRAPHS", 40)))
    parser.add_argument("--tolerance", type=float, default=2e-6)
    main(parser)
