#!/usr/bin/env python3
"""Sizes, names and leftovers: what a reader of the tree may rely on. Exit 1 on an error.

usage: check_style.py [ROOT]
Errors: files over 700 lines, functions over 80, lines over 120 columns (165 in Python tables), file names that say
nothing, folders without a README of at most 15 lines, unknown top-level entries, open marks, paths
of somebody's machine, files that are opened or written beside the modules for it. Warning: files over 400 lines.
"""
import os
import re
import sys

import source_tree

SOFT_LINES, HARD_LINES, MOST_FUNCTION_LINES, MOST_COLUMNS, MOST_README_LINES = 400, 700, 80, 120, 15
LONG_FILES = set()      # tables only; each with its reason beside it
LONG_FUNCTIONS = set()  # "path:function"
CODE = (".h", ".cpp", ".c", ".def", ".py", ".sh", ".proto")
EMPTY_NAMES = {"util", "utils", "common", "misc", "helper", "helpers"}
TOP_LEVEL = {
    ".ci", ".clang-format", ".clang-tidy", ".gitignore", "CMakeLists.txt", "CMakePresets.json",
    "LICENSE", "README.md",
    "autotune", "codegen", "frontends", "ir", "passes", "runtime", "tests", "tutorials",
}
IGNORED_TOP_LEVEL = {".git", ".venv", ".cache", "compile_commands.json"}  # see .gitignore
FOLDERS_WITH_README = [
    "autotune", "codegen", "frontends", "frontends/onnx", "frontends/tensor_files", "ir", "passes",
    "runtime", "tests", "tutorials",
]
OPEN_MARK = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")
MACHINE_PATH = re.compile(r"(?<![\w.}$)/-])/(work|tmp|root|home|Users)/")
# Files are opened and written by these modules alone.
FILE_MODULES = {"runtime/core/open_file.cpp", "runtime/core/write_file.cpp", "runtime/core/temporary_folder.cpp"}
FILE_FOLDERS = ("autotune/", "codegen/", "frontends/", "ir/", "passes/", "runtime/")
OPENS_A_FILE = re.compile(
    r"std::(basic_)?[io]?fstream|std::filebuf|\b(fopen|freopen|mkstemps?|mkostemps?|mkdtemp|tmpfile|creat)\(|"
    r"(?<![\w:.>])(::)?(open|openat|open64)\(.*\bO_|\b(std|fs|filesystem)::(rename|copy_file)\(")
OPENS_OTHERS = {  # what is no file of the user's, or is read by a parser of its own
    "autotune/check/worker_limits.cpp",        # /proc
    "autotune/measure/lost_time.cpp",          # /proc
    "codegen/cpu/describe_machine.cpp",        # /sys
    "frontends/cli/standard_streams.cpp",      # /dev/null
    "passes/pipeline.cpp",                     # dumps of passes
    "runtime/device_cpu.cpp",                  # /sys
    "runtime/distributed/start_process.cpp",   # /dev/null
    "runtime/thread_pool.cpp",                 # /sys
}
PARSES_JSON = re.compile(r"\b[Jj]son::parse\(")
PARSES_OWN_JSON = {
    "autotune/report/html.cpp",         # what it printed
    "codegen/measure/machine_file.cpp",  # after its depth was looked at
    "runtime/core/parse_json.h",
}
NOT_A_FUNCTION = re.compile(
    r"^\s*(namespace|struct|class|enum|union|extern \"C\" \{|"
    r"(inline |static )?const(expr)? [^(]*\{)"
)


