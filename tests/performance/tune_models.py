#!/usr/bin/env python3
"""Tunes models and says what that is worth: time of one `tilewright bench` over that of another.

usage: tune_models.py --tilewright PATH [--against OLD] [--threads 1] [--time 60s] [--rounds 5] [--seconds 1]
                      [--cpu NAME] [--numerics standard] [--seed 1] [--work DIR] [--json OUT] MODEL...

A MODEL is a folder with model.onnx and inputs.npz, or NAME.onnx beside NAME.inputs.npz. Each is tuned into
DIR/NAME-THREADS.jsonl; then the default of OLD, the default and the tuned form run in turn, in random order, pinned to
the first --threads processors. Figures are medians over rounds of ratios of one round (above 1: the second is faster).
Where tuned is slower than 0.99 of the default, three times as many rounds decide. A line for each model goes to OUT at
once, and models that it has are not run again. A benchmark: nothing passes or fails.
"""
import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models", nargs="+")
    p.add_argument("--tilewright", required=True)
    p.add_argument("--against", help="another program, e.g. of an older version")
    p.add_argument("--against-options", default="", help="of its bench, e.g. '--numerics relaxed'")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--time", default="60s")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=1)
    p.add_argument("--cpu", default="native")
    p.add_argument("--numerics", default="standard")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--work", default="build-bench/tuned")
    p.add_argument("--json", default="build-bench/tuned.json")
    return p.parse_args()


def files_of(model):
    if model.endswith(".onnx"):
        return os.path.basename(model)[:-5], model, model[:-5] + ".inputs.npz"
    folder = os.path.normpath(model)
    return os.path.basename(folder), os.path.join(folder, "model.onnx"), os.path.join(folder, "inputs.npz")


class Bench:
    def __init__(self, options):
        self.options = options
        self.cpus = set(sorted(os.sched_getaffinity(0))[:options.threads])
        self.random = random.Random(options.seed)

    def call(self, *command):
        done = subprocess.run(command, capture_output=True, text=True,
                              preexec_fn=lambda: os.sched_setaffinity(0, self.cpus))
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
        return json.loads(done.stdout.strip().splitlines()[-1])

    def of_model(self, model):
        o = self.options
        name, path, inputs = files_of(model)
        database = os.path.join(o.work, f"{name}-{o.threads}.jsonl")
        common = [path, "--inputs", inputs, "--threads", str(o.threads)]
        ours = common + ["--cpu", o.cpu, "--numerics", o.numerics]
        tuned = self.call(o.tilewright, "tune", *ours, "--db", database, "--time", o.time, "--seed", str(o.seed),
                          "--json")
        timed = ["--seconds", str(o.seconds), "--json"]
        runs = {"default": [o.tilewright, "bench", *ours, *timed],
                "tuned": [o.tilewright, "bench", *ours, "--db", database, *timed]}
        if o.against:
            runs["old"] = [o.against, "bench", *common, *timed, *o.against_options.split()]
        times = {which: [] for which in runs}

        def go(rounds):
            for _ in range(rounds):
                order = list(runs)
                self.random.shuffle(order)
                for which in order:
                    times[which].append(self.call(*runs[which])["median_ms"])

        def ratio(a, b):
            return statistics.median(x / y for x, y in zip(times[a], times[b]))

        go(o.rounds)
        if ratio("default", "tuned") < 0.99:
            go(2 * o.rounds)
        row = {"model": name, "threads": o.threads, "numerics": o.numerics, "cpu": o.cpu,
               "claimed": 1 / tuned["ratio"], "kernels": tuned["kernels"], "improved": tuned["improved"],
               "graph_answers": tuned["graph_answers"], "trials": tuned["trials"], "seconds": tuned["seconds"],
               "ms": {which: min(t) for which, t in times.items()}, "tuned/default": ratio("default", "tuned")}
        if o.against:
            row["default/old"] = ratio("old", "default")
            row["tuned/old"] = ratio("old", "tuned")
        return row


def main():
    options = parse()
    os.makedirs(options.work, exist_ok=True)
    rows = []
    if os.path.exists(options.json):
        with open(options.json, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
    known = {row["model"] for row in rows}
    bench = Bench(options)
    columns = [c for c in ("default/old", "tuned/old", "tuned/default") if options.against or c == "tuned/default"]
    print(f"{options.threads} threads, {options.time} each, seed {options.seed}; faster than:")
    print("model".ljust(26) + "".join(c.rjust(15) for c in columns) + "  claimed  improved  trials")
    for model in options.models:
        if files_of(model)[0] not in known:
            rows.append(bench.of_model(model))
            with open(options.json, "a", encoding="utf-8") as file:
                file.write(json.dumps(rows[-1]) + "\n")
        row = next(r for r in rows if r["model"] == files_of(model)[0])
        print(row["model"].ljust(26) + "".join(f"{row[c]:15.3f}" for c in columns) +
              f"{row['claimed']:9.3f}{row['improved']:6d}/{row['kernels']}{row['trials']:8d}", flush=True)
    for what, of in (("geometric mean", lambda v: math.exp(sum(map(math.log, v)) / len(v))), ("worst", min)):
        print(what.ljust(26) + "".join(f"{of([r[c] for r in rows if c in r]):15.3f}" for c in columns))


if __name__ == "__main__":
    main()
