#!/usr/bin/env python3
"""A hunt gives to each test what running it with each mutant alone gives, whatever it reaches and finds;
reports count, and the lists of reasons fit the tree."""
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

from mutation import hunt, mutants, report, tree

HERE = os.path.dirname(os.path.abspath(__file__))
PATH = "sample/shapes.cpp"


class FakeTest:
    """A test that finds given mutants, and knows with which it ran."""

    def __init__(self, name, finds):
        self.name, self.finds, self.limit, self.runs = name, finds, 9, []

    def meets_first(self, path):
        return path == self.name

    def run(self, chosen, limit):
        numbers = list(map(int, chosen["TILEWRIGHT_MUTANT"].split(",")))
        self.runs.append(numbers)
        return "failed" if self.finds & set(numbers) else None


class Hunts(unittest.TestCase):
    def test_finds_what_each_alone_would(self):
        for seed in range(100):
            draws = random.Random(seed)
            count = draws.randint(1, 30)
            reached, tests = {}, []
            for name in "abcdef"[:draws.randint(1, 6)]:
                reaches = {n for n in range(1, count + 1) if draws.random() < 0.6}
                finds = {n for n in reaches if draws.random() < 0.2}
                tests.append(FakeTest(name, finds))
                failure = "broken" if draws.random() < 0.1 else None
                reached[name] = {"seconds": draws.random(), "failure": failure, "reached": list(reaches)}
            path_of = {n: draws.choice("abcdef") for n in range(1, count + 1)}
            sound = [t for t in tests if not reached[t.name]["failure"]]
            hunted = hunt.Hunt(tests, reached, path_of, 1, lambda line: None)
            found = hunted.all(1, draws.choice([0, 1, 100]))
            self.assertEqual(set(found), set().union(*(t.finds for t in sound)), seed)
            by_name = {test.name: test for test in tests}
            for number, (name, _) in found.items():
                self.assertIn(number, by_name[name].finds)
            for test in sound:  # a mutant reaches no test that does not reach it, and each alone once
                numbers = [n for run in test.runs for n in run]
                self.assertLessEqual(set(numbers), set(reached[test.name]["reached"]))
                alone = [run[0] for run in test.runs if len(run) == 1]
                self.assertEqual(len(alone), len(set(alone)), seed)
            failed = [(test.name, run[0]) for test in sound for run in test.runs
                      if len(run) == 1 and run[0] in test.finds]
            self.assertEqual(len(failed), len({n for _, n in failed}), seed)  # one test is enough
            rest = draws.randint(0, sum(len(test.runs) for test in tests))
            self.assertEqual(set(self.ended_and_gone_on(tests, reached, path_of, rest)), set(found), seed)
            fresh = hunt.Hunt(tests, reached, path_of, 1)
            finders = hunt.finders(fresh, {n: name for n, (name, _) in found.items()}, 1, count)
            self.assertEqual({n for n, f in finders.items() if f}, {t.name for t in sound if t.finds}, seed)

    def ended_and_gone_on(self, tests, reached, path_of, runs):
        """What is found by a hunt that ends after so many runs, and by one that goes on from there."""
        class Ended(Exception):
            pass

        def count():
            nonlocal runs
            runs -= 1
            if runs < 0:
                raise Ended
        first = hunt.Hunt(tests, reached, path_of, 1, lambda line: None, count)
        try:
            return first.all(1, 1)
        except Ended:
            second = hunt.Hunt(tests, reached, path_of, 1, lambda line: None)
            second.go_on(json.loads(json.dumps(first.state())))
            return second.all(1, 1)

    def test_report_counts(self):
        row = {"path": "ir/a.cpp", "line": 3, "kind": "constant", "function": "f", "text": "x = 1;",
               "original": "1", "mutated": "2", "tests": 0}
        rows = [{**row, "found": found, "equivalent": reason} for found, reason in
                [("t: c", None), ("t: c", "Wrong."), (None, "It is unused."), (None, None)]]
        lines = report.whole(rows, 0)
        self.assertEqual(lines[1].split(), ["ir", "4", "2", "67", "%", "1", "1"])
        self.assertEqual(sum(line.startswith("=== ") for line in lines), 1)
        self.assertIn("4 planted, 2 found, 1 equivalent", lines)

    def test_all_that_are_left_run_together(self):
        test = FakeTest("a", {7})
        reached = {"a": {"seconds": 1, "failure": None, "reached": list(range(1, 65))}}
        hunt.Hunt([test], reached, dict.fromkeys(range(1, 65), "a"), 1, lambda line: None).all(1, 0)
        self.assertLessEqual(len(test.runs), 14)

    def test_lists_of_reasons_fit(self):
        status = subprocess.run([sys.executable, os.path.join(HERE, "mutate.py"), "check"],
                                capture_output=True, text=True)
        self.assertEqual(status.returncode, 0, status.stdout)
        entry = (PATH, "int x = 1;", "constant", "1", "2")
        with tempfile.TemporaryDirectory() as root:
            tree.write_changed(os.path.join(root, PATH), b"  int x = 1;\n")
            self.assertEqual(mutants.errors_of_equivalent(root, {entry: "It is unused."}), [])
            self.assertIn("no reason", mutants.errors_of_equivalent(root, {entry: " "})[0])
            tree.write_changed(os.path.join(root, PATH), b"  int y = 1;\n")
            self.assertIn("no line is", mutants.errors_of_equivalent(root, {entry: "It is unused."})[0])


if __name__ == "__main__":
    unittest.main()
