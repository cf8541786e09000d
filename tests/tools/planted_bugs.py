"""The list of bugs in planted_bugs/*.txt, and the rewriting of sources that hold all of them.

An entry of a file is

    === name  path/of/the/source.cpp  [test or test=some of its cases, which is to be tried first]
    text of the source that occurs once, in which «this part» is wrong
    --- what stands for the part instead

The part is an expression, or a whole statement (it ends with a semicolon). The text may have several
lines.
"""
import glob
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "planted_bugs")
HEADER = "planted_bugs.h"  # generated into the root of the copy
HEADER_TEXT = """// Whether the bug of this name is the one that TILEWRIGHT_PLANTED asks for.
#pragma once
#include <cstdlib>
#include <cstring>
inline bool is_planted(const char* name) {
  const char* chosen = std::getenv("TILEWRIGHT_PLANTED");
  return chosen && std::strcmp(chosen, name) == 0;
}
// Asked once in each place.
#define PLANTED(name) ([] { static const bool on = ::is_planted(name); return on; }())
"""


class Bug:
    def __init__(self, name, path, first, text, mutant, where):
        self.name, self.path, self.mutant, self.where = name, path, mutant, where
        self.first, _, self.cases = first.partition("=")
        before, part, after = re.fullmatch(r"(.*)«(.*)»(.*)", text, re.S).groups()
        self.before, self.part, self.after = before, part, after

    @property
    def original(self):
        return self.before + self.part + self.after

    def both(self):
        """The part, right and wrong, as a choice of the run."""
        if self.part.endswith(";"):
            return f'if (PLANTED("{self.name}")) {{ {self.mutant} }} else {{ {self.part} }}'
        return f'(PLANTED("{self.name}") ? ({self.mutant}) : ({self.part}))'


def read_list(folder=FOLDER):
    bugs = []
    for path in sorted(glob.glob(os.path.join(folder, "*.txt"))):
        with open(path, encoding="utf-8") as file:
            content = file.read()
        for entry in re.split(r"^=== ", content, flags=re.M)[1:]:
            head, body = entry.split("\n", 1)
            where = f"{os.path.basename(path)}: {head}"
            try:
                name, source, first = (head.split() + [""])[:3]
                text, mutant = re.fullmatch(r"(.*)\n--- (.*?)\s*", body, re.S).groups()
                bugs.append(Bug(name, source, first, text, mutant, where))
            except (ValueError, AttributeError) as error:
                raise SystemExit(f"{where}: not an entry: {error}")
    return bugs


def errors_of(bugs, root):
    """What is wrong with the list, given the tree at root."""
    found = []
    for bug in bugs:
        if sum(other.name == bug.name for other in bugs) > 1:
            found.append(f"{bug.where}: the name is used twice")
        if bug.part.strip() == bug.mutant.strip():
            found.append(f"{bug.where}: changes nothing")
        try:
            with open(os.path.join(root, bug.path), encoding="utf-8") as file:
                count = file.read().count(bug.original)
        except OSError:
            found.append(f"{bug.where}: there is no such file")
            continue
        if count != 1:
            found.append(f"{bug.where}: its text occurs {count} times, expected once: {bug.original}")
    for path in sorted({bug.path for bug in bugs} if not found else []):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            spans = spans_of([bug for bug in bugs if bug.path == path], file.read())
        for later, earlier in zip(spans, spans[1:]):
            if earlier[1] > later[0]:
                found.append(f"{earlier[2].where} and {later[2].where}: one place for both")
    return found


def spans_of(bugs, text):
    """Where the parts of a source's bugs are, the last one first: (start, end, bug)."""
    spans = []
    for bug in bugs:
        start = text.index(bug.original) + len(bug.before)
        spans.append((start, start + len(bug.part), bug))
    return sorted(spans, key=lambda span: span[0], reverse=True)


def planted_text(bugs, text):
    """A source with all of its bugs, no two of which have one place."""
    for start, end, bug in spans_of(bugs, text):
        text = text[:start] + bug.both() + text[end:]
    return f'#include "{HEADER}"\n#line 1\n{text}'
