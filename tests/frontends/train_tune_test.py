#!/usr/bin/env python3
"""The step of a training job under the tuner, and training with the database that it writes."""
import json
import subprocess

from training import BATCH, DATA, MODEL, OPTIONS, OUTPUT, Training, job_text, main
import numpy as np
from onnx import helper


class Tune(Training):
    def tuned(self, text, *more):
        with open(self.path("job.toml"), "w", encoding="utf-8") as file:
            file.write(text)
        return subprocess.run([OPTIONS.cli, "tune", "--train", self.path("job.toml"), "--db", self.path("db.jsonl"),
                               "--threads", "1", "--time", "20s", "--trials", "3", "--json", *more],
                              capture_output=True, text=True, check=False)

    def job_of(self, parts):
        self.write_model([helper.make_node("Gemm", ["x", "w", "b"], ["h"]), helper.make_node("Dropout", ["h"], ["y"])], [])
        return job_text({**MODEL, "accumulate": parts}, DATA, {"name": '"adam"', "lr": 0.05}, OUTPUT)

    def test_it_is_tuned_as_any_program(self):
        text = self.job_of(1)
        self.assertEqual(self.train(text).returncode, 0)
        losses = [line["loss"] for line in self.log()]
        done = self.tuned(text)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout.splitlines()[-1])
        self.assertGreater(found["kernels"], 2)
        self.assertGreater(found["usual_ms"], 0)
        self.assertNotIn(" instead of ", done.stderr)  # each run of the step gives the same
        with open(self.path("job.toml"), "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run([OPTIONS.cli, "train", self.path("job.toml"), "--db", self.path("db.jsonl")],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        np.testing.assert_allclose([line["loss"] for line in self.log()], losses, rtol=1e-5)

    def test_a_part_and_the_update(self):
        done = self.tuned(self.job_of(BATCH))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("whole runs: "), 2)

    def test_mistakes(self):
        text = self.job_of(1)
        done = self.tuned(text, "--shape", "x=1x2")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--train takes model, shapes and inputs from the job", done.stderr)
        done = self.tuned(text.replace("model.onnx", "none.onnx"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("none.onnx", done.stderr)


if __name__ == "__main__":
    main()
