#!/usr/bin/env python3
"""Which initialisers are trained where a job names none: those that the metadata of PyTorch's exporter call
parameters; without metadata, all but what is surely no parameter. And tensors that exporters merged or folded."""
import itertools
import json
import random
import re
import resource

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from training import BATCH, INS, OUTS, Training, main

KIND = "pkg.torch.export.graph_signature.InputSpec.kind"
SIGNATURE = "pkg.torch.export.ExportedProgram.graph_signature"
FOLDED = "pkg.onnxscript.optimizer.folded_from"
CALL = "pkg.torch.onnx.fx_node"
node = helper.make_node


def add_metadata(message, key, value):
    entry = message.metadata_props.add()
    entry.key, entry.value = key, value


class Default(Training):
    # y = ((x @ w + b) + all others that are f32) @ ones, as far as they have OUTS columns or one.
    def save(self, nodes, constants, producer="", kinds=None, folded=None, signature="", calls=None, lists=False):
        """kinds, folded: metadata of initialisers, by name; calls: of nodes, by their first output; lists: initialisers
        are inputs, too."""
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            nodes, "network", [value("x", TensorProto.FLOAT, ["batch", INS])],
            [value("y", TensorProto.FLOAT, ["batch", OUTS])],
            [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
        for i in graph.initializer if lists else ():
            graph.input.append(value(i.name, i.data_type, i.dims))
        for key, of in ((KIND, kinds or {}), (FOLDED, folded or {})):
            for name, text in of.items():
                info = value(name, TensorProto.FLOAT, None)
                add_metadata(info, key, text)
                graph.value_info.append(info)
        if signature:
            add_metadata(graph, SIGNATURE, signature)
        for n in graph.node:
            if calls and n.output[0] in calls:
                add_metadata(n, CALL, calls[n.output[0]])
        model = helper.make_model(graph, producer_name=producer, ir_version=10,
                                  opset_imports=[helper.make_opsetid("", 18)])
        onnx.save(model, self.path("model.onnx"))

    def run_job(self, top=None, **more):
        done = self.train(self.job(top, **more))
        self.assertEqual(done.returncode, 0, done.stderr)
        with np.load(self.path("gradients.npz")) as found:
            return set(found.files), done.stdout

    def trained(self):
        return {i.name: numpy_helper.to_array(i) for i in onnx.load(self.path("trained.onnx")).graph.initializer}

    def constants(self, more):
        return {"w": self.w, "b": self.b, **more}

    @staticmethod
    def sum_of(names):
        nodes, last = [node("Gemm", ["x", "w", "b"], ["sum"])], "sum"
        for k, name in enumerate(names):
            out = f"sum{k}" if k + 1 < len(names) else "y"
            nodes.append(node("Add", [last, name], [out]))
            last = out
        return nodes

    def test_the_metadata_say_what_is_a_parameter(self):
        rolls = random.Random(2)
        for _ in range(12):
            random_numbers = np.random.default_rng(rolls.randrange(1000))
            shapes = {f"t{k}": rolls.choice([(), (1,), (OUTS,), (1, OUTS)]) for k in range(rolls.randrange(1, 9))}
            values = {k: random_numbers.normal(size=s).astype("f4") for k, s in shapes.items()}
            kinds = {k: rolls.choice(["PARAMETER", "BUFFER", "CONSTANT_TENSOR"]) for k in (*shapes, "w", "b")}
            kinds["w"] = "PARAMETER"
            # Some have no metadata: the exporter made them of others, or of nothing.
            folded = {}
            for name in shapes:
                if rolls.random() < 0.4:
                    sources = rolls.sample(["'lost.weight'", "'lost.buffer'", "'val_3'"], rolls.randrange(0, 3))
                    kinds.pop(name)
                    if sources:
                        folded[name] = f"[{', '.join(sources)}]"
            signature = ("\n# inputs\np_lost_weight: PARAMETER target='lost.weight'\n"
                         "b_lost_buffer: BUFFER target='lost.buffer' persistent=True\nx: USER_INPUT\n")
            wanted = {k for k, v in kinds.items() if v == "PARAMETER"}
            wanted |= {k for k, v in folded.items() if "lost.weight" in v}
            self.save(self.sum_of(list(shapes)), self.constants(values), kinds=kinds, folded=folded,
                      signature=signature)
            found, said = self.run_job()
            self.assertEqual(found, wanted, (kinds, folded))
            elements = sum(int(np.prod(self.constants(values)[k].shape)) for k in wanted)
            self.assertIn(f"trains {len(wanted)} parameters of {elements} elements: ", said)
            for name, value in values.items():
                (self.assertTrue if name in wanted else self.assertFalse)(
                    (self.trained()[name] != value).any(), name)

    def test_what_looks_like_no_parameter_without_metadata(self):
        steps, rates = np.arange(8)[:, None], 1 / 100 ** (np.arange(0, 8, 2) / 8)
        angles = steps * rates
        interleaved = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(8, 8)
        mask = np.triu(np.full((OUTS, OUTS), -np.inf), 1)
        draws = np.random.default_rng(5)
        first = [node("Gemm", ["x", "w", "b"], ["h"])]
        total = lambda name: [node("ReduceSum", [name], ["s"], keepdims=0), node("Add", ["h", "s"], ["y"])]
        softmax = [node("Softmax", ["t"], ["p"]), *total("p")]
        for what, value, rest in (
                ("masks", mask, softmax), ("masks", np.where(np.isinf(mask), -1e9, 0), softmax),
                ("masks", np.tril(np.ones((4, 4))), total("t")),
                ("tables", interleaved, total("t")),
                ("tables", np.concatenate([np.sin(angles), np.cos(angles)], -1), total("t")),
                ("tables", rates, [node("Sin", ["t"], ["p"]), *total("p")]),
                ("tables", np.arange(5) * 0.3, total("t")),
                ("tables", np.array([[10, 13], [16, 30], [33, 23.5]]), total("t")),
                ("what no gradient reaches", draws.normal(size=3),
                 [node("Less", ["h", "t"], ["c"]), node("Where", ["c", "h", "b"], ["y"])]),
                ("what shapes depend on", np.array([3.0]),
                 [node("Concat", ["one", "t"], ["scales"], axis=0), node("Cast", ["scales"], ["shape"], to=7),
                  node("Expand", ["b", "shape"], ["e"]), node("ReduceMean", ["e"], ["m"], keepdims=0),
                  node("Add", ["h", "m"], ["y"])]),
                ("settings of nodes", np.array(0.3), [node("Clip", ["h", "t"], ["y"])])):
            with self.subTest(what=what, value=value):
                self.save(first + rest, self.constants({"t": value.astype("f4"), "one": np.array([2], "f4")}
                                                       if rest[0].op_type == "Concat" else {"t": value.astype("f4")}),
                          producer="pytorch")
                found, said = self.run_job()
                self.assertEqual(found, {"w", "b"})
                self.assertRegex(said, f"left alone: .*{what} \\(('one', )?'t'\\)")
        for value in (np.array(0.7), draws.normal(size=(4, 4)), np.zeros(5), np.ones((2, 3)), draws.uniform(size=6)):
            self.save(first + total("t"), self.constants({"t": value.astype("f4")}), producer="pytorch")
            self.assertEqual(self.run_job()[0], {"w", "b", "t"}, value)
        # By its very name everything is.
        self.save(first + total("t"), self.constants({"t": interleaved.astype("f4")}), producer="pytorch")
        self.assertEqual(self.run_job({"parameters": '["*", "t"]'})[0], {"w", "b", "t"})

    def test_sines_and_cosines_apart_and_what_inputs_are_normalised_by(self):
        angles = np.random.default_rng(1).uniform(0, 6, (4, 3))
        self.save([node("Sub", ["x", "mean"], ["a"]), node("Div", ["a", "std"], ["n"]),
                   node("Gemm", ["n", "w", "b"], ["h"]), node("Mul", ["cos", "gain"], ["c"]),
                   node("Add", ["c", "sin"], ["r"]), node("ReduceSum", ["r"], ["s"], keepdims=0),
                   node("Add", ["h", "s"], ["y"])],
                  self.constants({"mean": np.full(INS, 0.45, "f4"), "std": np.linspace(0.2, 0.3, INS, dtype="f4"),
                                  "cos": np.cos(angles).astype("f4"), "sin": np.sin(angles).astype("f4"),
                                  "gain": np.array(0.3, "f4")}), producer="pytorch")
        found, said = self.run_job()
        self.assertEqual(found, {"w", "b", "gain"})
        self.assertIn("tables ('cos', 'sin')", said)
        self.assertIn("what inputs are normalised by ('mean', 'std')", said)

    # Of h, which comes from weights, only an extent: these are trained, however many ways lead to them.
    def test_an_extent_depends_on_no_weight(self):
        nodes = [node("MatMul", ["x", "square"], ["h0"])]
        for k in range(60):
            nodes += [node("Tanh", [f"h{k}"], [f"t{k}"]), node("Sub", [f"h{k}", f"t{k}"], [f"h{k + 1}"])]
        nodes += [node("Shape", ["h60"], ["s"]), node("Cast", ["s"], ["f"], to=1),
                  node("ReduceMax", ["f"], ["m"], keepdims=0), node("Mul", ["m", "factor"], ["mean"]),
                  node("Sub", ["x", "mean"], ["a"]), node("Div", ["a", "std"], ["n"]), node("Add", ["n", "h60"], ["z"]),
                  node("Gemm", ["z", "w", "b"], ["y"])]
        square = np.random.default_rng(4).normal(size=(INS, INS)).astype("f4")
        self.save(nodes, self.constants({"square": square, "factor": np.array([0.1], "f4"), "std": np.array([2.5], "f4")}),
                  producer="pytorch")
        found, said = self.run_job()
        self.assertEqual(found, {"w", "b", "square"})
        self.assertIn("what inputs are normalised by ('factor', 'std')", said)

    # Of what kinds constants are is found in a small stack, and answered before anything is compiled.
    def test_long_chains(self):
        length = 30000
        chain = lambda op, first, **more: [node(op, [f"v{k}" if k else first, *more.get("by", [])], [f"v{k + 1}"])
                                           for k in range(length)]
        last = f"v{length}"
        layer = node("Gemm", ["x", "w", "b"], ["h"])
        soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
        resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, hard))
        try:
            for nodes in ([layer, *chain("Neg", "h"), node("Identity", [last], ["y"])],
                          [*chain("Identity", "w"), node("Gemm", ["x", last, "b"], ["y"])],
                          [layer, *chain("Neg", "t"), node("Cast", [last], ["s"], to=7), node("Reshape", ["h", "s"], ["y"])],
                          [*chain("Mul", "x", by=["t"]), node("Sub", [last, "t"], ["a"]), node("Div", ["a", "t"], ["n"]),
                           node("Gemm", ["n", "w", "b"], ["y"])]):
                self.save(nodes, self.constants({"t": np.array([1.5], "f4")}), producer="pytorch")
                done = self.train(self.job({"parameters": '["none"]'}))
                self.assertEqual((done.returncode, done.stderr.count("no float initialiser of the model matches 'none'")),
                                 (1, 1), done)
        finally:
            resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))

    def test_exclude(self):
        names = ["net.0.bias", "net.1.bias", "other"]
        values = {k: np.random.default_rng(3).normal(size=OUTS).astype("f4") for k in names}
        self.save(self.sum_of(names), self.constants(values))
        for exclude, wanted in (('["net.*"]', {"w", "b", "other"}), ('["?", "other"]', set(names[:2])),
                                ('["net.1.bias"]', {"w", "b", "net.0.bias", "other"})):
            self.assertEqual(self.run_job({"exclude": exclude})[0], wanted)
        self.assertEqual(self.run_job({"exclude": '["net.*"]', "parameters": '["net.1.*", "w"]'})[0], {"w"})
        for top, message in (({"exclude": '["q*"]'}, "no float initialiser of the model matches `exclude`'s 'q*'"),
                             ({"exclude": '["*"]'}, "`exclude` leaves no parameter to train"),
                             ({"exclude": '"b"'}, "exclude")):
            done = self.train(self.job(top))
            self.assertEqual(done.returncode, 1)
            self.assertIn(message, done.stderr)
        self.save(self.sum_of(["buffer"]), self.constants({"buffer": values["other"]}),
                  kinds={"w": "PARAMETER", "b": "PARAMETER", "buffer": "BUFFER"})
        done = self.train(self.job({"parameters": '["w", "buf*"]'}))
        self.assertIn("matches 'buf*' but 'buffer', of the buffers, which are trained only by their full names",
                      done.stderr)

    def test_patterns_of_running_statistics(self):
        self.save([node("Gemm", ["x", "w", "b"], ["h"]),
                   node("BatchNormalization", ["h", "n.weight", "n.bias", "n.running_mean", "n.running_var"], ["y"])],
                  self.constants({"n.weight": np.ones(OUTS, "f4"), "n.bias": np.zeros(OUTS, "f4"),
                                  "n.running_mean": np.full(OUTS, 0.1, "f4"), "n.running_var": np.full(OUTS, 2, "f4")}))
        for top, before in (({"exclude": '["*running_mean"]'}, "matches `exclude`'s '*running_mean'"),
                            ({"exclude": '["n.running_mean", "n.weight"]'}, "matches `exclude`'s 'n.running_mean'"),
                            ({"parameters": '["w", "*running_m*"]'}, "matches '*running_m*'")):
            done = self.train(self.job(top))
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"no float initialiser of the model {before} but 'n.running_mean', of the running statistics, "
                          "which are no parameters: see `statistics`", done.stderr)
        self.assertEqual(self.run_job({"exclude": '["n.*"]'})[0], {"w", "b"})

    # Two normalisations, whose scales and biases a fresh network has alike: as one file that has all four, and as one
    # where the exporter left one of each.
    def test_what_the_exporter_merged_is_trained_apart(self):
        target = {"a.weight": "p_a_weight", "a.bias": "p_a_bias", "z.weight": "p_z_weight", "z.bias": "p_z_bias"}
        signature = "".join(f"{p}: PARAMETER target='{t}'\n" for t, p in target.items()) + \
            "p_w: PARAMETER target='w'\np_b: PARAMETER target='b'\nx: USER_INPUT\n"
        call = lambda x, m: (f"%layer_norm_{m} : [num_users=1] = call_function[target=torch.ops.aten.layer_norm]"
                             f"(args = (%{x}, [3], %p_{m}_weight, %p_{m}_bias, 1e-05), kwargs = {{}})")
        calls = {"n": call("linear", "a"), "y": call("gelu", "z"), "h": "%linear : call_function(args = (%x, %p_w, %p_b))"}

        def nodes(m):
            return [node("Gemm", ["x", "w", "b"], ["h"]), node("LayerNormalization", ["h", "a.weight", "a.bias"], ["n"]),
                    node("Tanh", ["n"], ["g"]), node("LayerNormalization", ["g", f"{m}.weight", f"{m}.bias"], ["y"])]
        one, none = np.ones(OUTS, "f4"), np.zeros(OUTS, "f4")
        left = []
        for m in "za":
            self.save(nodes(m), self.constants({"a.weight": one, "a.bias": none,
                                                **({"z.weight": one, "z.bias": none} if m == "z" else {})}),
                      producer="pytorch", signature=signature, calls=calls,
                      kinds={k: "PARAMETER" for k in ("w", "b", "a.weight", "a.bias")})
            found, _ = self.run_job()
            self.assertEqual(found, {"w", "b", *target})
            left.append((self.log(), {k: v.tobytes() for k, v in self.trained().items()}))
        self.assertEqual(left[0], left[1])
        # Called twice, a layer is one.
        self.save(nodes("a"), self.constants({"a.weight": one, "a.bias": none}), producer="pytorch", signature=signature,
                  calls={**calls, "y": call("gelu", "a")}, kinds={"a.weight": "PARAMETER"})
        self.assertEqual(self.run_job()[0], {"w", "b", "a.weight", "a.bias"})

    # A call may read them in another order than the node: torch.addmm(bias, x, weight).
    def test_merged_operands_get_the_names_that_a_call_gives_them(self):
        leaves = ["weight", "bias"]
        target = {f"{m}.{leaf}": f"p_{m}_{leaf}" for m in "az" for leaf in leaves}
        signature = "".join(f"{p}: PARAMETER target='{t}'\n" for t, p in target.items()) + "x: USER_INPUT\n"
        orders = ("weight", "x", "bias"), ("bias", "x", "weight"), ("x", "weight", "bias")
        for order, shape in itertools.product(orders, ((INS,), (1, INS), (BATCH, INS))):
            numbers = np.random.default_rng(8)
            values = {"a.weight": numbers.normal(size=(INS, INS)).astype("f4"),
                      "a.bias": numbers.normal(size=shape).astype("f4"), "o": self.w}
            call = lambda m, x: "%l : call_function[target=f](args = (" + ", ".join(
                "%" + (x if leaf == "x" else target[f"{m}.{leaf}"]) for leaf in order) + "), kwargs = {})"
            self.save([node("Gemm", ["x", "a.weight", "a.bias"], ["h"]), node("Tanh", ["h"], ["t"]),
                       node("Gemm", ["t", "a.weight", "a.bias"], ["r"]), node("MatMul", ["r", "o"], ["y"])],
                      values, producer="pytorch", signature=signature, kinds={"a.weight": "PARAMETER", "a.bias": "PARAMETER"},
                      calls={"h": call("a", "x"), "r": call("z", "t")})
            self.assertEqual(self.run_job()[0], set(target))
            trained = self.trained()
            for leaf in leaves:
                self.assertEqual(trained[f"z.{leaf}"].shape, values[f"a.{leaf}"].shape, order)

    # Of the model file: what initialisers and their copies hold.
    def written(self, name="trained.onnx"):
        graph = onnx.load(self.path(name)).graph
        values = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
        for n in graph.node:
            if n.op_type == "Identity":
                values[n.output[0]] = values[n.input[0]]
        return values

    # A file that has equal tensors as copies of each other leaves what one has that they are initialisers of their own,
    # whichever of them are trained.
    def test_copies_in_the_file_are_tensors_of_their_own(self):
        rolls = random.Random(7)
        names = [f"t{k}" for k in range(5)]
        for _ in range(20):
            numbers = np.random.default_rng(rolls.randrange(1000))
            producer, shape = rolls.choice(["pytorch", ""]), rolls.choice([(OUTS,), (1, OUTS)])
            value = np.full(shape, rolls.choice([0, 0.5])) if producer == "" else numbers.normal(size=shape)
            some = rolls.sample(names, rolls.randrange(0, 5))
            top = rolls.choice([{}, {"exclude": json.dumps(some + ["b"])}, {"parameters": json.dumps(some + ["w"])}])
            copies = {n: rolls.choice(names[:k]) for k, n in enumerate(names) if k > 0 and rolls.random() < 0.7}
            left = []
            for of in ({}, copies):
                self.save([node("Identity", [o], [n]) for n, o in of.items()] + self.sum_of(names),
                          self.constants({n: value.astype("f4") for n in names if n not in of}), producer=producer)
                found, _ = self.run_job(top)
                left.append((self.log(), {k: v.tobytes() for k, v in self.written().items()}))
                for name in names:
                    self.assertEqual((self.written()[name] != value.astype("f4")).any(), name in found, (name, top, copies))
            self.assertEqual(*left)

    def test_copies_as_running_statistics(self):
        one, zero = np.ones(OUTS, "f4"), np.zeros(OUTS, "f4")
        for statistics in ("running", "batch"):
            left = []
            for copies in ({}, {"mean": "bias", "var": "scale"}):
                values = {"scale": one, "bias": zero, "mean": zero, "var": one}
                self.save([node("Identity", [o], [n]) for n, o in copies.items()] +
                          [node("Gemm", ["x", "w", "b"], ["h"]),
                           node("BatchNormalization", ["h", "scale", "bias", "mean", "var"], ["y"])],
                          self.constants({k: v for k, v in values.items() if k not in copies}))
                self.run_job({"statistics": f'"{statistics}"'})
                left.append({k: v.tobytes() for k, v in self.written().items()})
                for name, is_trained in (("scale", True), ("mean", statistics == "batch"), ("var", statistics == "batch")):
                    self.assertEqual((self.written()[name] != values[name]).any(), is_trained, (name, statistics))
            self.assertEqual(*left)

    # A weight that a network shares, and its transpose, which exporters compute beforehand.
    def test_a_transposed_copy_stays_the_same_weight(self):
        shared = np.random.default_rng(6).normal(0, 0.3, (INS, OUTS)).astype("f4")
        for copy, folded, kinds, lists in (
                ("onnx::MatMul_9", None, None, False), ("onnx::MatMul_9", None, None, True),
                ("val_9", {"val_9": "['shared']"}, {"shared": "PARAMETER", "b": "PARAMETER"}, False)):
            weights = {"shared": shared, copy: shared.T.copy(), "b": self.b}
            self.save([node("MatMul", ["x", "shared"], ["h"]), node("MatMul", ["h", copy], ["back"]),
                       node("MatMul", ["back", "shared"], ["again"]), node("Add", ["again", "b"], ["y"])],
                      weights, producer="pytorch", folded=folded, kinds=kinds, lists=lists)
            self.assertEqual(self.run_job()[0], {"shared", "b"})
            trained = self.trained()
            self.assertTrue((trained["shared"] != shared).any())
            np.testing.assert_array_equal(trained[copy], trained["shared"].T)

    # The metadata say what a tensor was computed from: from whatever this is a transpose of, and under any name; not
    # from what merely starts as its transpose.
    def test_the_metadata_say_of_what_a_copy_is(self):
        shared = np.random.default_rng(6).normal(0, 0.3, (INS, OUTS)).astype("f4")
        for copy, of, is_shared in (("val_9", "shared", True), ("permute", "shared", True), ("val_9", "lost.weight", False),
                                    ("permute", "lost.weight", False), ("val_9", "val_2", True)):
            self.save([node("MatMul", ["x", "shared"], ["h"]), node("MatMul", ["h", copy], ["back"]),
                       node("Gemm", ["back", "w", "b"], ["y"])],
                      self.constants({"shared": shared, copy: shared.T.copy()}), producer="pytorch",
                      kinds={"shared": "PARAMETER", "b": "PARAMETER", "w": "PARAMETER"}, folded={copy: f"['{of}']"},
                      signature="\n# inputs\np_lost_weight: PARAMETER target='lost.weight'\n"
                                "p_shared: PARAMETER target='shared'\nx: USER_INPUT\n")
            self.assertEqual(self.run_job()[0], {"shared", "b", "w"} | ({copy} if not is_shared else set()), (copy, of))
            trained = self.trained()
            self.assertEqual((trained[copy] == trained["shared"].T).all(), is_shared)

    def test_scalars_of_other_exporters(self):
        for producer, wanted in (("pytorch", True), ("", True), ("tf2onnx", False)):
            self.save(self.sum_of(["t"]), self.constants({"t": np.array(0.5, "f4")}), producer=producer)
            found, said = self.run_job()
            self.assertEqual("t" in found, wanted)
            self.assertEqual(bool(re.search(r"scalars \('t'\)", said)), not wanted)

    def test_labels_of_floats(self):
        for op, scores in (("SoftmaxCrossEntropyLoss", "h"), ("NegativeLogLikelihoodLoss", "h")):
            self.save([node("Gemm", ["x", "w", "b"], ["h"]), node("Sigmoid", ["h"], ["soft"]),
                       node(op, [scores, "soft"], ["y"], name="loss")], self.constants({}))
            done = self.train(self.job({"loss": '"output"'}))
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"node 'loss' ({op})", done.stderr)
            self.assertIn(f"is f32[{BATCH}, {OUTS}], expected i32 or i64", done.stderr)


if __name__ == "__main__":
    main()
