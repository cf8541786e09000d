#!/usr/bin/env python3
"""Training that ends early and goes on: killed at any moment, its checkpoints damaged, its disk full. In the
end it is what it had been without, bit by bit."""
import argparse
import os
import random
import resource
import shutil
import signal
import subprocess
import time

from training import DATA, MODEL, OPTIONS, OUTPUT, SGD, Training, job_text, main
import numpy as np
import onnx
from onnx import helper

ADAM = {"name": '"adam"', "lr": 0.05}
SHUFFLED = {k: v for k, v in DATA.items() if k != "order"}
WARM = {"kind": '"step"', "every": 20, "gamma": 0.9, "warmup": 5}


class Checkpoints(Training):
    def text(self, steps, every=5, optimizer=None, output=None, **top):
        return job_text({**MODEL, "steps": steps, **top}, SHUFFLED, optimizer or ADAM,
                        OUTPUT if output is None else output, schedule=WARM,
                        checkpoint={"folder": '"kept"', "every": every})

    def run_to(self, steps, *more, **how):
        done = self.train(self.text(steps, **how), *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def kept(self):
        return sorted(os.listdir(self.path("kept")))

    # All that a run leaves: its log, the bytes of the model, and the arrays of the last checkpoint.
    def left(self):
        with open(self.path("trained.onnx"), "rb") as file:
            model = file.read()
        with np.load(os.path.join(self.path("kept"), self.kept()[-1])) as found:
            arrays = {name: found[name].tobytes() for name in found.files}
        return self.log() if os.path.exists(self.path("log.jsonl")) else None, model, arrays

    def uninterrupted(self, steps, **how):
        self.run_to(steps, "--fresh", **how)
        left = self.left()
        shutil.rmtree(self.path("kept"))
        return left

    def test_what_a_checkpoint_holds(self):
        self.run_to(12)
        self.assertEqual(self.kept(), ["step-000000010.npz", "step-000000012.npz"])
        with np.load(os.path.join(self.path("kept"), self.kept()[-1])) as found:
            self.assertEqual(set(found.files), {f"{part}/{name}" for part in ("parameters", "mean", "square")
                                                for name in "wb"} | {"step", "job", "hash"})
            trained = {i.name: onnx.numpy_helper.to_array(i)
                       for i in onnx.load(self.path("trained.onnx")).graph.initializer}
            for name in "wb":
                np.testing.assert_array_equal(found["parameters/" + name], trained[name])
            self.assertEqual(found["step"], 12)

    def test_it_goes_on(self):
        for optimizer in (SGD, ADAM, {"name": '"rmsprop"', "lr": 0.01, "momentum": 0.9}):
            with self.subTest(**optimizer):
                whole = self.uninterrupted(23, optimizer=optimizer)
                for steps in (8, 10, 16):
                    self.run_to(steps, optimizer=optimizer)
                done = self.run_to(23, "--resume", optimizer=optimizer)
                self.assertIn("went on after step 16", done.stdout)
                self.assertEqual(self.left(), whole)
                self.assertIn("all 23 steps were done before", self.run_to(23, optimizer=optimizer).stdout)
                self.assertEqual(self.left(), whole)

    # Its weights lie transposed in the step.
    def test_layers_with_transposed_weights_go_on(self):
        self.w = self.w.T.copy()
        self.write_model([helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)])
        whole = self.uninterrupted(16)
        self.run_to(7)
        self.run_to(16)
        self.assertEqual(self.left(), whole)

    def test_random_numbers_go_on(self):
        model = onnx.load(self.path("model.onnx"))
        model.graph.node[0].input[0] = "shaken"
        for node in (helper.make_node("Add", ["x", "noise"], ["shaken"]),
                     helper.make_node("RandomNormalLike", ["x"], ["noise"], scale=0.1)):
            model.graph.node.insert(0, node)
        onnx.save(model, self.path("model.onnx"))
        for seed in (0, 4):
            whole = self.uninterrupted(16, seed=seed)
            self.run_to(7, seed=seed)
            self.run_to(16, seed=seed)
            self.assertEqual(self.left(), whole)

    def test_kills(self):
        steps, every, kills = 400, 3, OPTIONS.kills
        begun = time.monotonic()
        whole = self.uninterrupted(steps, every=every)
        longest, rolls = 1.2 * (time.monotonic() - begun), random.Random(11)
        went_on = 0
        for _ in range(kills):
            with open(self.path("out"), "w", encoding="utf-8") as out, subprocess.Popen(
                    [OPTIONS.cli, "train", self.path("job.toml"), "--threads", "1"], stdout=out, stderr=out) as run:
                time.sleep(rolls.uniform(0, longest))
                run.kill()
            with open(self.path("out"), encoding="utf-8") as out:
                said = out.read()
            # Killed in between, it says nothing; or it was done, and killed while its process ended.
            self.assertTrue(said == "" or run.returncode == 0 or "; loss " in said, said)
            went_on += bool(self.kept() if os.path.isdir(self.path("kept")) else [])
            if run.returncode == 0:
                self.assertEqual(self.left(), whole)
                shutil.rmtree(self.path("kept"))
        self.run_to(steps, every=every)
        self.assertEqual(self.left(), whole)
        self.assertFalse([name for name in self.kept() if "partial" in name])
        print(f"{kills} kills, {went_on} of them left a checkpoint")

    def damage(self, file, how):
        with open(file, "rb") as f:
            data = bytearray(f.read())
        how(data)
        with open(file, "wb") as f:
            f.write(data)

    def test_damage_is_reported_and_the_one_before_is_taken(self):
        whole = self.uninterrupted(20)
        self.run_to(15)
        shutil.copytree(self.path("kept"), self.path("before"))
        newest = os.path.join(self.path("kept"), "step-000000015.npz")
        size, rolls, seen = os.path.getsize(newest), random.Random(5), 0

        def cut(length):
            return lambda data: data.__delitem__(slice(length, None))

        def flip(bit):
            def change(data):
                data[bit // 8] ^= 1 << bit % 8
            return change
        for how in [cut(n) for n in (0, 1, size // 2, size - 1)] + [flip(rolls.randrange(8 * size)) for _ in range(16)]:
            shutil.rmtree(self.path("kept"))
            shutil.copytree(self.path("before"), self.path("kept"))
            self.damage(newest, how)
            done = self.run_to(20)
            # What is not seen, as a flipped date of the zip format, does not matter.
            if done.stderr:
                seen += 1
                self.assertRegex(done.stderr, "note: .*step-000000015.npz")
                self.assertIn("went on after step 10", done.stdout)
            self.assertEqual(self.left(), whole)
        self.assertGreaterEqual(seen, 16)

    def test_elements_that_differ_are_damage(self):
        self.run_to(10)
        for name in self.kept():
            file = os.path.join(self.path("kept"), name)
            with np.load(file) as found:
                arrays = {key: found[key] for key in found.files}
            arrays["mean/w"] = arrays["mean/w"] * 2
            np.savez(file, **arrays)
        done = self.train(self.text(20))
        self.assertEqual(done.returncode, 1)
        self.assertIn("kept: no checkpoint is whole; --fresh begins anew", done.stderr)
        for name in self.kept():
            self.assertIn(name + ": is damaged: its contents are not as hashed", done.stderr)
        self.run_to(20, "--fresh")

    def test_another_job_is_refused(self):
        self.run_to(10)
        for text, message in (
                (self.text(20, optimizer={**ADAM, "lr": 0.01}), "optimizer.lr was 0.05 and is 0.01"),
                (self.text(20, optimizer=SGD), "optimizer.lr was 0.05 and is 0.1, optimizer.name was \"adam\" and is"),
                (self.text(20, loss='"logistic"'), 'loss was "mean_squares" and is "logistic"'),
                (self.text(20, seed=3), "seed was 1 and is 3"),
                (self.text(9), "is of 10 steps, the job has 9")):
            done = self.train(text)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn(message, done.stderr)
            self.assertIn("step-000000010.npz", done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        np.savez(self.path("data.npz"), x=self.x, t=self.t + 1)
        self.assertIn("data.file was", self.train(self.text(20)).stderr)

    def test_where_to_begin(self):
        done = self.train(self.text(10), "--resume")
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no checkpoint", done.stderr)
        self.assertEqual(self.train(self.text(10), "--resume", "--fresh").returncode, 2)
        self.assertIn("has no table [checkpoint]", self.train(self.job(), "--fresh").stderr)
        self.run_to(20)
        self.run_to(7, "--fresh")
        self.assertEqual(self.kept(), ["step-000000005.npz", "step-000000007.npz"])
        self.assertEqual(len(self.log()), 7)

    def test_a_disk_that_is_full(self):
        output = {"model": '"trained.onnx"'}
        whole = self.uninterrupted(20, output=output)
        self.run_to(5, output=output)

        # The first checkpoint beyond it ends the run; the one before is still there.
        def little_room():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        with open(self.path("job.toml"), "w", encoding="utf-8") as file:
            file.write(self.text(20, output=output))
        done = subprocess.run([OPTIONS.cli, "train", self.path("job.toml"), "--threads", "1"], capture_output=True,
                              text=True, check=False, preexec_fn=little_room)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"step-000000010\.npz: cannot be written")
        self.assertEqual(self.kept(), ["step-000000005.npz"])
        self.run_to(20, output=output)
        self.assertEqual(self.left(), whole)

    def start(self, text):
        with open(self.path("job.toml"), "w", encoding="utf-8") as file:
            file.write(text)
        run = subprocess.Popen([OPTIONS.cli, "train", self.path("job.toml"), "--threads", "1"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        until = time.monotonic() + 60
        while not os.path.exists(self.path("log.jsonl")) or os.path.getsize(self.path("log.jsonl")) == 0:
            self.assertIsNone(run.poll())
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)
        return run

    def test_interrupts(self):
        for by in (signal.SIGINT, signal.SIGTERM):
            run = self.start(self.text(10 ** 9, every=10 ** 9))
            run.send_signal(by)
            _, said = run.communicate(timeout=60)
            self.assertEqual(run.returncode, 1, said)
            self.assertRegex(said, "interrupted after [0-9]+ of 1000000000 steps; the same command goes on from .*npz")
            steps = len(self.log())
            self.assertEqual(self.kept(), [f"step-{steps:09}.npz"])
            self.run_to(steps + 3)
            left = self.left()
            shutil.rmtree(self.path("kept"))
            self.assertEqual(left, self.uninterrupted(steps + 3))
            os.remove(self.path("log.jsonl"))

    def test_two_runs_at_once(self):
        run = self.start(self.text(10 ** 9, every=10 ** 9))
        done = self.train(self.text(10))
        run.kill()
        run.communicate()
        self.assertEqual(done.returncode, 1)
        self.assertIn("another run writes its checkpoints there", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=5)
    main(parser)
