#!/usr/bin/env python3
"""Tunes a model as a user would: what is printed, what is kept, how it ends, and what mistakes cost."""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree


class Tune(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.db = os.path.join(self.folder.name, "tuned.jsonl")
        self.model = os.path.join(OPTIONS.model, "model.onnx")

    def tearDown(self):
        self.folder.cleanup()

    def run_cli(self, *arguments):
        return subprocess.run([OPTIONS.cli, *arguments], capture_output=True, text=True)

    def tune(self, *more):
        return self.run_cli("tune", self.model, "--db", self.db, "--threads", "1", "--shape", "batch=1",
                            *more)

    def records(self):
        with open(self.db, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def test_symbolic_extents_are_tuned_at_stated_sizes(self):
        any_batch = ["--shape", "batch=2", "--shape", "batch=7", "--shape", "any"]
        tuned = ["tune", self.model, "--db", self.db, "--threads", "1", "--trials", "60", "--time", "60s"]
        done = self.run_cli(*tuned, *any_batch)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("whole runs: ", done.stdout)
        compiled = os.path.join(self.folder.name, "model.so")
        done = self.run_cli("compile", self.model, "--db", self.db, "--threads", "1", "-o", compiled,
                            "--shape", "any")
        self.assertEqual(done.returncode, 0, done.stderr)
        schedules = self.run_cli("info", compiled, "--schedules").stdout
        for record in self.records():
            if record["state"] == "confirmed":
                for step in record["schedule"].splitlines():
                    self.assertIn(step, schedules)
        ran = self.run_cli("bench", compiled, "--shape", "batch=5", "--threads", "1", "--seconds", "0.1")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        refused = self.run_cli(*tuned, *any_batch[:4])
        self.assertEqual(refused.returncode, 1)
        self.assertIn("with --shape any, too", refused.stderr)

    def test_ends_at_a_stated_gap(self):
        done = self.tune("--gap", "90%", "--time", "90s", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("analytic costs alone", done.stderr)
        summary = json.loads(done.stdout.splitlines()[-1])
        if summary["seconds"] < 90:  # how sure it is by then depends on what else the machine does
            self.assertLessEqual(summary["gap"], 0.9)
        self.assertLess(summary["learning_seconds"], summary["seconds"])

    def test_what_is_found_is_kept_and_used(self):
        done = self.tune("--trials", "30", "--time", "60s", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = json.loads(done.stdout.splitlines()[-1])
        if summary["seconds"] < 60:  # else the time was over first
            self.assertGreaterEqual(summary["trials"], 30)
        self.assertLessEqual(summary["low"], summary["ratio"])
        self.assertLessEqual(summary["ratio"], summary["high"])
        written = self.records()
        for record in written:
            self.assertLess(record["ratio"][1], 1)
        records = [record for record in written if record["state"] == "confirmed"]
        self.assertEqual(len(records), summary["improved"] + (summary["graph_answers"] > 0))
        # Each was written before, when rounds had found it.
        found = [(r["task"], r["answers"]) for r in written if r["state"] == "provisional"]
        for record in records:
            self.assertIn((record["task"], record["answers"]), found)
        # Each record's schedule is what its kernel has in a model that is compiled with the database.
        compiled = os.path.join(self.folder.name, "model.so")
        done = self.run_cli("compile", self.model, "--db", self.db, "--threads", "1", "-o", compiled,
                            "--shape", "batch=1")
        self.assertEqual(done.returncode, 0, done.stderr)
        schedules = self.run_cli("info", compiled, "--schedules").stdout
        for record in records:
            for step in record["schedule"].splitlines():
                self.assertIn(step, schedules)
        explained = self.run_cli("lower", self.model, "--db", self.db, "--threads", "1", "--shape", "batch=1",
                                 "--explain", "all").stdout
        confirmed = {r["task"]: r for r in self.records() if r["state"] == "confirmed" and r["schedule"]}
        self.assertEqual(explained.count("as tuned:"), len(confirmed))
        for record in confirmed.values():
            answers = "".join(f" {name} = {value}" for name, value in sorted(record["answers"].items()))
            self.assertIn("as tuned:" + answers, explained)
        ran = self.run_cli("bench", self.model, "--db", self.db, "--threads", "1", "--seconds", "0.1")
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_it_goes_on_from_what_it_knows(self):
        first = self.tune("--trials", "30", "--time", "60s")
        self.assertEqual(first.returncode, 0, first.stderr)
        with open(self.db, encoding="utf-8") as file:
            before = file.read()
        again = self.tune("--trials", "4", "--time", "60s")
        self.assertEqual(again.returncode, 0, again.stderr)
        with open(self.db, encoding="utf-8") as file:
            self.assertTrue(file.read().startswith(before))

    def test_an_interrupt_keeps_what_was_found(self):
        process = subprocess.Popen([OPTIONS.cli, "tune", self.model, "--db", self.db, "--threads", "1",
                                    "--time", "10m"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn("whole runs: ", output)

    def test_the_report_is_a_whole_page(self):
        name = "<b>digits & more.onnx"  # text, wherever it stands
        self.model = shutil.copy(self.model, os.path.join(self.folder.name, name))
        path = os.path.join(self.folder.name, "report.html")
        done = self.tune("--trials", "30", "--time", "60s", "--report", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        first, rest = text.split("\n", 1)
        self.assertEqual(first, "<!DOCTYPE html>")
        self.assertNotIn("http", text)
        page = xml.etree.ElementTree.fromstring(rest)
        self.assertEqual(page.find(".//h1").text, name)
        self.assertFalse(page.findall(".//script"))
        cells = {cell.text for cell in page.iter("td")}
        for kernel in re.findall(r"^ *[\d.]+ .*? {2}(k\d\w*)", done.stdout, re.MULTILINE):
            self.assertIn(kernel, cells)
        titles = [title.text for title in page.iter("h2")]
        for title in ("Gain by kernel", "Gain over time", "Roofline", "Expected and measured times", "All kernels"):
            self.assertIn(title, titles)
        self.assertFalse([name for name in os.listdir(self.folder.name) if "partial" in name])

    def test_damage_is_told(self):
        with open(self.db, "w", encoding="utf-8") as file:
            file.write("{\"version\": 1}\n")
        for _ in range(2):  # also where the model is found in the cache
            ran = self.run_cli("bench", self.model, "--db", self.db, "--seconds", "0.1")
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertIn("line 1: there is no checksum", ran.stderr)

    # As the tuner writes it. A line has the 64-bit FNV-1a of all that is in front of its checksum.
    @staticmethod
    def line(task, state, rows):
        record = {"version": 3, "task": task, "device": "here", "family": "", "answers": {"rows": rows}, "schedule": "",
                  "usual_us": 20.25, "tuned_us": 16.5, "ratio": [0.75, 0.8125], "state": state}
        sum_ = 0xcbf29ce484222325
        for byte in json.dumps(record, separators=(",", ":")).encode():
            sum_ = (sum_ ^ byte) * 0x100000001b3 & (1 << 64) - 1
        return json.dumps({**record, "checksum": f"{sum_:016x}"}, separators=(",", ":"))

    def test_databases_are_kept_in_order(self):
        lines = [self.line(*record) for record in (
            ("conv-1", "provisional", 3), ("conv-1", "confirmed", 4), ("conv-2", "confirmed", 4), ("conv-1", "confirmed", 5),
            ("conv-2", "withdrawn", 0), ("conv-1", "provisional", 6), ("conv-3", "provisional", 7))]
        with open(self.db, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        for action in "show", "check":
            done = self.run_cli("db", action, self.db)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        exported = json.loads(self.run_cli("db", "export", self.db).stdout)
        self.assertEqual(exported, [json.loads(line) for line in lines])
        other = os.path.join(self.folder.name, "other.jsonl")
        replaced = 3  # the first three
        self.assertEqual(self.run_cli("db", "show", self.db).stdout.count("(replaced by a later one)"), replaced)
        for added in (len(lines) - replaced, 0):
            merged = self.run_cli("db", "merge", other, self.db)
            self.assertIn(f": {added} records added", merged.stdout)
        with open(other, encoding="utf-8") as file:
            self.assertEqual(file.read().splitlines(), lines[replaced:])
        with open(self.db, "a", encoding="utf-8") as file:
            file.write("half a line\n")
        damaged = self.run_cli("db", "check", self.db)
        self.assertEqual(damaged.returncode, 1)
        self.assertIn(f"line {len(lines) + 1}: no JSON object", damaged.stdout)
        self.assertIn(f"{replaced + 1} lines removed", self.run_cli("db", "prune", self.db).stdout)
        self.assertEqual(self.run_cli("db", "check", self.db).returncode, 0)
        for wrong in (["db", "show"], ["db", "burn", self.db], ["db", "merge", self.db]):
            self.assertEqual(self.run_cli(*wrong).returncode, 2)

    def test_mistakes(self):
        for arguments, status, phrase in [
                (["--time", "soon"], 2, "expected a duration"),
                (["--time", "-4m"], 2, "expected a duration"),
                (["--gap", "5"], 2, "expected a percentage"),
                (["--gap", "-5%"], 2, "expected a percentage"),
                (["--inputs", "/nowhere.npz"], 1, "/nowhere.npz"),
                (["--report", "/nowhere/report.html"], 1, "/nowhere/report.html: cannot be written"),
                (["--machine", "/nowhere.json"], 1, "/nowhere.json: no such file")]:
            done = self.tune(*arguments)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(phrase, done.stderr)
        self.assertEqual(self.run_cli("tune", self.model).returncode, 2)
        self.db = "/nowhere/tuned.jsonl"
        done = self.tune("--trials", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere/tuned.jsonl: cannot be written", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cli", required=True)
    parser.add_argument("--model", required=True, help="a folder with model.onnx")
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=sys.argv[:1] + rest)
