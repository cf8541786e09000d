"""Draws mutants by lines: each line of the chosen folders that can be mutated is as likely as any
other, and one of its mutants as likely as the others of that line."""
import collections
import concurrent.futures
import os
import random

from mutation import find_places, places, schema, tree


class Drawing:
    def __init__(self, target, commands, only="tilewright"):
        self.target, self.commands, self.only = target, commands, only
        self.by_line, self.contents, self.dropped = {}, {}, []

    def read(self, path):
        if path not in self.contents:
            with open(os.path.join(self.target, path), "rb") as file:
                self.contents[path] = file.read()
        return self.contents[path]

    def places_of_lines(self, path):
        """{line: its places} of a file."""
        if path not in self.by_line:
            source = places.Source(path, self.read(path))
            found = self.by_line[path] = collections.defaultdict(list)
            if self.commands.source_for(path):
                for place in find_places.places_of(source, self.commands.trees(path, self.only)):
                    found[place.line].append(place)
        return self.by_line[path]

    def compiles(self, path, chosen):
        """Tries a file with these places alone."""
        content = schema.render(self.read(path), list(enumerate(chosen)))
        tree.write_changed(os.path.join(self.target, path), content)
        failure = self.commands.failure(path)
        tree.write_changed(os.path.join(self.target, path), self.read(path))
        return failure

    def keep_compiling(self, path, fixed, chosen):
        """Those of the chosen places that compile, with those already fixed: all, or what halves keep."""
        failure = self.compiles(path, fixed + chosen)
        if failure is None:
            return chosen
        if len(chosen) > 1:
            half = len(chosen) // 2
            first = self.keep_compiling(path, fixed, chosen[:half])
            return first + self.keep_compiling(path, fixed + first, chosen[half:])
        if alone := self.compiles(path, fixed):
            raise RuntimeError(f"{path}: does not compile without any mutant drawn: {alone}")
        self.dropped.append((chosen[0], failure))
        return []

    def draw(self, paths, count, seed, jobs, fixed=()):
        """Up to `count` places that compile together with `fixed`."""
        lines = [(path, n + 1) for path in sorted(paths) for n in range(self.read(path).count(b"\n"))]
        order = random.Random(seed)
        order.shuffle(lines)
        drawn, waiting = collections.defaultdict(list), iter(lines)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            while (missing := count - sum(map(len, drawn.values()))) > 0:
                batch = collections.defaultdict(list)
                for path, line in waiting:
                    found = self.places_of_lines(path).get(line)
                    taken = [e for p in [*fixed, *drawn[path], *batch[path]] if p.path == path
                             for e in p.edits]
                    place = order.choice(found) if found else None
                    if place and schema.fits(place.edits, taken):
                        batch[path].append(place)
                        missing -= 1
                        if not missing:
                            break
                if not any(batch.values()):
                    break

                def kept(path):
                    before = [p for p in fixed if p.path == path] + drawn[path]
                    return path, self.keep_compiling(path, before, batch[path])
                changed = [path for path in batch if batch[path]]
                tried = list(pool.map(kept, [path for path in changed if path in self.commands.of]))
                # A header is tried in another source, which is as it was by then.
                tried += map(kept, [path for path in changed if path not in self.commands.of])
                for path, places_kept in tried:
                    drawn[path] += places_kept
        return [place for path in sorted(drawn) for place in sorted(drawn[path], key=lambda p: p.line)]


def sources(target, folders, headers, commands):
    """The sources below folders, of those that the build compiles."""
    found = []
    for folder in folders:
        if not os.path.isdir(os.path.join(target, folder)):
            raise SystemExit(f"{folder}: there is no such folder")
        for place, _, names in os.walk(os.path.join(target, folder)):
            for name in names:
                path = os.path.relpath(os.path.join(place, name), target)
                if path in commands.of and path.endswith(".cpp") or headers and path.endswith(".h"):
                    found.append(path)
    return sorted(set(found))
