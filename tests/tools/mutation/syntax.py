"""The syntax tree of one source, as clang dumps it in JSON, with the bytes that each node stands for."""
import json
import os
import shutil
import subprocess
import sys

CLANGS = ("clang++-22", "clang++")
sys.setrecursionlimit(50000)  # a level of the tree is two calls


def find_clang():
    """The newest clang installed, or None."""
    return next((found for found in map(shutil.which, CLANGS) if found), None)


def dump(arguments, source, folder, only):
    """The declarations whose qualified name contains `only`, of a source compiled with arguments."""
    command = [find_clang(), *arguments, "-w", "-fsyntax-only", "-Xclang", "-ast-dump=json", "-Xclang",
               f"-ast-dump-filter={only}", source]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{source}: clang does not read it: {done.stderr.strip()[:500]}")
    decoder, at, roots = json.JSONDecoder(), 0, []
    text = done.stdout
    while text[at:at + 1]:
        if text[at].isspace():
            at += 1
            continue
        root, at = decoder.raw_decode(text, at)
        roots.append(root)
    return roots


class Locations:
    """Gives each node of one dump its "span" in a file: (first byte, the one after the last), or None
    for what lies in other files or comes out of a macro. A dump names a file only where it differs
    from that of the location before, so that all locations are read in order. Text that is passed
    to a macro has the span where it is written; "macro" is where a node's macro begins."""

    def __init__(self, path, folder):
        self.wanted, self.folder = os.path.realpath(path), folder
        self.file, self.known = None, {}

    def is_wanted(self, name):
        if name not in self.known:
            self.known[name] = os.path.realpath(os.path.join(self.folder, name)) == self.wanted
        return self.known[name]

    def read(self, location):
        """(first byte, the one after the last) of a token in the file, or None."""
        if "offset" not in location:
            return None
        self.file = location.get("file", self.file)
        if not self.is_wanted(self.file):
            return None
        return location["offset"], location["offset"] + location["tokLen"]

    def token(self, location):
        """(the token as written or None, the start of the macro or None)"""
        if "spellingLoc" not in location:
            return self.read(location), None
        spelling, expansion = self.read(location["spellingLoc"]), self.read(location["expansionLoc"])
        argument = location["expansionLoc"].get("isMacroArgExpansion")
        return (spelling if argument else None), (expansion or (None,))[0]

    def fill(self, node):
        for key, value in node.items():
            if key == "loc":
                self.token(value)
            elif key == "range":
                (begin, first), (end, last) = self.token(value["begin"]), self.token(value["end"])
                inside = begin and end and begin[0] < end[1]
                node_span = (begin[0], end[1]) if inside else None
                node_macro = first if first == last and not inside else None
            elif isinstance(value, dict):
                self.fill(value)
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, dict):
                        self.fill(item)
        if "range" in node:
            node["span"], node["macro"] = node_span, node_macro


def read(arguments, source, path, folder, only):
    """The trees of what a file declares, the file being the source or a header of it."""
    roots = dump(arguments, source, folder, only)
    for root in roots:
        Locations(path, folder).fill(root)
    return roots


def children(node):
    return [child for child in node.get("inner", []) if child.get("kind")]


def walk(node):
    yield node
    for child in children(node):
        yield from walk(child)


def type_of(node):
    """The type of an expression without aliases; "" where a template leaves it open."""
    spelled = node.get("type", {})
    name = spelled.get("desugaredQualType", spelled.get("qualType", ""))
    return "" if "dependent" in name or "type-parameter" in name else name


def plain(node):
    """An expression without the conversions and cleanups that clang puts around it."""
    while node.get("kind") in ("ImplicitCastExpr", "ExprWithCleanups", "MaterializeTemporaryExpr",
                               "CXXBindTemporaryExpr") and len(children(node)) == 1:
        node = children(node)[0]
    return node
