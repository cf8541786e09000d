#!/usr/bin/env python3
"""What ranks cost: the peak of memory beside that of one process, of a network with 25 million parameters; and the time
of sums of 200 small parameters, together and one by one."""
import json
import subprocess
import sys
from pathlib import Path

from rank_jobs import ENV, launchers, missing
from training import OPTIONS, Training, job_text, main

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MEBIBYTE = 1 << 20
# Runs a command, and prints its peak of memory.
PEAK = """import resource, subprocess, sys
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print("peak", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10, flush=True)
sys.exit(status)"""


class Costs(Training):
    def setUp(self):
        super().setUp()
        if missing("gloo"):
            self.skipTest(missing("gloo"))

    # Layers of `width` neurons without biases.
    def write(self, width, layers):
        random = np.random.default_rng(5)
        names = ["x", *(f"h{k}" for k in range(1, layers)), "y"]
        nodes = [helper.make_node("MatMul", [names[k], f"w{k}"], [names[k + 1]]) for k in range(layers)]
        weights = [numpy_helper.from_array((random.normal(size=(width, width)) * width**-0.5).astype("f4"), f"w{k}")
                   for k in range(layers)]
        info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", width])
        graph = helper.make_graph(nodes, "net", [info("x")], [info("y")], weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
                  self.path("model.onnx"))
        np.savez(self.path("data.npz"), x=random.normal(size=(32, width)).astype("f4"), c=random.integers(0, width, 32))

    def job(self, name, accumulate, exact=False, batch=8):
        path = self.path(name)
        text = job_text({"model": '"model.onnx"', "loss": '"cross_entropy"', "steps": 3, "batch": batch,
                         "accumulate": accumulate}, {"kind": '"arrays"', "file": '"data.npz"', "targets": '"c"'},
                        {"name": '"sgd"', "lr": 0.01}, {}, distributed={"exact": str(exact).lower()})
        Path(path).write_text(text, encoding="utf-8")
        return path

    def peak(self, launcher, job):
        """MiB of the process that needs most."""
        done = subprocess.run([*launcher, sys.executable, "-c", PEAK, OPTIONS.cli, "train", job, "--threads", "1"],
                              capture_output=True, text=True, check=False, env=ENV, timeout=200)
        self.assertEqual(done.returncode, 0, done.stderr)
        peaks = [int(line.split()[-1]) for line in done.stdout.splitlines() if "peak" in line]
        return max(peaks) / MEBIBYTE

    def test_peak_memory(self):
        self.write(2048, 6)
        buffer = 6 * 2048**2 * 4 / MEBIBYTE
        two = launchers(2)["gloo"]
        one = self.peak([], self.job("one.toml", 2))
        fast = self.peak(two, self.job("fast.toml", 2))
        exact = self.peak(two, self.job("exact.toml", 4, exact=True))
        print(f"one process {one:.0f} MiB, a rank {fast:.0f}, with exact sums of two parts {exact:.0f}; "
              f"gradients {buffer:.0f}")
        self.assertLessEqual(fast, one + 48)
        self.assertLessEqual(exact, one + buffer + 48)

    # Nothing but kernels: gradients are added up where they are made.
    def test_parts_and_updates_copy_nothing(self):
        for width, batch in ((64, 8), (100, 24), (130, 2)):
            self.write(width, 3)
            for exact in (False, True):
                job = self.job("copies.toml", 2, exact, batch=batch)
                done = subprocess.run([OPTIONS.cli, "lower", "--train", job, "--ranks", "2", "--emit", "program"],
                                      capture_output=True, text=True, check=True)
                self.assertEqual(done.stdout.count("    start "), 1)
                self.assertNotIn("    copy ", done.stdout)

    def test_small_gradients_are_summed_together(self):
        self.write(32, 200)
        job = self.job("small.toml", 2)

        def communicating(*more):
            done = subprocess.run([*launchers(2)["gloo"], OPTIONS.cli, "train", job, "--threads", "1", "--bench", "--json",
                                   "--seconds", "1", *more], capture_output=True, text=True, check=False, env=ENV,
                                  timeout=200)
            self.assertEqual(done.returncode, 0, done.stderr)
            line = next(line for line in done.stdout.splitlines() if "{" in line)
            return json.loads(line[line.index("{"):])["communicating_ms"]

        # The least of three: other processes lengthen each.
        rounds = [(communicating(), communicating("--bucket-bytes", "1")) for _ in range(3)]
        together, apart = (min(times) for times in zip(*rounds))
        print(f"sums of 200 gradients of 4 KiB: {apart:.2f} ms one by one, {together:.2f} ms together")
        self.assertGreaterEqual(apart, 3 * together)


if __name__ == "__main__":
    main()
