#!/usr/bin/env python3
"""Comment lines of the sources and comments of public declarations. Exit 1 below the bars.

usage: count_comments.py [ROOT] [--list]

A comment line holds a comment and nothing else; blank lines are not counted, licence texts do not
occur. A public declaration is, in a header, a function, type, alias or constant of a namespace, or a public
member of such a type. Not counted: what has no meaning of its own to state (forward declarations,
friends, overrides, using-declarations, explicit specialisations, destructors, `= default` and
`= delete`, macros, enumerators, definitions of what a class declares, and the two members that every
node of the loop IR has, `kKind` and `fields`, explained once in ir/loops).

It has a comment when one stands directly above or behind it; when it is in a run of declarations
without a blank line, the first of which, or one in between, has a comment above; when it is an
enumeration each of whose lines has one; or, for a member, when the comment above its type names it.
--list prints the declarations without.
"""
import os
import re
import sys

import source_tree

LEAST_COMMENTS, LEAST_DOCUMENTED = 8.0, 90.0  # per cent
SOURCES = (".h", ".cpp", ".def")
ACCESS = re.compile(r"^(public|protected|private)$")
TYPE = re.compile(r"^(?:typedef )?(?:template ?<.*?> )?(?:typedef )?(class|struct|union)\b(?! *\w+ *\w* *\()(?!.*=)")
TRANSPARENT = re.compile(r'^(inline )?namespace\b|^extern ""$')
NOT_COUNTED = re.compile(
    r"^(friend\b|using namespace\b|static_assert\b|template class\b|extern template\b|template ?< ?>"
    r"|using \w[\w:]*::\w+$|namespace\b)"
    r"|^static constexpr NodeKind kKind\b|^template <typename F> void fields\(F|^[\w:<>&* ]+::(operator\W+|~?\w+)\("
    r"|= ?(default|delete)$|\boverride\b|(^|[ :])~\w|^\w+$|^[A-Z_]+ ?\(.*\)$")
FORWARD = re.compile(r"^(template ?<.*> )?(class|struct|union|enum)( class)? [\w:]+( ?: ?\w+)?$")


class Text:
    """A header without its comments, and where they were."""

    def __init__(self, lines):
        self.comment_only, self.comment, code, in_block, continued, branches = set(), {}, [], False, False, []
        for number, line in enumerate(lines):
            directive = re.match(r"\s*#\s*(if|elif|else|endif)", line) if not in_block else None
            if directive and directive[1].startswith("if"):
                branches.append(True)
            elif directive and directive[1] == "endif":
                branches[-1:] = []
            elif directive:
                branches[-1:] = [False]  # of alternatives the first is read
            is_macro = continued or (line.lstrip().startswith("#") and not in_block) or not all(branches)
            is_macro = is_macro or bool(re.match(r"\s*[A-Z][A-Z0-9_]+\(.*\)( *//.*)?$", line))
            continued = is_macro and line.endswith("\\")
            kept, said, in_block = split_line(line, in_block)
            if said is not None:
                self.comment[number] = said
                if not kept.strip():
                    self.comment_only.add(number)
            code.append("" if is_macro else kept)
        self.code = "\n".join(code)
        self.blank = {n for n, line in enumerate(lines) if not line.strip()}


def split_line(line, in_block):
    """(code with strings emptied, comment or None, whether a block comment goes on)."""
    kept, said, i = "", None, 0
    while i < len(line):
        if in_block:
            end = line.find("*/", i)
            said = (said or "") + line[i:end if end >= 0 else len(line)]
            i, in_block = (end + 2, False) if end >= 0 else (len(line), True)
        elif line.startswith("//", i):
            return kept, (said or "") + line[i + 2:], False
        elif line.startswith("/*", i):
            said, in_block, i = said or "", True, i + 2
        elif line[i] in "\"'" and not (line[i] == "'" and i and line[i - 1].isalnum()):
            end = i + 1
            while end < len(line) and line[end] != line[i]:
                end += 2 if line[end] == "\\" else 1
            kept, i = kept + line[i] * 2, end + 1
        else:
            kept, i = kept + line[i], i + 1
    return kept, (said if said is not None else "" if in_block else None), in_block


def matching(code, at):
    """The place behind the brace that closes the one at `at`."""
    depth = 0
    for i in range(at, len(code)):
        depth += (code[i] == "{") - (code[i] == "}")
        if depth == 0:
            return i + 1
    return len(code)


