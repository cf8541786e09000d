#!/usr/bin/env python3
"""The reference training runs, through the command: gradients, losses and trained models equal those of
PyTorch, and every bit is the same for 1, 2 and 3 threads.

usage: check_training_runs.py --cli TILEWRIGHT --work FOLDER RUN
Exit 0, 1, or 77: skipped.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys

import shared_folder


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cli", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("run")
    options = parser.parse_args()
    shared_folder.require(options.cli)
    written = []
    for threads in "123":
        folder = os.path.join(options.work, f"threads_{threads}")
        shutil.rmtree(folder, ignore_errors=True)
        check = [shared_folder.python(), shared_folder.find("conformance/check_training.py"),
                 "--cli", f"{options.cli} train", "--data", shared_folder.find("data"), "--threads", threads,
                 "--keep", folder, shared_folder.find(f"data/training/{options.run}")]
        if subprocess.run(check, check=False).returncode != 0:
            return 1
        files = {}
        for name in ("log.jsonl", "gradients.npz", "trained.onnx"):
            with open(os.path.join(folder, options.run, name), "rb") as file:
                files[name] = file.read()
        files["log.jsonl"] = [{k: v for k, v in json.loads(line).items() if k != "samples_per_second"}
                              for line in files["log.jsonl"].splitlines()]
        written.append(files)
    for threads, files in enumerate(written, 1):
        for name, contents in files.items():
            if contents != written[0][name]:
                print(f"{name} differs between 1 and {threads} threads")
                return 1
    print("the same bits with 1, 2 and 3 threads")
    return 0


if __name__ == "__main__":
    sys.exit(main())
