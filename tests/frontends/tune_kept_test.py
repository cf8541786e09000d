#!/usr/bin/env python3
"""What tuning has found stays found: processes that are killed, several writers, the same file from the same records."""
import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest


class Kept(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.db = os.path.join(self.folder.name, "tuned.jsonl")
        self.model = os.path.join(OPTIONS.model, "model.onnx")
        self.fixed = ["--shape", "batch=1", "--threads", "1"]

    def tearDown(self):
        self.folder.cleanup()

    def run_cli(self, *arguments, status=0):
        done = subprocess.run([OPTIONS.cli, *arguments], capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def start(self, *more):
        return subprocess.Popen([OPTIONS.cli, "tune", self.model, *self.fixed, "--db", self.db, *more],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def contents(self):
        if not os.path.exists(self.db):
            return b""
        with open(self.db, "rb") as file:
            return file.read()

    def assert_whole(self):
        """At most the last line is damaged: what was being written when its process ended."""
        text = self.contents()
        checked = subprocess.run([OPTIONS.cli, "db", "check", self.db], capture_output=True, text=True)
        if checked.returncode != 0:
            last = len(text.rstrip(b"\n").split(b"\n"))
            self.assertIn(f"line {last}: ", checked.stdout)
            self.assertIn("1 damaged lines", checked.stdout)

    def test_a_killed_process_loses_no_record(self):
        rng = random.Random(OPTIONS.seed)
        for _ in range(OPTIONS.kills):
            process = self.start("--time", "10m", "--seed", str(rng.randrange(1, 1000)))
            seen = self.contents()
            end = time.monotonic() + rng.uniform(0.2, 4)
            while time.monotonic() < end:
                time.sleep(0.02)
                seen = self.contents()
            process.send_signal(signal.SIGKILL)
            process.wait()
            whole = seen[:seen.rfind(b"\n") + 1]
            self.assertTrue(self.contents().startswith(whole))
            self.assert_whole()
        done = self.run_cli("tune", self.model, *self.fixed, "--db", self.db, "--trials", "4", "--time", "60s")
        self.assertIn("whole runs: ", done.stdout)
        self.run_cli("bench", self.model, *self.fixed, "--db", self.db, "--seconds", "0.05")

    def test_two_writers_lose_nothing(self):
        writers = [self.start("--trials", "40", "--time", "60s", "--seed", seed) for seed in ("1", "2")]
        for writer in writers:
            self.assertEqual(writer.wait(), 0)
        self.run_cli("db", "check", self.db)

    def test_the_same_records_give_the_same_file(self):
        self.run_cli("tune", self.model, *self.fixed, "--db", self.db, "--trials", "40", "--time", "60s")
        files = []
        for number, more in enumerate(([], ["--no-cache"], [])):
            folder = os.path.join(self.folder.name, str(number))
            os.mkdir(folder)
            path = os.path.join(folder, "model.so")
            self.run_cli("compile", self.model, *self.fixed, "--db", self.db, "-o", path, *more)
            with open(path, "rb") as file:
                files.append(file.read())
        self.assertEqual(files[0], files[1])
        self.assertEqual(files[0], files[2])

    def test_with_same_bits_results_keep_theirs(self):
        exact = [*self.fixed, "--numerics", "exact"]
        inputs = ["--inputs", os.path.join(OPTIONS.model, "inputs.npz")]
        if not os.path.exists(inputs[1]):
            inputs = []
        self.run_cli("tune", self.model, *exact, "--db", self.db, "--same-bits", "--trials", "60", "--time", "60s")
        outputs = []
        for name, more in (("a.npz", []), ("b.npz", ["--db", self.db])):
            path = os.path.join(self.folder.name, name)
            self.run_cli("run", self.model, *exact, *inputs, *more, "--outputs", path)
            with open(path, "rb") as file:
                outputs.append(file.read())
        self.assertEqual(outputs[0], outputs[1])
        for line in self.contents().splitlines():
            self.assertIn("exact", json.loads(line)["device"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cli", required=True)
    parser.add_argument("--model", required=True, help="a folder with model.onnx")
    parser.add_argument("--kills", type=int, default=3, help="processes that are killed")
    parser.add_argument("--seed", type=int, default=1)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=sys.argv[:1] + rest)
