#!/usr/bin/env python3
"""Random ONNX models against ONNX Runtime, through the command.

usage: check_onnx_models.py --cli TILEWRIGHT [--models N] [--seed S] [--first N] [--jobs N]
                            [--cpus NAME,...] [--cpus-every N] [--results-of-nodes all|differing]
       check_onnx_models.py --cli TILEWRIGHT --seed S --only N [--keep FOLDER]
$TILEWRIGHT_OPEN is the part of the models in which every extent of an input is a symbol of its own (0.15): compiled once,
and run also where some extents are 1.
Model N of seed S is always the same (with the same packages). --models is 1500 unless $TILEWRIGHT_GRAPHS
says otherwise. --only: one model, with its nodes; --keep: its .onnx, inputs and outputs stay in FOLDER.
Every 20th model (--cpus-every) also runs as code for the CPUs of --cpus that this machine can run.
--results-of-nodes differing: node by node only where the results of a model differ. Also checked: the table has
a row for every operator that `tilewright ops` lists. What counts as equal: judge.py and tolerance.py; what
may differ: known_differences.py. Exit 0, 1: a fault; 77: skipped, without ONNX Runtime."""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "models"))
import shared_folder  # noqa: E402

MOST_REFUSED = 0.15   # of all draws of a node, which are drawn again; more would mean that the table samples blindly
MOST_UNUSABLE = 0.05  # of all models


def parse():
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--cli", required=True)
    parser.add_argument("--models", type=int, default=int(os.environ.get("TILEWRIGHT_GRAPHS", "1500")))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cpus", default="x86-64,x86-64-v3,x86-64-v4,znver5,cascadelake")
    parser.add_argument("--cpus-every", type=int, default=20)
    parser.add_argument("--only", type=int)
    parser.add_argument("--keep")
    parser.add_argument("--results-of-nodes", choices=["all", "differing"], default="all")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


# --- a worker: prints "start N", then one line of JSON per model


def judge_model(options, rows, number, folder):
    from judge import judge, judge_levels
    from model_builder import sample
    sampler, model = sample(rows, options.seed, number)
    result = {"number": number, "refused": sampler.refused, "draws": sampler.refused + len(sampler.nodes)}
    if model is None:
        return {**result, "kind": "not drawn", "message": "", "fault": False, "operators": []}
    verdict = judge(options.cli, model, folder, options.results_of_nodes == "all")
    if options.cpus and number % options.cpus_every == 0 and not verdict.is_fault:
        levels = judge_levels(options.cli, model, folder, options.cpus.split(","))
        verdict = levels if levels.is_fault else verdict
    operators = sorted({n.row.name for n in model.nodes})
    judges = collections.Counter(n.judge for n in model.nodes)
    return {**result, "kind": verdict.kind, "message": verdict.message, "fault": verdict.is_fault,
            "operators": operators, "runs": len(model.runs), "judges": judges, "opset": sampler.opset}