def long_functions(lines):
    """(name, first line, length) of the top-level functions over the limit: a body ends with the
    first closing brace in column one."""
    start = None
    for number, line in enumerate(lines, 1):
        opens = line.endswith("{") and line[:1] not in (" ", "}", "/", "#")
        opens = opens and not NOT_A_FUNCTION.match(line)
        before = lines[number - 2] if number > 1 else ""
        opens_on_second_line = line.endswith("{") and before[:1].strip() and before.endswith((",", "("))
        if start is None and (opens or opens_on_second_line):
            start = number
        elif start is not None and line.startswith("}"):
            if number - start + 1 > MOST_FUNCTION_LINES:
                name = re.search(r"([\w:~]+)\(", lines[start - 1])
                yield (name[1] if name else f"line {start}"), start, number - start + 1
            start = None


def file_findings(path, lines):
    errors, warnings = [], []
    if os.path.splitext(os.path.basename(path))[0].lower() in EMPTY_NAMES:
        errors.append(f"{path}: name the file after what it holds")
    if path.endswith(CODE):
        if len(lines) > HARD_LINES and path not in LONG_FILES:
            errors.append(f"{path}: {len(lines)} lines, at most {HARD_LINES}")
        elif len(lines) > SOFT_LINES:
            warnings.append(f"{path}: {len(lines)} lines, better at most {SOFT_LINES}")
        for number, line in enumerate(lines, 1):
            if len(line) > (165 if path.endswith(".py") else MOST_COLUMNS):
                errors.append(f"{path}:{number}: {len(line)} columns, at most {MOST_COLUMNS}")
    if path.endswith((".cpp", ".h")):
        for name, start, length in long_functions(lines):
            if f"{path}:{name}" not in LONG_FUNCTIONS:
                errors.append(
                    f"{path}:{start}: {name} has {length} lines, at most {MOST_FUNCTION_LINES}"
                )
    for number, line in enumerate(lines, 1):
        if OPEN_MARK.search(line):
            errors.append(f"{path}:{number}: an open mark; finish it or make it a clear error")
        if path.startswith(FILE_FOLDERS) and path.endswith((".cpp", ".h")) and OPENS_A_FILE.search(line):
            if path not in FILE_MODULES | OPENS_OTHERS:
                errors.append(f"{path}:{number}: a file opened or written without runtime/core/open_file or write_file")
        if path.startswith(FILE_FOLDERS) and PARSES_JSON.search(line) and path not in PARSES_OWN_JSON:
            errors.append(f"{path}:{number}: JSON parsed without runtime/core/parse_json.h, which bounds its depth")
        if MACHINE_PATH.search(line):
            errors.append(f"{path}:{number}: a path of one machine")
    return errors, warnings


def folder_errors(root):
    errors = []
    for entry in sorted(os.listdir(root)):
        if entry not in TOP_LEVEL | IGNORED_TOP_LEVEL and not source_tree.is_skipped(entry):
            errors.append(f"{entry}: not among the known top-level entries")
    for folder in FOLDERS_WITH_README:
        if not os.path.isdir(os.path.join(root, folder)):
            continue
        path = os.path.join(folder, "README.md")
        if not os.path.exists(os.path.join(root, path)):
            errors.append(f"{path}: missing")
        elif len(source_tree.read(root, path)) > MOST_README_LINES:
            errors.append(f"{path}: over {MOST_README_LINES} lines")
    return errors


def check(root):
    errors, warnings = folder_errors(root), []
    paths = source_tree.files(root)
    for path in paths:
        if path in ("LICENSE",) or path.endswith((".npz", ".onnx", ".so")):
            continue
        try:
            lines = source_tree.read(root, path)
        except UnicodeDecodeError:
            errors.append(f"{path}: not UTF-8")
            continue
        more_errors, more_warnings = file_findings(path, lines)
        errors += more_errors
        warnings += more_warnings
    return errors, warnings, len(paths)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")
    errors, warnings, count = check(os.path.abspath(root))
    for warning in warnings:
        print(f"warning: {warning}")
    for error in errors:
        print(error)
    print(f"{count} files read, {len(errors)} errors, {len(warnings)} warnings")
    return 1 if errors or not count else 0


if __name__ == "__main__":
    sys.exit(main())
