#!/usr/bin/env python3
"""The cache of compiled models as a user meets it: the second start compiles nothing, results stay the same
whatever happens to the files, and many processes may share it."""
import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest


class Cache(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.model = os.path.join(OPTIONS.model, "model.onnx")
        self.cache = os.path.join(self.folder.name, "tilewright", "compiled")
        self.number = 0

    def tearDown(self):
        self.folder.cleanup()

    def command(self, *more, model=None):
        self.number += 1
        outputs = os.path.join(self.folder.name, f"outputs{self.number}.npz")
        return ([OPTIONS.cli, "run", model or self.model, "--outputs", outputs, *more], outputs)

    def environment(self, **more):
        return {**os.environ, "XDG_CACHE_HOME": self.folder.name, "TILEWRIGHT_CACHE_BYTES": str(1 << 30), **more}

    def run_model(self, *more, model=None, **environment):
        """The bytes of the results."""
        command, outputs = self.command(*more, model=model)
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment(**environment))
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(outputs, "rb") as file:
            return file.read()

    def files(self):
        if not os.path.isdir(self.cache):
            return {}
        return {name: os.stat(os.path.join(self.cache, name)).st_ino for name in os.listdir(self.cache)}

    def test_the_second_start_compiles_nothing(self):
        first = self.run_model()
        files = self.files()
        self.assertGreater(len(files), 2)
        self.assertEqual(self.run_model(), first)
        self.assertEqual(self.files(), files)
        self.assertEqual(self.run_model("--no-cache"), first)
        self.assertEqual(self.files(), files)

    def test_nothing_is_kept_that_is_not_wanted(self):
        first = self.run_model("--no-cache")
        self.assertEqual(self.run_model(TILEWRIGHT_CACHE_BYTES="0"), first)
        self.assertEqual(self.run_model(TILEWRIGHT_DUMP=self.folder.name), first)
        self.assertEqual(self.files(), {})

    def test_what_differs_is_another_model(self):
        seen = set(self.files())
        for more in ([], ["--numerics", "exact"], ["--cpu", "x86-64-v3"], ["--threads", "3"], ["--shape", "batch=3"]):
            self.run_model(*more)
            self.assertGreater(len(self.files()), len(seen), more)
            seen = set(self.files())
        # Some bytes of a weight.
        with open(self.model, "rb") as file:
            content = bytearray(file.read())
        other = os.path.join(self.folder.name, "other.onnx")
        before = self.run_model()
        for k in range(64):
            content[len(content) // 2 + k] ^= 0x20
        with open(other, "wb") as file:
            file.write(content)
        self.assertEqual(set(self.files()), seen)
        self.assertNotEqual(self.run_model(model=other), before)

    def test_a_machine_described_otherwise_is_another(self):
        path = os.path.join(self.folder.name, "machine.json")
        seen = set(self.files())
        for text in ("{}", '{"vector_bytes": 16}', '{"vector_bytes": 32}'):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            self.run_model("--machine", path)
            self.assertGreater(len(self.files()), len(seen), text)
            seen = set(self.files())
            self.run_model("--machine", path)
            self.assertEqual(set(self.files()), seen)
        os.remove(path)
        command, _ = self.command("--machine", path)
        self.assertEqual(subprocess.run(command, capture_output=True, env=self.environment()).returncode, 1)

    def test_a_database_that_has_grown_is_another(self):
        db = os.path.join(self.folder.name, "tuned.jsonl")
        with open(db, "w", encoding="utf-8"):
            pass
        first = self.run_model("--db", db)
        files = self.files()
        self.assertEqual(self.run_model("--db", db), first)
        self.assertEqual(self.files(), files)
        with open(db, "a", encoding="utf-8") as file:
            file.write("no record\n")
        self.assertEqual(self.run_model("--db", db), first)
        self.assertGreater(len(self.files()), len(files))

    def test_damaged_files_are_mended(self):
        first = self.run_model()
        for name in self.files():
            path = os.path.join(self.cache, name)
            size = os.path.getsize(path)
            for damage in ("cut", "flip"):
                with open(path, "r+b") as file:
                    if damage == "cut":
                        file.truncate(size // 2)
                    else:
                        file.seek(size // 3)
                        byte = file.read(1)
                        file.seek(size // 3)
                        file.write(bytes([byte[0] ^ 8]))
                self.assertEqual(self.run_model(), first)
            self.assertTrue(os.path.exists(path))

    def test_processes_share_it_and_may_be_killed(self):
        expected = self.run_model("--no-cache")
        running = []
        for k in range(8):
            command, outputs = self.command()
            running.append((subprocess.Popen(command, env=self.environment(), stdout=subprocess.DEVNULL,
                                             stderr=subprocess.DEVNULL), outputs))
        time.sleep(0.2)
        running[3][0].send_signal(signal.SIGKILL)
        for k, (process, outputs) in enumerate(running):
            status = process.wait()
            if k == 3:
                continue
            self.assertEqual(status, 0)
            with open(outputs, "rb") as file:
                self.assertEqual(file.read(), expected)
        self.assertEqual(self.run_model(), expected)

    def test_it_stays_within_its_bytes(self):
        self.run_model()
        limit = 40000
        for batch in range(2, 8):
            self.run_model("--shape", f"batch={batch}", TILEWRIGHT_CACHE_BYTES=str(limit))
        total = sum(os.path.getsize(os.path.join(self.cache, name)) for name in self.files())
        self.assertLessEqual(total, limit + limit // 16)

    def test_a_folder_that_cannot_be_written_is_no_error(self):
        blocked = os.path.join(self.folder.name, "blocked")
        with open(blocked, "w", encoding="utf-8"):
            pass
        self.assertEqual(self.run_model(XDG_CACHE_HOME=blocked), self.run_model("--no-cache"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cli", required=True)
    parser.add_argument("--model", required=True, help="a folder with model.onnx")
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=sys.argv[:1] + rest)
