#!/usr/bin/env python3
"""Reads every #include of the tree against the table of folders: which folder may include which,
and which third-party headers are allowed where. No folder, at any depth, includes another that
includes it in turn, be it through others. Exit 1 when an include breaks a rule.

usage: check_layering.py [ROOT]
"""
import collections
import os
import re
import sys

import source_tree

HERE = "tests/tools/check_layering.py"
PROJECT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
EVERYTHING = None
# A file belongs to the longest matching folder. runtime/core is open to every folder, and a folder to itself.
MAY_INCLUDE = {
    "runtime/core": [],
    "runtime": [],
    "runtime/distributed": ["runtime"],
    "ir": [],
    "passes": ["ir"],
    "codegen/cache": [],
    "codegen": [
        "ir", "codegen/cache", "runtime/executable.h", "runtime/kernel_abi.h", "runtime/seal.h", "runtime/tensor.h",
    ],
    # Apart from passes and codegen: what was measured comes in the machine's description.
    "codegen/measure": ["ir", "codegen/cache", "runtime"],
    "autotune": ["ir", "passes", "codegen", "codegen/measure", "runtime"],
    "frontends/onnx": ["ir", "frontends/tensor_files"],
    "frontends/tensor_files": ["ir"],
    "frontends/compiler": [
        "runtime", "ir", "passes", "codegen", "codegen/cache", "codegen/measure", "autotune",
        "frontends/onnx", "frontends/tensor_files",
    ],
    "frontends/train": [
        "runtime", "runtime/distributed", "ir", "passes", "codegen/cache", "frontends/compiler", "frontends/onnx",
        "frontends/tensor_files",
        "autotune/report/html.h", "autotune/report/page.h", "autotune/report/plot.h", "codegen/measure",
    ],
    "frontends/cli": [  # shows every stage to the user, so it may see every stage
        "runtime", "runtime/distributed", "ir", "passes", "codegen", "codegen/cache", "codegen/measure", "autotune",
        "frontends/compiler", "frontends/train", "frontends/onnx", "frontends/tensor_files",
    ],
    "tests": EVERYTHING,
    "tutorials": EVERYTHING,
}

# Third-party headers by their beginning, and the folders they may be used in.
THIRD_PARTY = {
    "llvm/": ["codegen/cpu", "tests/codegen"],
    "llvm-c/": ["codegen/cpu", "tests/codegen"],
    "lld/": ["codegen/cpu"],
    "google/protobuf/": ["frontends/onnx", "frontends/tensor_files", "tests/frontends"],
    "xxhash.h": ["codegen/cache", "runtime"],
    "zip.h": ["frontends/tensor_files", "tests/frontends"],
    "xgboost/": ["autotune/xgboost"],
    "CLI/": ["frontends/cli"],
    "gloo/": ["runtime/distributed"],
    "mpi.h": ["runtime/distributed"],
    "toml++/": ["frontends/train"],
    "nlohmann/": [
        "runtime/core/parse_json.h", "autotune", "codegen/measure", "runtime/distributed", "frontends/compiler", "frontends/train", "frontends/cli",
        "tests",
    ],
    "gtest/": ["tests"],
    "gmock/": ["tests"],
    "benchmark/": ["tests"],
}
LLVM_HEADERS = ("llvm/", "llvm-c/", "lld/")
MOST_LLVM_FILES = 19  # each costs 5 to 20 s of compile time
# Shared by LLVM-using .cpp files of its own folder alone; whoever includes it counts as one of them.
PRIVATE_LLVM_HEADERS = {"codegen/cpu/vector_math_lanes.h"}
# The installed C API: its headers lie side by side wherever they are installed.
INSTALLED_TOGETHER = {("runtime/c_api.h", "dlpack_abi.h")}

STANDARD = set("""
algorithm any array atomic barrier bit bitset charconv chrono cmath codecvt compare complex
concepts condition_variable coroutine deque exception execution filesystem format forward_list
fstream functional future initializer_list iomanip ios iosfwd iostream istream iterator latch
limits list locale map memory memory_resource mutex new numbers numeric optional ostream queue
random ranges ratio regex scoped_allocator semaphore set shared_mutex source_location span sstream
stack stdexcept stop_token streambuf string string_view system_error thread tuple type_traits
typeindex typeinfo unordered_map unordered_set utility valarray variant vector version cassert
cctype cerrno cfenv cfloat cinttypes climits clocale csetjmp csignal cstdarg cstddef cstdint
cstdio cstdlib cstring ctime cuchar cwchar cwctype assert.h ctype.h errno.h float.h inttypes.h
limits.h math.h signal.h stdarg.h stdalign.h stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h time.h
""".split())
SYSTEM = set("""
cpuid.h dirent.h dlfcn.h elf.h fcntl.h fenv.h immintrin.h link.h poll.h pthread.h sched.h spawn.h unistd.h
""".split())  # and sys/*
NETWORK = ("arpa/inet.h", "netdb.h", "netinet/")  # by their beginning
NETWORK_FOLDERS = ["runtime/distributed", "tests/runtime/distributed"]
SYSTEM_FOLDERS = ["passes/reproducer.cpp", "runtime", "codegen", "autotune", "frontends", "tests", "tutorials"]

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')
SOURCES = (".h", ".cpp", ".c", ".def")


