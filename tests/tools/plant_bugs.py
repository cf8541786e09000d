#!/usr/bin/env python3
"""Shows that the default tests find bugs: plants those of planted_bugs/*.txt, one at a time.

usage: plant_bugs.py --work FOLDER [--jobs N] [--only REGEX] [--results FILE]
       plant_bugs.py --check        the list fits the tree; nothing is built
The tree is copied to FOLDER with all bugs in it and built once; TILEWRIGHT_PLANTED chooses the one
that a run has. The default tests run with each bug until one fails that passes without any, those
of the bug's folder first, quick ones before slow ones; tests that read sources do not count. The
last line is `N planted, N found`; the status is 1 when one was not found, or the list does not fit.
"""
import argparse
import concurrent.futures
import contextlib
import copy
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time

import planted_bugs

ROOT = os.path.abspath(os.path.join(planted_bugs.HERE, "..", ".."))
# Which labels and names of tests meet a folder's bugs first.
FIRST = [
    ("runtime", r"runtime|compiled_model"),
    ("frontends/tensor_files", r"tensor_files|errors|conformance"),
    ("frontends", r"formulas|conv_transpose|read_model|errors|conformance"),
    ("ir/ops", r"rounding|attention|sampling|conformance"),
    ("ir", r"ir_|edge_operands|rounding"),
    ("passes/graph", r"graph_passes|aliases|share_kernels"),
    ("passes/schedule", r"primitives|trace|memory_kernels|op_examples|matrix_products"),
    ("passes/loops", r"loop_passes|op_examples|memory_kernels"),
    ("passes", r"aliases|share_kernels|control_flow|op_examples|graph_passes"),
    ("codegen", r"edge_operands|conversions|halves|codegen|vector_math|guarded_kernels|memory"),
]
NOT_OF_BEHAVIOUR = re.compile(r"^tools\.")


def parse():
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--work", help="a folder for the copy and its build; reused when it exists")
    parser.add_argument("--jobs", type=int, default=2, help="bugs under test at once (default 2)")
    parser.add_argument("--only", default="", help="the bugs whose name this regular expression finds")
    parser.add_argument("--results", help="a file for the table, too")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if not options.check and not options.work:
        parser.error("--work FOLDER, or --check")
    return options


def write_changed(path, content):
    """What stays the same keeps its time, and is not built again."""
    if os.path.exists(path):
        with open(path, "rb") as file:
            if file.read() == content:
                return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def copy_tree(target, bugs):
    """The files that git knows or would add, as they are now, with all bugs."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT,
                            check=True, capture_output=True).stdout.decode().split("\0")
    for path in filter(None, listed):
        source, copy = os.path.join(ROOT, path), os.path.join(target, path)
        if not os.path.isfile(source):
            continue
        with open(source, "rb") as file:
            content = file.read()
        inside = [bug for bug in bugs if bug.path == path]
        if inside:
            content = planted_bugs.planted_text(inside, content.decode()).encode()
        write_changed(copy, content)
        shutil.copymode(source, copy)
    write_changed(os.path.join(target, planted_bugs.HEADER), planted_bugs.HEADER_TEXT.encode())
    environment = os.path.join(ROOT, ".venv")
    if os.path.exists(environment) and not os.path.lexists(os.path.join(target, ".venv")):
        os.symlink(os.path.realpath(environment), os.path.join(target, ".venv"))


def build(target, jobs):
    for command in (["cmake", "--preset", "release", "-DTILEWRIGHT_TESTS=ON", "--log-level=WARNING"],
                    ["ninja", "-C", "build", "-k", "0", "-j", str(jobs)]):
        subprocess.run(command, cwd=target, check=True)


class Test:
    """A program of GoogleTest cases, or one test of another kind."""

    def __init__(self, name, command, properties):
        self.name, self.command = name, command
        self.is_program = name.startswith("test_")
        self.folder = properties.get("WORKING_DIRECTORY")
        self.limit = float(properties.get("TIMEOUT", 1500))
        self.skip_status = properties.get("SKIP_RETURN_CODE")
        self.labels = " ".join(properties.get("LABELS", []))
        self.seconds = None  # that it took last, when it passed
        self.lock = threading.Lock()  # other tests than programs share files
        self.once = threading.Lock()
        self.clean_failure = self.asked = None

    def run(self, bug, limit):
        """What failed, or None."""
        environment = dict(os.environ, TILEWRIGHT_PLANTED=bug)
        environment.setdefault("TILEWRIGHT_SHARED", os.path.join(os.path.dirname(ROOT), "shared"))
        with contextlib.nullcontext() if self.is_program else self.lock:
            start = time.monotonic()
            process = subprocess.Popen(self.command, cwd=self.folder, env=environment,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                       start_new_session=True)
            try:
                output, _ = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.communicate()
                return f"no end within {limit:.0f} s"
        if process.returncode in (0, self.skip_status):
            self.seconds = time.monotonic() - start
            return None
        text = output.decode(errors="replace")
        failed = re.search(r"\[  FAILED  \] ([\w./]+)", text) or re.search(r"FAIL:? ([\w./-]+)", text)
        return failed[1] if failed else f"status {process.returncode}"

    def finds(self, bug):
        """What fails with the bug, and does not without any; None: nothing."""
        limit = self.limit if self.seconds is None else 120 + 8 * self.seconds
        failure = self.run(bug, limit)
        if failure is None:
            return None
        with self.once:
            if not self.asked:
                self.asked, self.clean_failure = True, self.run("", self.limit)
                if self.clean_failure:
                    print(f"left out: {self.name} fails without any bug: {self.clean_failure}",
                          flush=True)
        return None if self.clean_failure else failure


def default_tests(target):
    listing = subprocess.run(["ctest", "--test-dir", "build", "-LE", "^full$", "--show-only=json-v1"],
                             cwd=target, check=True, capture_output=True)
    tests = {}
    for entry in json.loads(listing.stdout)["tests"]:
        properties = {p["name"]: p["value"] for p in entry.get("properties", [])}
        program = os.path.basename(entry["command"][0])
        if NOT_OF_BEHAVIOUR.match(entry["name"]):
            continue
        if program.startswith("test_"):
            tests[program] = Test(program, [entry["command"][0], "--gtest_fail_fast"], properties)
        else:
            tests[entry["name"]] = Test(entry["name"], entry["command"], properties)
    return list(tests.values())


def part_of(test, cases, parts):
    """A test of some of another's cases; each is made once."""
    made = parts.get((test.name, cases))
    if not made:
        option = f"--gtest_filter={cases}" if test.is_program else f"--only={cases}"
        made = parts[test.name, cases] = copy.copy(test)
        made.command, made.seconds = [*test.command, option], None
        made.once = threading.Lock()
    return made


