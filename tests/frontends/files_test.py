#!/usr/bin/env python3
"""Whatever stands in the place of a file that a command reads or writes, and however full the disk is: a message, exit
status 1, nothing lost and nothing replaced. Tables of commands and files; what needs root is skipped without it."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import unittest

import onnx
import training
from onnx import TensorProto, helper, numpy_helper
from training import DATA, MODEL, OPTIONS, SGD, Training, np

NOBODY = 65534
os.environ["TILEWRIGHT_CACHE_BYTES"] = "0"
JOB = {**MODEL, "steps": 2}
ROOT = os.geteuid() == 0
TRAINED = {"log": "log.jsonl", "gradients": "gradients.npz", "model": "trained.onnx", "report": "curves.html"}
OLD = "old\n" * 1024  # a page of a disk in memory
# Of each command, the files that it reads. {}: the folder of the test.
READS = [
    ("info {}/model.onnx", ["model.onnx"]),
    ("info {}/model.ir", ["model.ir"]),
    ("lower {}/apart.onnx --emit graph", ["apart.onnx", "apart.bin"]),
    ("run {}/model.onnx --inputs {}/in.npz --machine {}/machine.json --db {}/tuned.jsonl",
     ["in.npz", "machine.json", "tuned.jsonl"]),
    ("run {}/model.onnx --inputs {}/in", ["in/input_0.pb"]),
    ("db check {}/tuned.jsonl", ["tuned.jsonl"]),
    ("db merge {}/all.jsonl {}/tuned.jsonl", ["tuned.jsonl"]),
    ("db prune {}/tuned.jsonl", ["tuned.jsonl"]),
    ("train {}/job.toml --threads 1", ["job.toml", "model.onnx", "data.npz", "order.npy", "kept/step-000000002.npz"]),
    ("reproduce {}/reproducer.txt", ["reproducer.txt"]),
]
# Of each command, the files that it writes; the bytes that are left on the disk for them.
WRITES = [
    ("compile {0}/model.onnx -o {1}/out.so", ["out.so"], 4096),
    ("compile --train {0}/job.toml -o {1}/step.so", ["step.so", "step-start.so", "step-state.json"], 0),
    ("run {0}/model.onnx --outputs {1}/out.npz", ["out.npz"], 0),
    ("run {0}/model.onnx --outputs {1}", ["output_0.pb"], 0),
    ("run {0}/model.onnx --profile {1}/trace.json", ["trace.json"], 0),
    ("bench {0}/model.onnx --profile {1}/trace.json --seconds 0.01", ["trace.json"], 0),
    ("db merge {1}/all.jsonl {0}/tuned.jsonl", ["all.jsonl"], 0),
    ("db prune {1}/twice.jsonl", ["twice.jsonl"], 0),
    ("train {0}/job.toml --bench --seconds 0.01 --threads 1 --profile {1}/trace.json", ["trace.json"], 0),
    ("train {0}/job.toml --scaling 2 --link 50us,1gbit --seconds 0.01 --threads 1 --page {1}/scaling.html", ["scaling.html"], 0),
    ("tune {0}/model.onnx --shape batch=64 --trials 1 --db {0}/found.jsonl --report {1}/report.html", ["report.html"], 0),
    *((f"train {{0}}/{key}.toml --threads 1", [name], 0) for key, name in TRAINED.items()),
]
# In folders on the disk, where nothing was before.
NEW = [("train {0}/kept.toml --threads 1", ["kept/step-000000002.npz"], 0),
       ("lower {0}/model.onnx --emit typed", ["dump/"], 0)]
PRINTS = ["ops", "--help", "--version", "devices --json", "info {}/model.onnx", "lower {}/model.onnx --emit typed",
          "run {}/model.onnx", "db check {}/tuned.jsonl", "db export {}/tuned.jsonl"]


def record():
    """A line of a tuning database with the checksum (FNV-1a) of what it says."""
    fields = {"version": 3, "task": "a task", "device": "a device", "family": "", "answers": {}, "schedule": "",
              "usual_us": 2.0, "tuned_us": 1.0, "ratio": [0.4, 0.6], "state": "confirmed"}
    code = 0xcbf29ce484222325
    for byte in json.dumps(fields, separators=(",", ":")).encode():
        code = (code ^ byte) * 0x100000001b3 % (1 << 64)
    return json.dumps({**fields, "checksum": f"{code:016x}"}) + "\n"


def run(command, **options):
    """A list, or the words of a command of tilewright."""
    words = command if isinstance(command, list) else [OPTIONS.cli, *command.split()]
    return subprocess.run(words, capture_output=True, check=False, timeout=60, **options)


def contents(path):
    """What a name stands for: type, mode, and bytes of a regular file; of a folder all names in it."""
    about = os.lstat(path)
    text = ""
    if stat.S_ISREG(about.st_mode):
        with open(path, "rb") as file:
            text = file.read()
    if stat.S_ISDIR(about.st_mode):
        text = {name: contents(os.path.join(path, name)) for name in os.listdir(path)}
    return about.st_mode, about.st_uid, text


def old_contents(name):
    """What a run adds to a log takes a page of its own; what is pruned is records that are there twice."""
    return {"log.jsonl": "", "twice.jsonl": record() * 20}.get(name, OLD)


def put_pipe(path):
    os.mkfifo(path)


def put_device(path):
    os.symlink("/dev/zero", path)


def put_socket(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)


class Files(Training):
    def setUp(self):
        super().setUp()
        here = self.folder.name
        os.chmod(here, 0o755)
        w = numpy_helper.from_array(self.w, "w")
        value = helper.make_tensor_value_info
        graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "apart",
                                  [value("x", TensorProto.FLOAT, [2, 5])], [value("y", TensorProto.FLOAT, [2, 3])], [w])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), self.path("apart.onnx"),
                  save_as_external_data=True, location="apart.bin", size_threshold=0)
        np.savez(self.path("in.npz"), x=self.x[:2])
        os.mkdir(self.path("in"))
        with open(self.path("in/input_0.pb"), "wb") as file:
            file.write(numpy_helper.from_array(self.x[:2], "x").SerializeToString())
        np.save(self.path("order.npy"), self.order[:2])
        self.put("tuned.jsonl", record())
        self.put("all.jsonl", "")
        self.put("reproducer.txt", "something else\n")
        self.put("machine.json", run("devices --json").stdout.decode())
        self.put("model.ir", run(f"lower {here}/apart.onnx --emit typed").stdout.decode())
        self.put("job.toml", self.job({}, checkpoint={"folder": '"kept"', "every": 2}))
        self.put("kept.toml", self.job({}, checkpoint={"folder": '"disk/kept"', "every": 2}))
        for key, name in TRAINED.items():
            self.put(key + ".toml", self.job({key: f'"disk/{name}"'}))

    def job(self, output, **more):
        """Reads from the folder of the test."""
        def at(folder, table, keys):
            return {**table, **{k: f'"{folder}/' + table[k].strip('"') + '"' for k in keys}}
        return training.job_text(at(self.folder.name, JOB, ["model"]), at(self.folder.name, DATA, ["file", "order"]),
                                 SGD, output, **more)

    def put(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def assert_refused(self, done, name, what=""):
        said = done.stderr.decode() + done.stdout.decode()
        self.assertEqual(done.returncode, 1, (what, said))
        self.assertIn(os.path.basename(name), said, what)

    @contextlib.contextmanager
    def in_place_of(self, name, put):
        """Puts something in the place of a file for a while."""
        path = self.path(name)
        os.rename(path, path + ".away")
        put(path)
        try:
            yield
        finally:
            shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path)
            os.rename(path + ".away", path)

    def test_what_is_no_file_is_not_read(self):
        self.assertEqual(run(f"train {self.path('job.toml')} --threads 1").returncode, 0)
        for command, files in READS:
            for name in files:
                for put in (put_pipe, put_device, put_socket, os.mkdir):
                    if (name, put) == ("in.npz", os.mkdir):  # a folder is another form of inputs
                        continue
                    with self.subTest(command=command, name=name, put=put.__name__), self.in_place_of(name, put):
                        before = contents(self.folder.name)
                        self.assert_refused(run(command.format(*[self.folder.name] * 9)), name)
                        self.assertEqual(contents(self.folder.name), before)

    @unittest.skipUnless(ROOT, "only root can give files away")
    def test_what_may_not_be_read(self):
        for command, files in READS[:-2]:
            for name in files:
                with self.subTest(command=command, name=name):
                    os.chmod(self.path(name), 0)
                    done = run(command.format(*[self.folder.name] * 9), preexec_fn=lambda: os.setuid(NOBODY))
                    self.assert_refused(done, name)
                    os.chmod(self.path(name), 0o644)

    def on_a_full_disk(self, command, files, room):
        """Runs it where a disk of memory is full but for `room`: what is said, and what is there before and after."""
        disk = self.path("disk")
        os.makedirs(disk, exist_ok=True)
        script = f"""
            mount -t tmpfs -o size=256k none {disk} || exit 99
            for name in {' '.join(files)}; do
                case $name in */*) mkdir -p {disk}/${{name%/*}};; *) cp {self.path('old')} {disk}/$name;; esac
            done
            head -c {room} /dev/zero > {disk}/room
            cat /dev/zero > {disk}/filler 2> /dev/null
            rm {disk}/room
            look() {{ (cd {disk}; find . -type f ! -name filler | sort | xargs sha256sum; find . -type d) > $1; }}
            look {self.path('before.txt')}
            [ -d {disk}/dump ] && export TILEWRIGHT_DUMP={disk}/dump
            {OPTIONS.cli} {command}
            status=$?
            look {self.path('after.txt')}
            exit $status"""
        done = run(["unshare", "-m", "sh", "-c", script])
        with open(self.path("before.txt"), encoding="utf-8") as b, open(self.path("after.txt"), encoding="utf-8") as a:
            return done, b.read(), a.read()

    @unittest.skipUnless(ROOT and run(["unshare", "-m", "true"]).returncode == 0, "needs a mount namespace of its own")
    def test_a_full_disk(self):
        for command, files, room in WRITES + NEW:
            self.put("old", old_contents(files[0]))
            with self.subTest(command=command):
                done, before, after = self.on_a_full_disk(command.format(self.folder.name, self.path("disk")), files, room)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr.decode(), "(?m)^tilewright: .*/(" + "|".join(map(re.escape, files)) + ")")
                self.assertEqual(after, before)

    def test_a_limit_on_the_size_of_files(self):
        """Also reaches the files that are made on the way, in another folder."""
        import resource
        os.mkdir(self.path("disk"))
        temporary = self.path("temporary")
        os.mkdir(temporary)

        def little_room():
            resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
        for command, files, _ in WRITES:
            for name in files:
                self.put("disk/" + name, old_contents(files[0]))
            before = contents(self.path("disk"))
            with self.subTest(command=command):
                done = run(command.format(self.folder.name, self.path("disk")), preexec_fn=little_room,
                           env={**os.environ, "TMPDIR": temporary})
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("tilewright: ", done.stderr.decode())
                self.assertEqual(contents(self.path("disk")), before)
                self.assertEqual(os.listdir(temporary), [])
            for name in files:
                os.remove(self.path("disk/" + name))

    def test_what_is_no_file_is_not_replaced(self):
        os.mkdir(self.path("disk"))
        kinds = [put_pipe, put_socket, os.mkdir]
        for command, files, _ in WRITES:
            if "log.toml" in command:  # may be a pipe
                continue
            name = "disk/" + files[0]
            for put in kinds:
                with self.subTest(command=command, put=put.__name__):
                    put(self.path(name))
                    before = contents(self.path(name))
                    self.assert_refused(run(command.format(self.folder.name, self.path("disk"))), name)
                    self.assertEqual(contents(self.path(name)), before)
                    shutil.rmtree(self.path("disk"))
                    os.mkdir(self.path("disk"))

    @unittest.skipUnless(ROOT, "only root makes devices")
    def test_devices_stay(self):
        os.mkdir(self.path("disk"))
        for command, files, _ in WRITES[:1] + WRITES[2:6]:
            path = self.path("disk/" + files[0])
            try:
                os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
                with open(path, "w", encoding="utf-8"):
                    pass
            except PermissionError:
                self.skipTest("devices cannot be made here")
            with self.subTest(command=command):
                done = run(command.format(self.folder.name, self.path("disk")))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(stat.S_ISCHR(os.lstat(path).st_mode))
                self.assertEqual(os.listdir(self.path("disk")), [files[0]])
            os.remove(path)

    def test_output_that_cannot_be_printed(self):
        for command in PRINTS:
            with self.subTest(command=command), open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([OPTIONS.cli, *command.format(self.folder.name).split()], stdout=full,
                                      stderr=subprocess.PIPE, check=False)
                self.assertEqual(done.returncode, 1)
                self.assertIn(b"standard output: cannot be written: No space left on device", done.stderr)

    def test_folders_of_outputs_are_found_missing_before_the_work(self):
        for key, name in TRAINED.items():
            before = contents(self.folder.name)
            self.assert_refused(run(f"train {self.path(key + '.toml')} --threads 1"), name)
            self.assertEqual(contents(self.folder.name), before)
        for command in ("compile {}/model.onnx -o", "run {}/model.onnx --profile", "bench {}/model.onnx --profile"):
            done = run(command.format(self.folder.name) + " " + self.path("nowhere/out"))
            self.assert_refused(done, "nowhere/out")
            self.assertNotIn(b"random", done.stderr)

    def test_kills(self):
        """What a killed run leaves goes with the next one there, and a target is as it was or whole."""
        os.mkdir(self.path("disk"))
        command = f"compile {self.path('model.onnx')} -o {self.path('disk/out.so')}"
        self.put("disk/out.so", "old\n")
        left = 0
        for i in range(8):
            killed = subprocess.Popen([OPTIONS.cli, *command.split()], stderr=subprocess.DEVNULL)
            watched = self.path("disk")
            for _ in range(20000):
                if killed.poll() is not None or len(os.listdir(watched)) > 1:
                    break
            if i % 2 == 0:
                killed.send_signal(signal.SIGKILL)
            killed.wait()
            left += len(os.listdir(watched)) > 1
        self.assertGreater(left, 0)
        self.assertEqual(run(command).returncode, 0)
        self.assertEqual(os.listdir(self.path("disk")), ["out.so"])
        self.assertEqual(run(f"run {self.path('disk/out.so')} --shape batch=2").returncode, 0)

    def test_a_cache_that_cannot_be_used_costs_time_alone(self):
        cache = self.path("cache")
        environment = {**os.environ, "XDG_CACHE_HOME": cache, "TILEWRIGHT_CACHE_BYTES": str(1 << 30)}
        command = f"run {self.path('model.onnx')} --inputs {self.path('in.npz')} --outputs {self.path('out.npz')}"

        def results():
            done = run(command, env=environment)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(self.path("out.npz"), "rb") as file:
                return file.read(), done.stderr.decode()
        first, said = results()
        self.assertNotIn("note", said)
        entries = os.path.join(cache, "tilewright", "compiled")
        kept = os.path.join(self.folder.name, "kept-cache")
        shutil.copytree(cache, kept)

        def each(change):
            for name in os.listdir(entries):
                change(os.path.join(entries, name))

        def replaced(put):
            def change(path):
                os.remove(path)
                put(path)
            return change
        ways = [lambda p: os.chmod(p, 0o666), replaced(put_pipe), replaced(put_device), replaced(os.mkdir)]
        ways += [lambda p: os.chown(p, 12345, 12345)] if ROOT else []
        for way in ways:
            shutil.rmtree(cache)
            shutil.copytree(kept, cache)
            each(way)
            before = {name: mode_and_owner for name, *mode_and_owner in
                      ((n, *contents(os.path.join(entries, n))[:2]) for n in os.listdir(entries))}
            bits, said = results()
            self.assertEqual(bits, first)
            self.assertRegex(said, "note: .*(trusted|not a file); what it would hold is compiled anew")
            if way is not ways[0]:  # what is this user's own is written anew
                for name, was in before.items():
                    self.assertEqual(list(contents(os.path.join(entries, name))[:2]), was)
        shutil.rmtree(cache)
        self.put("cache", "no folder")
        bits, said = results()
        self.assertEqual(bits, first)
        self.assertRegex(said, "note: .*nothing is kept")


if __name__ == "__main__":
    training.main()
