#!/usr/bin/env python3
"""One model against its reference, through the command.

usage: check_model.py --cli TILEWRIGHT --work FOLDER --threads N[,N] MODEL
       check_model.py --cli ... --work ... --threads ... --standard NAME [--variants]
MODEL is a folder of ../shared/models, NAME a standard architecture.
A standard model is built in FOLDER and kept there; --variants also checks its int8, fp16 and
static forms, and removes all of them again (several GB). What equal means is defined in
../shared/conformance/check_models.py. Exit 0: equal; 1: not; 77: skipped, with the reason. Exit
status 3 of the command ("unsupported") is a skip for the models of MAY_BE_UNSUPPORTED alone.
"""
import argparse
import fcntl
import glob
import os
import shutil
import subprocess
import sys

import shared_folder

MAY_BE_UNSUPPORTED = {"tashkeel-bilstm-int8"}  # com.microsoft operators


def parse():
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--standard", metavar="NAME")
    parser.add_argument("--variants", action="store_true")
    parser.add_argument("--cli", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--threads", default="1,2")
    options = parser.parse_args()
    if bool(options.model) == bool(options.standard):
        parser.error("give a model or --standard NAME")
    return options


def make_standard(name, folder, arguments=()):
    """Builds the model and its reference outputs once; two cases may ask for it at the same time."""
    os.makedirs(folder, exist_ok=True)
    script = shared_folder.find("models/make_standard_models.py")
    with open(os.path.join(folder, ".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = os.path.join(folder, name + ".done")
        if not os.path.exists(done):
            command = [shared_folder.python(), script, folder, name, "--check", *arguments]
            subprocess.run(command, check=True)
            with open(done, "w", encoding="utf-8"):
                pass


def is_equal(options, model, threads):
    """0, 1 or 77 for one model and number of threads."""
    script = shared_folder.find("conformance/check_models.py")
    command = [shared_folder.python(), script, "--cli", f"'{options.cli}' run",
               "--threads", threads, "--verbose", model]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    print(result.stdout, end="", flush=True)
    if result.returncode == 0:
        return 0
    failures = [line for line in result.stdout.splitlines() if line.startswith("FAIL")]
    name = os.path.basename(model.rstrip("/"))
    if name in MAY_BE_UNSUPPORTED and failures and all(": exit 3: " in line for line in failures):
        print("skipped: " + failures[0].split(": exit 3: ", 1)[1])
        return shared_folder.SKIPPED
    return 1


def check_all(options, models):
    results = [is_equal(options, m, t) for m in models for t in options.threads.split(",")]
    return 1 if 1 in results else max(results)


def check_variants(options):
    """Dynamic and static forms, each as fp32, int8 and fp16 where the architecture has them."""
    results = []
    for static in ([], ["--static"]):
        folder = os.path.join(options.work, options.standard + ("-static" if static else "-dynamic"))
        try:
            make_standard(options.standard, folder, ["--int8", "--fp16", *static])
            results.append(check_all(options, sorted(glob.glob(folder + "/*.onnx"))))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return max(results)


def main():
    options = parse()
    shared_folder.require(options.cli)
    if options.model:
        return check_all(options, [shared_folder.find(os.path.join("models", options.model))])
    if options.variants:
        return check_variants(options)
    make_standard(options.standard, options.work)
    return check_all(options, [os.path.join(options.work, options.standard + ".onnx")])


if __name__ == "__main__":
    sys.exit(main())