def in_order(tests, bug, first_only):
    """Those that meet the folder's bugs first; quick ones, then those not timed yet, programs first."""
    pattern = next((p for folder, p in FIRST if bug.path.startswith(folder + "/")), r"^$")

    def is_first(test):
        return bool(re.search(pattern, f"{test.name} {test.labels}"))

    def rank(test):
        return (30 if test.is_program else 300) if test.seconds is None else test.seconds
    return sorted((test for test in tests if is_first(test) == first_only), key=rank)


def hunt(bug, tests, first_only, parts):
    start = time.monotonic()
    named = [test for test in tests if test.name == bug.first]
    if first_only and named:
        tests = [t for t in tests if t not in named or bug.cases]
        failure = (part_of(named[0], bug.cases, parts) if bug.cases else named[0]).finds(bug.name)
        if failure:
            return bug, f"{bug.first}: {failure}", time.monotonic() - start
    for test in in_order(tests, bug, first_only):
        if not test.asked or not test.clean_failure:
            failure = test.finds(bug.name)
            if failure:
                return bug, f"{test.name}: {failure}", time.monotonic() - start
    return bug, None, time.monotonic() - start


def main():
    options = parse()
    every = planted_bugs.read_list()
    errors = planted_bugs.errors_of(every, ROOT)
    for error in errors:
        print(error)
    if errors or options.check:
        print(f"{len(every)} bugs in the list, {len(errors)} errors")
        return 1 if errors else 0
    target = os.path.join(os.path.abspath(options.work), "tree")
    copy_tree(target, every)
    build(target, options.jobs)
    tests = default_tests(target)
    print(f"{len(tests)} tests", flush=True)
    chosen = [bug for bug in every if re.search(options.only, bug.name)]
    lines, parts, left = [], {}, chosen
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for first_only in (True, False):
            hunts = [pool.submit(hunt, bug, tests, first_only, parts) for bug in left]
            left = []
            for done in concurrent.futures.as_completed(hunts):
                bug, by, seconds = done.result()
                if by is None:
                    left.append(bug)
                if by or not first_only:
                    row = f"{bug.name:40} {bug.path:40} {seconds:5.0f} s  {by or 'NOT FOUND'}"
                    lines.append(row)
                    print(row, flush=True)
            print(f"{len(left)} left", flush=True)
    lines.sort()
    found = len(chosen) - len(left)
    lines.append(f"{len(chosen)} planted, {found} found")
    print(lines[-1])
    if options.results:
        with open(options.results, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    return 0 if found == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
