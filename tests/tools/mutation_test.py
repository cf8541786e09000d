#!/usr/bin/env python3
"""mutate.py over a small project: which places it finds, that a chosen mutant does what its text says, and
that a hunt gives to each test what running it with each mutant alone gives."""
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest

import mutation_sample as sample
from mutation import find_places, hunt, mutants, places, report, schema, syntax, tree

HERE = os.path.dirname(os.path.abspath(__file__))
PATH = "sample/shapes.cpp"


def run(command, folder, **options):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, **options)


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
        status = run([sys.executable, "mutate.py", "check"], HERE)
        self.assertEqual(status.returncode, 0, status.stdout)
        entry = (PATH, "int x = 1;", "constant", "1", "2")
        with tempfile.TemporaryDirectory() as root:
            tree.write_changed(os.path.join(root, PATH), b"  int x = 1;\n")
            self.assertEqual(mutants.errors_of_equivalent(root, {entry: "It is unused."}), [])
            self.assertIn("no reason", mutants.errors_of_equivalent(root, {entry: " "})[0])
            tree.write_changed(os.path.join(root, PATH), b"  int y = 1;\n")
            self.assertIn("no line is", mutants.errors_of_equivalent(root, {entry: "It is unused."})[0])


@unittest.skipUnless(syntax.find_clang(), f"none of {syntax.CLANGS} is installed")
class Sources(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = cls.folder.name
        for path, text in sample.files(0).items():
            tree.write_changed(os.path.join(cls.root, path), text.encode())
        cls.content = sample.SHAPES.encode()
        full = os.path.join(cls.root, PATH)
        roots = syntax.read(["-std=c++20", "-I" + cls.root], full, full, cls.root, "tilewright")
        cls.places = find_places.places_of(places.Source(PATH, cls.content), roots)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_every_kind_and_no_constant(self):
        kinds = {place.kind for place in self.places}
        code = ""
        for name in ("places.py", "find_places.py"):
            with open(os.path.join(HERE, "mutation", name), encoding="utf-8") as file:
                code += file.read()
        written = set(re.findall(r'(?:choice|add)\(\s*"([^"]+)"', code))
        self.assertEqual(kinds, written)
        known = {(place.kind, place.original, place.mutated) for place in self.places}
        self.assertLessEqual({
            ("operand dropped", "rows != 7", "true"), ("operand dropped", "columns == 2", "false"),
            ("operator", "rows < columns && rows != 7", "rows < columns || rows != 7"),
            ("arguments swapped", "rows, columns", "columns, rows"),
            ("condition negated", "half > rows", "!(half > rows)"),
            ("condition is false", "const int more = rows - columns", "false"),
            ("statement removed", "TW_UNLESS(rows == 8 && columns == 8)", ""),
            ("operand dropped", "columns == 8", "true"), ("off by one", "columns", "(columns) - 1"),
            ("boundary", "i < columns", "i <= columns")}, known)
        swapped = [place.text for place in self.places if place.kind == "arguments swapped"]
        self.assertEqual(len(swapped), 2, swapped)
        lines = sample.SHAPES.split("\n")
        self.assertFalse([p.key for p in self.places if "// constant" in lines[p.line - 1]])

    def textual(self, place):
        """The sample with what the place's text says, without switches; None when it cannot be told so."""
        start, end = place.edits[0][0], place.edits[-1][1]
        if place.edits[0][2] == "" or place.original != self.content[start:end].decode().rstrip(";"):
            return None
        changed = self.content[:start] + (place.mutated or ";").encode() + self.content[end:]
        return changed.decode().split("\n", 2)[2]

    def test_a_chosen_mutant_does_what_its_text_says(self):
        tree.write_changed(os.path.join(self.root, schema.HEADER), schema.HEADER_TEXT.encode())
        kept = [place for place in self.places
                if self.textual(place) and "size" not in place.text and place.text != "--left;"]
        numbered = mutants.numbered(kept)
        tree.write_changed(os.path.join(self.root, "all.cpp"),
                           schema.render(self.content, numbered) + sample.PRINT.encode())
        calls, text = [], "#include <cstdio>\n" + sample.SHAPES.split("\n")[1] + "\n"
        for number, place in [(0, None), *numbered]:
            variant = self.textual(place) if place else sample.SHAPES.split("\n", 2)[2]
            text += f"namespace v{number} {{\n{variant}}}\n"
            calls.append(sample.PRINT.split("main() {")[1].replace("tilewright", f"v{number}::tilewright")
                         .rstrip().rstrip("}") + '  std::puts("");\n')
        tree.write_changed(os.path.join(self.root, "texts.cpp"),
                           (text + "int main() {\n" + "".join(calls) + "}\n").encode())
        for name in ("all", "texts"):
            built = run(["c++", "-std=c++20", "-w", "-I.", name + ".cpp", "-o", name], self.root)
            self.assertEqual(built.returncode, 0, built.stderr[:2000])
        expected = run(["./texts"], self.root).stdout.split("\n")
        self.assertGreater(len(kept), 100)
        self.assertGreater(len(set(expected)), 50)
        for number, place in [(0, None), *numbered]:
            environment = {"TILEWRIGHT_MUTANT": f"{schema.SIZE - 1},{number}"} if number else {}
            result = run(["./all"], self.root, env=environment)
            self.assertEqual(result.stdout, expected[number], place and place.key)


    def test_whole_way(self):
        tree.write_changed(os.path.join(self.root, "print.cpp"), self.content + sample.PRINT.encode())
        run(["c++", "-std=c++20", "-w", "-I.", "print.cpp", "-o", "print"], self.root, check=True)
        total = 0
        for i, value in enumerate(map(int, run(["./print"], self.root).stdout.split())):
            total = int(math.fmod(total * 31 + value + min(i % 9, 6), 1000003))
        with tempfile.TemporaryDirectory() as folder:
            root, work = os.path.join(folder, "root"), os.path.join(folder, "work")
            for path, text in sample.files(total).items():
                tree.write_changed(os.path.join(root, path), text.encode())
            run(["git", "init", "-q"], root, check=True)

            def mutate(command, *options):
                return run([sys.executable, os.path.join(HERE, "mutate.py"), command, "--work", work,
                            "--root", root, "--limit", "1", *options], folder)

            planted = mutate("plant", "--folders", "sample", "--count", "1000", "--seed", "3",
                             "--headers")
            self.assertEqual(planted.returncode, 0, planted.stdout + planted.stderr)
            with open(os.path.join(work, "mutants.json"), encoding="utf-8") as file:
                drawn = json.load(file)
            headers = [row["path"] for row in drawn["mutants"] if row["path"] != PATH]
            self.assertEqual(headers, ["sample/shapes.h"])
            lines = [row["line"] for row in drawn["mutants"] if row["path"] == PATH]
            self.assertEqual(len(lines), len(set(lines)))  # a line each, and all but the constant ones
            self.assertEqual(set(lines) | {line for line, _ in self.sizes(drawn)},
                             {place.line for place in self.places})

            hunted = mutate("hunt", "--results", os.path.join(folder, "found"))
            with open(os.path.join(folder, "found.json"), encoding="utf-8") as file:
                rows = json.load(file)["mutants"]
            for row in rows:  # the strong test finds what it finds alone, and no other test any
                if "no end" in (row["found"] or ""):
                    self.assertEqual(row["text"], "--left;")
                    continue
                self.assertNotEqual(row["text"], "--left;")
                alone = run([os.path.join(work, "tree", "build", "strong")], folder, timeout=20,
                            env={"TILEWRIGHT_MUTANT": str(row["number"])})
                self.assertEqual(row["found"] is None, alone.returncode == 0, row)
                self.assertIn((row["found"] or "strong").split(":")[0], "strong")
                self.assertEqual(row["tests"], 0 if row["function"] == "unused" else 2, row)
            left = [row for row in rows if not row["found"]]
            self.assertEqual(hunted.returncode, 1 if left else 0, hunted.stdout + hunted.stderr)
            self.assertIn("no test reaches it", hunted.stdout)

            finders = mutate("tests")
            self.assertEqual(finders.returncode, 1, finders.stdout + finders.stderr)
            self.assertRegex(finders.stdout, r"weak: .*«--left»\n")
            self.assertIn("away finds none of the 0 that it reaches\n", finders.stdout)
            self.assertIn("strong: ", finders.stdout)
            self.assertIn("3 tests, 1 find none", finders.stdout)
            with open(os.path.join(root, mutants.LISTS, "finds_none.txt"), "a", encoding="utf-8") as file:
                file.write("away It calls nothing.\n")
            finders = mutate("tests", "--only", "strong|away")
            self.assertEqual(finders.returncode, 0, finders.stdout + finders.stderr)
            self.assertIn("away finds none of the 0 that it reaches; It calls nothing.", finders.stdout)

            path = os.path.join(root, mutants.LISTS, "equivalent.txt")
            with open(path, "a", encoding="utf-8") as file:
                for row in left:
                    keys = [row[k] for k in ("text", "original", "mutated")]
                    file.write("\n".join([f"=== {row['path']} {row['kind']}", *keys, "A reason.\n"]))
            hunted = mutate("hunt")
            self.assertEqual(hunted.returncode, 0, hunted.stdout + hunted.stderr)
            self.assertIn(f"{len(rows)} planted, {len(rows) - len(left)} found, {len(left)} equivalent",
                          hunted.stdout)

    def sizes(self, drawn):
        """Lines of what was drawn and does not compile."""
        texts = sample.SHAPES.split("\n")
        return [(n + 1, t) for n, t in enumerate(texts) if t.strip() in {d[1] for d in drawn["dropped"]}]


if __name__ == "__main__":
    unittest.main()
