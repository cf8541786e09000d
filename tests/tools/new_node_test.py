#!/usr/bin/env python3
"""A node added to ir/loops/nodes.def without its cases does not compile: the error names the node.

usage: new_node_test.py BUILD_FOLDER
A copy of nodes.def gets one more expression and one more statement, copies of exprs.h and stmts.h
their structs; what must know every node is then compiled as in the build, as far as its meaning.
"""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
STRUCT = """
struct %s : %s {
  static constexpr NodeKind kKind = NodeKind::k%s;
  template <typename F>
  void fields(F&&) {}
};
}  // namespace tilewright::ir
"""
EXPR, STMT = "PlantedExpr", "PlantedStmt"
# Source, and the node that it misses.
MISSING = [
    ("ir/text/printer_loops.cpp", EXPR),
    ("ir/text/printer_loops.cpp", STMT),
    ("ir/text/parser_exprs.cpp", EXPR),
    ("ir/text/parser_stmts.cpp", STMT),
    ("ir/verify_loop_exprs.cpp", EXPR),
    ("ir/verify_loop_stmts.cpp", STMT),
    ("ir/interpreter/compile_exprs.cpp", EXPR),
    ("ir/interpreter/compile_stmts.cpp", STMT),
    ("ir/interpreter/evaluate.cpp", EXPR),
    ("codegen/cpu/emit_values.cpp", EXPR),
    ("codegen/cpu/emit_llvm.cpp", STMT),
]
# Written over the lists of fields: these follow by themselves.
GENERIC = ["ir/loops/rewrite.cpp", "ir/loops/compare.cpp"]


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def plant(folder, structs):
    """Copies of nodes.def and, with structs, of the nodes' headers, which -iquote finds first."""
    def write(path, text):
        os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
        with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
            file.write(text)

    nodes = read("ir/loops/nodes.def")
    nodes = nodes.replace("TW_EXPR(IntImm)", f"TW_EXPR({EXPR})\nTW_EXPR(IntImm)")
    nodes = nodes.replace("TW_STMT(Store)", f"TW_STMT({STMT})\nTW_STMT(Store)")
    write("ir/loops/nodes.def", nodes)
    for path, name, base in [("ir/loops/exprs.h", EXPR, "ExprNode"), ("ir/loops/stmts.h", STMT, "StmtNode")]:
        if structs:
            end = "}  // namespace tilewright::ir"
            write(path, read(path).replace(end, STRUCT % (name, base, name)))


def compiles(entry, path):
    """Whether a unit is the file, or one of several files of a unity build."""
    if os.path.basename(entry["file"]).startswith("unity_"):
        with open(entry["file"], encoding="utf-8") as file:
            return f'#include "{path}"' in file.read()
    return os.path.samefile(entry["file"], path)


def compile_command(build, source):
    path = os.path.join(ROOT, source)
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        for entry in json.load(file):
            if compiles(entry, path):
                words = [w for w in shlex.split(entry["command"]) if not w.endswith("ccache")]
                drop = words.index("-o")
                words = [path if w == entry["file"] else w for w in words[:drop] + words[drop + 2:]]
                return [w for w in words if w != "-c"] + ["-fsyntax-only"]
    raise SystemExit(f"{source} is not compiled by {build}")


def check(build, folder, source):
    """The compiler's errors."""
    command = compile_command(build, source) + ["-iquote", folder]
    result = subprocess.run(command, capture_output=True, text=True, cwd=build,
                            env={**os.environ, "LC_ALL": "C"})
    return [line for line in result.stderr.split("\n") if re.search(r"\berror\b|required from", line)]


def main():
    build = os.path.abspath(sys.argv[1])
    failures = []
    with tempfile.TemporaryDirectory() as bare, tempfile.TemporaryDirectory() as whole:
        plant(bare, structs=False)
        plant(whole, structs=True)
        sources = sorted({source for source, _ in MISSING}) + GENERIC
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            no_struct = pool.submit(check, build, bare, GENERIC[0])
            found = dict(zip(sources, pool.map(lambda s: check(build, whole, s), sources)))
        for node in EXPR, STMT:
            if not any(node in line for line in no_struct.result()):
                failures.append(f"rewrite.h compiles though {node} has no struct")
        for source, node in MISSING:
            if not any(node in line for line in found[source]):
                failures.append(f"{source} compiles without a case for {node}")
        for source in GENERIC:
            failures += [f"{source}: {line}" for line in found[source]]
    print("\n".join(failures) or f"{len(MISSING)} missing cases, each refused by name")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
