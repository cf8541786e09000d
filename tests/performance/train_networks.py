#!/usr/bin/env python3
"""Train small networks that PyTorch exports beside PyTorch itself: are gradients and losses its own, and what does a step take?

usage: train_networks.py --tilewright "PATH/tilewright train" [--threads 2] [--seconds 1] [NETWORK...]

NETWORK: a name in small_networks.py (default: all). Each is exported in training mode, and trained for six steps by SGD with momentum. Of the
gradients of the first step and the losses of all of them the line says how far they are off those in f64, in brackets how far PyTorch's own
are: gradients relative to the largest element of each parameter's, of which the worst counts, but for those that are zero but for rounding.
Signs of ReLU may differ where what enters is zero but for rounding, so that a gradient is off by a term: a figure far from PyTorch's is to be
looked at, and is no failure yet. Then ms a step, those of PyTorch, and how many times faster that is. Run by the Python of the environment
`torch` of ../shared/peers/setup.sh.
"""
import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import torch
from torch.nn import functional

from small_networks import NETWORKS

STEPS, LR, MOMENTUM, NOTHING = 6, 0.01, 0.9, 1e-7
LOSSES = {"cross_entropy": lambda y, t: functional.cross_entropy(y.reshape(-1, y.shape[-1]), t.reshape(-1)),
          "mean_squares": functional.mse_loss}
JOB = """model = "model.onnx"
loss = "{loss}"
parameters = {parameters}
steps = {steps}
batch = {batch}
[data]
kind = "arrays"
file = "data.npz"
inputs = {{ {inputs} }}
targets = "wanted"
order = "order.npy"
[optimizer]
name = "sgd"
lr = {lr}
momentum = {momentum}
[output]
log = "log.jsonl"
gradients = "gradients.npz"
"""


def made(spec, samples, random):
    if spec[0] == "floats":
        return random.standard_normal((samples, *spec[1])).astype("f4")
    return random.integers(0, spec[2], (samples, *spec[1]))


class Trained:
    """A network in one type, its steps on two batches in turn."""

    def __init__(self, name, dtype):
        network, self.batch, inputs, targets, loss = NETWORKS[name]
        random = np.random.default_rng(1)
        torch.manual_seed(0)
        self.net, self.loss = network().to(dtype), LOSSES[loss]
        self.x = {k: made(s, 2 * self.batch, random) for k, s in inputs.items()}
        self.y = made(targets, 2 * self.batch, random)
        self.dtype, self.steps = dtype, 0
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=LR, momentum=MOMENTUM)

    def tensor(self, array, step):
        part = torch.tensor(array[step % 2 * self.batch:][:self.batch])
        return part.to(self.dtype) if part.is_floating_point() else part

    def step(self):
        self.optimizer.zero_grad()
        x = [self.tensor(v, self.steps) for v in self.x.values()]
        loss = self.loss(self.net(*x), self.tensor(self.y, self.steps))
        loss.backward()
        self.optimizer.step()
        self.steps += 1
        return loss.item()

    def run(self):
        """Gradients of the first step, and all losses."""
        losses = [self.step()]
        gradients = {k: p.grad.double().numpy().copy() for k, p in self.net.named_parameters()}
        return gradients, np.array(losses + [self.step() for _ in range(STEPS - 1)])


def write_job(name, folder):
    trained = Trained(name, torch.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(trained.net, tuple(trained.tensor(v, 0) for v in trained.x.values()), f"{folder}/model.onnx",
                          input_names=list(trained.x), dynamo=False, training=torch.onnx.TrainingMode.TRAINING,
                          do_constant_folding=False)
    np.savez(f"{folder}/data.npz", wanted=trained.y, **{f"in {k}": v for k, v in trained.x.items()})
    np.save(f"{folder}/order.npy", np.stack([np.arange(trained.batch) + i % 2 * trained.batch for i in range(STEPS)]))
    text = JOB.format(loss=NETWORKS[name][4], parameters=json.dumps([k for k, _ in trained.net.named_parameters()]),
                      steps=STEPS, batch=trained.batch, lr=LR, momentum=MOMENTUM,
                      inputs=", ".join(f'"{k}" = "in {k}"' for k in trained.x))
    with open(f"{folder}/job.toml", "w", encoding="utf-8") as file:
        file.write(text)


def farthest(gradients, exact):
    sizes = {k: np.abs(v).max() for k, v in exact.items()}
    return max(np.abs(gradients[k] - v).max() / sizes[k] for k, v in exact.items() if sizes[k] > NOTHING)


def ms_of(step, seconds):
    for _ in range(3):
        step()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - start))
    return float(np.median(times))


def compare(name, options):
    with tempfile.TemporaryDirectory() as folder:
        write_job(name, folder)
        command = [*shlex.split(options.tilewright), f"{folder}/job.toml", "--threads", str(options.threads)]
        subprocess.run(command, check=True, capture_output=True, text=True)
        with open(f"{folder}/log.jsonl", encoding="utf-8") as file:
            losses = np.array([e["loss"] for e in map(json.loads, file) if "loss" in e])
        with np.load(f"{folder}/gradients.npz") as found:
            gradients = {k: found[k].astype("f8") for k in found.files}
        timed = subprocess.run([*command, "--bench", "--json", "--seconds", str(options.seconds)], check=True,
                               capture_output=True, text=True)
    ours = json.loads(timed.stdout.strip().splitlines()[-1])["median_ms"]
    exact, exact_losses = Trained(name, torch.float64).run()
    peer = Trained(name, torch.float32)
    peer_gradients, peer_losses = peer.run()
    theirs = ms_of(peer.step, options.seconds)
    print(f"{name:12} gradients {farthest(gradients, exact):.1e} ({farthest(peer_gradients, exact):.1e}), losses "
          f"{np.abs(losses - exact_losses).max():.1e} ({np.abs(peer_losses - exact_losses).max():.1e}); "
          f"{ours:.2f} ms a step, PyTorch {theirs:.2f}: x {theirs / ours:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK")
    parser.add_argument("--tilewright", default="tilewright train")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:options.threads]))
    failed = False
    for name in options.networks or NETWORKS:
        try:
            compare(name, options)
        except subprocess.CalledProcessError as error:
            failed = True
            print(f"{name:12} exit {error.returncode}: {error.stderr.strip()[-500:]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
