#!/usr/bin/env python3
"""Writes the corpus of mutated_models: random models (tests/differential/onnx_models) that have an operator which none
of those before them has, as long as new ones are found.

usage: write_corpus.py [--tries N] FOLDER
"""
import argparse
import collections
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "differential/onnx_models"))
MOST_BYTES = 3000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=3000)
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    import operator_rows
    from model_builder import sample
    rows, seen = operator_rows.load(), collections.Counter()
    options.folder.mkdir(parents=True, exist_ok=True)
    for number in range(options.tries):
        _, model = sample(rows, 1, number)
        if model is None:
            continue
        operators = {n.row.name for n in model.nodes}
        data = model.proto.SerializeToString(deterministic=True)
        if len(data) > MOST_BYTES or operators <= seen.keys():
            continue
        seen.update(operators)
        name = "_".join(sorted(re.split(r"[.:]", o)[-1].lower() for o in operators if seen[o] == 1))[:60]
        (options.folder / f"{number:04}_{name}.onnx").write_bytes(data)
    print(f"{len(seen)} of {len(rows)} operators")


if __name__ == "__main__":
    main()
