#!/usr/bin/env python3
"""Code for a CPU with a matrix unit (AMX): a model of bytes is multiplied in its tiles, with no sum
stored inside a loop over them, and a CPU that lacks it refuses the file by the feature's name."""
import argparse
import glob
import pathlib
import re
import subprocess
import sys
import tempfile

import shared_folder

CPU = "sapphirerapids"


def tilewright(cli, *arguments):
    return subprocess.run([cli, *arguments], capture_output=True, text=True, check=False)


def loops_of_tiles(assembly):
    """The text of each innermost loop with a product of tiles: from its label to the jump back."""
    lines = assembly.splitlines()
    labels = {m.group(1): i for i, line in enumerate(lines) if (m := re.match(r"(\.LBB\w+):", line))}
    spans = []
    for i, line in enumerate(lines):
        jump = re.match(r"\tj\w+\t(\.LBB\w+)$", line)
        if jump and labels.get(jump.group(1), i) < i:
            spans.append((labels[jump.group(1)], i))
    inner = [s for s in spans if not any(t != s and s[0] <= t[0] and t[1] <= s[1] for t in spans)]
    texts = ["\n".join(lines[first:last]) for first, last in inner]
    return [text for text in texts if "tdpbusd" in text]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cli", required=True)
    parser.add_argument("model", help="a folder of ../shared/models")
    options = parser.parse_args()
    if not pathlib.Path(shared_folder.root()).is_dir():
        print("skipped: no ../shared folder (TILEWRIGHT_SHARED names another one)")
        sys.exit(shared_folder.SKIPPED)
    model = glob.glob(shared_folder.find(f"models/{options.model}/*.onnx"))[0]
    lowered = tilewright(options.cli, "lower", model, "--cpu", CPU, "--emit", "asm")
    if lowered.returncode:
        sys.exit(lowered.stderr)
    # Labels are a kernel's own.
    loops = [loop for kernel in lowered.stdout.split("\t.file\t") for loop in loops_of_tiles(kernel)]
    if "ldtilecfg" not in lowered.stdout or not loops:
        sys.exit("failed: no loop over products of tiles")
    for text in loops:
        if "tilestored" in text:
            sys.exit(f"failed: a sum is stored inside the loop\n{text}")
    with tempfile.TemporaryDirectory() as folder:
        compiled = str(pathlib.Path(folder) / "model.so")
        made = tilewright(options.cli, "compile", model, "--cpu", CPU, "-o", compiled)
        if made.returncode:
            sys.exit(made.stderr)
        has_unit = "amx_int8" in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
        ran = tilewright(options.cli, "run", compiled)
        if not has_unit and (ran.returncode == 0 or "lacks amx-int8, amx-tile" not in ran.stderr):
            sys.exit(f"failed: exit status {ran.returncode}, {ran.stderr}")
    print(f"{len(loops)} loops over products of tiles")


if __name__ == "__main__":
    main()
