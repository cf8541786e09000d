#!/usr/bin/env python3
"""mutate.py over a small project: which places it finds, that a chosen mutant does what its text says, and
the whole way from planting to the lists of reasons."""
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest

import mutation_sample as sample
from mutation import find_places, mutants, places, schema, syntax, tree

HERE = os.path.dirname(os.path.abspath(__file__))
PATH = "sample/shapes.cpp"


def run(command, folder, **options):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, **options)


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
        calls, text = [], "#include <cstdio>\n#include <unistd.h>\n" + sample.SHAPES.split("\n")[1] + "\n"
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
                            "--root", root, "--limit", "3", *options], folder)

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
