"""The files of the project, without build folders: what check_layering.py, check_style.py and
count_comments.py read."""
import os

SKIPPED_FOLDERS = {".git", ".venv", ".cache", "__pycache__"}


def is_skipped(folder):
    return folder in SKIPPED_FOLDERS or folder == "build" or folder.startswith("build-")


def files(root, endings=()):
    """Paths relative to root, sorted, of all files (or those with one of the endings)."""
    found = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [s for s in subfolders if not is_skipped(s)]
        for name in names:
            if name in SKIPPED_FOLDERS:  # .git is a file in a work tree
                continue
            if not endings or name.endswith(tuple(endings)):
                found.append(os.path.relpath(os.path.join(folder, name), root))
    return sorted(found)


def read(root, path):
    """The lines of a text file; nothing for a binary one."""
    with open(os.path.join(root, path), "rb") as file:
        content = file.read()
    return [] if b"\0" in content else content.decode("utf-8").splitlines()
