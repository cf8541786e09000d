#!/usr/bin/env python3
"""The ONNX node cases, through the command.

usage: check_conformance.py --cli TILEWRIGHT --work FOLDER [--cases all|third] [--only REGEX] [--jobs N]
           [--update]
A case may pass or be refused as unsupported; a wrong answer, crash, hang or other error is a
failure, and so is a case of conformance_pass.txt that does not pass; but DECIDED holds cases whose
answer is not ours. --update adds to that list what passes now (and never removes a line). A third,
for a quick look: the cases whose name has a CRC-32 divisible by 3, so new cases do not move the
others. $TILEWRIGHT_CONFORMANCE_CASES is the default of --cases, else all. Exit 0, 1, or 77: skipped.
"""
import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import zlib

import shared_folder

HERE = os.path.dirname(os.path.abspath(__file__))
PASS_LIST = os.path.join(HERE, "conformance_pass.txt")
ALLOWED = {"pass", "unsupported", "skip"}  # skip: the case cannot be given as files
# Cases whose answer is not ours, each with the reason; what is ours has a test of its own.
CORNERS = "ONNX's reference aligns corners with a length that is no whole number (fractional_resize)"
NUMPY = "the expected numbers are those of NumPy's generator (random_nodes)"
DECIDED = {
    "node/test_resize_downsample_scales_linear_align_corners": CORNERS,
    "node/test_resize_downsample_scales_cubic_align_corners": CORNERS,
    **{f"node/test_bernoulli{kind}{form}": NUMPY
       for kind in ["", "_double", "_seed"] for form in ["", "_expanded"]},
    **{f"node/test_training_dropout{form}": NUMPY
       for form in ["", "_mask", "_default", "_default_mask"]},
}


def parse():
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--cli", required=True)
    parser.add_argument("--work", required=True)
    default = os.environ.get("TILEWRIGHT_CONFORMANCE_CASES", "all")
    parser.add_argument("--cases", choices=["third", "all"], default=default)
    parser.add_argument("--only", default="", help="cases whose name this regular expression finds")
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--update", action="store_true")
    return parser.parse_args()


def is_chosen(options, name):
    chosen = options.cases == "all" or zlib.crc32(name.encode()) % 3 == 0
    return chosen and bool(re.search(options.only, name))


def select_cases(options, script):
    """A folder of the chosen cases, as links into all that the onnx package holds."""
    work, every = options.work, os.path.join(options.work, "all")
    if not os.path.exists(every + ".done"):
        shutil.rmtree(every, ignore_errors=True)
        command = [shared_folder.python(), script, "gen", every]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with open(every + ".done", "w", encoding="utf-8"):
            pass
    if options.cases == "all" and not options.only:
        return every
    some = os.path.join(work, "some")
    shutil.rmtree(some, ignore_errors=True)
    for kind in sorted(os.listdir(every)):
        os.makedirs(os.path.join(some, kind))
        for name in sorted(os.listdir(os.path.join(every, kind))):
            if is_chosen(options, name):
                os.symlink(os.path.join(every, kind, name), os.path.join(some, kind, name))
    return some


def read_pass_list():
    with open(PASS_LIST, encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    return {line for line in lines if line and not line.startswith("#")}


def write_pass_list(names):
    with open(PASS_LIST, encoding="utf-8") as file:
        head = [line for line in file if line.startswith("#")]
    with open(PASS_LIST, "w", encoding="utf-8") as file:
        file.writelines(head + [name + "\n" for name in sorted(names)])


def judge(results, expected):
    """(failures, newly passing) of {case: [verdict, message]}."""
    failures = []
    for name, (verdict, message) in sorted(results.items()):
        if name in DECIDED and verdict == "wrong":
            continue
        if verdict not in ALLOWED or (name in expected and verdict != "pass"):
            wanted = "passed before" if name in expected else "may pass or be unsupported"
            failures.append(f"{name}: {verdict} ({wanted}) {message.strip()[-300:]}")
    new = sorted(n for n, (verdict, _) in results.items() if verdict == "pass" and n not in expected)
    return failures, new


def run_cases(options):
    script = shared_folder.find("conformance/run_node_tests.py")
    os.makedirs(options.work, exist_ok=True)
    folder = select_cases(options, script)
    out = os.path.join(options.work, "results.json")
    if os.path.exists(out):
        os.remove(out)
    cli = f"'{options.cli}' run {{model}} --inputs {{inputs}} --outputs {{outputs}}"
    subprocess.run([shared_folder.python(), script, "run", folder, "--cli", cli, "--io", "pb",
                    "--jobs", options.jobs, "--out", out], check=True)
    with open(out, encoding="utf-8") as file:
        return json.load(file)


def main():
    options = parse()
    shared_folder.require(options.cli)
    results = run_cases(options)
    expected = read_pass_list()
    failures, new = judge(results, expected)
    if new:
        print(f"newly passing ({len(new)}), add them with --update: " + " ".join(new))
        if options.update:
            write_pass_list(expected | set(new))
    for failure in failures:
        print("FAIL " + failure)
    for name in sorted(n for n in DECIDED if results.get(n, [""])[0] == "wrong"):
        print(f"decided otherwise: {name}: {DECIDED[name]}")
    chosen = {n for n in expected if is_chosen(options, n.split("/")[-1])}
    vanished = chosen - set(results)
    for name in sorted(vanished):
        print(f"FAIL {name}: in conformance_pass.txt, but there is no such case")
    counts = collections.Counter(verdict for verdict, _ in results.values())
    print(f"{len(results)} cases: " + ", ".join(f"{n} {verdict}" for verdict, n in counts.most_common()))
    return 1 if failures or vanished or not results else 0


if __name__ == "__main__":
    sys.exit(main())
