#!/usr/bin/env python3
"""Training by several ranks. Exact sums: what a run leaves has the same bytes for any number of ranks, threads and
each engine, and through checkpoints that another number of ranks takes up. Without them: the same within rounding.
What ranks differ in, or one of them fails with, ends all of them with its name."""
import os
import subprocess

from rank_jobs import ENV, INS, OUTS, RankJobs, launchers, missing
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

    # Ranks of different jobs: each launcher passes its rank to a script.
    def test_ranks_of_different_jobs_are_refused(self):
        os.makedirs(self.path("a"))
        for engine, launcher in launchers(2).items():
            if missing(engine):
                continue
            for what, top in (("seed", {"seed": 2}), ("batch", {"batch": 32}), ("steps", {"steps": 8})):
                for rank, change in enumerate(({}, top)):
                    with open(self.path(f"job{rank}.toml"), "w", encoding="utf-8") as file:
                        file.write(self.text("a", top=change))
                script = self.path("rank.sh")
                with open(script, "w", encoding="utf-8") as file:
                    file.write('exec "$1" train "$2"/job${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$TILEWRIGHT_LOCAL_RANK}}.toml'
                               ' --threads 1\n')
                done = subprocess.run([*launcher, "sh", script, OPTIONS.cli, self.folder.name], capture_output=True,
                                      text=True, check=False, env=ENV, timeout=60)
                self.assertNotEqual(done.returncode, 0)
                self.assertRegex(done.stderr, f"this rank has {what} [0-9]+, others have [0-9]+")
                self.assertFalse(os.path.exists(self.path("a/log.jsonl")))


if __name__ == "__main__":
    main()
