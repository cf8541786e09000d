#!/usr/bin/env python3
"""Forms of models that the standard leaves open, drawn at random, through the command, against ONNX Runtime.

usage: check_model_forms.py --cli TILEWRIGHT [--models N] [--seed S] [--only N]
Each model runs in memory and compiled, with open extents and with all bound. Forms: control flow whose values
change shape or rank; outputs listed twice, inputs and initialisers as outputs; a domain imported twice;
initialisers that are inputs; models that need extents or values, whose error must name a cure that works.
Exit 0, 1, or 77: skipped."""
import argparse
import os
import random
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "models"))
import shared_folder  # noqa: E402


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cli", required=True)
    parser.add_argument("--models", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    return parser.parse_args()


def main():
    options = parse()
    options.cli = os.path.abspath(options.cli)
    shared_folder.enter_environment()
    import model_forms
    failed = count = 0
    for number in [options.only] if options.only is not None else range(options.models):
        rng = random.Random(f"{options.seed}/{number}")
        form = model_forms.FORMS[number % len(model_forms.FORMS)]
        with tempfile.TemporaryDirectory() as folder:
            count += 1
            wrong = form(rng, options.cli, folder)
        if wrong:
            failed += 1
            print(f"FAIL --seed {options.seed} --only {number} ({form.__name__}): {wrong}")
    print(f"{count} models, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
