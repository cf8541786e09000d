"""The default tests of a built tree, each run with what the environment chooses."""
import contextlib
import json
import os
import re
import subprocess
import tempfile
import threading
import time

from mutation import tree

NOT_OF_BEHAVIOUR = re.compile(r"^tools\.|_NOT_BUILT$")
# Which labels and names of tests meet a folder's bugs first.
FIRST = [
    ("runtime", r"runtime|compiled_model"),
    ("frontends/tensor_files", r"tensor_files|errors|conformance"),
    ("frontends", r"formulas|conv_transpose|read_model|errors|conformance"),
    ("ir/ops", r"rounding|attention|sampling|conformance"),
    ("ir", r"ir_|edge_operands|rounding"),
    ("passes/graph", r"graph_passes|aliases|share_kernels"),
    ("passes/schedule", r"primitives|trace|memory_kernels|op_examples|matrix_products"),
    ("passes/loops", r"loop_passes|op_examples|memory_kernels"),
    ("passes", r"aliases|share_kernels|control_flow|op_examples|graph_passes"),
    ("codegen", r"edge_operands|conversions|halves|codegen|vector_math|guarded_kernels|memory"),
]
# A bug may ask for memory without end, write a file without end, or crash again and again.
MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
BOUNDS = ["prlimit", f"--data={MEMORY}", f"--fsize={8 << 30}", "--core=0"]


class Test:
    """A program of GoogleTest cases, or one test of another kind."""

    def __init__(self, name, command, properties):
        self.name, self.command = name, command
        self.is_program = name.startswith("test_")
        self.folder = properties.get("WORKING_DIRECTORY")
        self.limit = float(properties.get("TIMEOUT", 1500))
        self.skip_status = properties.get("SKIP_RETURN_CODE")
        self.labels = " ".join(properties.get("LABELS", []))
        self.seconds = None  # that it took last, when it passed
        self.lock = threading.Lock()  # other tests than programs share files

    def run(self, chosen, limit):
        """What failed with these variables in the environment, or None."""
        with contextlib.ExitStack() as stack:
            if not self.is_program:
                stack.enter_context(self.lock)
            # A model that another bug compiled is not to be taken from the cache.
            environment = dict(os.environ, TILEWRIGHT_CACHE_BYTES="0", **chosen)
            environment.setdefault("TILEWRIGHT_SHARED", os.path.join(os.path.dirname(tree.ROOT), "shared"))
            # What a test leaves behind when it is killed goes with the folder.
            environment["TMPDIR"] = stack.enter_context(
                tempfile.TemporaryDirectory(prefix="test", ignore_cleanup_errors=True))
            start = time.monotonic()
            process = subprocess.Popen([*BOUNDS, *self.command], cwd=self.folder, env=environment,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, start_new_session=True)
            try:
                output, _ = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.communicate()
                return f"no end within {limit:.0f} s"
        if process.returncode in (0, self.skip_status):
            self.seconds = time.monotonic() - start
            return None
        text = output.decode(errors="replace")
        failed = re.search(r"\[  FAILED  \] ([\w./]+)", text) or re.search(r"FAIL:? ([\w./-]+)", text)
        return failed[1] if failed else f"status {process.returncode}"

    def meets_first(self, path):
        """Whether bugs of this file are likely to be found here."""
        pattern = next((p for folder, p in FIRST if path.startswith(folder + "/")), r"^$")
        return bool(re.search(pattern, f"{self.name} {self.labels}"))


def default_tests(target, kind=Test):
    listing = subprocess.run(["ctest", "--test-dir", "build", "-LE", "^full$", "--show-only=json-v1"],
                             cwd=target, check=True, capture_output=True)
    tests = {}
    for entry in json.loads(listing.stdout)["tests"]:
        properties = {p["name"]: p["value"] for p in entry.get("properties", [])}
        if NOT_OF_BEHAVIOUR.search(entry["name"]) or "command" not in entry:
            continue
        program = os.path.basename(entry["command"][0])
        if program.startswith("test_"):
            tests[program] = kind(program, [entry["command"][0], "--gtest_fail_fast"], properties)
        else:
            tests[entry["name"]] = kind(entry["name"], entry["command"], properties)
    return list(tests.values())
