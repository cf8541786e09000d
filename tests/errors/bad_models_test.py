#!/usr/bin/env python3
"""Gives the command malformed and hostile models: it must say what is wrong, with exit status 1 or 3, in little memory
and time. The expected statuses and phrases stand beside the models in bad_models.py."""
import argparse
import os
import pathlib
import re
import resource
import sys
import tempfile
import time

import bad_models

MOST_SECONDS = 10
MOST_KIB = 2 << 20


def run(command, stderr):
    """Exit status (negative: a signal), seconds, peak memory in KiB."""
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (2 * MOST_SECONDS, 2 * MOST_SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        out = os.open(stderr, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.execv(command[0], command)
    _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), time.monotonic() - start, usage.ru_maxrss


def problems(status, seconds, kib, text, statuses, phrases):
    if status not in statuses:
        yield f"exit status {status}, expected {sorted(statuses)}"
    if seconds > MOST_SECONDS:
        yield f"{seconds:.1f} s"
    if kib > MOST_KIB:
        yield f"{kib >> 10} MiB of memory"
    if status != 0 and "tilewright: " not in text:
        yield "no message"
    if "internal error" in text or "reproduce" in text:
        yield "an internal error"
    for phrase in phrases:
        if not re.search(phrase, text):
            yield f"the message lacks '{phrase}'"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cli", required=True)
    parser.add_argument("--only", help="name of one model")
    args = parser.parse_args()
    failed = count = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model, stderr, so = folder / "model.onnx", str(folder / "stderr"), folder / "model.so"
        for case, data, statuses, phrases in bad_models.all_models():
            if args.only and case != args.only:
                continue
            model.write_bytes(data)
            for command in (["run", str(model)], ["compile", str(model), "-o", str(so)]):
                status, seconds, kib = run([args.cli, *command], stderr)
                text = pathlib.Path(stderr).read_text(errors="replace")
                # What only a run's inputs decide may compile.
                allowed = statuses | ({0} if command[0] == "compile" and case in COMPILE_MAY_PASS else set())
                wrong = list(problems(status, seconds, kib, text, allowed, phrases if status else []))
                count += 1
                if wrong or args.only:
                    failed += bool(wrong)
                    print(f"{case} ({command[0]}): {'; '.join(wrong)}\n    {text[:600].strip()}")
    print(f"{count} runs, {failed} failed")
    sys.exit(1 if failed else 0)


COMPILE_MAY_PASS = {"large_input", "outer_product"}

if __name__ == "__main__":
    main()
