#!/usr/bin/env python3
"""Small models that once gave wrong results, through the command, against ONNX Runtime.

usage: check_found_models.py --cli TILEWRIGHT [--only NAME]
What the random models find is kept here in its least form. Exit 0, 1, or 77: skipped."""
import argparse
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models"))
import shared_folder  # noqa: E402


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cli", required=True)
    parser.add_argument("--only")
    return parser.parse_args()


def failure(cli, found):
    """None, or what is wrong."""
    import compiled_run
    import reference
    import tolerance
    model, runs = found.model(), found.runs()
    for options in found.options:
        with tempfile.TemporaryDirectory() as folder:
            try:
                results = compiled_run.run(cli, model, runs, folder, "model", found.symbols is not None, options)
            except compiled_run.Failed as error:
                return f"{error.verdict}: {error}"
        for run, ours in zip(runs, results):
            for name, array in (found.expected or reference.run_model(model, run.feeds)).items():
                difference = tolerance.difference(ours[name], array, found.slack)
                if difference:
                    return f"{' '.join(options)} {name}: {difference}"
    return None


def main():
    options = parse()
    shared_folder.enter_environment()
    import found_models
    failed = 0
    for found in found_models.FOUND:
        if options.only and found.name != options.only:
            continue
        wrong = failure(options.cli, found)
        if wrong:
            failed += 1
            print(f"FAIL {found.name}: {wrong}")
    print(f"{len(found_models.FOUND)} models, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
