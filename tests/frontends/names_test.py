#!/usr/bin/env python3
"""Names of a model that are made to harm: whatever a command prints is UTF-8 without control characters but newline and
tab, and what it writes as JSON is JSON."""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata
import unittest

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

OPTIONS = argparse.Namespace()
LENGTH, KINDS, ROUNDS = 16, "GNMWXYP", 2  # bytes of a name; graph, nodes, values, a producer
PIECES = [b"\x1b[2J", b"\x1b]0;t\x07", b"\r", b"\n", b"\x08", b"\x7f", b"\xc2\x9b", b"\xe2\x80\xae", b"\xff", b"\xc0\xaf",
          b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\"", b"\\", b"'", b"</script>", b"%s%n", b"\t", "é".encode(), b"name"]
COMMANDS = ["info {m}", "lower {m} --emit graph", "lower {m} --emit typed", "lower {m} --emit loops",
            "lower {m} --emit program", "lower {m} --explain all", "run {m} --shape N=2", "run {m} --inputs {f}/other.npz",
            "run {m} --shape {f}=2", "run {m} --profile {f}/trace.json", "bench {m} --seconds 0.01 --json",
            "compile {m} -o {f}/m.so", "info {f}/m.so --schedules", "run {f}/m.so", "run {f}/m.so --inputs {f}/other.npz",
            "run {f}/m.so --profile {f}/trace.json", "info {f}/broken.onnx", "train {f}/job.toml"]


def some_name(draw):
    name = b""
    while len(name) < LENGTH:
        name += draw.choice(PIECES) if draw.random() < 0.8 else bytes([draw.randrange(1, 256)])
    return name[:LENGTH]


def placeholder(kind):
    return "__" + kind * (LENGTH - 2)


def model_bytes(names, op="Softmax"):
    """protobuf takes names of UTF-8 alone, so that others of the same length are put in their place."""
    value = helper.make_tensor_value_info
    p = {kind: placeholder(kind) for kind in KINDS}
    graph = helper.make_graph(
        [helper.make_node("MatMul", [p["X"], p["W"]], ["t"], name=p["N"]),
         helper.make_node(op, ["t"], [p["Y"]], name=p["M"])], p["G"],
        [value(p["X"], TensorProto.FLOAT, [2, 3])], [value(p["Y"], TensorProto.FLOAT, [2, 4])],
        [numpy_helper.from_array(np.ones((3, 4), "f4"), p["W"])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name=p["P"])
    data = model.SerializeToString()
    for kind in KINDS:
        data = data.replace(p[kind].encode(), names[kind])
    return data


class Names(unittest.TestCase):
    def assert_printable(self, text, what):
        shown = text.decode()  # strict
        hidden = [c for c in shown if unicodedata.category(c) == "Cc" and c not in "\n\t"]
        self.assertFalse(hidden, (what, shown))

    def test_reach_no_terminal_and_no_json(self):
        draw = random.Random(5)
        for _ in range(ROUNDS):
            names = {kind: some_name(draw) for kind in KINDS}
            with tempfile.TemporaryDirectory() as folder:
                for file, op in (("m.onnx", "Softmax"), ("broken.onnx", "NoSuchOp")):
                    with open(os.path.join(folder, file), "wb") as out:
                        out.write(model_bytes(names, op))
                np.savez(os.path.join(folder, "other.npz"), **{"a\x1b[2Jb": np.ones(3, "f4")})
                np.savez(os.path.join(folder, "data.npz"), t=np.ones((4, 4), "f4"))
                with open(os.path.join(folder, "job.toml"), "w", encoding="utf-8") as out:
                    out.write('model = "m.onnx"\nloss = "mean_squares"\nsteps = 1\nbatch = 2\n[data]\nkind = "arrays"\n'
                              'file = "data.npz"\ntargets = "t"\n[optimizer]\nname = "sgd"\nlr = 0.1\n')
                for command in COMMANDS:
                    words = command.format(m=os.path.join(folder, "m.onnx"), f=folder).split()
                    done = subprocess.run([OPTIONS.cli, *words], capture_output=True, check=False, timeout=60)
                    self.assertIn(done.returncode, (0, 1, 2, 3), (command, names, done.stderr))
                    self.assert_printable(done.stdout, command)
                    self.assert_printable(done.stderr, command)
                    self.assertNotIn(b"internal error", done.stderr, command)
                    if "--json" in command:
                        json.loads(done.stdout.decode().splitlines()[-1])
                    if "--profile" in command:
                        self.assertEqual(done.returncode, 0, (command, done.stderr))
                        with open(os.path.join(folder, "trace.json"), "rb") as trace:
                            self.assertGreater(len(json.loads(trace.read().decode())["traceEvents"]), 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cli", required=True)
    _, rest = parser.parse_known_args(namespace=OPTIONS)
    os.environ["TILEWRIGHT_CACHE_BYTES"] = "0"
    unittest.main(argv=[sys.argv[0], *rest])
