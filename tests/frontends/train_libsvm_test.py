#!/usr/bin/env python3
"""Sparse rows of text as training data: the same run as with dense arrays, and mistakes with their lines."""
import numpy as np
from training import DATA, INS, MODEL, OUTPUT, OUTS, SGD, Training, job_text, main

ROWS = 40


class Libsvm(Training):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(8)
        self.rows = self.x * (random.random((ROWS, INS)) < 0.5)
        self.labels = random.integers(0, OUTS, ROWS)

    # names: of the labels by class.
    def write(self, names, end="\n"):
        lines = [names[label] + "".join(f" {i + 1}:{float(v)!r}" for i, v in enumerate(row) if v != 0)
                 for row, label in zip(self.rows, self.labels)]
        with open(self.path("rows.libsvm"), "w", encoding="utf-8", newline="") as file:
            file.write(f"# text behind a sign{end}{end}" + end.join(lines) + "   # more")

    def run_with(self, data, loss):
        done = self.train(job_text({**MODEL, "loss": f'"{loss}"'}, {**data, "order": '"order.npy"'}, SGD, OUTPUT))
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("trained.onnx"), "rb") as file:
            return self.log(), file.read()

    def test_rows_are_those_of_arrays(self):
        np.savez(self.path("data.npz"), x=self.rows, c=self.labels)
        dense = self.run_with({**DATA, "targets": '"c"'}, "cross_entropy")
        sparse = {"kind": '"libsvm"', "file": '"rows.libsvm"'}
        self.write(["0", "+1", "2.0"])
        self.assertEqual(self.run_with(sparse, "cross_entropy"), dense)
        self.write(["-1", "7", "0.1"], end="\r\n")
        self.assertEqual(self.run_with({**sparse, "labels": "[-1, 7, 0.1]"}, "cross_entropy"), dense)
        # A loss without targets has no use for labels.
        np.savez(self.path("data.npz"), x=self.rows)
        dense = {k: v for k, v in DATA.items() if k != "targets"}
        self.assertEqual(self.run_with(sparse, "output"), self.run_with(dense, "output"))

    def test_mistakes_have_their_lines(self):
        def text(data=None, **top):
            return job_text({**MODEL, "loss": '"cross_entropy"', **top},
                            {"kind": '"libsvm"', "file": '"rows.libsvm"', **(data or {})}, SGD, OUTPUT)
        for content, message in (
                (b"1 1:2\n2 3\n", "rows.libsvm:2: '3' is not index:value, two numbers"),
                (b"1 1:2\n\n2 x:1\n", "rows.libsvm:3: 'x:1' is not index:value"),
                (b"1 2:0x10", "'2:0x10' is not index:value"),
                (b"1 1:nan", "'1:nan' is not index:value"),
                (b"1 1:1e50", "'1:1e50' is not index:value"),
                (b"1 1:1:1", "'1:1:1' is not index:value"),
                (b"1 qid:3 1:1", "'qid:3' is not index:value"),
                (b"1 -1:1", "'-1:1' is not index:value"),
                (b"1 99999999999:1", "'99999999999:1' is not index:value"),
                (b"1 0:1", "rows.libsvm:1: index 0: they begin at 1"),
                (b"1 2:1 2:1", "index 2 comes behind 2, expected ascending ones"),
                (b"1 1:1 6:1", "index 6, input 'x' of the model has 5 features"),
                (b"one 1:1", "the label 'one' is no number"),
                (b"3 1:1", "the label '3' is no class; the model has the classes 0 to 2"),
                (b"0.5 1:1", "the label '0.5' is no class"),
                (b"-1 1:1", "the label '-1' is no class"),
                (b"1 \xff\x00" + b"a" * 50 + b":1", "'??aaaaaaaaaaaaaaaaaaaaaa...' is not index:value"),
                (b"# nothing\n", "rows.libsvm: has no rows"),
                (b"", "rows.libsvm: has no rows")):
            with self.subTest(content=content):
                with open(self.path("rows.libsvm"), "wb") as file:
                    file.write(content)
                self.refused(text(), message)
        self.write(["0", "1", "2"])
        self.refused(text({"labels": "[0, 1]"}), "the label '2' is none of data.labels")
        self.refused(text({"labels": '"0"'}), "'data.labels' is no list of numbers")
        self.refused(text(loss='"mean_squares"'), "the loss wants targets of [3], a row has one label")
        self.refused(text({"targets": '"c"'}), "'data.targets' is no key here")


if __name__ == "__main__":
    main()
