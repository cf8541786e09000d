"""Which tests find which mutants."""
import concurrent.futures
import os
import tempfile
import threading

from mutation import schema

SLOWER = 8  # times as long as without a mutant may a test take, and some seconds more


def run_reached(test):
    """(what fails without any mutant, the numbers of those whose places the test comes to)"""
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(schema.SIZE)
        failure = test.run({"TILEWRIGHT_REACHED": file.name}, test.limit)
        return failure, [n for n, byte in enumerate(file.read()) if byte]


def reach(tests, jobs, known, keep):
    """Fills {test: {"seconds", "failure", "reached"}}; `keep` is called after each test."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        runs = {pool.submit(run_reached, test): test for test in tests if test.name not in known}
        for done in concurrent.futures.as_completed(runs):
            (failure, reached), test = done.result(), runs[done]
            known[test.name] = {"seconds": round(test.seconds or 0, 2), "failure": failure,
                                "reached": reached}
            keep()
    return known


class Hunt:
    """Mutants are given and found by number; `path_of` says where each lies."""

    def __init__(self, tests, reached, path_of, seconds_more, report=print, keep=lambda: None):
        self.path_of, self.seconds_more, self.report, self.keep = path_of, seconds_more, report, keep
        self.tests = [t for t in tests if not reached[t.name]["failure"]]
        self.seconds = {t.name: reached[t.name]["seconds"] for t in self.tests}
        self.reached = {t.name: set(reached[t.name]["reached"]) for t in self.tests}
        self.found, self.tried = {}, set()  # number: (test, what failed); (test, number)
        self.lock = threading.Lock()

    def run(self, test, numbers):
        limit = min(test.limit, self.seconds_more + SLOWER * self.seconds[test.name])
        failure = test.run({"TILEWRIGHT_MUTANT": ",".join(map(str, numbers))}, limit)
        with self.lock:
            if failure is None or len(numbers) == 1:
                self.tried.update((test.name, n) for n in numbers)
            if failure and len(numbers) == 1 and numbers[0] not in self.found:
                self.found[numbers[0]] = (test.name, failure)
            self.keep()
        return failure

    def state(self):
        return {"found": list(self.found.items()), "tried": sorted(self.tried)}

    def go_on(self, state):
        """From where a hunt that was ended has left off."""
        self.found.update((number, tuple(by)) for number, by in state.get("found", []))
        self.tried.update(map(tuple, state.get("tried", [])))

    def likely(self, number, budget):
        """The tests that reach a mutant, those of its folder first, as far as the seconds go."""
        path = self.path_of[number]
        chosen = [t for t in self.tests if number in self.reached[t.name]]
        for test in sorted(chosen, key=lambda t: (not t.meets_first(path), self.seconds[t.name])):
            budget -= self.seconds[test.name]
            if budget < 0:
                return
            yield test

    def alone(self, number, budget):
        for test in self.likely(number, budget):
            if number in self.found or (test.name, number) not in self.tried and self.run(test, [number]):
                return

    def together(self, test):
        """Runs a test with all that are left; only if it fails with halves of them, down to one."""
        def search(numbers):
            if numbers and self.run(test, numbers) and len(numbers) > 1:
                half = len(numbers) // 2
                search(numbers[:half])
                search(numbers[half:])
        with self.lock:
            left = sorted(n for n in self.reached[test.name]
                          if n in self.path_of and n not in self.found and (test.name, n) not in self.tried)
        search(left)

    def all(self, jobs, budget):
        reached_by_any = set().union(*self.reached.values()) if self.reached else set()
        hunted = [n for n in self.path_of if n in reached_by_any]
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(lambda n: self.alone(n, budget), hunted))
            self.report(f"{len(self.found)} of {len(self.path_of)} found by likely tests, "
                        f"{len(self.path_of) - len(hunted)} reached by no test")
            list(pool.map(self.together, sorted(self.tests, key=lambda t: self.seconds[t.name])))
        return self.found


def finders(hunt, found, jobs, tries):
    """{test: the mutants that it is seen to find}; of a test without any, `tries` mutants are tried.

    Those that some test is known to find, {number: test}, come first: others may change nothing."""
    result = {test.name: [n for n, name in found.items() if name == test.name] for test in hunt.tests}

    def search(test):
        candidates = [n for n in hunt.reached[test.name] if n in hunt.path_of]
        candidates.sort(key=lambda n: (n not in found, not test.meets_first(hunt.path_of[n]), n))
        for number in candidates[:tries]:
            if hunt.run(test, [number]):
                result[test.name].append(number)
                return
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(search, [test for test in hunt.tests if not result[test.name]]))
    return result
