"""A copy of the repository with changed sources, and its build."""
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", "..", ".."))


def write_changed(path, content):
    """What stays the same keeps its time, and is not built again."""
    if os.path.exists(path):
        with open(path, "rb") as file:
            if file.read() == content:
                return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def copy_tree(target, changed, root=ROOT):
    """The files that git knows or would add, as they are; those of {path: text} with that instead."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=root,
                            check=True, capture_output=True).stdout.decode().split("\0")
    for path in filter(None, listed):
        source, copy = os.path.join(root, path), os.path.join(target, path)
        if not os.path.isfile(source):
            continue
        with open(source, "rb") as file:
            content = file.read()
        write_changed(copy, changed.get(path, content))
        shutil.copymode(source, copy)
    for path in set(changed) - set(listed):
        write_changed(os.path.join(target, path), changed[path])
    environment = os.path.join(root, ".venv")
    if os.path.exists(environment) and not os.path.lexists(os.path.join(target, ".venv")):
        os.symlink(os.path.realpath(environment), os.path.join(target, ".venv"))


def configure(target):
    command = ["cmake", "--preset", "release", "-DTILEWRIGHT_TESTS=ON", "--log-level=WARNING"]
    subprocess.run(command, cwd=target, check=True)


def build(target, jobs, targets=()):
    """All targets, unless some are named; what fails does not keep others from being built."""
    subprocess.run(["ninja", "-C", "build", "-k", "0", "-j", str(jobs), *targets], cwd=target, check=True)
