#!/usr/bin/env python3
"""Compiles digits-cnn with the command, twice and with variants, and runs it by a C program that is
linked to the runtime library alone: with an empty environment and, where the system lets us, in a
root folder that holds nothing but what it was linked to."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile


def run(*command, **options):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True, **options).stdout


def write_images(npz, path):
    """The elements of x.npy, without its header."""
    data = zipfile.ZipFile(npz).read("x.npy")
    path.write_bytes(data[10 + int.from_bytes(data[8:10], "little"):])


def linked_libraries(program):
    return re.findall(r"(/[^ ]+)", run("ldd", program))


def make_root(root, program, runtime, files):
    """A folder with the program, the libraries that it names, and the files; paths inside."""
    for library in linked_libraries(program):
        if "tilewright" in library or "LLVM" in library:
            continue
        target = root / library.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)
    for path in (program, *files):
        shutil.copy(path, root / pathlib.Path(path).name)
    library = root / "lib" / "libtilewright_runtime.so.1"
    library.parent.mkdir(exist_ok=True)
    shutil.copy(runtime, library)


def can_change_root():
    command = ["unshare", "--map-root-user", "chroot", "/", "true"]
    return shutil.which("unshare") and subprocess.run(command, capture_output=True, check=False).returncode == 0


def check(condition, what):
    if not condition:
        sys.exit("failed: " + what)


def constants(info):
    return re.search("^constants: .*$", info, re.M).group()


def check_pass_times(cli, model):
    """A row for each pass: its name, calls, milliseconds, milliseconds of verification."""
    out = subprocess.run([cli, "lower", model, "--emit", "flat", "--pass-times"], capture_output=True, text=True,
                         check=True)
    lines = out.stderr.splitlines()
    start = next((i for i, l in enumerate(lines) if l.split()[:2] == ["pass", "calls"]), None)
    check(start is not None, "--pass-times prints a table")
    rows = [l.split() for l in lines[start + 1:]]
    check({"fold_constants", "fuse_operators", "lower_blocks"} <= {r[0] for r in rows}, "passes have their times")
    total = [float(r[2]) + float(r[3]) for r in rows]
    check(all(a >= b - 0.02 for a, b in zip(total, total[1:])), "the longest pass comes first")
    check("--pass-times" in run(cli, "compile", "--help"), "compile has the option too")


def check_surplus_inputs(cli, models, inputs, work):
    """Values for what is no input of the model are refused, by name."""
    given = work / "surplus.npz"
    shutil.copy(inputs, given)
    with zipfile.ZipFile(given, "a") as archive:
        archive.writestr("surplus.npy", archive.read("x.npy"))
    for model in models:
        result = subprocess.run([cli, "run", model, "--inputs", given], capture_output=True, text=True, check=False)
        check(result.returncode == 1 and "'surplus'" in result.stderr and "'x'" in result.stderr,
              "a surplus input is refused: " + result.stderr)


def check_bounded_threads(cli, model):
    """A number that no machine profits from is answered with fewer, and a note that says how many."""
    def notes(threads):
        done = subprocess.run([cli, "run", model, "--threads", str(threads)], capture_output=True, text=True, check=True)
        return re.findall(r"note: runs with (\d+) threads instead of (\d+)", done.stderr)
    most = min(max(16, 4 * len(os.sched_getaffinity(0))), 1024)
    check(not notes(2), "two threads are as many as were asked for")
    if most < 1024:
        found = notes(1024)
        check(len(found) == 1 and 16 <= int(found[0][0]) <= most and found[0][1] == "1024", "threads are bounded")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cli", type=pathlib.Path, required=True)
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--runtime", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True, help="folder of digits-cnn")
    args = parser.parse_args()
    labels = (args.model / "labels.txt").read_text().split()
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        images, model, again = work / "images.f32", work / "model.so", work / "again.so"
        write_images(args.model / "inputs.npz", images)
        measured = {**os.environ, "XDG_CACHE_HOME": str(work / "cache")}
        for file in (model, again):
            run(args.cli, "compile", args.model / "model.onnx", "-o", file, env=measured)
        check(model.read_bytes() == again.read_bytes(), "compiling twice gives the same bytes")
        check("not measured" in run(args.cli, "devices", env=measured), "devices says that nothing was measured")
        run(args.cli, "devices", "--measure", env=measured)
        check("GFLOP/s" in run(args.cli, "devices", env=measured), "devices shows what was measured")
        check(run(args.program, model, images, env={}).split() == labels, "the answers of a machine not measured")
        for file in (model, again):
            run(args.cli, "compile", args.model / "model.onnx", "-o", file, env=measured)
        check(model.read_bytes() == again.read_bytes(), "and so it does for a machine that was measured")
        check(run(args.program, model, images, env={}).split() == labels, "the answers, environment empty")
        run(args.cli, "compile", args.model / "model.onnx", "-o", again, "--shape", "batch=10", "--shape", "any")
        check(run(args.program, again, images, env={}).split() == labels, "the answers of a specialised variant")
        info = run(args.cli, "info", again)
        check("all extents fixed" in info, "info shows the variant")
        check(constants(info) == constants(run(args.cli, "info", model)), "variants share their constants")
        needs = re.search("^needs:(.*)$", info, re.M).group(1).split()
        special = {"avx512bf16", "avx512fp16", "avx512vbmi", "avx512vnni", "avxvnni"}
        check(not special & set(needs), "a model of f32 needs no instructions for other types")
        check_pass_times(args.cli, args.model / "model.onnx")
        check_bounded_threads(args.cli, model)
        check_surplus_inputs(args.cli, [args.model / "model.onnx", model], args.model / "inputs.npz", work)
        why = run(args.cli, "lower", args.model / "model.onnx", "--explain", "k2")
        check("sums in" in why and "parallelize(" in why, "a kernel's schedule is explained")
        check(not any("LLVM" in l for l in linked_libraries(args.program)), "no LLVM is linked")
        opened = subprocess.run([args.cli, "bench", model, "--seconds", "0.01"], capture_output=True, text=True,
                                check=True, env={**os.environ, "LD_DEBUG": "files"}).stderr
        check("libc.so" in opened and "LLVM" not in opened, "who runs a compiled model loads no LLVM")
        if can_change_root():
            root = work / "root"
            make_root(root, args.program, args.runtime, [model, images])
            out = run("unshare", "--map-root-user", "chroot", root, "/" + args.program.name, "/model.so", "/images.f32",
                      env={"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": "/lib"})
            check(out.split() == labels, "the answers in a root folder of its own")
        else:
            print("not run in a root folder of its own: unshare is not permitted here")


if __name__ == "__main__":
    main()
