#!/usr/bin/env python3
"""Trains a model for 20 steps on one batch, towards targets near its own outputs: the loss falls, and each
parameter that it says it trains changes.

usage: check_trainable.py --cli TILEWRIGHT --work FOLDER [--obstacle TEXT] [--standard] MODEL
MODEL is a folder of ../shared/models or, with --standard, a standard architecture, which is built in FOLDER.
Exit 0, 1, or 77: skipped.
"""
import argparse
import json
import os
import subprocess
import sys

import check_model
import shared_folder

STEPS = 20
# A step that is small enough goes down; large numbers change by a large one alone.
RATES = (1e-4, 1e-5, 1e-6, 1e-3)
JOB = """model = "{model}"
loss = "mean_squares"
steps = {steps}
batch = {batch}
{statistics}
[data]
kind = "arrays"
file = "data.npz"
targets = "wanted output"
order = "order.npy"
[optimizer]
name = "adam"
lr = {rate}
[output]
log = "log.jsonl"
model = "trained.onnx"
gradients = "gradients.npz"
"""


def train(options, model, arrays, target, statistics, rate):
    """The log of losses and the gradients of step 0, or the error."""
    import numpy as np
    batch = len(target)
    np.savez(os.path.join(options.work, "data.npz"), **arrays, **{"wanted output": target})
    np.save(os.path.join(options.work, "order.npy"), np.tile(np.arange(batch), (STEPS, 1)))
    job = os.path.join(options.work, "job.toml")
    with open(job, "w", encoding="utf-8") as file:
        file.write(JOB.format(model=os.path.abspath(model), steps=STEPS, batch=batch, rate=rate, statistics=statistics))
    done = subprocess.run([options.cli, "train", job], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return done.stderr.strip(), None
    with open(os.path.join(options.work, "log.jsonl"), encoding="utf-8") as file:
        losses = [json.loads(line)["loss"] for line in file]
    with np.load(os.path.join(options.work, "gradients.npz")) as gradients:
        return losses, {name: gradients[name] for name in gradients.files}


def changed(before, after):
    """Names of constants of which at least one element is another now."""
    import numpy as np
    import onnx
    def constants(graph):
        found = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant" and node.attribute[0].HasField("t"):
                found[node.output[0]] = onnx.numpy_helper.to_array(node.attribute[0].t)
        return found
    old, new = (constants(onnx.load(path).graph) for path in (before, after))
    return {name for name in old if not np.array_equal(old[name], new[name], equal_nan=True)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cli", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--obstacle", help="what stands in the way, as the error says it")
    parser.add_argument("--standard", action="store_true")
    parser.add_argument("model")
    options = parser.parse_args()
    shared_folder.require(options.cli)
    if sys.executable != shared_folder.python():  # that has NumPy and onnx
        return subprocess.run([shared_folder.python(), *sys.argv], check=False).returncode
    import numpy as np
    import onnx
    os.makedirs(options.work, exist_ok=True)
    folder = options.work if options.standard else shared_folder.find(f"models/{options.model}")
    prefix = os.path.join(folder, f"{options.model}." if options.standard else "")
    path, inputs = (prefix + name for name in ("onnx" if options.standard else "model.onnx", "inputs.npz"))
    if options.standard:
        check_model.make_standard(options.model, options.work)
    outputs = os.path.join(options.work, "outputs.npz")
    subprocess.run([options.cli, "run", path, "--inputs", inputs, "--outputs", outputs], check=True)
    with np.load(inputs) as file:
        arrays = {name: file[name] for name in file.files}
    with np.load(outputs) as file:
        first = file[onnx.load(path, load_external_data=False).graph.output[0].name]
    away = np.random.default_rng(1).normal(0, max(float(first.std()), 1e-3), first.shape)
    name = os.path.basename(options.model)
    for statistics in ('statistics = "running"', 'statistics = "batch"'):
        moved, gradients, falls = set(), {}, None
        for rate in RATES:
            losses, gradients = train(options, path, arrays, (first + away).astype("f4"), statistics, rate)
            if gradients is None:
                print(f"{name}: {losses}")
                return 0 if options.obstacle and options.obstacle in losses else 1
            moved |= changed(path, os.path.join(options.work, "trained.onnx"))
            if losses[-1] < losses[0]:
                falls = f"{losses[0]:.6g} to {losses[-1]:.6g} at a rate of {rate}"
            still = [k for k in gradients if k not in moved]
            if falls and not any(gradients[k].any() for k in still):
                break
        # What the loss does not depend on has no gradient: it is named, and nothing else may stay.
        left = [k for k in still if gradients[k].any()]
        print(f"{name}: {statistics}: loss {falls or 'never falls'}; {len(gradients)} parameters, {len(still)} stay: "
              f"{', '.join(sorted(still)) or 'none'}")
        if options.obstacle or not falls or left:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
