"""What tests of `tilewright train` share: a small model with data in a folder of its own, jobs for it, and how
they are run."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

OPTIONS = argparse.Namespace()  # of the command line
BATCH, STEPS, INS, OUTS = 7, 15, 5, 3
MODEL = {"model": '"model.onnx"', "loss": '"mean_squares"', "steps": STEPS, "batch": BATCH}
DATA = {"kind": '"arrays"', "file": '"data.npz"', "targets": '"t"', "order": '"order.npy"'}
SGD = {"name": '"sgd"', "lr": 0.1}
OUTPUT = {"log": '"log.jsonl"', "gradients": '"gradients.npz"', "model": '"trained.onnx"'}


def job_text(top, data, optimizer, output, **more):
    """more: other tables, by name."""
    tables = (("", top), ("data", data), ("optimizer", optimizer), ("output", output), *more.items())
    return "\n".join((f"[{name}]\n" if name else "") + "".join(f"{k} = {v}\n" for k, v in table.items())
                     for name, table in tables)


# A linear layer in a file, with data for each loss beside it; each test writes the job that it wants.
class Training(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        random = np.random.default_rng(3)
        self.w = random.normal(size=(INS, OUTS)).astype("f4")
        self.b = random.normal(size=OUTS).astype("f4")
        self.x = random.normal(size=(40, INS)).astype("f4")
        self.t = random.normal(size=(40, OUTS)).astype("f4")
        self.classes = random.integers(0, OUTS, 40)
        self.order = random.integers(0, 40, (STEPS, BATCH))
        self.write_model([helper.make_node("Gemm", ["x", "w", "b"], ["y"], name="fc")])
        np.savez(self.path("data.npz"), x=self.x, t=self.t, c=self.classes, p=(self.t > 0).astype("f4"))
        np.save(self.path("order.npy"), self.order)

    def write_model(self, nodes, constants=(), ins=INS):
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            nodes, "linear", [value("x", TensorProto.FLOAT, ["batch", ins])],
            [value("y", TensorProto.FLOAT, ["batch", OUTS])],
            [numpy_helper.from_array(self.w, "w"), numpy_helper.from_array(self.b, "b"), *constants])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.doc_string = "kept"
        onnx.save(model, self.path("model.onnx"))

    def tearDown(self):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def train(self, text, *more, threads=1):
        with open(self.path("job.toml"), "w", encoding="utf-8") as file:
            file.write(text)
        return subprocess.run([OPTIONS.cli, "train", self.path("job.toml"), "--threads", str(threads), *more],
                              capture_output=True, text=True, check=False)

    def job(self, top=None, data=None, optimizer=None, output=None, **more):
        return job_text({**MODEL, **(top or {})}, {**DATA, **(data or {})}, {**SGD, **(optimizer or {})},
                        OUTPUT if output is None else output, **more)

    # What the log says, without how fast it was: equal for equal runs.
    def log(self):
        with open(self.path("log.jsonl"), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        for line in lines:
            self.assertEqual(list(line)[:3], ["step", "loss", "lr"])
            self.assertGreater(line.pop("samples_per_second"), 0)
        return lines

    def refused(self, text, message, status=1):
        done = self.train(text)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn(message, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for name in ("log.jsonl", "trained.onnx", "gradients.npz"):
            self.assertFalse(os.path.exists(self.path(name)))


def main(parser=None):
    """Runs the tests of the calling file; parser: with its own options."""
    parser = parser or argparse.ArgumentParser()
    parser.add_argument("--cli", required=True)
    _, rest = parser.parse_known_args(namespace=OPTIONS)
    unittest.main(argv=[sys.argv[0], *rest])
