"""Where the models and conformance scripts are: ../shared beside the project, or $TILEWRIGHT_SHARED."""
import os
import sys

PROJECT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SKIPPED = 77  # the exit status that ctest counts as skipped


def root():
    return os.environ.get("TILEWRIGHT_SHARED") or os.path.join(os.path.dirname(PROJECT), "shared")


def find(path):
    return os.path.join(root(), path)


def python():
    """The environment that tests/run.sh makes, with numpy, onnx and onnxruntime."""
    return os.path.join(PROJECT, ".venv", "bin", "python")


def enter_environment():
    """Runs the program again by python() unless that is what runs it; ends it as skipped where there is none."""
    if sys.prefix != sys.base_prefix and os.path.realpath(sys.executable) == os.path.realpath(python()):
        return
    if not os.access(python(), os.X_OK):
        print("skipped: no numpy, onnx and onnxruntime: run tutorials/install_packages.sh --tests")
        sys.exit(SKIPPED)
    os.execv(python(), [python(), os.path.abspath(sys.argv[0]), *sys.argv[1:]])


def require(command):
    """Ends the program as skipped when ../shared is missing, as failed when something of the project is."""
    if not os.path.isdir(root()):
        print("skipped: no ../shared folder (TILEWRIGHT_SHARED names another one)")
        sys.exit(SKIPPED)
    for needed, remedy in ((command, "build it"), (python(), "run tutorials/install_packages.sh --tests")):
        if not os.access(needed, os.X_OK):
            sys.exit(f"no {needed}: {remedy}")
