"""How a build compiles its sources, also those of unity batches and headers."""
import json
import os
import re
import shlex
import subprocess

from mutation import syntax

# What clang is told of a command: where headers are, what is defined, and for which machine.
FOR_CLANG = re.compile(r"-(std|I|D|U|isystem|include|m|f(no-)?(rtti|exceptions|PIC)\b)")
WITH_VALUE = ("-I", "-isystem", "-D", "-U", "-include")


class Commands:
    def __init__(self, target):
        self.target, self.of = os.path.realpath(target), {}
        with open(os.path.join(target, "build", "compile_commands.json"), encoding="utf-8") as file:
            for entry in json.load(file):
                words = entry.get("arguments") or shlex.split(entry["command"])
                if os.path.basename(words[0]) == "ccache":
                    words = words[1:]
                if "-o" in words:
                    at = words.index("-o")
                    del words[at:at + 2]
                words = [word for word in words if word not in ("-c", "--", entry["file"])]
                for source in self.sources_of(os.path.join(entry["directory"], entry["file"])):
                    self.of.setdefault(os.path.relpath(source, self.target), (words, entry["directory"]))

    @staticmethod
    def sources_of(path):
        if "/Unity/" not in path:
            return [path]
        with open(path, encoding="utf-8") as file:
            return re.findall(r'^#include "([^"]+)"', file.read(), re.M)

    def source_for(self, path):
        """The source by which a file is compiled: itself, or for a header one that includes it."""
        if path in self.of:
            return path
        own = os.path.splitext(path)[0] + ".cpp"
        for source in ([own] if own in self.of else []) + sorted(self.of):
            with open(os.path.join(self.target, source), encoding="utf-8") as file:
                if f'#include "{path}"' in file.read():
                    return source
        return None

    def trees(self, path, only):
        """The syntax trees of a file."""
        source = self.source_for(path)
        words, folder = self.of[source]
        kept = []
        for word, before in zip(words[1:], words):
            if FOR_CLANG.match(word) or before in WITH_VALUE:
                kept.append(word)
        full = os.path.join(self.target, path)
        return syntax.read(kept, os.path.join(self.target, source), full, folder, only)

    def failure(self, path):
        """What the compiler says of a file as it is; None when it compiles."""
        source = self.source_for(path)
        words, folder = self.of[source]
        words = [word for word in words if not re.match(r"-[Og]", word)]
        command = [*words, "-O0", "-c", os.path.join(self.target, source), "-o", os.devnull]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        errors = [line for line in done.stderr.splitlines() if "error:" in line]
        return None if done.returncode == 0 else (errors or [f"status {done.returncode}"])[0][:300]
