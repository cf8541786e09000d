#!/usr/bin/env python3
"""What is tuning worth where the description of the machine is wrong? Measurements should make up for it.

usage: tune_falsified.py --tilewright PATH [--time 30s] [--rounds 7] [--seconds 0.5] [--threads 1] [--seed 1]
                         [--work DIR] [--json OUT] MODEL...

Each model (as tune_models.py takes them) is tuned with the description of this machine, and with ones of which a part is
wrong: caches of a quarter and of four times the size, 16 registers, a latency of 8 cycles, one port. All tuned forms, and
the default of each description, run in turn then, in random order. Printed is the time of each form over that of the
form tuned with the true description. A benchmark: nothing passes or fails.
"""
import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tune_models import files_of  # noqa: E402


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models", nargs="+")
    p.add_argument("--tilewright", required=True)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--time", default="30s")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--seconds", type=float, default=0.5)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--work", default="build-bench/falsified")
    p.add_argument("--json", default="build-bench/falsified.json")
    return p.parse_args()


def call(threads, *command):
    cpus = set(sorted(os.sched_getaffinity(0))[:threads])
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def descriptions(options):
    """Files for --machine by what is wrong with them, with the figures that were measured here."""
    true = json.loads(call(options.threads, options.tilewright, "devices", "--json"))
    kept = call(options.threads, options.tilewright, "devices", "--measure").rsplit("kept in ", 1)[1].strip()
    with open(kept, encoding="utf-8") as file:
        speed = json.load(file)["measured"]
    l2 = true["l2_bytes"]
    changes = {"true": {}, "L2 / 4": {"l2_bytes": l2 // 4}, "L2 x 4": {"l2_bytes": l2 * 4},
               "16 registers": {"vector_registers": 16}, "latency 8": {"speed": {**speed, "fma_latency_cycles": 8}},
               "1 port": {"speed": {**speed, "fma_ports": 1}}}
    files = {}
    for name, change in changes.items():
        files[name] = os.path.join(options.work, name.replace(" ", "").replace("/", "by") + ".json")
        with open(files[name], "w", encoding="utf-8") as file:
            json.dump({**true, "speed": speed, **change}, file)
    return files


def forms_of(options, model, files):
    """Commands of `bench` by the name of the form."""
    name, path, inputs = files_of(model)
    bench = {}
    for machine, file in files.items():
        common = [path, "--inputs", inputs, "--threads", str(options.threads), "--machine", file]
        database = os.path.join(options.work, name + "-" + os.path.basename(file) + "l")
        call(options.threads, options.tilewright, "tune", *common, "--db", database, "--time", options.time, "--seed",
             str(options.seed), "--json")
        timed = ["--seconds", str(options.seconds), "--json"]
        bench[machine] = [options.tilewright, "bench", *common, "--db", database, *timed]
        bench[machine + ", untuned"] = [options.tilewright, "bench", *common, *timed]
    return bench


def main():
    options = parse()
    os.makedirs(options.work, exist_ok=True)
    files = descriptions(options)
    ratios = {}
    for model in options.models:
        bench = forms_of(options, model, files)
        times = {form: [] for form in bench}
        order, draw = list(bench), random.Random(options.seed)
        for _ in range(options.rounds):
            draw.shuffle(order)
            for form in order:
                out = call(options.threads, *bench[form])
                times[form].append(json.loads(out.strip().splitlines()[-1])["median_ms"])
        row = {form: statistics.median(a / b for a, b in zip(times[form], times["true"])) for form in bench}
        for form, ratio in row.items():
            ratios.setdefault(form, []).append(ratio)
        with open(options.json, "a", encoding="utf-8") as file:
            file.write(json.dumps({"model": files_of(model)[0], **row}) + "\n")
        print(files_of(model)[0], " ".join(f"{form}: {ratio:.3f}" for form, ratio in row.items()), flush=True)
    print("\ntime over that of the form tuned with the true description, geometric mean and worst:")
    for form, of in ratios.items():
        print(f"{form:24s}{math.exp(sum(map(math.log, of)) / len(of)):8.3f}{max(of):8.3f}")


if __name__ == "__main__":
    main()
