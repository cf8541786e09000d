"""Cases in which any two choices of different options meet."""
import itertools


def pairs_of(case):
    return set(itertools.combinations(sorted((option, repr(choice)) for option, choice in case.items()), 2))


def pairwise(options, is_allowed, random, count=None):
    """Cases (a choice of each option; options: lists of choices, by name) until each pair of choices that
    is_allowed leaves possible has occurred, or `count` of them, those first that bring most new pairs."""
    names, attempts = sorted(options), 40

    def drawn(fixed):
        for _ in range(attempts):
            case = {name: fixed.get(name, random.choice(options[name])) for name in names}
            if is_allowed(case):
                return case
        return None
    missing = {pair for a, b in itertools.combinations(names, 2) for x in options[a] for y in options[b]
               for pair in pairs_of({a: x, b: y})}
    choices = {(name, repr(choice)): choice for name in names for choice in options[name]}
    while missing and count != 0:
        (a, x), (b, y) = pair = random.choice(sorted(missing))
        cases = [case for case in (drawn({a: choices[a, x], b: choices[b, y]}) for _ in range(20)) if case]
        if not cases:  # these two never meet
            missing.discard(pair)
            continue
        best = max(cases, key=lambda case: len(pairs_of(case) & missing))
        missing -= pairs_of(best)
        count = count and count - 1
        yield best
