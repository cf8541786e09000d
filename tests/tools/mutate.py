#!/usr/bin/env python3
"""Plants mutants that nobody chose, and shows which of them the default tests find.

usage: mutate.py plant --work FOLDER --folders ir/loops,passes --count 30 [--seed N] [--headers]
       mutate.py hunt  --work FOLDER [--results FILE]     which mutants no test finds
       mutate.py tests --work FOLDER [--results FILE]     which tests find no mutant
       mutate.py check                                    the lists of reasons fit the tree

`plant` copies the tree to FOLDER, reads its syntax trees with clang and draws places by lines: conditions
negated, dropped or taken for true; boundaries moved; operators and constants changed; neighbouring
operands and arguments of one type swapped; statements removed. All mutants that compile are built once:
TILEWRIGHT_MUTANT=7 chooses one, =7,12 two. --listed plants planted_bugs/*.txt, too.

`hunt` runs each test once to see which mutants it reaches; then each mutant with the likely ones of the
tests that reach it; then all that are left together, and only what fails there one by one. What is in
mutation/equivalent.txt counts as equivalent. A test that does not end finds the mutant.

`tests` goes the other way round: each test runs with mutants that it reaches until it finds one;
mutation/finds_none.txt holds the reasons of those that find none.

A mutant may write and remove what it should not: run this where nothing can be lost. What is known is
kept in FOLDER, so that a command that was ended goes on where it was; `plant` begins anew.
"""
import argparse
import contextlib
import os
import re
import subprocess
import sys

from mutation import commands, draw, hunt, mutants, report, schema, suite, syntax, tree


def parse():
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form, usage=argparse.SUPPRESS)
    parser.add_argument("command", choices=["plant", "hunt", "tests", "check"])
    parser.add_argument("--work", help="a folder for the copy, its build and what is known of both")
    parser.add_argument("--root", default=tree.ROOT, help="the tree (default: this one)")
    parser.add_argument("--folders", default="ir,runtime,passes,codegen,autotune,frontends")
    parser.add_argument("--count", type=int, default=30, help="mutants to draw (default 30)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--headers", action="store_true", help="also in headers: most is built anew")
    parser.add_argument("--listed", action="store_true", help="also the bugs of planted_bugs/*.txt")
    parser.add_argument("--targets", default="", help="what to build, with commas (default: all)")
    parser.add_argument("--only", default="", help="the tests whose name this expression finds")
    parser.add_argument("--limit", type=float, default=20, help="seconds beyond 8 times those of a test")
    parser.add_argument("--likely", type=float, default=60, help="seconds of likely tests of each mutant")
    parser.add_argument("--tries", type=int, default=20, help="mutants that each test is tried with")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--results", help="FILE.json and FILE.txt are written")
    options = parser.parse_args()
    if options.command != "check" and not options.work:
        parser.error("--work FOLDER, or check")
    return options


class Work:
    """The folder of a tree with mutants."""

    def __init__(self, options):
        self.options = options
        self.folder = os.path.abspath(options.work)
        self.target = os.path.realpath(os.path.join(self.folder, "tree"))

    def file(self, name):
        return os.path.join(self.folder, name)

    def plant(self):
        options = self.options
        if not syntax.find_clang():
            raise SystemExit(f"none of {', '.join(syntax.CLANGS)} is installed")
        tree.copy_tree(self.target, {schema.HEADER: schema.HEADER_TEXT.encode()}, options.root)
        tree.configure(self.target)
        listing = subprocess.run(["ninja", "-C", "build", "-t", "targets", "all"], cwd=self.target,
                                 check=True, capture_output=True, text=True).stdout
        generated = re.findall(r"^(generated/\S+): CUSTOM_COMMAND", listing, re.M)
        if generated:
            tree.build(self.target, options.jobs, generated)
        known = commands.Commands(self.target)
        drawing = draw.Drawing(self.target, known)
        paths = draw.sources(self.target, options.folders.split(","), options.headers, known)
        fixed = mutants.listed_bugs(self.target) if options.listed else []
        drawn = drawing.draw(paths, options.count, options.seed, options.jobs, fixed)
        chosen = mutants.numbered(fixed + drawn)
        if len(chosen) >= schema.SIZE:
            raise SystemExit(f"{len(chosen)} mutants; a tree has room for {schema.SIZE - 1}")
        rows = mutants.rows(chosen)
        for name in ("reached.json", "hunt.json", "found.json"):  # of the mutants before
            with contextlib.suppress(FileNotFoundError):
                os.remove(self.file(name))
        mutants.save(self.file("mutants.json"), {
            "folders": options.folders, "seed": options.seed, "mutants": rows,
            "dropped": [[*place.key, why] for place, why in drawing.dropped]})
        print(f"{len(drawn)} drawn, {len(drawing.dropped)} more do not compile, {len(fixed)} listed", flush=True)
        tree.copy_tree(self.target, mutants.planted_sources(chosen, drawing.read), options.root)
        tree.build(self.target, options.jobs, list(filter(None, options.targets.split(","))))
        return 0

    def load(self):
        """The planted mutants, the tests, and what each of these reaches."""
        planted = mutants.load(self.file("mutants.json"))
        known = mutants.load(self.file("reached.json"), {})
        tests = [t for t in suite.default_tests(self.target) if re.search(self.options.only, t.name)]
        print(f"{len(tests)} tests", flush=True)
        hunt.reach(tests, self.options.jobs, known,
                   lambda: mutants.save(self.file("reached.json"), known))
        return planted, tests, {t.name: known[t.name] for t in tests}

    def hunt(self):
        planted, tests, reached = self.load()
        equivalent = mutants.read_equivalent(self.options.root)
        rows = planted["mutants"]
        path_of = {row["number"]: row["path"] for row in rows}
        hunted = hunt.Hunt(tests, reached, path_of, self.options.limit,
                           keep=lambda: mutants.save(self.file("hunt.json"), hunted.state()))
        hunted.go_on(mutants.load(self.file("hunt.json"), {}))
        found = hunted.all(self.options.jobs, self.options.likely)
        for row in rows:
            row["found"] = ": ".join(found.get(row["number"], ())) or None
            row["tests"] = sum(row["number"] in entry["reached"] for entry in reached.values())
            row["equivalent"] = mutants.equivalence(row, equivalent)
        mutants.save(self.file("found.json"), planted)
        self.write(report.whole(rows, len(planted["dropped"])), planted)
        return 1 if any(not row["found"] and not row["equivalent"] for row in rows) else 0

    def tests(self):
        planted, tests, reached = self.load()
        rows = planted["mutants"]
        state = mutants.load(self.file("hunt.json"), {})
        found = {number: test for number, (test, _) in state.get("found", [])}
        path_of = {row["number"]: row["path"] for row in rows}
        result = hunt.finders(hunt.Hunt(tests, reached, path_of, self.options.limit), found,
                              self.options.jobs, self.options.tries)
        lines, unexcused = report.of_tests(result, rows, reached, mutants.read_excuses(self.options.root))
        self.write(lines, result)
        return 1 if unexcused else 0

    def write(self, lines, content):
        print("\n".join(lines))
        if self.options.results:
            mutants.save(self.options.results + ".json", content)
            with open(self.options.results + ".txt", "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")


def main():
    options = parse()
    if options.command == "check":
        equivalent = mutants.read_equivalent(options.root)
        errors = mutants.errors_of_equivalent(options.root, equivalent)
        print("\n".join([*errors, f"{len(equivalent)} equivalent mutants, {len(errors)} errors"]))
        return 1 if errors else 0
    try:
        return getattr(Work(options), options.command)()
    except (RuntimeError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
