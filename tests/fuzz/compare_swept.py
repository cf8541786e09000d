#!/usr/bin/env python3
"""Holds what swept_models saved against ONNX Runtime: a model that it refuses and Tilewright accepts, or another result,
needs a reason in known_refusals.py.

usage: compare_swept.py [--all] FOLDER                  FOLDER: of `swept_models --save`
       compare_swept.py [--every N] --sweep PROGRAM FOLDER...  first lets swept_models go over the folders
--all: prints what has a reason, too. Exit 0; 1 where something has no reason; 77: skipped, without ONNX Runtime."""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy
    import onnx
    import onnxruntime
except ImportError:
    print("skipped: no onnxruntime in the environment of the tests")
    sys.exit(77)

import known_refusals

RELATIVE = {2: 2e-2, 4: 1e-3, 8: 1e-6}  # of floats by their width; what is exact is judged elsewhere


def session(path):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def arrays(path):
    return dict(numpy.load(path)) if path.exists() else {}


def differs(ours, theirs):
    """Nothing, or what differs."""
    theirs = numpy.asarray(theirs)
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"{ours.dtype}{list(ours.shape)} instead of {theirs.dtype}{list(theirs.shape)}"
    with numpy.errstate(all="ignore"):
        if ours.dtype.kind == "f":
            tolerance = RELATIVE[ours.dtype.itemsize]
            same = numpy.allclose(ours.astype("f8"), theirs.astype("f8"), tolerance, tolerance, equal_nan=True)
        else:
            same = numpy.array_equal(ours, theirs)
    return None if same else "other values"


def verdict(path):
    """Nothing, or what is other than with ONNX Runtime."""
    try:
        results = session(path).run(None, arrays(path.with_suffix(".in.npz")))
    except Exception as error:  # of many kinds
        return re.sub(r"\s+", " ", str(error)).replace(str(path), "the model")
    ours = arrays(path.with_suffix(".out.npz"))
    names = [o.name for o in onnx.load(path).graph.output]
    return next((f"{name}: {d}" for name, theirs in zip(names, results) if (d := differs(ours[name], theirs))), None)


def in_child(path):
    """The verdict by a process of its own, as ONNX Runtime ends the process for some models."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        os.write(write, (verdict(path) or "").encode(errors="replace")[:4000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, errors="replace") as pipe:
        text = pipe.read()
    return text if os.waitpid(child, 0)[1] == 0 else "the process ended"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--every", default="1")
    parser.add_argument("--sweep")
    parser.add_argument("folders", type=pathlib.Path, nargs="+")
    options = parser.parse_args()
    onnxruntime.set_default_logger_severity(4)
    if not options.sweep:
        return compare(options.folders[0], options.all)
    with tempfile.TemporaryDirectory() as saved:
        done = subprocess.run([options.sweep, "--every", options.every, "--save", saved, *options.folders], check=False)
        return compare(pathlib.Path(saved), options.all) if done.returncode == 0 else 1


def compare(folder, with_reasons):
    reasons, bare, tried = collections.Counter(), 0, 0
    for path in sorted(folder.glob("*.onnx"), key=lambda p: int(p.stem)):
        tried += 1
        found = in_child(path)
        if not found:
            continue
        what = path.with_suffix(".txt").read_text(errors="replace").strip()
        reason = known_refusals.reason(f"{what}: {found}")
        reasons[reason] += 1
        bare += reason is None
        if reason is None or with_reasons:
            print(f"{path.stem}: {what}: {found[:300]}" + (f" [{reason}]" if reason else ""))
    for reason, count in reasons.most_common():
        print(f"{count:6}  {reason or 'no reason'}")
    print(f"{tried} models, {bare} without a reason")
    return 1 if bare or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
