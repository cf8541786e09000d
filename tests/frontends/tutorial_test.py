#!/usr/bin/env python3
"""Runs the blocks of a tutorial from top to bottom, in a folder with what it names of ../shared: ```python in one
interpreter, ```sh with the command on PATH, $SOURCE and $BUILD, ```toml is job.toml.

usage: tutorial_test.py --cli TILEWRIGHT TUTORIAL.md [data/FILE|models/FOLDER ...]
Exit 0, 1, or 77: skipped.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

SKIPPED = 77


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cli", required=True)
    parser.add_argument("tutorial")
    parser.add_argument("shared", nargs="*")
    options = parser.parse_args()
    project = os.path.dirname(os.path.dirname(os.path.abspath(options.tutorial)))
    shared = os.path.abspath(os.environ.get("TILEWRIGHT_SHARED") or os.path.join(os.path.dirname(project), "shared"))
    if not os.path.isdir(shared):
        print("skipped: no ../shared folder (TILEWRIGHT_SHARED names another one)")
        return SKIPPED
    with open(options.tutorial, encoding="utf-8") as file:
        blocks = re.findall(r"^```(python|sh|toml)\n(.*?)^```$", file.read(), re.M | re.S)
    assert blocks
    names = {"__name__": "tutorial"}
    commands = os.path.dirname(os.path.abspath(options.cli))
    environment = {**os.environ, "PATH": commands + ":" + os.environ["PATH"], "SOURCE": project,
                   "BUILD": os.path.dirname(os.path.dirname(commands))}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.shared:
            os.symlink(os.path.join(shared, name), os.path.join(folder, os.path.basename(name)))
        os.chdir(folder)
        for kind, text in blocks:
            print(f"--- {kind}\n{text}", flush=True)
            if kind == "python":
                exec(compile(text, options.tutorial, "exec"), names)
            elif kind == "sh":
                subprocess.run(["bash", "-ec", text], env=environment, check=True)
            else:
                with open("job.toml", "w", encoding="utf-8") as file:
                    file.write(text)
        os.chdir("/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
