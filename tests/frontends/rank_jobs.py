"""What tests of training by several ranks share: a job for a small network with running statistics and random
numbers, what starts its ranks, and what a run of it leaves."""
import os
import shutil
import subprocess
from pathlib import Path

from training import OPTIONS, OUTPUT, Training, job_text

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

INS, WIDTH, OUTS, SAMPLES = 6, 10, 3, 50
OPTIMIZERS = [{"name": '"sgd"', "lr": 0.05, "momentum": 0.9},
              {"name": '"lamb"', "lr": 0.01, "weight_decay": 0.01},
              {"name": '"adam"', "lr": 0.01, "clip_norm": 0.05}]
ENV = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
       "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
       "HYDRA_LAUNCHER": "fork"}


def environment(command):
    """Of the process. Plugins of MPI libraries are unloaded with memory that they never free: no leaks are looked for."""
    return {**ENV, "ASAN_OPTIONS": "detect_leaks=0"} if command and "mpirun" in command[0] else ENV


def launchers(ranks):
    """What starts so many ranks, by engine."""
    return {"openmpi": ["mpirun.openmpi", "--oversubscribe", "-n", str(ranks)],
            "mpich": ["mpirun.mpich", "-n", str(ranks)],
            "gloo": [OPTIONS.cli, "launch", "--nproc", str(ranks)]}


def missing(engine):
    """Why ranks of the engine cannot be started here; empty: they can."""
    launcher = launchers(1)[engine][0]
    build = Path(OPTIONS.cli).resolve().parents[2]
    if not shutil.which(launcher):
        return f"no {launcher}"
    library = f"libtilewright_{engine}.so"
    return "" if (build / "runtime" / "distributed" / library).exists() else f"no {library}"


class RankJobs(Training):
    # A net with running statistics and random numbers: BatchNormalization and Dropout.
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(11)
        values = {"w1": random.normal(size=(INS, WIDTH)) / 2, "b1": random.normal(size=WIDTH),
                  "scale": random.uniform(0.5, 2, WIDTH), "bias": random.normal(size=WIDTH),
                  "mean": np.zeros(WIDTH), "var": np.ones(WIDTH), "w2": random.normal(size=(WIDTH, OUTS)),
                  "b2": random.normal(size=OUTS)}
        node = helper.make_node
        nodes = [node("Gemm", ["x", "w1", "b1"], ["h"]),
                 node("BatchNormalization", ["h", "scale", "bias", "mean", "var"], ["n"], momentum=0.8),
                 node("Relu", ["n"], ["r"]), node("Dropout", ["r"], ["d"]), node("Gemm", ["d", "w2", "b2"], ["y"])]
        info = lambda name, size: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", size])
        constants = [numpy_helper.from_array(v.astype("f4"), k) for k, v in values.items()]
        graph = helper.make_graph(nodes, "net", [info("x", INS)], [info("y", OUTS)], constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8),
                  self.path("model.onnx"))
        np.savez(self.path("data.npz"), x=random.normal(size=(SAMPLES, INS)).astype("f4"),
                 c=random.integers(0, OUTS, SAMPLES))
        self.runs = 0

    def text(self, folder, accumulate=4, steps=9, optimizer=0, exact=True, top=None, **distributed):
        data = {"kind": '"arrays"', "file": '"data.npz"', "targets": '"c"'}
        here = {k: f'"{folder}/{v[1:]}' for k, v in OUTPUT.items()}
        parts = {"accumulate": accumulate} if accumulate else {}
        return job_text({"model": '"model.onnx"', "loss": '"cross_entropy"', "steps": steps, "batch": 24, **parts,
                         **(top or {})},
                        data, OPTIMIZERS[optimizer], here, evaluation={**data, "every": 3},
                        checkpoint={"folder": f'"{folder}/kept"', "every": 3},
                        distributed={"exact": str(exact).lower(), "deadline": 20, **distributed})

    def start(self, folder, launcher, *more, threads=1, **job):
        os.makedirs(self.path(folder), exist_ok=True)
        with open(self.path(f"{folder}.toml"), "w", encoding="utf-8") as file:
            file.write(self.text(folder, **job))
        return subprocess.run([*launcher, OPTIONS.cli, "train", self.path(f"{folder}.toml"), "--threads", str(threads),
                               *more], capture_output=True, text=True, check=False, env=environment(launcher), timeout=120)

    def left(self, launcher, *more, folder=None, **job):
        """Bytes of all that a run leaves, but for times."""
        self.runs += 1
        folder = folder or f"run{self.runs}"
        done = self.start(folder, launcher, *more, **job)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path(f"{folder}/log.jsonl"), encoding="utf-8") as file:
            found = {"log": [line.split(', "samples_per_second"')[0].split(',"samples_per_second"')[0] for line in file]}
        for name in ("trained.onnx", "gradients.npz"):
            path = self.path(f"{folder}/{name}")
            found[name] = Path(path).read_bytes() if name.endswith("onnx") else self.arrays(path)
        kept = self.path(f"{folder}/kept")
        found["checkpoint"] = self.arrays(os.path.join(kept, sorted(os.listdir(kept))[-1]))
        return found

    @staticmethod
    def arrays(path):
        with np.load(path) as archive:
            return {name: archive[name].tobytes() for name in archive.files}

    def same(self, a, b):
        for key in a:
            self.assertEqual(a[key], b[key], key)
