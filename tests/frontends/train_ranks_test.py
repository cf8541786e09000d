#!/usr/bin/env python3
"""Training by several ranks. Exact sums: what a run leaves has the same bytes for any number of ranks, threads and
each engine, and through checkpoints that another number of ranks takes up. Without them: the same within rounding.
What ranks differ in, or one of them fails with, ends all of them with its name."""
import json
import os
import re
import subprocess
from pathlib import Path

from rank_jobs import ENV, INS, OUTS, WIDTH, RankJobs, environment, launchers, missing
from training import OPTIONS, main

import numpy as np


class Ranks(RankJobs):
    def test_exact_sums_have_the_same_bits_on_any_number_of_ranks(self):
        for parts, optimizer in ((4, 0), (6, 1), (8, 2), (3, 0)):
            want = self.left([], accumulate=parts, optimizer=optimizer)
            for ranks in (1, 2, 3, 4):
                for threads in (1, 2) if ranks == 3 else (1,):
                    with self.subTest(parts=parts, ranks=ranks, threads=threads):
                        self.same(want, self.left([], "--ranks", str(ranks), accumulate=parts, optimizer=optimizer,
                                                  threads=threads))

    def test_exact_sums_have_the_same_bits_on_each_engine(self):
        want = self.left([])
        for ranks in (2, 3):
            for engine, launcher in launchers(ranks).items():
                with self.subTest(engine=engine, ranks=ranks):
                    if missing(engine):
                        self.skipTest(missing(engine))
                    self.same(want, self.left(launcher, engine=f'"{engine}"'))

    def test_exact_sums_have_the_same_bits_for_any_ranges(self):
        want = self.left([])
        for least in (1, 200, 1 << 30):
            self.same(want, self.left([], "--ranks", "3", "--bucket-bytes", str(least)))

    # Without exact sums, and the number of parts that of the ranks.
    def test_fast_sums_are_those_of_one_process_within_rounding(self):
        for ranks in (1, 2, 3, 4):
            with self.subTest(ranks=ranks):
                want = self.left([], accumulate=ranks, exact=True)
                found = self.left([], "--ranks", str(ranks), accumulate=None, exact=False)
                self.assertEqual(len(want["log"]), len(found["log"]))
                for name, data in want["checkpoint"].items():
                    if "/" in name:
                        np.testing.assert_allclose(np.frombuffer(found["checkpoint"][name], "f4"),
                                                   np.frombuffer(data, "f4"), rtol=1e-4, atol=1e-5, err_msg=name)

    def test_checkpoints_are_taken_up_by_other_numbers_of_ranks(self):
        want = self.left([], steps=12)
        for first, then in ((1, 2), (2, 3), (3, 1), (2, 4)):
            with self.subTest(first=first, then=then):
                folder = f"from{first}to{then}"
                self.left([], "--ranks", str(first), folder=folder, steps=6)
                self.same({k: v for k, v in want.items() if k != "gradients.npz"},
                          self.left([], "--ranks", str(then), folder=folder, steps=12))

    def test_a_batch_that_ranks_do_not_divide_is_refused(self):
        done = self.start("odd", [], "--ranks", "5", accumulate=None)
        self.assertEqual(done.returncode, 1)
        self.assertIn("batch is 24, which the 5 ranks do not divide into equal parts; `accumulate` may say how many "
                      "parts there are", done.stderr)

    # An index of one sample lies outside: the rank whose part has it says so, and all end.
    def test_the_error_of_one_rank_ends_all(self):
        np.savez(self.path("data.npz"), x=np.zeros((24, INS), "f4"), c=np.r_[np.zeros(23, int), OUTS])
        np.save(self.path("order.npy"), np.arange(24)[None])
        text = self.text("bad", steps=1).replace("[data]\n", '[data]\norder = "order.npy"\n')
        self.text = lambda folder: text
        for ranks in (1, 3):
            done = self.start("bad", [], "--ranks", str(ranks))
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("3", done.stderr)

    # The log, the table, the page and the trace say where time goes, on each rank.
    def test_times_of_ranks(self):
        text = self.text("times").replace("[output]\n", '[output]\nreport = "times/page.html"\n')
        self.text = lambda folder: text
        done = self.start("times", [], "--ranks", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        for rank in range(2):
            self.assertRegex(done.stdout, fr"(?m)^ +{rank} +9 +[0-9.]+ ms +[0-9.]+ ms +[0-9]+ % +[0-9.]+ ms ")
        with open(self.path("times/log.jsonl"), encoding="utf-8") as file:
            for line in map(json.loads, file):
                self.assertGreater(line["communicating"], 0)
                self.assertGreaterEqual(line["waiting"], 0)
        page = Path(self.path("times/page.html")).read_text(encoding="utf-8")
        self.assertIn(">Ranks</h2>", page)
        self.assertIn("hidden, %", page)
        trace = self.path("times/trace.json")
        done = self.start("times", [], "--ranks", "2", "--bench", "--seconds", "0.2", "--json", "--profile", trace)
        self.assertEqual(done.returncode, 0, done.stderr)
        line = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(line["ranks"], 2)
        self.assertGreater(line["communicating_ms"], 0)
        self.assertLess(line["computing_ms"], line["median_ms"] * 1.5)
        with open(trace, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        tracks = {(e["pid"], e["tid"], e["cat"]) for e in events if e["ph"] == "X"}
        self.assertEqual(tracks, {(r, t, c) for r in range(2) for t, c in ((1, "kernel"), (2, "collective"))})
        names = {r: [e["name"] for e in events if e["pid"] == r and e.get("cat") == "collective"] for r in range(2)}
        self.assertEqual(names[0], names[1])
        self.assertTrue(any("gradients" in name for name in names[0]))
        self.assertGreaterEqual(min(e["ts"] for e in events if e["ph"] == "X"), 0)

    def test_scaling(self):
        page = self.path("scaling.html")
        done = self.start("scaling", [], "--scaling", "2,64", "--link", "50us,1gbit", "--seconds", "0.1", "--page", page)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([int(line.split()[0]) for line in done.stdout.splitlines()[2:]], [1, 2, 64])
        self.assertEqual([int(line.split()[1]) for line in done.stdout.splitlines()[2:]], [24, 48, 24 * 64])
        self.assertIn("samples a second", Path(page).read_text(encoding="utf-8"))
        self.assertFalse(os.path.exists(self.path("scaling/log.jsonl")))
        for more, why in (((), "--link"), (("--link", "fast"), "'fast' is no link")):
            done = self.start("scaling", [], "--scaling", "2", *more)
            self.assertEqual(done.returncode, 1)
            self.assertIn(why, done.stderr)
        if not missing("gloo"):
            done = self.start("scaling", launchers(2)["gloo"], "--scaling", "2,4", "--seconds", "0.1")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.count("%"), 6)

    # Ranges start in the program of a part, all of the gradients and statistics once, and nowhere else.
    def test_lower_prints_what_ranks_run(self):
        def lower(*more):
            with open(self.path("lower.toml"), "w", encoding="utf-8") as file:
                file.write(self.text("lower", accumulate=0))
            done = subprocess.run([OPTIONS.cli, "lower", "--train", self.path("lower.toml"), "--emit", "program", *more],
                                  capture_output=True, text=True, check=True, env=ENV)
            return done.stdout
        starts = [(int(k), int(a), int(b)) for k, a, b in
                  re.findall(r"start (\d+) b\d+ from (\d+) to (\d+)", lower("--ranks", "2", "--bucket-bytes", "100"))]
        self.assertEqual([k for k, _, _ in starts], list(range(len(starts))))
        elements = INS * WIDTH + 3 * WIDTH + WIDTH * OUTS + OUTS + 2 * WIDTH
        self.assertGreaterEqual(sum(b - a for _, a, b in starts), 4 * elements)
        self.assertGreater(len(starts), 3)
        one, whole = lower("--ranks", "2"), lower()
        self.assertLess(one.count("    start "), len(starts))
        for title in ("# a part of a step", "# the update"):
            self.assertEqual(one.count(title), 1)
        self.assertEqual(whole.count("    start "), 0)

    # Ranks of different jobs: each launcher passes its rank to a script.
    def test_ranks_of_different_jobs_are_refused(self):
        os.makedirs(self.path("a"))
        for engine, launcher in launchers(2).items():
            if missing(engine):
                continue
            for what, top, options in (("seed", {"seed": 2}, ""), ("batch", {"batch": 32}, ""),
                                       ("steps", {"steps": 8}, ""), ("collectives", {}, "--bucket-bytes 100")):
                for rank, change in enumerate(({}, top)):
                    Path(self.path(f"job{rank}.toml")).write_text(self.text("a", top=change), encoding="utf-8")
                    Path(self.path(f"options{rank}")).write_text(options if rank else "", encoding="utf-8")
                script = self.path("rank.sh")
                with open(script, "w", encoding="utf-8") as file:
                    file.write('rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$TILEWRIGHT_LOCAL_RANK}}\n'
                               'exec "$1" train "$2"/job$rank.toml --threads 1 $(cat "$2"/options$rank)\n')
                done = subprocess.run([*launcher, "sh", script, OPTIONS.cli, self.folder.name], capture_output=True,
                                      text=True, check=False, env=environment(launcher), timeout=60)
                self.assertNotEqual(done.returncode, 0)
                self.assertRegex(done.stderr, fr"this rank has {what} [^,]+, others have ")
                self.assertFalse(os.path.exists(self.path("a/log.jsonl")))


if __name__ == "__main__":
    main()
