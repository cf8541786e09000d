#!/usr/bin/env python3
"""Graphs and kernels in files of text: run, timed, tuned, and refused where they are wrong."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import unittest


class TextModel(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.model = os.path.join(OPTIONS.model, "model.onnx")
        self.fixed = ["--shape", "batch=1", "--threads", "1"]

    def tearDown(self):
        self.folder.cleanup()

    def file(self, name, text=None):
        path = os.path.join(self.folder.name, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path

    def run_cli(self, *arguments, status=0):
        done = subprocess.run([OPTIONS.cli, *arguments], capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def lowered(self, *arguments):
        return self.run_cli("lower", self.model, *self.fixed, *arguments).stdout

    def test_a_graph_runs(self):
        for form in "graph", "typed":
            path = self.file(form + ".ir", self.lowered("--emit", form))
            done = self.run_cli("run", path)
            self.assertIn("logits: f32[1, 10]", done.stdout)
            self.assertIn("are random", done.stderr)

    def test_constants_that_the_text_holds_are_used(self):
        path = self.file("sum.ir", "graph g {\n  input x: f32[n]\n  const c: f32[1] = [2.5]\n"
                         "  y: f32[n] = mul(x, c)\n  output y as \"y\"\n}\n")
        done = self.run_cli("run", path, "--shape", "n=3")
        self.assertIn("y: f32[3]", done.stdout)
        self.assertNotIn("are random", done.stderr)

    def test_a_graph_is_tuned_at_sizes(self):
        path = self.file("g.ir", "graph g {\n  input x: f32[n, 64]\n  const w: f32[64, 96] = #0\n"
                         "  y: f32[n, 96] = matmul(x, w)\n  output y as \"y\"\n}\n")
        database = self.file("tuned.jsonl")
        done = self.run_cli("tune", path, "--db", database, "--threads", "1", "--shape", "n=8", "--shape", "n=33",
                            "--trials", "8", "--time", "60s", "--json")
        self.assertGreaterEqual(json.loads(done.stdout.splitlines()[-1])["trials"], 8)

    def test_a_kernel_of_a_model_is_tuned(self):
        text = self.lowered("--emit", "loops", "--only", "k5")
        self.assertIn("# constants: in1", text)
        path = self.file("k5.ir", text)
        self.assertIn("out0: f32[1, 128]", self.run_cli("run", path).stdout)
        self.run_cli("bench", path, "--seconds", "0.05", "--threads", "1")
        done = self.run_cli("tune", path, "--db", self.file("tuned.jsonl"), "--threads", "1", "--trials", "4",
                            "--time", "60s")
        self.assertIn("k0_matmul_add_relu", done.stdout)

    def test_a_kernel_that_strays_is_refused(self):
        text = ("kernel k(in0: f32[64], out0: f32[64]) {\n  for i in 0..64 {\n"
                "    block \"b\" (v: parallel 64 = i) {\n      out0[v] = in0[v%s]\n    }\n  }\n}\n")
        self.run_cli("run", self.file("right.ir", text % ""))
        path = self.file("strays.ir", text % " + 1000000000")
        for command in (["run", path], ["tune", path, "--db", self.file("d.jsonl"), "--time", "5s"]):
            done = self.run_cli(*command, status=1)
            self.assertIn("k0_k: its code was called alone, and ended by signal 11", done.stderr)

    def test_mistakes(self):
        for text, phrase in [
                ("", "expected"),
                ("graph g {", ".ir:1:"),
                ("graph g {\n  input x: f32[2]\n  y: f32[2] = nonsense(x)\n  output y as \"y\"\n}\n", "nonsense"),
                ("graph g {\n  input x: f32[2]\n  y: f32[3] = relu(x)\n  output y as \"y\"\n}\n", "f32[3]"),
                ("graph g {\n  const w: f32[100000, 100000] = #0\n  output w as \"w\"\n}\n", "1 GiB"),
                ("kernel k(in0: f32[4]", ".ir:1:"),
                ("# constants: in7\nkernel k(in0: f32[4], out0: f32[4]) {\n  for i in 0..4 {\n"
                 "    block \"b\" (v: parallel 4 = i) {\n      out0[v] = in0[v]\n    }\n  }\n}\n", "'in7'")]:
            done = self.run_cli("run", self.file("wrong.ir", text), status=1)
            self.assertIn(phrase, done.stderr)
            self.assertIn("wrong.ir", done.stderr)
        self.run_cli("run", self.file("nowhere.ir"), status=1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cli", required=True)
    parser.add_argument("--model", required=True, help="a folder with model.onnx")
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=sys.argv[:1] + rest)
