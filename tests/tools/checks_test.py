#!/usr/bin/env python3
"""Each rule of check_layering.py, check_style.py, count_comments.py, count_results.py and planted_bugs.py
finds a mistake, and a clean tree passes."""
import os
import subprocess
import sys
import tempfile
import unittest

import planted_bugs

HERE = os.path.dirname(os.path.abspath(__file__))


def run_check(script, files, *arguments):
    """(exit status, output) of a script over a tree made of {path: text}."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        command = [sys.executable, os.path.join(HERE, script), root, *arguments]
        result = subprocess.run(command, capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr


TREE = {
    "runtime/core/shape.h": "#include <vector>\n",
    "runtime/session.h": '#include "runtime/core/shape.h"\n',
    "runtime/executable.h": '#include "runtime/core/shape.h"\n',
    "ir/graph.h": '#include "runtime/core/shape.h"\n',
    "passes/lower.cpp": '#include "ir/graph.h"\n#include <algorithm>\n',
    "codegen/cpu/emit.cpp": '#include <llvm/IR/IRBuilder.h>\n#include "runtime/executable.h"\n',
}


class Layering(unittest.TestCase):
    def check(self, path, line, expected):
        status, output = run_check("check_layering.py", {**TREE, path: line + "\n"})
        self.assertEqual(status, 1 if expected else 0, output)
        self.assertIn(expected, output)

    def test_clean_tree(self):
        self.check("ir/printer.cpp", "#include <string>", "")

    def test_folder_that_may_not_be_included(self):
        self.check("ir/bad.cpp", '#include "passes/lower.h"', "is no file")
        self.check("ir/bad.cpp", '#include "runtime/session.h"', "ir may not include")
        self.check("runtime/bad.cpp", '#include "ir/graph.h"', "runtime may not include")
        self.check("passes/bad.cpp", '#include "runtime/executable.h"', "passes may not include")

    def test_single_headers_are_opened(self):
        self.check("codegen/ok.cpp", '#include "runtime/executable.h"', "")
        self.check("codegen/bad.cpp", '#include "runtime/session.h"', "codegen may not include")

    def test_includes_are_written_from_the_root(self):
        self.check("ir/bad.cpp", '#include "graph.h"', "written from the root")

    def test_third_party(self):
        self.check("ir/bad.cpp", "#include <llvm/IR/Module.h>", "allowed in codegen/cpu")
        self.check("codegen/cpu/bad.h", "#include <llvm/IR/Module.h>", "LLVM headers stay in .cpp")
        private = "codegen/cpu/vector_math_lanes.h"
        self.check(private, "#include <llvm/IR/IRBuilder.h>", "")
        self.check("codegen/bad.cpp", f'#include "{private}"', "private to its folder")
        self.check("passes/bad.cpp", "#include <google/protobuf/message_lite.h>", "allowed in frontends")
        self.check("frontends/compiler/bad.cpp", "#include <CLI/CLI.hpp>", "allowed in frontends/cli")
        self.check("runtime/bad.cpp", "#include <boost/any.hpp>", "not in the tables")
        self.check("passes/bad.cpp", "#include <unistd.h>", "system headers are not allowed")
        self.check("runtime/bad.cpp", "#include <netinet/tcp.h>", "allowed in runtime/distributed")
        self.check("runtime/distributed/ok.cpp", '#include <netdb.h>\n#include "runtime/session.h"', "")
        self.check("runtime/distributed/bad.cpp", "#include <CLI/CLI.hpp>", "allowed in frontends/cli")

    def test_number_of_llvm_files(self):
        files = {f"codegen/cpu/file{i}.cpp": "#include <llvm/IR/Module.h>\n" for i in range(19)}
        status, output = run_check("check_layering.py", {**TREE, **files})
        self.assertEqual(status, 1)
        self.assertIn("20 files include LLVM headers", output)

    def test_circles_of_leaf_folders(self):
        back = {"ir/loops/node.h": '#include "ir/text/printer.h"\n', "ir/text/printer.h": '#include "ir/graph.h"\n'}
        files = {**TREE, **back}
        self.assertEqual(run_check("check_layering.py", files)[0], 0)
        files["ir/graph.h"] = '#include "ir/loops/node.h"\n'  # closes it, through a third folder
        status, output = run_check("check_layering.py", files)
        self.assertEqual(status, 1)
        self.assertIn("folders include one another: ir, ir/loops, ir/text", output)
        self.assertIn("ir -> ir/loops: ir/graph.h:1", output)
        self.assertIn("ir/loops -> ir/text: ir/loops/node.h:1", output)

    def test_unknown_folder_and_empty_tree(self):
        self.check("stray/file.cpp", "#include <vector>", "not in the table")
        self.assertEqual(run_check("check_layering.py", {})[0], 1)


class Style(unittest.TestCase):
    def check(self, path, text, expected):
        status, output = run_check("check_style.py", {"ir/README.md": "graph\n", path: text})
        self.assertEqual(status, 1 if expected else 0, output)
        self.assertIn(expected, output)

    def test_clean_tree(self):
        self.check("ir/graph.h", "struct Graph {\n};\n", "")

    def test_sizes(self):
        self.check("ir/graph.h", "// x\n" * 701, "701 lines")
        self.check("ir/graph.h", "// " + "x" * 120 + "\n", "123 columns")
        body = "  ++x;\n" * 90
        self.check("ir/graph.cpp", "int f(int x) {\n" + body + "}\n", "f has 92 lines")
        self.check("ir/graph.cpp", "int f(int x,\n      int y) {\n" + body + "}\n", "has 92 lines")
        self.check("ir/graph.h", "struct S {\n" + body + "};\n", "")
        self.check("ir/README.md", "line\n" * 16, "over 15 lines")

    def test_names(self):
        self.check("ir/helpers.cpp", "\n", "name the file after")
        self.check("notes.txt", "\n", "top-level")
        self.check("passes/lower.cpp", "\n", "passes/README.md: missing")

    def test_leftovers(self):
        self.check("ir/graph.cpp", "// TO" + "DO: later\n", "open mark")
        for folder in ("work", "tmp", "root", "home"):
            self.check("ir/graph.cpp", f'open("/{folder}/x");\n', "path of one machine")
        self.check("ir/graph.cpp", "// the build/tmp/x folder\n", "")

    def test_files(self):
        for line in ("std::ifstream in(path);", "std::FILE* f = std::fopen(p, \"w\");", "int f = ::open(p, O_RDONLY);",
                     "int f = openat(d, p, O_RDONLY);", "std::filesystem::rename(a, b);", "int f = mkstemp(p);"):
            self.check("ir/graph.cpp", line + "\n", "without runtime/core")
        self.check("ir/graph.cpp", "auto j = Json::parse(text);\n", "without runtime/core/parse_json.h")
        for line in ("auto db = Database::open(path);", "file.open(path);", "size_t open() const;"):
            self.check("ir/graph.cpp", line + "\n", "")


BUG = "=== off_by_one  ir/graph.cpp\nfor (int i = 0; «i < n»; ++i)\n--- i <= n\n"
LOOP = "  for (int i = 0; i < n; ++i) f(i);\n"


class Comments(unittest.TestCase):
    def check(self, text, missing, status=None):
        """`missing`: how the declarations without a comment begin, in the order of the header."""
        found, output = run_check("count_comments.py", {"ir/a.h": text}, "--list")
        listed = [line for line in output.splitlines() if line.startswith("ir/a.h:")]
        self.assertEqual(len(listed), len(missing), output)
        for line, begin in zip(listed, missing):
            self.assertTrue(line.split(": ", 1)[1].startswith(begin), line)
        self.assertEqual(found, (1 if missing else 0) if status is None else status, output)

    def test_what_is_a_comment_of_a_declaration(self):
        self.check("// Adds.\nint f(int a, int b);\n", [])
        self.check("// Adds.\n\nint f(int a, int b);\n", ["int f"])  # of the file
        self.check("// A.\nint f();\nint g();  // its own\n", [])
        self.check("// Both, in a run.\nint f();\nint g();\n\nint h();\n", ["int h"])
        self.check("/* A block\n   of lines. */\nint f();\n", [])
        self.check('const char* const kText = "// none";\n// Of g.\nint g();\n', ["const char* const kText"])
        self.check("// Two.\nenum class E {\n  kA,\n  kB,\n};\n", [])
        self.check("enum class E {\n  kA,  // one\n  kB,  // two\n};\n// Of f.\nint f();\n", [])
        self.check("enum class E {\n  kA,  // one\n  kB,\n};\n// Of f.\nint f();\n", ["enum class E"])

    def test_members(self):
        self.check("// A pair: `x` and `y`.\nstruct P {\n  int x;\n  int y = 0;\n};\n", [])
        self.check("// A pair.\nstruct P {\n  int x;\n\n  int y = 0;  // the other\n};\n", ["int x"])
        self.check("// Hides.\nclass C {\n public:\n  int f() const;\n\n private:\n  int g();\n  int h_;\n};\n", ["int f"])
        self.check("struct P {\n  // A member.\n  int x;\n};\n", ["struct P"])
        self.check("namespace a::b {\n// A type.\nstruct P {\n  void f() { if (1) { g(); } }\n};\n}\n", ["void f"])

    def test_what_has_nothing_to_say_is_not_counted(self):
        self.check("class Later;\n#define TWICE(x) \\\n  f(x)\nusing a::b;\n// A type.\nstruct P : Q {\n  ~P();\n"
                   "  P(const P&) = delete;\n  void f() override;\n  friend struct R;\n};\n", [])

    def test_bars(self):
        few = "".join(f"// Of f{i}.\nint f{i}();\n\n" for i in range(9))
        self.check(few + "int g();\n", ["int g"], status=0)  # nine of ten
        self.check(few + "int g();\n\nint h();\n", ["int g", "int h"], status=1)
        for lines, status in ((11, 0), (12, 1)):
            text = "// One.\nint f();\n" + "  \n" * 5  # blank lines count for nothing
            found, output = run_check("count_comments.py", {"ir/a.h": text, "ir/a.cpp": "f();  // not alone\n" * (lines - 1)})
            self.assertEqual(found, status, output)
            self.assertEqual("comment lines: 7.69 %, at least 8 %" in output, status == 1, output)

    def test_empty_tree(self):
        self.assertEqual(run_check("count_comments.py", {})[0], 1)


class Planting(unittest.TestCase):
    def bugs(self, text):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "ir.txt"), "w", encoding="utf-8") as file:
                file.write(text)
            return planted_bugs.read_list(folder)

    def errors(self, text, source):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "ir"))
            with open(os.path.join(root, "ir", "graph.cpp"), "w", encoding="utf-8") as file:
                file.write(source)
            return "\n".join(planted_bugs.errors_of(self.bugs(text), root))

    def test_the_list_fits_the_tree(self):
        self.assertEqual(self.errors(BUG, LOOP), "")
        self.assertIn("occurs 0 times", self.errors(BUG, "for (;;) f();\n"))
        self.assertIn("occurs 2 times", self.errors(BUG, LOOP + LOOP))
        self.assertIn("no such file", self.errors(BUG.replace("graph.cpp", "gone.cpp"), LOOP))
        self.assertIn("used twice", self.errors(BUG + BUG, LOOP))
        self.assertIn("one place for both", self.errors(BUG + BUG.replace("off_by_one", "again"), LOOP))
        self.assertIn("changes nothing", self.errors(BUG.replace("<=", "<"), LOOP))
        with self.assertRaises(SystemExit):
            self.bugs("=== off_by_one ir/graph.cpp\nno part is marked\n--- x\n")

    def test_the_run_chooses(self):
        text = planted_bugs.planted_text(self.bugs(BUG), LOOP)
        self.assertIn('i = 0; (PLANTED("off_by_one") ? (i <= n) : (i < n)); ++i', text)
        statement = "=== forgotten ir/graph.cpp\n«f(i);»\n--- ;\n"
        self.assertIn('if (PLANTED("forgotten")) { ; } else { f(i); }',
                      planted_bugs.planted_text(self.bugs(statement), LOOP))


CASE = '<testcase name="{}" status="{}">{}<system-out>{}</system-out></testcase>'


class Counting(unittest.TestCase):
    def count(self, cases, status=0):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "results.xml")
            with open(path, "w", encoding="utf-8") as file:
                file.write("<testsuite>" + "".join(cases) + "</testsuite>")
            command = [sys.executable, os.path.join(HERE, "count_results.py"), path, str(status)]
            result = subprocess.run(command, capture_output=True, text=True)
            return result.returncode, result.stdout

    passed = CASE.format("a", "run", "", "")
    failed = CASE.format("b", "fail", '<failure message=""/>', "")
    skipped = CASE.format("c", "notrun", '<skipped message="SKIP_RETURN_CODE=77"/>', "skipped: no GPU")
    lost = CASE.format("d", "notrun", '<skipped message="Unable to find executable"/>', "")

    def test_counts(self):
        self.assertEqual(self.count([self.passed]), (0, "1 passed, 0 failed, 0 skipped\n"))
        status, output = self.count([self.passed, self.skipped])
        self.assertEqual(status, 0)
        self.assertIn("skipped: c (skipped: no GPU)", output)
        self.assertTrue(output.endswith("\n1 passed, 0 failed, 1 skipped\n"))

    def test_failures(self):
        self.assertEqual(self.count([self.passed, self.failed], 8)[0], 1)
        output = "begun\n" * 20 + "AssertionError: 3 != 4\n-----\n"
        told = CASE.format("b", "fail", '<failure message=""/>', output)
        self.assertIn("failed: b\n  begun\n", self.count([told], 8)[1])
        self.assertIn("\n  AssertionError: 3 != 4\n0 passed", self.count([told], 8)[1])
        self.assertIn("1 passed, 1 failed", self.count([self.passed, self.lost], 8)[1])
        self.assertEqual(self.count([self.passed], 8)[0], 1)
        self.assertEqual(self.count([self.skipped])[0], 1)
        self.assertEqual(self.count([])[0], 1)


if __name__ == "__main__":
    unittest.main()
