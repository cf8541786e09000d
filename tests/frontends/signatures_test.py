#!/usr/bin/env python3
"""Holds frontends/onnx/signatures.cpp, what each ONNX operator takes, against the package onnx; --update writes its rows."""
import argparse
import os
import pathlib
import re
import subprocess
import sys

OLDEST = 7  # operator set: rows that hold from here on
SKIPPED = 77
PYTHON = pathlib.Path(__file__).resolve().parents[2] / ".venv" / "bin" / "python"  # made by tests/run.sh
BEGIN, END = "    // rows: begin\n", "    // rows: end\n"


def wrapped(head, attributes):
    """One row of the table, in lines of at most 100 columns."""
    line = f'{head}"{attributes}"}},\n'
    if len(line) <= 101:
        return line
    lines, text = [head.rstrip()], ""
    for word in attributes.split():
        if len(text) + len(word) > 88:
            lines.append(f'     "{text}"')
            text = ""
        text += word + " "
    return "\n".join([*lines, f'     "{text.rstrip()}"}},\n'])


def rows(defs, operators):
    kind = {"INT": "i", "FLOAT": "f", "STRING": "s", "TENSOR": "t", "GRAPH": "g", "INTS": "I", "FLOATS": "F",
            "STRINGS": "S", "TENSORS": "T", "GRAPHS": "G", "TYPE_PROTO": "y", "SPARSE_TENSOR": "p"}
    schemas = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "":
            schemas.setdefault(schema.name, []).append(schema)
    for name in operators:
        history = sorted(schemas[name], key=lambda s: s.since_version)
        first = max((s.since_version for s in history if s.since_version <= OLDEST), default=0)
        last = None
        for s in history:
            most = [-1 if n > 1000 else n for n in (s.max_input, s.max_output)]
            attributes = " ".join(f"{k}:{kind[a.type.name]}{'!' if a.required else ''}"
                                  for k, a in sorted(s.attributes.items()))
            row = (s.min_input, most[0], s.min_output, most[1], attributes)
            if s.since_version >= first and row != last:
                yield wrapped(f'    {{"{name}", {s.since_version}, {row[0]}, {row[1]}, {row[2]}, {row[3]}, ',
                              attributes)
                last = row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cli", required=True)
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    args = parser.parse_args()
    try:
        from onnx import defs
    except ImportError:
        if os.access(PYTHON, os.X_OK) and pathlib.Path(sys.executable) != PYTHON:
            os.execv(PYTHON, [str(PYTHON), *sys.argv])
        print("skipped: the package onnx is not installed")
        sys.exit(SKIPPED)
    reference = subprocess.run([args.cli, "ops"], capture_output=True, text=True, check=True).stdout
    read = reference[reference.index("# ONNX operators"):]
    operators = sorted(name for name in re.findall(r"^- (\S+)", read, re.M) if ":" not in name)
    expected = list(rows(defs, operators))
    text = args.source.read_text()
    before, rest = text.split(BEGIN)
    found, after = rest.split(END)
    if args.update:
        args.source.write_text(before + BEGIN + "".join(expected) + END + after)
        return
    strip = lambda t: re.sub(r'"\s*"', "", re.sub(r"\s+", " ", t)).replace("{ ", "{").strip()
    have, want = ([strip(r) for r in re.findall(r"\{[^{}]*\}", t)] for t in (found, "".join(expected)))
    for row in sorted(set(have) - set(want)):
        print(f"not in onnx: {row}")
    for row in sorted(set(want) - set(have)):
        print(f"missing: {row}")
    print(f"{len(want)} rows of {len(operators)} operators")
    sys.exit(have != want)


if __name__ == "__main__":
    main()
