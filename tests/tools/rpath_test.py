#!/usr/bin/env python3
"""Where programs and libraries of a build look for others: in no folder that depends on the current one.

usage: rpath_test.py BUILD
"""
import os
import re
import subprocess
import sys

ENTRY = re.compile(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]")


def elf_files(build):
    for folder, folders, names in os.walk(build):
        folders[:] = [f for f in folders if f != "CMakeFiles"]
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path) and (os.access(path, os.X_OK) or ".so" in name) and "." not in name.replace(".so", ""):
                with open(path, "rb") as file:
                    if file.read(4) == b"\x7fELF":
                        yield path


def main():
    paths, wrong, entries = list(elf_files(sys.argv[1])), [], 0
    for path in paths:
        dynamic = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
        for found in ENTRY.findall(dynamic):
            for entry in found.split(":"):
                entries += 1
                if not entry.startswith(("/", "$ORIGIN", "${ORIGIN}")):
                    wrong.append(f"{path}: searches {entry!r}, of {found!r}")
    print("\n".join(wrong + [f"{len(paths)} files, {entries} folders in them, {len(wrong)} empty or relative"]))
    return 1 if wrong or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
