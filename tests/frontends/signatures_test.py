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


FLOATS, INTS = ("f16", "bf16", "f32", "f64"), ("i8", "i16", "i32", "i64")
UINTS = tuple("u" + t[1:] for t in INTS)
GROUPS = {"all": (*FLOATS, *INTS, *UINTS, "bool"), "num": (*FLOATS, *INTS, *UINTS), "floats": FLOATS, "ints": INTS,
          "uints": UINTS}
ONNX_NAMES = {"float": "f32", "double": "f64", "float16": "f16", "bfloat16": "bf16", "bool": "bool",
              **{f"{'u' * (t[0] == 'u')}int{t[1:]}": t for t in INTS + UINTS}}


def wrapped(head, texts):
    """One row of the table, in lines of at most 100 columns."""
    line = head + ", ".join(f'"{text}"' for text in texts) + "},\n"
    if len(line) <= 101:
        return line
    lines = [head.rstrip()]
    for text in texts:
        part = ""
        for word in text.split():
            if len(part) + len(word) > 88:
                lines.append(f'     "{part}"')
                part = ""
            part += word + " "
        lines.append(f'     "{part.rstrip()}",')
    return "\n".join([*lines[:-1], lines[-1][:-1] + "},\n"])


WIDER = {("Range", "T"): {"tensor(uint8)", "tensor(uint16)", "tensor(uint32)", "tensor(uint64)", "tensor(int8)"}}


def type_set(strings, named=False):
    """Element types that Tilewright has, by groups: "floats+i32", "num-u64"; seq: sequences as well. Named types that
    are floats are all floats: operators without halves or doubles have them in later operator sets, and in models."""
    types = {ONNX_NAMES[t[7:-1]] for t in strings if t.startswith("tensor(") and t[7:-1] in ONNX_NAMES}
    if "f16" in types:
        types.add("bf16")
    if named and "f32" in types and types <= set(FLOATS):
        types = set(FLOATS)
    best = None
    for name, group in [*GROUPS.items(), ("", ())]:
        rest = types - set(group)
        lacking = [t for t in group if t not in types]
        if rest and lacking:
            continue
        order = [t for t in GROUPS["all"] if t in rest]
        for more in ("ints", "uints"):  # beside another group
            if set(GROUPS[more]) <= set(order):
                order = [more, *(t for t in order if t not in GROUPS[more])]
        text = "+".join([*([name] if name else []), *order]) + "".join("-" + t for t in lacking)
        if best is None or (text.count("+") + text.count("-"), len(text)) < (best.count("+") + best.count("-"), len(best)):
            best = text
    if any(not t.startswith("tensor(") for t in strings):
        best += "+seq" if best else "seq"
    return best or "none"


def operands(schema):
    """Names, how often, and types: "X:T B:T? sequence_lens:i32?", "T=floats"."""
    named = {t.type_param_str: type_set({*t.allowed_type_strs, *WIDER.get((schema.name, t.type_param_str), ())}, True)
             for t in schema.type_constraints}
    option = {0: "", 1: "?", 2: "*"}
    texts = [f"{i.name}:{i.type_str if i.type_str in named else type_set(i.types)}{option[int(i.option.value)]}"
             f"{'' if i.is_homogeneous else '*'}" for i in schema.inputs]
    used = {i.type_str for i in schema.inputs}
    return " ".join(texts), " ".join(f"{k}={v}" for k, v in sorted(named.items()) if k in used)


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
            row = (s.min_input, most[0], s.min_output, most[1], attributes, *operands(s))
            if s.since_version >= first and row != last:
                yield wrapped(f'    {{"{name}", {s.since_version}, {row[0]}, {row[1]}, {row[2]}, {row[3]}, ', row[4:])
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
