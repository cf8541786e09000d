"""A model through the command: its outputs, or how it ended."""
import os
import signal
import subprocess

import numpy
import onnx
from onnx import numpy_helper

import element_types as et

SECONDS = 120  # far more than any of these models takes: what exceeds it hangs


class Failed(Exception):
    """verdict: 'unsupported', 'refused', 'crash' or 'hang'."""

    def __init__(self, verdict, message):
        super().__init__(message)
        self.verdict = verdict


def command(arguments):
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=SECONDS, check=False, errors="replace")
    except subprocess.TimeoutExpired as error:
        raise Failed("hang", f"longer than {SECONDS} s: {' '.join(arguments)}") from error
    message = done.stderr.strip()
    if done.returncode == 0:
        return
    if done.returncode < 0:
        raise Failed("crash", f"{signal.Signals(-done.returncode).name}: {message[-500:]}")
    if "internal error" in message or "reproduce" in message:
        raise Failed("crash", message[-700:])
    raise Failed({1: "refused", 3: "unsupported"}.get(done.returncode, "crash"), message[-700:])


def write_inputs(path, feeds):
    """An archive, or a folder of .pb files where NumPy lacks the type. Returns the path to give."""
    if any(a.dtype == et.BF16 for a in feeds.values()):
        os.makedirs(path, exist_ok=True)
        for i, (name, array) in enumerate(feeds.items()):
            with open(os.path.join(path, f"input_{i}.pb"), "wb") as file:
                file.write(numpy_helper.from_array(array, name).SerializeToString())
        return path
    numpy.savez(path + ".npz", **feeds)
    return path + ".npz"


def read_outputs(folder, names):
    values = {}
    for i, name in enumerate(names):
        tensor = onnx.TensorProto()
        with open(os.path.join(folder, f"output_{i}.pb"), "rb") as file:
            tensor.ParseFromString(file.read())
        values[name] = numpy_helper.to_array(tensor)
    return values


def run(cli, proto, runs, folder, name, symbolic, options=()):
    """[{output: array}] of each run. A model with symbols is compiled once."""
    path = os.path.join(folder, name + ".onnx")
    with open(path, "wb") as file:
        file.write(proto.SerializeToString())
    names = [o.name for o in proto.graph.output]
    if symbolic:
        library = os.path.join(folder, name + ".so")
        command([cli, "compile", path, "-o", library, *options])
        path, options = library, ()
    results = []
    for i, r in enumerate(runs):
        out = os.path.join(folder, f"{name}_outputs_{i}")
        os.makedirs(out, exist_ok=True)
        given = ["--inputs", write_inputs(os.path.join(folder, f"{name}_inputs_{i}"), r.feeds)] if r.feeds else []
        command([cli, "run", path, *given, "--outputs", out, "--threads", "1", *options])
        results.append(read_outputs(out, names))
    return results