def work(options):
    import operator_rows
    rows = operator_rows.load()
    first, last, step = (int(v) for v in options.worker.split(","))
    for number in range(first, last, step):
        print(f"start {number}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(judge_model(options, rows, number, folder)), flush=True)


# --- the parent


def worker_command(options, first, last):
    command = [sys.executable, os.path.abspath(__file__), "--cli", options.cli, "--seed", str(options.seed),
               "--cpus", options.cpus, "--cpus-every", str(options.cpus_every),
               "--results-of-nodes", options.results_of_nodes, "--worker", f"{first},{last},{options.jobs}"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def lines_of(options, offset, last):
    """Results of one share of the models; a worker that the reference brings down is started again behind that model."""
    number = options.first + offset
    while number < last:
        worker, at = worker_command(options, number, last), None
        for line in worker.stdout:
            if line.startswith("start "):
                at = int(line.split()[1])
            elif line.startswith("{"):
                yield json.loads(line)
                at = None
        worker.wait()
        if at is None:
            return
        yield {"number": at, "kind": "reference crashed", "message": f"exit {worker.returncode}", "fault": False, "operators": [],
               "refused": 0, "draws": 0}
        number = at + options.jobs


def all_results(options):
    """The results of all workers as they come."""
    import queue
    import threading
    results, last = queue.Queue(), options.first + options.models

    def follow(offset):
        try:
            for line in lines_of(options, offset, last):
                results.put(line)
        finally:
            results.put(None)

    for offset in range(options.jobs):
        threading.Thread(target=follow, args=(offset,), daemon=True).start()
    for _ in range(options.jobs):
        yield from iter(results.get, None)


def reproduce(options, number):
    return f"{os.path.relpath(__file__)} --cli {options.cli} --seed {options.seed} --only {number} --keep FOLDER"


class Count:
    def __init__(self, options):
        self.options, self.start = options, time.monotonic()
        self.kinds, self.operators, self.reasons, self.judges = (collections.Counter() for _ in range(4))
        self.faults = self.refused = self.draws = self.runs = 0

    def add(self, r):
        self.kinds[r["kind"]] += 1
        self.operators.update(r["operators"])
        self.judges.update(r.get("judges", {}))
        self.refused, self.draws, self.runs = self.refused + r["refused"], self.draws + r["draws"], self.runs + r.get("runs", 0)
        if r["kind"] in ("unsupported", "known"):
            text = r["message"].split("[")[-1].rstrip("]") if r["kind"] == "known" else r["message"].split(": ")[-1]
            self.reasons[f"{r['kind']}: {text[:150]}"] += 1
        if r["fault"]:
            self.faults += 1
            print(f"\nFAIL model {r['number']}: {r['kind']}: {r['message'][:600]}\n    {reproduce(self.options, r['number'])}", flush=True)

    def progress(self):
        if sys.stdout.isatty():
            done = sum(self.kinds.values())
            print(f"\r{done} of {self.options.models}, {self.faults} faults, {time.monotonic() - self.start:.0f} s ", end="", flush=True)

    def report(self):
        print()
        for reason, n in self.reasons.most_common():
            print(f"{n:6} {reason}")
        print(f"references: {dict(self.judges)}; draws of a node refused by the reference: {self.refused} of {self.draws}; runs {self.runs}")
        kinds = ", ".join(f"{n} {kind}" for kind, n in self.kinds.most_common())
        print(f"{sum(self.kinds.values())} models, {len(self.operators)} operators, {self.faults} faults: {kinds}; "
              f"{time.monotonic() - self.start:.0f} s")


def uncovered(options):
    import operator_rows
    operator_rows.load()
    text = subprocess.run([options.cli, "ops"], capture_output=True, text=True, check=True).stdout
    section = text.split("operators of ONNX models are read:", 1)[1]
    read = [line[2:].strip() for line in section.splitlines() if line.startswith("- ")]
    missing, unknown = operator_rows.uncovered(read)
    for name in missing:
        print(f"FAIL the compiler reads {name}, but the table has no row for it")
    for name in unknown:
        print(f"FAIL the table has a row for {name}, which the compiler does not read")
    return missing or unknown


def usable_cpus(options):
    """Those of --cpus that this machine can run: the command refuses the others."""
    from onnx import TensorProto, helper
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    model = helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y]), ir_version=8,
                              opset_imports=[helper.make_opsetid("", 17)])
    usable = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "relu.onnx")
        with open(path, "wb") as file:
            file.write(model.SerializeToString())
        for cpu in filter(None, options.cpus.split(",")):
            done = subprocess.run([options.cli, "run", path, "--cpu", cpu], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                usable.append(cpu)
            else:
                print(f"not run as code for {cpu}: {done.stderr.strip()[:200]}")
    return ",".join(usable)


def show_one(options):
    import operator_rows
    from model_builder import sample
    rows = operator_rows.load()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or scratch
        os.makedirs(folder, exist_ok=True)
        _, model = sample(rows, options.seed, options.only)
        if model:
            values = {v.name: v for v in model.sampler.values}
            shown = lambda names: ", ".join(f"{n}: {values[n].dtype}{list(values[n].dims)}" if n else "-" for n in names)
            for n in model.nodes:
                print(f"{n.proto.op_type}({shown(n.proto.input)}) -> {shown(n.proto.output)}  judged {n.judge}")
        result = judge_model(options, rows, options.only, folder)
    print(json.dumps(result, indent=1))
    return 1 if result["fault"] else 0


def main():
    options = parse()
    options.cli = os.path.abspath(options.cli)
    shared_folder.enter_environment()
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        print("skipped: no onnxruntime in the environment of the tests")
        return shared_folder.SKIPPED
    if options.worker:
        return work(options)
    options.cpus = usable_cpus(options)
    if options.only is not None:
        return show_one(options)
    failed = bool(uncovered(options))
    count = Count(options)
    try:
        for result in all_results(options):
            count.add(result)
            count.progress()
    except KeyboardInterrupt:
        failed = True
    count.report()
    unusable = sum(count.kinds[k] for k in ("not drawn", "invalid", "reference crashed"))
    if unusable > MOST_UNUSABLE * options.models:
        print(f"FAIL {unusable} models could not be used")
        failed = True
    judged = sum(count.kinds.values())
    if count.refused > MOST_REFUSED * max(1, count.draws) or judged != options.models:
        print(f"FAIL {count.refused} of {count.draws} draws refused, {judged} of {options.models} models judged")
        failed = True
    return 1 if failed or count.faults else 0


if __name__ == "__main__":
    sys.exit(main())
