#!/usr/bin/env python3
"""Training by several ranks on a rig of hosts with slow links (../shared/peers/rig.sh), each rank on a core of its own.

usage: ranks.py --cli TILEWRIGHT --torch PYTHON {overlap,exact,peer,scaling} [--rounds N]
  overlap   how much of the communication is hidden: a transformer of 6.5 M parameters, 2 ranks, 200 Mbit/s, a batch for
            which communicating takes 0.55 times as long as computing
  exact     the same job in four parts, with `exact = true` and without
  peer      a transformer of 25 M parameters, 2 ranks, 1 Gbit/s, 16 samples a rank, beside PyTorch DDP
  scaling   what --scaling predicts from two ranks for 2, 3 and 4 of them, and what these take; 200 Mbit/s and 1 Gbit/s
PYTHON has torch. Rounds take turns (of exact and peer), and take about a minute each. Needs etcd, iproute2 and user namespaces or root."""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve()
SHARED = Path(os.environ.get("TILEWRIGHT_SHARED", HERE.parents[2].parent / "shared"))
PEER = SHARED / "peers" / "ddp_peer.py"
STORE = "10.77.0.1"


def run(*command, **more):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True, **more).stdout


def on_host(host, *command):
    return ["ip", "netns", "exec", f"h{host}", "taskset", "-c", str(host % os.cpu_count()), *map(str, command)]


class Inside:
    """Within the rig: an etcd on the first host, and runs of ranks, one a host."""

    def __init__(self, options):
        self.options, self.jobs = options, 0
        self.folder = tempfile.TemporaryDirectory()
        client, peer = f"http://{STORE}:2379", f"http://{STORE}:2380"
        self.etcd = subprocess.Popen(
            on_host(0, "etcd", "--data-dir", self.folder.name, "--listen-client-urls", client, "--advertise-client-urls",
                    client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster",
                    f"default={peer}"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(2)

    def train(self, job, ranks, *arguments):
        """What rank 0 prints, wherever it is."""
        self.jobs += 1
        launch = [self.options.cli, "launch", "--nnodes", ranks, "--store", f"etcd://{STORE}:2379", "--job",
                  f"j{os.getpid()}-{self.jobs}", "train", job, "--threads", "1", *arguments]
        started = [subprocess.Popen(on_host(k, *launch), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                   for k in range(ranks)]
        texts = [p.communicate()[0] for p in started]
        if any(p.returncode for p in started):
            raise SystemExit("\n".join(texts))
        return re.sub(r"(?m)^\[rank \d+\] ", "", max(texts, key=len))

    def bench(self, job, ranks, seconds):
        lines = self.train(job, ranks, "--bench", "--json", "--seconds", str(seconds)).splitlines()
        return json.loads(next(line for line in lines if line.startswith("{")))

    def peer(self, batch, seconds):
        lines = run(self.options.torch, PEER, "launch", "--hosts", "h0,h1", "--batch", batch, "--seconds", seconds)
        return json.loads(next(line for line in lines.splitlines() if line.startswith("{")))


def with_batch(job, batch, more=""):
    """The job with another batch, and keys before its first table."""
    text = re.sub(r"(?m)^batch = .*", f"batch = {batch}\n{more}", Path(job).read_text(encoding="utf-8"))
    made = Path(job).with_name(f"job{abs(hash(text))}.toml")
    made.write_text(text, encoding="utf-8")
    return made


def spread(values):
    return f"median {statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def fitting_batch(rig, job):
    """Samples a rank, an even number, for which communication takes 0.55 times as long as computation."""
    probe = rig.bench(with_batch(job, 2 * 16), 2, 5)
    return max(2, 2 * round(8 * probe["communicating_ms"] / 0.55 / probe["computing_ms"]))


def measure_overlap(rig, job):
    batch = fitting_batch(rig, job)
    found = rig.bench(with_batch(job, 2 * batch), 2, 15 * 6)
    print(f"{batch} samples a rank, {found['steps']} rounds: step {found['median_ms']:.1f} ms, alone computing "
          f"{found['computing_ms']:.1f} ms and communicating {found['communicating_ms']:.1f} ms\n"
          f"hidden {100 * found['hidden']:.1f} %, step {found['median_ms'] / found['computing_ms']:.3f} of computing")


def measure_exact(rig, job):
    batch = fitting_batch(rig, job)
    fast = with_batch(job, 2 * batch, "accumulate = 4\n")
    exact = fast.with_name("exact.toml")
    exact.write_text(fast.read_text(encoding="utf-8") + "[distributed]\nexact = true\n", encoding="utf-8")
    times = {fast: [], exact: []}
    for _ in range(rig.options.rounds):
        for kind, found in times.items():
            found.append(rig.bench(kind, 2, 10)["median_ms"])
        print(f"fast {times[fast][-1]:.1f} ms, exact {times[exact][-1]:.1f} ms", flush=True)
    ratios = [e / f for e, f in zip(times[exact], times[fast])]
    print(f"fast: {spread(times[fast])} ms\nexact: {spread(times[exact])} ms\nratio: median {statistics.median(ratios):.3f}")


def measure_peer(rig, job):
    ours, theirs = [], []
    for _ in range(rig.options.rounds):
        ours.append(rig.bench(job, 2, 8)["median_ms"])
        theirs.append(rig.peer(16, 8)["step_ms"])
        print(f"tilewright {ours[-1]:.1f} ms, DDP {theirs[-1]:.1f} ms", flush=True)
    ratios = [a / b for a, b in zip(ours, theirs)]
    print(f"tilewright: {spread(ours)} ms\nDDP: {spread(theirs)} ms\nratio: median {statistics.median(ratios):.3f}")


def measure_scaling(rig, job):
    table = rig.train(with_batch(job, 2 * 2), 2, "--scaling", "2,3,4", "--seconds", "5")
    predicted = {}
    for line in table.splitlines():
        words = line.split()
        if words and words[0] in ("2", "3", "4"):
            predicted[int(words[0])] = float(words[words.index("%") + 1])
    for ranks, expected in predicted.items():
        found = rig.bench(with_batch(job, 2 * ranks), ranks, 15)["median_ms"]
        print(f"{ranks} ranks: predicted {expected:.1f} ms, measured {found:.1f} ms, {100 * (expected / found - 1):+.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["overlap", "exact", "peer", "scaling"])
    parser.add_argument("--cli", required=True, type=os.path.abspath)
    parser.add_argument("--torch", required=True, type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--inside", help=argparse.SUPPRESS)  # the folder of the exported job
    options = parser.parse_args()
    if options.inside:
        rig = Inside(options)
        try:
            {"overlap": measure_overlap, "exact": measure_exact, "peer": measure_peer,
             "scaling": measure_scaling}[options.what](rig, Path(options.inside) / "job.toml")
        finally:
            rig.etcd.terminate()
            rig.etcd.wait()
        return
    layers, batch, hosts, rates = {"overlap": (2, 16, 2, ["200mbit"]), "exact": (2, 16, 2, ["200mbit"]),
                                   "peer": (8, 16, 2, ["1gbit"]), "scaling": (2, 2, 4, ["200mbit", "1gbit"])}[options.what]
    with tempfile.TemporaryDirectory() as folder:
        run(options.torch, PEER, "export", folder, "--layers", layers, "--batch", batch)
        for rate in rates:
            print(f"{hosts} hosts, {rate}:", flush=True)
            subprocess.run([SHARED / "peers" / "rig.sh", str(hosts), rate, sys.executable, HERE, *sys.argv[1:], "--inside",
                            folder], check=True)


if __name__ == "__main__":
    main()
