#!/usr/bin/env python3
"""Readable tables from what tests/performance/run.sh measured.

usage: report.py --cpu NAME kernels OUT.txt KERNELS.json...
       report.py --cpu NAME models [--readme README.md] [--chart OUT.svg] OUT.txt NUMERICS=COMPARED...
KERNELS.json: benchmark_kernels' --benchmark_out, one for each number of threads. COMPARED: at this level of numerics,
COMPARED.json and COMPARED.txt are what peers/compare.py wrote with --json and printed. In README.md the lines between
the two marks below are written anew. The chart (needs matplotlib) shows every model's ratio.
"""
import argparse
import datetime
import json
import math
import os

BEGIN, END = "<!-- speed: begin -->", "<!-- speed: end -->"
ENGINES = {"ort": "ONNX Runtime", "ov": "OpenVINO"}


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def today():
    return datetime.date.today().isoformat()


def percent(value):
    return "-" if value is None else f"{100 * value:.1f}"


def kernel_rows(benchmarks):
    form = "{:50s} {:>10s} {:>10s} {:>9s} {:>7s} {:>7s} {:>9s}"
    yield form.format("kernel", "ms", "least ms", "GFLOP/s", "% peak", "GB/s", "% memory")
    for b in benchmarks:
        name = b["name"].removesuffix("/manual_time")
        if b.get("error_occurred"):
            yield f"{name:50s} {b.get('error_message', 'failed')}"
            continue
        flops = f"{b['GFLOP/s']:.1f}" if "GFLOP/s" in b else "-"
        yield form.format(name, f"{b['ms']:.4f}", f"{b['least_ms']:.4f}", flops, percent(b.get("peak")), f"{b['GB/s']:.1f}",
                          percent(b["bandwidth"]))


def suite_means(benchmarks):
    """The geometric mean of each suite's part of the peak, or of memory's bandwidth where no peak is given."""
    suites = {}
    for b in benchmarks:
        if not b.get("error_occurred"):
            suites.setdefault(b["name"].split("/")[0], []).append(b)
    for suite, members in suites.items():
        kind = "peak" if all("peak" in b for b in members) else "bandwidth"
        mean = geometric_mean([b[kind] for b in members])
        word = "the peak" if kind == "peak" else "memory's bandwidth"
        yield f"{suite}: {percent(mean)} % of {word}, the geometric mean of {len(members)}"


def write_kernels(cpu, out, files):
    runs = [json.load(open(f, encoding="utf-8")) for f in files if os.path.getsize(f)]
    if not runs:
        print("no kernels were measured")
        return
    c = {k: float(v) for k, v in runs[0]["context"].items() if isinstance(v, str) and v.replace(".", "", 1).isdigit()}
    lines = [
        f"Kernels with default schedules, {cpu}, {today()}: medians of warm runs, and the least.",
        "% peak: of f32 multiply-adds as measured beside each kernel, or of int8 ones. % memory: the time that",
        "memory takes for the operands and results, each moved once, over the time of the run; above 100 they come from caches.",
        "Measured, one thread and all: "
        f"{c['f32_gflops']:.0f} and {c['f32_gflops_all']:.0f} GFLOP/s f32, "
        f"{c['int8_gops']:.0f} and {c['int8_gops_all']:.0f} GOP/s int8,",
        "memory read "
        f"{c['memory_read']:.0f} and {c['memory_read_all']:.0f} GB/s, copied {c['memory_copy']:.0f} and "
        f"{c['memory_copy_all']:.0f} GB/s.",
    ]
    for run in runs:
        lines += ["", f"threads {run['context']['threads']}", *kernel_rows(run["benchmarks"]), "",
                  *suite_means(run["benchmarks"])]
    write(out, lines)


def extremes(rows):
    low, high = min(rows, key=lambda r: r["x"]), max(rows, key=lambda r: r["x"])
    return f"{low['x']:.2f} ({low['model']}) to {high['x']:.2f} ({high['model']})"


def write_models(cpu, out, runs, readme, chart):
    """runs: level of numerics -> path of what compare.py wrote, without its ending."""
    rows, tables = {}, []
    for numerics, stem in runs.items():
        with open(stem + ".json", encoding="utf-8") as f:
            rows[numerics] = json.load(f)
        with open(stem + ".txt", encoding="utf-8") as f:
            tables += ["", f"--numerics {numerics}", *f.read().strip("\n").split("\n")]
    peers = {e: r[e]["version"].split("-")[0] for of in rows.values() for r in of for e in ENGINES if r.get(e)}
    names = " and ".join(f"{ENGINES[e]} {version}" for e, version in peers.items())
    write(out, [
        f"Inference with default schedules against {names}, one input set a model.",
        f"{cpu}, {today()}; engines interleaved, the least of the rounds' medians.",
        "x is the fastest peer's time over Tilewright's: above 1, Tilewright is faster.",
        *tables])
    ratios = {(r["threads"], numerics): [] for numerics, of in rows.items() for r in of}
    for numerics, of in rows.items():
        for r in of:
            if r["x"]:
                ratios[r["threads"], numerics].append(r)
    ratios = {k: of for k, of in ratios.items() if of}
    if not ratios:
        return
    # Bars are of the default on one thread.
    order = sorted(ratios, key=lambda k: (k != (1, "standard"), k))
    count = max(map(len, ratios.values()))
    if chart:
        import chart as picture  # pylint: disable=import-outside-toplevel
        picture.draw(chart, {k: {r["model"]: r["x"] for r in ratios[k]} for k in order},
                     f"{names}; {count} models\n{cpu}, {today()}")
        print(f"written: {chart}")
    if not readme:
        return
    replace_marked(readme, [
        f"Default schedules, nothing tuned, against {names} on {count} models (CNNs, transformers, recurrent and int8",
        f"models), engines interleaved, on {cpu}, {today()}:",
        "",
        "| threads | `--numerics` | geometric mean of the peer's time / Tilewright's | range |",
        "| --- | --- | --- | --- |",
        *(f"| {t} | {numerics} | {geometric_mean([r['x'] for r in of]):.2f} | {extremes(of)} |"
          for (t, numerics), of in sorted(ratios.items())),
    ])


def replace_marked(path, lines):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    before, found, rest = text.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not found or not ended:
        raise SystemExit(f"{path} has no lines {BEGIN} and {END}")
    with open(path, "w", encoding="utf-8") as f:
        f.write(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after)
    print(f"{path}: the table is refreshed")


def write(path, lines):
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    print(f"written: {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpu", required=True)
    commands = parser.add_subparsers(dest="command", required=True)
    kernels = commands.add_parser("kernels")
    kernels.add_argument("out")
    kernels.add_argument("files", nargs="+")
    models = commands.add_parser("models")
    models.add_argument("--readme")
    models.add_argument("--chart")
    models.add_argument("out")
    models.add_argument("runs", nargs="+", metavar="NUMERICS=COMPARED")
    a = parser.parse_args()
    if a.command == "kernels":
        write_kernels(a.cpu, a.out, a.files)
    else:
        write_models(a.cpu, a.out, dict(r.split("=", 1) for r in a.runs), a.readme, a.chart)


if __name__ == "__main__":
    main()
