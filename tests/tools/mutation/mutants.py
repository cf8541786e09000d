"""The mutants of a tree: drawn and listed ones, kept as a file between the commands."""
import dataclasses
import json
import os

import planted_bugs
from mutation import places, schema

LISTS = os.path.join("tests", "tools", "mutation")  # equivalent.txt and finds_none.txt of a tree


def listed_bugs(target):
    """The bugs of planted_bugs/*.txt as places; their kind is "listed", what is original their name."""
    found = []
    bugs = planted_bugs.read_list()
    for path in sorted({bug.path for bug in bugs}):
        with open(os.path.join(target, path), encoding="utf-8") as file:
            text = file.read()
        source = places.Source(path, text.encode())
        for start, end, bug in planted_bugs.spans_of([b for b in bugs if b.path == path], text):
            span = len(text[:start].encode()), len(text[:end].encode())
            before, after = f"(MUTANT ? ({bug.mutant}) : (", "))"
            if bug.part.endswith(";"):
                before, after = f"if (MUTANT) {{ {bug.mutant} }} else {{ ", " }"
            source.add("listed", "", [(*span, before, after)], bug.name, bug.mutant)
        found += source.places.values()
    return found


def save(path, content):
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1, ensure_ascii=False)
        file.write("\n")
    os.replace(path + ".new", path)


def load(path, default=None):
    if not os.path.exists(path):
        if default is None:
            raise SystemExit(f"{path}: there is none yet; `mutate.py plant` comes first")
        return default
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def numbered(chosen):
    return list(enumerate(chosen, 1))


def planted_sources(mutants, read):
    """{path: text with all of its mutants}, and the header that they include."""
    changed = {schema.HEADER: schema.HEADER_TEXT.encode()}
    for path in {place.path for _, place in mutants}:
        changed[path] = schema.render(read(path), [(n, p) for n, p in mutants if p.path == path])
    return changed


def rows(mutants):
    """What the other commands read."""
    fields = [field.name for field in dataclasses.fields(places.Place) if field.name != "edits"]
    return [{"number": n, **{field: getattr(place, field) for field in fields}} for n, place in mutants]


def label(row):
    if row["kind"] == "listed":
        return f"{row['original']} ({row['path']})"
    change = f"«{row['original']}» → «{row['mutated']}»" if row["mutated"] else f"«{row['original']}»"
    return f"{row['path']}:{row['line']}: {row['kind']}: {change}"


def read_equivalent(root):
    """{(path, line's text, kind, original, mutated): reason} of the mutants that change nothing."""
    found, path = {}, os.path.join(root, LISTS, "equivalent.txt")
    with open(path, encoding="utf-8") as file:
        entries = file.read().split("\n=== ")[1:]
    for entry in entries:
        lines = entry.rstrip("\n").split("\n")
        source, _, kind = lines[0].partition(" ")
        if len(lines) < 5 or not kind:
            raise SystemExit(f"{path}: not an entry of five lines or more: {lines[0]}")
        found[source, lines[1], kind, lines[2], lines[3].strip()] = " ".join(lines[4:])
    return found


def equivalence(row, equivalent):
    return equivalent.get(tuple(row[k] for k in ("path", "text", "kind", "original", "mutated")))


def errors_of_equivalent(root, equivalent):
    """Entries whose line the source does not have, and those without a reason."""
    errors = []
    for (path, text, kind, original, _), reason in equivalent.items():
        if not reason.strip():
            errors.append(f"{path}: no reason why this changes nothing: {text} ({kind}: {original})")
        try:
            with open(os.path.join(root, path), encoding="utf-8") as file:
                found = any(line.strip() == text for line in file)
        except OSError:
            found = False
        if not found:
            errors.append(f"{path}: no line is: {text} ({kind}: {original})")
    return errors


def read_excuses(root):
    """{test: why it finds none of the mutants}, a line each."""
    with open(os.path.join(root, LISTS, "finds_none.txt"), encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    return dict(line.split(" ", 1) for line in lines)