class Declarations:
    """Finds the declarations of a header: (first line, text, documented) in `found`."""

    def __init__(self, lines):
        self.text, self.found = Text(lines), []
        self.scope(0, len(self.text.code), True, True, "")

    def line_of(self, at):
        return self.text.code.count("\n", 0, at)

    def above(self, line):
        """The comment directly above a line."""
        said, n = "", line - 1
        while n in self.text.comment_only:
            said, n = self.text.comment[n] + "\n" + said, n - 1
        return said

    def behind(self, first, last):
        return any(n in self.text.comment and n not in self.text.comment_only for n in range(first, last + 1))

    def scope(self, at, end, public, counts, type_comment):
        """Reads the declarations of code[at:end]; the run of the one before goes on until a blank line."""
        code, run_is_documented, last_line = self.text.code, False, None
        while at < end:
            while at < end and (code[at].isspace() or code[at] in ";"):
                at += 1
            if at >= end:
                return
            start, body, at = at, None, self.end_of_declaration(at, end)
            text = code[start:at]
            label = re.match(r"(public|protected|private)\s*:(?!:)", text)
            if label:
                public, at, run_is_documented = label[1] == "public", start + label.end(), False
                continue
            brace = self.opening_brace(start, at)
            head = re.sub(r"\s+", " ", code[start:brace if brace is not None else at]).strip(" ;")
            first = self.line_of(start)
            if brace is not None and TRANSPARENT.search(head):
                self.scope(brace + 1, matching(code, brace) - 1, public, counts, "")
                at, run_is_documented = matching(code, brace), False
                continue
            own = self.above(first)
            blank = last_line is None or any(n in self.text.blank for n in range(last_line + 1, first))
            run_is_documented = bool(own) or (run_is_documented and not blank)
            kind = TYPE.match(head) if brace is not None else None
            last = self.line_of(brace if brace is not None else at - 1)
            documented = run_is_documented or self.behind(first, last)
            if not kind and brace is not None:
                documented = documented or self.behind(first, self.line_of(at - 1)) and "enum" not in head and last == first
            if re.match(r"(typedef )?enum\b", head) and brace is not None:
                documented = documented or self.all_lines_commented(brace, at)
            documented = documented or names_all(type_comment, head)
            is_forward = brace is None and FORWARD.match(head)
            if public and counts and not is_forward and not NOT_COUNTED.search(head):
                self.found.append((first + 1, head, documented))
            if kind:
                self.scope(brace + 1, matching(code, brace) - 1, kind[1] != "class", public and counts, own)
            last_line = self.line_of(at - 1)

    def opening_brace(self, start, end):
        depth = 0
        for i in range(start, end):
            depth += (self.text.code[i] == "(") - (self.text.code[i] == ")")
            if self.text.code[i] == "{" and depth == 0:
                return i
        return None

    def end_of_declaration(self, at, end):
        """Behind the semicolon or the body that ends the declaration at `at`."""
        code, depth, start = self.text.code, 0, at
        while at < end:
            c = code[at]
            if c == ":" and depth == 0 and ACCESS.match(code[start:at].strip()):
                return at + 1
            if c == ";" and depth == 0:
                return at + 1
            if c == "{":
                head, at = re.sub(r"\s+", " ", code[start:at]), matching(code, at)
                is_type = TYPE.match(head) or re.match(r"(typedef )?enum\b", head)
                is_initialiser = re.search(r"[^=!<>]=[^=]", re.sub(r"\(.*\)|<.*?>|operator\W+", "", head) + " ")
                goes_on = code[at:end].lstrip()[:1] in (";", ",", "{")  # a list of initialisers, or the end
                if depth == 0 and not (is_type or is_initialiser or goes_on):
                    return at
                continue
            depth += (c in "(") - (c in ")")
            at += 1
        return end

    def all_lines_commented(self, brace, end):
        first, last = self.line_of(brace), self.line_of(matching(self.text.code, brace) - 1)
        inside = [n for n in range(first + 1, last) if n not in self.text.blank]
        covered, said = True, False
        for n in inside:
            said = n in self.text.comment
            if n in self.text.comment_only:
                continue
            covered = covered and (said or (n - 1) in self.text.comment_only)
        return covered and bool(inside)


def names_all(comment, head):
    """Whether a type's comment names this member (all of them, where one line declares several)."""
    if not comment:
        return False
    if "(" in head:
        names = re.findall(r"\(\*(\w+)\)|(\w+) ?\(", head)[:1]
        names = [pointer or function for pointer, function in names]
    else:
        plain = re.sub(r"<[^;]*>", "", head)
        names = [re.sub(r"[=\[{].*", "", part).split()[-1:] for part in plain.split(",")]
        names = [n[0] for n in names if n]
    return bool(names) and all(re.search(rf"\b{re.escape(n.strip('*&'))}\b", comment) for n in names)


def count_lines(lines):
    """(comment lines, lines that are not blank)."""
    return len(Text(lines).comment_only), sum(1 for line in lines if line.strip())


def folder_of(path):
    parts = path.split(os.sep)
    return os.sep.join(parts[:2]) if len(parts) > 2 else parts[0]


def share(part, whole):
    return 100.0 * part / whole if whole else 100.0


def main():
    arguments = [a for a in sys.argv[1:] if a != "--list"]
    root = os.path.abspath(arguments[0] if arguments else os.path.join(os.path.dirname(__file__), "..", ".."))
    table, missing = {}, []
    for path in source_tree.files(root, SOURCES):
        lines = source_tree.read(root, path)
        counts = [*count_lines(lines), 0, 0]
        if path.endswith(".h"):
            for line, head, documented in Declarations(lines).found:
                counts[2] += documented
                counts[3] += 1
                if not documented:
                    missing.append(f"{path}:{line}: {head[:80]}")
        for key in (folder_of(path), "all"):
            table[key] = [a + b for a, b in zip(table.get(key, [0] * 4), counts)]
    if "--list" in sys.argv:
        print("\n".join(missing))
    print(f"{'folder':24} {'lines':>7} {'comments':>9} {'%':>6} {'declared':>9} {'documented':>11} {'%':>6}")
    for key in sorted(table, key=lambda k: (k == "all", k)):
        comments, lines, documented, declared = table[key]
        print(f"{key:24} {lines:7} {comments:9} {share(comments, lines):6.1f} {declared:9} {documented:11}"
              f" {share(documented, declared):6.1f}")
    if not table:
        print("no sources")
        return 1
    comments, lines, documented, declared = table["all"]
    errors = []
    if share(comments, lines) < LEAST_COMMENTS:
        errors.append(f"comment lines: {share(comments, lines):.2f} %, at least {LEAST_COMMENTS:.0f} %")
    if share(documented, declared) < LEAST_DOCUMENTED:
        errors.append(f"public declarations with a comment: {share(documented, declared):.2f} %, "
                      f"at least {LEAST_DOCUMENTED:.0f} %")
    print("\n".join(errors + [f"{len(errors)} errors"]))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
