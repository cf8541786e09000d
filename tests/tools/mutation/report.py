"""Tables of what a hunt found."""
import collections
import os

from mutation import mutants


def by_folder(rows):
    """Lines of a table: of each folder how many mutants are planted, found, equivalent and left."""
    folders = collections.defaultdict(list)
    for row in rows:
        folders[os.path.dirname(row["path"]) or "."].append(row)
    lines = [f"{'folder':32} {'planted':>8} {'found':>6} {'share':>6} {'equivalent':>11} {'survive':>8}"]
    for folder, inside in [*sorted(folders.items()), ("all", rows)]:
        found = sum(bool(row["found"]) for row in inside)
        equivalent = sum(bool(row["equivalent"]) and not row["found"] for row in inside)
        counted = len(inside) - equivalent
        share = f"{100 * found / counted:.0f} %" if counted else "-"
        left = counted - found
        lines.append(f"{folder:32} {len(inside):8} {found:6} {share:>6} {equivalent:11} {left:8}")
    return lines


def by_test(rows):
    counts = collections.Counter(row["found"].split(": ")[0] for row in rows if row["found"])
    return [f"{count:6}  {name}" for name, count in counts.most_common()]


def survivors(rows):
    """Each mutant that no test finds, as equivalent.txt would have it, with the tests that reach it."""
    lines = []
    for row in rows:
        if not row["found"] and not row["equivalent"]:
            reached = f"{row['tests']} tests reach it" if row["tests"] else "no test reaches it"
            lines += [f"--- {row['path']}:{row['line']}, in {row['function'] or 'no function'}: {reached}",
                      f"=== {row['path']} {row['kind']}", row["text"], row["original"], row["mutated"]]
    return lines


def whole(rows, dropped):
    lines = by_folder(rows) + ["", "first found by"] + by_test(rows)
    left = survivors(rows)
    if left:
        lines += ["", "survivors"] + left
    lines += ["", f"{dropped} more were drawn that do not compile"] if dropped else []
    found = sum(bool(row["found"]) for row in rows)
    equivalent = sum(bool(row["equivalent"]) and not row["found"] for row in rows)
    return lines + ["", f"{len(rows)} planted, {found} found, {equivalent} equivalent"]


def of_tests(result, rows, reached, excused):
    """The mutants that each test finds, then the tests that find none."""
    label = {row["number"]: mutants.label(row) for row in rows}
    lines, none = [], []
    for name, numbers in sorted(result.items()):
        count = len(reached[name]["reached"])
        if numbers:
            shown = [label[n] for n in numbers[:3]]
            more = f" and {len(numbers) - 3} more" if len(numbers) > 3 else ""
            lines.append(f"{name}: {'; '.join(shown)}{more}")
        else:
            reason = f"; {excused[name]}" if name in excused else ""
            none.append(f"{name} finds none of the {count} that it reaches{reason}")
    failing = [f"{name} fails without any: {entry['failure']}" for name, entry in sorted(reached.items())
               if entry["failure"]]
    unexcused = sum(name not in excused for name, numbers in result.items() if not numbers)
    return lines + none + failing + [f"{len(result)} tests, {unexcused} find none"], unexcused