def inside(path, folder):
    return path == folder or path.startswith(folder + "/")


def layer_of(path):
    return max((f for f in MAY_INCLUDE if inside(path, f)), key=len, default=None)


def is_generated(root, header):
    """A protobuf header stands for the .proto file of its folder."""
    return header.endswith(".pb.h") and os.path.exists(os.path.join(root, header[: -len(".pb.h")] + ".proto"))


def project_error(root, path, header):
    if (path, header) in INSTALLED_TOGETHER:
        return None
    if header in PRIVATE_LLVM_HEADERS and os.path.dirname(path) != os.path.dirname(header):
        return f'"{header}" is private to its folder'
    if not os.path.exists(os.path.join(root, header)) and not is_generated(root, header):
        return f'"{header}" is no file; includes are written from the root of the project'
    layer = layer_of(path)
    allowed = MAY_INCLUDE[layer]
    if allowed is EVERYTHING or layer_of(header) == layer or inside(header, "runtime/core"):
        return None
    # "codegen" does not open codegen/measure: the folder must be the header's own layer.
    if any(header == a or layer_of(header) == a for a in allowed):
        return None
    return f'{layer} may not include "{header}" (it may include: {", ".join(["runtime/core"] + allowed)})'


def system_error(path, header):
    for beginning, folders in THIRD_PARTY.items():
        if header.startswith(beginning):
            if not any(inside(path, f) for f in folders):
                return f'<{header}> is allowed in {", ".join(folders)} only'
            in_header = not path.endswith(".cpp") and path not in PRIVATE_LLVM_HEADERS
            if beginning in LLVM_HEADERS and in_header:
                return f"<{header}> in a header; LLVM headers stay in .cpp files"
            return None
    if header in STANDARD:
        return None
    if header.startswith(NETWORK):
        allowed = any(inside(path, f) for f in NETWORK_FOLDERS)
        return None if allowed else f'<{header}> is allowed in {", ".join(NETWORK_FOLDERS)} only'
    if header in SYSTEM or header.startswith("sys/"):
        allowed = any(inside(path, f) for f in SYSTEM_FOLDERS)
        return None if allowed else f"<{header}>: system headers are not allowed here"
    return f"<{header}> is not in the tables of {HERE}"


def circles(includes):
    """The sets of folders that include one another, be it through others: of includes by (folder, folder)."""
    reached = {folder: set() for pair in includes for folder in pair}

    def walk(start, folder):
        for source, target in includes:
            if source == folder and target not in reached[start]:
                reached[start].add(target)
                walk(start, target)

    for folder in reached:
        walk(folder, folder)
    sets = {frozenset(g for g in reached[f] if f in reached[g]) for f in reached if f in reached[f]}
    return sorted(sorted(s) for s in sets)


def circle_errors(includes):
    """`includes`: places "file:line" by (folder, folder)."""
    errors = []
    for circle in circles(includes):
        errors.append("folders include one another: " + ", ".join(circle))
        for (source, target), places in sorted(includes.items()):
            if source in circle and target in circle:
                errors.append(f"  {source} -> {target}: " + " ".join(places[:3]) + (" ..." if places[3:] else ""))
    return errors


def check(root):
    errors, llvm_files, edges, leaves = [], set(), collections.Counter(), {}
    for path in source_tree.files(root, SOURCES):
        if layer_of(path) is None:
            errors.append(f"{path}: its folder is not in the table of {HERE}")
            continue
        for number, line in enumerate(source_tree.read(root, path), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            quoted, header = match[1] == '"', match[2]
            # Quoted or not, what the project does not have is third-party.
            error = project_error(root, path, header) if quoted else system_error(path, header)
            if error:
                errors.append(f"{path}:{number}: {error}")
            uses_llvm = header.startswith(LLVM_HEADERS) or header in PRIVATE_LLVM_HEADERS
            if uses_llvm and path.endswith(".cpp"):
                llvm_files.add(path)
            if quoted:
                edges[(layer_of(path), layer_of(header))] += 1
                leaf = (os.path.dirname(path), os.path.dirname(header))
                if leaf[0] != leaf[1] and not error and (path, header) not in INSTALLED_TOGETHER:
                    leaves.setdefault(leaf, []).append(f"{path}:{number}")
    if len(llvm_files) > MOST_LLVM_FILES:
        errors.append(
            f"{len(llvm_files)} files include LLVM headers, at most {MOST_LLVM_FILES} may: "
            + " ".join(sorted(llvm_files))
        )
    return errors + circle_errors(leaves), edges


def main():
    errors, edges = check(os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else PROJECT)
    for error in errors:
        print(error)
    print(f"{sum(edges.values())} includes of the project's own headers read, {len(errors)} break a rule")
    return 1 if errors or not edges else 0


if __name__ == "__main__":
    sys.exit(main())
