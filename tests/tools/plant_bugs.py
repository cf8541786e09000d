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
import copy
import os
import re
import sys
import threading
import time

import planted_bugs
from mutation import suite, tree

VARIABLE = "TILEWRIGHT_PLANTED"


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


def planted_sources(bugs):
    """{path: text with all of its bugs}, and the header that they include."""
    changed = {planted_bugs.HEADER: planted_bugs.HEADER_TEXT.encode()}
    for path in {bug.path for bug in bugs}:
        with open(os.path.join(tree.ROOT, path), encoding="utf-8") as file:
            inside = [bug for bug in bugs if bug.path == path]
            changed[path] = planted_bugs.planted_text(inside, file.read()).encode()
    return changed


class Test(suite.Test):
    def __init__(self, name, command, properties):
        super().__init__(name, command, properties)
        self.once = threading.Lock()
        self.clean_failure = self.asked = None

    def finds(self, bug):
        """What fails with the bug, and does not without any; None: nothing."""
        limit = self.limit if self.seconds is None else 120 + 8 * self.seconds
        failure = self.run({VARIABLE: bug}, limit)
        if failure is None:
            return None
        with self.once:
            if not self.asked:
                self.asked, self.clean_failure = True, self.run({VARIABLE: ""}, self.limit)
                if self.clean_failure:
                    print(f"left out: {self.name} fails without any bug: {self.clean_failure}",
                          flush=True)
        return None if self.clean_failure else failure


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
    def rank(test):
        return (30 if test.is_program else 300) if test.seconds is None else test.seconds
    return sorted((test for test in tests if test.meets_first(bug.path) == first_only), key=rank)


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
    errors = planted_bugs.errors_of(every, tree.ROOT)
    for error in errors:
        print(error)
    if errors or options.check:
        print(f"{len(every)} bugs in the list, {len(errors)} errors")
        return 1 if errors else 0
    target = os.path.join(os.path.abspath(options.work), "tree")
    tree.copy_tree(target, planted_sources(every))
    tree.configure(target)
    tree.build(target, options.jobs)
    tests = suite.default_tests(target, Test)
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
