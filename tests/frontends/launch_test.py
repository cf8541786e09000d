#!/usr/bin/env python3
"""tilewright launch: what its processes are told, how their ends make up its own, restarts, and that nothing is left."""
import argparse
import collections
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

CLI = None
LIMIT = 60  # seconds, on a busy machine


def start(*arguments, **more):
    return subprocess.Popen([CLI, "launch", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def launch(*arguments):
    process = start(*arguments)
    out, error = process.communicate(timeout=LIMIT)
    return subprocess.CompletedProcess(arguments, process.returncode, out, error)


def by_rank(text):
    lines = collections.defaultdict(list)
    for line in text.splitlines():
        found = re.fullmatch(r"\[rank (\d+)\] (.*)", line)
        if found:
            lines[int(found[1])].append(found[2])
    return dict(lines)


def is_alive(process):
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return ") Z " not in file.read()
    except OSError:
        return False


class Launch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def script(self, text):
        path = os.path.join(self.folder, "work.sh")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)
        return path

    def check_none_left(self, processes):
        end = time.monotonic() + 5
        while any(map(is_alive, processes)):
            self.assertLess(time.monotonic(), end, "processes are left")
            time.sleep(0.02)

    def test_environment(self):
        done = launch("--nproc", "3", "--job", "digits", "sh", "-c",
                      'echo "$TILEWRIGHT_ENGINE $TILEWRIGHT_JOB $TILEWRIGHT_LEAST $TILEWRIGHT_MOST '
                      '$TILEWRIGHT_LOCAL_RANK $TILEWRIGHT_LOCAL_RANKS"; echo $TILEWRIGHT_STORE >&2')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(by_rank(done.stdout), {r: [f"gloo digits 3 3 {r} 3"] for r in range(3)})
        stores = by_rank(done.stderr)
        self.assertEqual(len({lines[0] for lines in stores.values()}), 1)
        self.assertRegex(stores[0][0], r"^etcd://127\.0\.0\.1:\d+$")

    def test_several_machines(self):
        done = launch("--nproc", "2", "--nnodes", "2:3", "--store", "etcd://10.0.0.1:2379", "--job", "j", "sh", "-c",
                      'echo "$TILEWRIGHT_STORE $TILEWRIGHT_LEAST $TILEWRIGHT_MOST"')
        self.assertEqual(by_rank(done.stdout), {r: ["etcd://10.0.0.1:2379 4 6"] for r in range(2)})

    def test_jobs_differ(self):
        names = {launch("sh", "-c", "echo $TILEWRIGHT_JOB").stdout for _ in range(3)}
        self.assertEqual(len(names), 3)

    # A key that one process sets in the store that the command serves is there for the others.
    def test_store(self):
        script = os.path.join(self.folder, "store.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write("""
import base64, json, os, time, urllib.request
url = os.environ["TILEWRIGHT_STORE"].replace("etcd://", "http://")
def post(path, **body):
    return json.load(urllib.request.urlopen(url + path, json.dumps(body).encode()))
key = lambda r: base64.b64encode(f"rank/{r}".encode()).decode()
post("/v3/kv/put", key=key(os.environ["TILEWRIGHT_LOCAL_RANK"]), value="")
while post("/v3/kv/range", key=key(""), range_end=base64.b64encode(b"rank0").decode()).get("count") != "3":
    time.sleep(0.02)
print("all")
""")
        done = launch("--nproc", "3", sys.executable, script)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(by_rank(done.stdout), {r: ["all"] for r in range(3)})

    # Options behind the command are the command's; its own subcommands are this very file, under any name.
    def test_own_commands(self):
        for command in (["ops", "--help"], ["tilewright", "ops", "--help"]):
            done = launch("--nproc", "2", *command)
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = by_rank(done.stdout)
            self.assertEqual(set(lines), {0, 1})
            self.assertIn("print the operator reference as Markdown", lines[1][0])
        done = launch("train", os.path.join(self.folder, "no.toml"), "--threads", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("launch: process 0 (train) ended with exit status 1", done.stderr)

    def test_exit_status(self):
        failing = self.script('[ $TILEWRIGHT_LOCAL_RANK = 1 ] || exec sleep 100\nexit 5\n')
        begin = time.monotonic()
        done = launch("--nproc", "3", failing)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertEqual(done.returncode, 5)
        self.assertEqual(done.stderr, "launch: process 1 (work.sh) ended with exit status 5; the others are stopped, "
                                      "as fewer than 3 are left\n")
        killed = self.script('[ $TILEWRIGHT_LOCAL_RANK = 0 ] || exec sleep 100\nkill -9 $$\n')
        done = launch("--nproc", "2", killed)
        self.assertEqual(done.returncode, 128 + 9)
        self.assertIn("launch: process 0 (work.sh) was killed by signal 9", done.stderr)

    # Two of four are enough; where three are needed, the second failure stops the rest.
    def test_goes_on_with_enough(self):
        elastic = self.script('r=$TILEWRIGHT_LOCAL_RANK\n[ $r = 0 ] && { sleep 2; echo done; exit 0; }\n'
                              '[ $r = 3 ] && { sleep 0.5; exit 0; }\nsleep $((r - 1)); exit 1$r\n')
        done = launch("--nproc", "2:4", elastic)
        self.assertEqual(by_rank(done.stdout), {0: ["done"]})
        self.assertEqual(done.returncode, 11)
        self.assertEqual(done.stderr.splitlines(), ["launch: process 1 (work.sh) ended with exit status 11",
                                                    "launch: process 2 (work.sh) ended with exit status 12"])
        done = launch("--nproc", "3:4", elastic)
        self.assertEqual(by_rank(done.stdout), {})
        self.assertEqual(done.returncode, 11)

    def test_restarts(self):
        often = self.script(f'cd {self.folder}\necho x >> $TILEWRIGHT_LOCAL_RANK\n'
                            '[ $(wc -l < $TILEWRIGHT_LOCAL_RANK) -gt $((1 + TILEWRIGHT_LOCAL_RANK)) ] || exit 3\n')
        done = launch("--nproc", "2", "--restarts", "2", often)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("it is started again, 1 of 2 times"), 2)
        self.assertEqual(done.stderr.count("it is started again, 2 of 2 times"), 1)
        done = launch("--restarts", "2", "sh", "-c", "exit 3")
        self.assertEqual(done.returncode, 3)
        self.assertEqual(done.stderr.count("started again"), 2)

    def test_interrupts(self):
        waiting = self.script("trap 'echo caught; exit 0' INT TERM\nsleep 100 &\necho $$ $!\nwait\n")
        for number in (signal.SIGINT, signal.SIGTERM):
            process = start("--nproc", "2", waiting)
            lines = [process.stdout.readline() for _ in range(2)]
            processes = [int(p) for line in lines for p in line.split()[2:]]
            self.assertEqual(len(processes), 4, lines)
            process.send_signal(number)
            out, error = process.communicate(timeout=LIMIT)
            self.assertEqual(by_rank(out), {0: ["caught"], 1: ["caught"]})
            self.assertEqual((process.returncode, error), (0, ""))
            self.check_none_left(processes)

    def test_ends_with_launcher(self):
        process = start("--nproc", "2", "sh", "-c", "echo $$; exec sleep 100")
        processes = [int(process.stdout.readline().split()[2]) for _ in range(2)]
        process.kill()
        process.communicate(timeout=LIMIT)
        self.check_none_left(processes)

    def test_usage(self):
        for arguments, message in (
                ([], "give a command to start, as in `tilewright launch --nproc 2 train job.toml`"),
                (["--nproc", "0", "true"], "--nproc is '0', expected N or LEAST:MOST, from 1 to 1024"),
                (["--nproc", "3:2", "true"], "--nproc is '3:2', expected"),
                (["--nnodes", "x", "true"], "--nnodes is 'x', expected"),
                (["--nnodes", "2", "true"], "--nnodes needs --store and --job"),
                (["--store", "here", "true"], "--store: the store's address is 'here', expected etcd://HOST:PORT"),
                (["--restarts", "-1", "true"], "--restarts"),
                (["--bogus", "true"], "launch has no option '--bogus'")):
            done = launch(*arguments)
            self.assertEqual(done.returncode, 2, (arguments, done))
            self.assertIn(message, done.stderr)
        done = launch("no-such-program")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot start 'no-such-program': no such file or directory", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cli", required=True)
    options, rest = parser.parse_known_args()
    CLI = options.cli
    unittest.main(argv=[sys.argv[0], *rest])
