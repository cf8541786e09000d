#!/usr/bin/env python3
"""Elastic ranks that are killed, frozen, added, or lose their store: the run ends with the bytes of one that nothing
happened to. Under MPI, a frozen rank ends the run with a message that names it, and a new run goes on."""
import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from rank_jobs import RankJobs, environment, launchers, missing
from training import OPTIONS, main

STEPS, LEASE = 500, 2


class Run:
    """A command that is running, with what it says as it comes."""

    def __init__(self, command, env=None):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        env={**environment(command), **(env or {})}, start_new_session=True)
        self.lines = []
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append((time.monotonic(), line.rstrip("\n")))

    def text(self):
        return "\n".join(line for _, line in self.lines)

    def ranks(self):
        """Processes of the ranks, by rank, as the last table says."""
        found = {}
        for _, line in self.lines:
            if match := re.search(r"rank (\d+): [^,]+, process (\d+), ", line):
                if match[1] == "0":
                    found = {}
                found[int(match[1])] = int(match[2])
        return found

    def wait(self, seconds=60):
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            raise AssertionError("no end\n" + self.text()) from None
        finally:
            self.reader.join()
            self.process.stdout.close()
        return self.process.returncode


class Faults(RankJobs):
    want = {}  # what undisturbed runs leave, by steps: the same in all tests

    def setUp(self):
        super().setUp()
        if "mpi" not in self.id() and missing("gloo"):
            self.skipTest(missing("gloo"))

    def command(self, folder, *launcher, deadline=3, steps=STEPS):
        os.makedirs(self.path(folder), exist_ok=True)
        job = self.path(f"{folder}.toml")
        text = self.text(folder, steps=steps, deadline=deadline).replace("every = 3\n", "every = 100\n")
        Path(job).write_text(text, encoding="utf-8")
        return [*launcher, OPTIONS.cli, "train", job, "--threads", "1"]

    def undisturbed(self, steps=STEPS, env=None):
        if steps not in self.want:
            run = Run(self.command(f"undisturbed{steps}", steps=steps), env)
            self.assertEqual(run.wait(), 0, run.text())
            self.want[steps] = self.found(f"undisturbed{steps}")
        return self.want[steps]

    def found(self, folder):
        log = [re.sub(r',\s*"samples_per_second".*', "", line)
               for line in Path(self.path(f"{folder}/log.jsonl")).read_text(encoding="utf-8").splitlines()]
        kept = self.path(f"{folder}/kept")
        return {"log": log, "trained": Path(self.path(f"{folder}/trained.onnx")).read_bytes(),
                "gradients": self.arrays(self.path(f"{folder}/gradients.npz")),
                "checkpoint": self.arrays(os.path.join(kept, sorted(os.listdir(kept))[-1]))}

    def steps_done(self, folder):
        try:
            with open(self.path(f"{folder}/log.jsonl"), "rb") as file:
                file.seek(max(os.fstat(file.fileno()).st_size - 400, 0))
                found = re.findall(rb'"step":(\d+),.*\n', file.read())
            return int(found[-1]) + 1 if found else 0
        except FileNotFoundError:
            return 0

    def wait_for_step(self, run, folder, step, ranks=3, find=None):
        """find: gives the run that prints the table of ranks; else it is `run`."""
        end = time.monotonic() + 30
        while self.steps_done(folder) < step or len(run.ranks()) < ranks:
            run = find() if find else run
            self.assertIsNone(run.process.poll(), run.text())
            self.assertLess(time.monotonic(), end, run.text())
            time.sleep(0.005)

    def next_step(self, run, folder, since):
        """Seconds until another step was made."""
        done = self.steps_done(folder)
        while self.steps_done(folder) <= done and run.process.poll() is None:
            self.assertLess(time.monotonic() - since, 20, run.text())
            time.sleep(0.005)
        return time.monotonic() - since

    def disturbed(self, name, disturb, *launcher):
        """The run with `disturb(run, folder, a random step of it)`; equal to the undisturbed one."""
        want = self.undisturbed()
        launcher = launcher or (OPTIONS.cli, "launch", "--nproc", "1:3")
        for k in range(OPTIONS.times):
            with self.subTest(name=name, time=k):
                folder = f"{name}{k}"
                run = Run(self.command(folder, *launcher))
                step = random.randrange(50, STEPS * 2 // 3)
                self.wait_for_step(run, folder, step)
                disturb(run, folder)
                status = run.wait()
                self.same(want, self.found(folder))
                yield run, status

    def killed(self, rank):
        times = []

        def kill(run, folder):
            os.kill(run.ranks()[rank], signal.SIGKILL)
            times.append(self.next_step(run, folder, time.monotonic()))

        for run, _ in self.disturbed(f"kill{rank}", kill):
            self.assertIn("does not answer", run.text())
        print(f"next step after the death of rank {rank}: " + " ".join(f"{t:.2f}" for t in sorted(times)) + " s")
        self.assertLessEqual(sorted(times)[len(times) // 2], 3, run.text())
        self.assertLess(max(times), 6, run.text())

    def test_rank_0_is_killed(self):
        self.killed(0)

    def test_another_rank_is_killed(self):
        self.killed(2)

    def test_a_killed_rank_comes_back(self):
        def kill(run, folder):
            os.kill(run.ranks()[1], signal.SIGKILL)
            end = time.monotonic() + 20
            while len(run.ranks()) != 3 or run.text().count("process") < 6:
                self.assertLess(time.monotonic(), end, run.text())
                if run.process.poll() is not None:
                    break
                time.sleep(0.01)

        for _, status in self.disturbed("back", kill, OPTIONS.cli, "launch", "--nproc", "1:3", "--restarts", "1"):
            self.assertEqual(status, 0)

    def test_a_rank_is_frozen_and_wakes(self):
        for rank in (0, 1):
            times = []

            def freeze(run, folder):
                process = run.ranks()[rank]
                os.kill(process, signal.SIGSTOP)
                times.append(self.next_step(run, folder, time.monotonic()))
                os.kill(process, signal.SIGCONT)

            for _, status in self.disturbed(f"freeze{rank}", freeze):
                self.assertEqual(status, 0)
            print(f"next step after rank {rank} froze: " + " ".join(f"{t:.2f}" for t in sorted(times)) + " s")
            self.assertLess(max(times), 3 + LEASE)

    def test_a_rank_is_added(self):
        with tempfile.TemporaryDirectory() as data:
            etcd, address = self.start_etcd(data)
            try:
                # Kernels come from the cache, so that those who join do so before the end.
                cache = {"XDG_CACHE_HOME": self.path("cache"), "TILEWRIGHT_CACHE_BYTES": str(1 << 30)}
                steps = 12 * STEPS * OPTIONS.slow
                want = self.undisturbed(steps, cache)
                for k in range(OPTIONS.times):
                    folder = f"added{k}"
                    command = self.command(folder, OPTIONS.cli, "launch", "--nnodes", "1:3", "--store", address, "--job",
                                           folder, steps=steps)
                    run = Run(command, cache)
                    self.wait_for_step(run, folder, random.randrange(50, 100), ranks=1)
                    more = [Run(command, cache) for _ in range(2)]
                    for r in (run, *more):
                        self.assertEqual(r.wait(120), 0, r.text())
                    self.assertIn("rank 2: ", run.text())
                    self.same(want, self.found(folder))
            finally:
                etcd.kill()
                etcd.wait()

    def start_etcd(self, folder, ports=None, address="127.0.0.1", prefix=()):
        if not shutil.which("etcd"):
            self.skipTest("no etcd")
        if prefix:
            ports = [2379, 2380]
        elif not ports:
            ports = []
            for _ in range(2):
                with socket.socket() as s:
                    s.bind(("127.0.0.1", 0))
                    ports.append(s.getsockname()[1])
        client, peer = (f"http://{address}:{p}" for p in ports)
        process = subprocess.Popen([*prefix, "etcd", "--data-dir", folder, "--listen-client-urls", client, "--advertise-client-urls",
                                    client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                                    "--initial-cluster", f"default={peer}"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while prefix and time.monotonic() < end:
            if subprocess.run([*prefix, "etcdctl", "--endpoints", client, "endpoint", "health"], capture_output=True,
                              check=False).returncode == 0:
                break
        while not prefix and time.monotonic() < end:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", ports[0])) == 0:
                    break
            time.sleep(0.05)
        self.ports = ports
        return process, f"etcd://{address}:{ports[0]}"

    # Of three hosts, of which one has the store and another one's wire is cut, then mended: the others go on meanwhile.
    def test_the_wire_is_cut(self):
        if not OPTIONS.rig:
            self.skipTest("not within a rig of hosts (--rig)")
        want, times = self.undisturbed(), []
        on_host = lambda host, *command: ["ip", "netns", "exec", f"h{host}", *command]
        wire = lambda host, state: subprocess.run(["ip", "link", "set", f"v{host}", state], check=True)
        with tempfile.TemporaryDirectory() as data:
            etcd, address = self.start_etcd(data, address="10.77.0.1", prefix=on_host(0))
            try:
                for k in range(OPTIONS.times):
                    folder, cut = f"wire{k}", 1 + k % 2
                    command = self.command(folder, OPTIONS.cli, "launch", "--nnodes", "1:3", "--store", address, "--job",
                                           folder)
                    runs = [Run(on_host(host, *command)) for host in range(3)]
                    writer = lambda: next((r for r in runs if len(r.ranks()) == 3), runs[0])
                    self.wait_for_step(writer(), folder, random.randrange(50, STEPS // 2), find=writer)
                    wire(cut, "down")
                    times.append(self.next_step(runs[0], folder, time.monotonic()))
                    wire(cut, "up")
                    for host, run in enumerate(runs):
                        status = run.wait()
                        self.assertTrue(status == 0 or host == cut, run.text())
                    self.same(want, self.found(folder))
            finally:
                etcd.kill()
                etcd.wait()
        print("next step after a cut: " + " ".join(f"{t:.2f}" for t in sorted(times)) + " s")
        self.assertLess(max(times), 3 + LEASE)

    # Training goes on without the store.
    def test_the_store_is_gone_for_a_while(self):
        with tempfile.TemporaryDirectory() as data:
            etcd, address = self.start_etcd(data)
            try:
                steps, seconds = (12 * STEPS, 10) if OPTIONS.times > 1 else (STEPS, 1)
                want = self.undisturbed(steps)
                for k in range(OPTIONS.times):
                    folder = f"gone{k}"
                    run = Run(self.command(folder, OPTIONS.cli, "launch", "--nnodes", "1", "--nproc", "3", "--store",
                                           address, "--job", folder, steps=steps))
                    self.wait_for_step(run, folder, random.randrange(50, 150))
                    etcd.kill()
                    etcd.wait()
                    self.next_step(run, folder, time.monotonic())
                    time.sleep(seconds)
                    etcd, _ = self.start_etcd(data, self.ports)
                    self.assertEqual(run.wait(600), 0, run.text())
                    self.same(want, self.found(folder))
            finally:
                etcd.kill()
                etcd.wait()

    # All ranks end at once, and the newest checkpoint is cut off: a new run goes on from the one before.
    def test_a_checkpoint_is_cut_off(self):
        want = self.undisturbed()
        for k in range(OPTIONS.times):
            folder = f"cut{k}"
            command = self.command(folder, OPTIONS.cli, "launch", "--nproc", "3")
            run = Run(command)
            self.wait_for_step(run, folder, random.randrange(230, STEPS - 100))
            os.killpg(run.process.pid, signal.SIGKILL)
            for process in run.ranks().values():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            run.wait()
            newest = max(Path(self.path(f"{folder}/kept")).glob("step-*.npz"))
            os.truncate(newest, random.randrange(newest.stat().st_size))
            again = Run(command)
            self.assertEqual(again.wait(), 0, again.text())
            self.assertIn(newest.name, again.text())
            self.assertIn("went on after step", again.text())
            self.same(want, self.found(folder))

    # Rank 0 cannot write a checkpoint: all ranks end, and one of them says whose error it is.
    def test_a_checkpoint_cannot_be_written(self):
        want = self.undisturbed()
        for k in range(OPTIONS.times):
            folder = f"unwritable{k}"
            kept, aside = Path(self.path(f"{folder}/kept")), Path(self.path(f"{folder}/aside"))
            command = self.command(folder, OPTIONS.cli, "launch", "--nproc", "3")
            run = Run(command)
            self.wait_for_step(run, folder, random.randrange(110, STEPS - 110))
            kept.rename(aside)
            kept.touch()
            self.assertNotEqual(run.wait(), 0, run.text())
            self.assertRegex(run.text(), r"(rank 0 ended|\[rank 0\] tilewright): .*kept/step-")
            kept.unlink()
            aside.rename(kept)
            again = Run(command)
            self.assertEqual(again.wait(), 0, again.text())
            self.same(want, self.found(folder))

    def test_a_frozen_rank_ends_a_run_under_mpi(self):
        for engine in ("openmpi", "mpich"):
            with self.subTest(engine=engine):
                if missing(engine):
                    self.skipTest(missing(engine))
                launcher, times, want = launchers(3)[engine], [], self.undisturbed()
                for k in range(OPTIONS.times):
                    folder = f"mpi-{engine}{k}"
                    run = Run(self.command(folder, *launcher, deadline=2))
                    self.wait_for_step(run, folder, random.randrange(110, STEPS - 110))
                    os.kill(run.ranks()[2], signal.SIGSTOP)
                    since = time.monotonic()
                    self.assertNotEqual(run.wait(20), 0)
                    named = [at - since for at, line in run.lines if "and rank 2 does not answer" in line]
                    self.assertTrue(named, run.text())
                    times.append(max(named))
                    again = Run(self.command(folder, *launcher, deadline=20))
                    self.assertEqual(again.wait(), 0, again.text())
                    self.assertIn("went on after step", again.text())
                    self.same(want, self.found(folder))
                print(f"rank 2 named under {engine}: " + " ".join(f"{t:.2f}" for t in sorted(times)) + " s")
                self.assertLess(max(times), 4)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rig", action="store_true", help="this runs within rig.sh with three hosts")
    parser.add_argument("--slow", type=int, default=1, help="how much slower than else ranks start")
    parser.add_argument("--times", type=int, default=1, help="how often each fault happens, at random moments")
    main(parser)
