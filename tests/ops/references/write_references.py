#!/usr/bin/env python3
"""Writes the reference cases anew (needs numpy, ml_dtypes and onnx); --check: says what differs.

Results come from definitions, in f64 or unbounded integers, by NumPy or by ONNX's own reference
implementation; none from Tilewright, and none from the way in which it computes."""
import importlib
import pathlib
import sys

MODULES = ["gradients", "movement", "pointwise", "products", "quantized", "random_numbers", "recurrent",
           "reductions", "regions", "sampling", "sorting", "transposed", "windows"]
FOLDER = pathlib.Path(__file__).resolve().parent


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    different = []
    written = set()
    for module in MODULES:
        for family in importlib.import_module(module).write():
            path = FOLDER / f"{family.name}.txt"
            written.add(path)
            text = "\n".join(family.text) + "\n"
            if not path.exists() or path.read_text() != text:
                different.append(path.name)
                if not check:
                    path.write_text(text)
    for path in sorted(set(FOLDER.glob("*.txt")) - written):
        different.append(f"{path.name} (not written by any module)")
    print("\n".join(different) or "nothing differs")
    sys.exit(1 if check and different else 0)


if __name__ == "__main__":
    main()
