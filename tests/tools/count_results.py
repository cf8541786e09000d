#!/usr/bin/env python3
"""Counts the results of a ctest run; the last line is `N passed, N failed, N skipped`.

usage: count_results.py RESULTS.xml CTEST_STATUS
Exit 0 only if ctest said 0, nothing failed and something passed. A test that could not be started
is a failure.
"""
import sys
import xml.etree.ElementTree as ElementTree

SKIPPED_BY_ITSELF = ("SKIP_RETURN_CODE", "SKIP_REGULAR_EXPRESSION")


def verdict(case):
    if case.get("status") == "run":
        return "passed"
    if case.get("status") == "disabled":
        return "skipped"
    message = next((s.get("message", "") for s in case.iter("skipped")), "")
    return "skipped" if message.startswith(SKIPPED_BY_ITSELF) else "failed"


def reason(case):
    """The line of a skipped test that says why."""
    if case.get("status") == "disabled":
        return "disabled"
    output = case.findtext("system-out") or ""
    lines = [line.strip() for line in output.splitlines()]
    said = [line for line in lines if line.startswith("skipped:")]
    for before, line in zip(lines, lines[1:]):  # GoogleTest: "file:line: Skipped", then the message
        if before.endswith(": Skipped"):
            said.append(line)
    return said[0] if said else "no reason given"


def last_words(case, most=12):
    """The last lines of a failed test, in which test programs say what was wrong."""
    lines = [line.rstrip() for line in (case.findtext("system-out") or "").splitlines()]
    return [line[:300] for line in lines if line.strip(" -=.")][-most:]


def main():
    path, status = sys.argv[1], int(sys.argv[2])
    try:
        cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError) as error:
        print(f"no test results: {error}")
        cases = []
    count = {"passed": 0, "failed": 0, "skipped": 0}
    for case in cases:
        kind = verdict(case)
        count[kind] += 1
        if kind != "passed":
            why = f" ({reason(case)})" if kind == "skipped" else ""
            print(f"{kind}: {case.get('name')}{why}")
        if kind == "failed":
            print("\n".join("  " + line for line in last_words(case)))
    if status and not count["failed"]:
        print(f"ctest ended with status {status}")
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if status or count["failed"] or not count["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
