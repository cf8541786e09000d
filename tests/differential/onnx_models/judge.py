"""The verdict on one model.

1. Its results are compared with ONNX Runtime's within the tolerance of the node that made them.
2. Node by node: the model runs with every value as an output, and each node is run alone by ONNX Runtime on
   OUR operands. One that lies outside its own tolerance is a fault.
3. Where results differ though every node is right, rounding was carried on - unless the model as it is
   (fused) differs from the one with every value as an output by more than the reference itself does when
   each of its values is disturbed within the tolerance of its node."""
import dataclasses

import numpy

import compiled_run
import element_types as et
import exact_functions
import known_differences
import reference
import slack
import tolerance
from compiled_run import Failed
from model_builder import with_all_outputs
from reference import Refused

DISTURBED_RUNS = 6


@dataclasses.dataclass
class Verdict:
    kind: str        # "equal", "carried", "known", "unsupported", "invalid"; faults: "wrong", "refused", "crash", "hang"
    message: str = ""

    @property
    def is_fault(self):
        return self.kind in ("wrong", "refused", "crash", "hang")


def operands_of(node, values):
    return {name: values[name] for name in list(node.proto.input) + node.captured if name}


def outputs_of(node):
    return [name for name in node.proto.output if name]


def is_exact(model, node, operands, ours, index):
    """Whether our result is that of the node in f64, to which the reference's is less near."""
    opset, constants = model.sampler.opset, set(model.constants)
    with numpy.errstate(all="ignore"):
        exact = exact_functions.run(node.proto, operands)
        exact = reference.run_exact(node.proto, operands, opset) if exact is None else [exact.astype(ours.dtype)]
        return exact is not None and tolerance.difference(ours, exact[index], slack.of(node, operands, exact, opset, constants)[index]) is None


def check_node(model, node, values):
    """None, or (is known, message): the node alone on our operands."""
    constants = set(model.constants)
    operands = operands_of(node, values)
    try:
        expected, _ = reference.run_node(node.proto, operands, model.sampler.opset, constants)
    except Refused as error:
        return (True, f"the reference refuses our operands: {str(error)[:200]}")
    ours = [values[name] for name in outputs_of(node)]
    with numpy.errstate(all="ignore"):
        allowed = slack.of(node, operands, expected, model.sampler.opset, constants)
    for index, (a, b, most) in enumerate(zip(ours, expected, allowed)):
        found = tolerance.difference(a, b, most)
        if found:
            if a.dtype in et.FLOATS and is_exact(model, node, operands, a, index):
                return (True, f"{node.proto.op_type} [{node.proto.op_type} {a.dtype}: ours is as near as allowed to the result in f64, ONNX Runtime's is not]")
            types = ", ".join(f"{operands[n].dtype}{list(operands[n].shape)}" for n in node.proto.input if n)
            reason = known_differences.find(node, operands, ours, expected, index)
            text = f"{node.proto.op_type} '{node.proto.name}' ({types}) output {index}: {found}"
            return (reason is not None, f"{text} [{reason}]" if reason else text)
    return None


def run_whole(model, run):
    """The model's outputs by ONNX Runtime; where it lacks a node, those of the nodes one by one."""
    if all(n.judge == "direct" for n in model.nodes):
        return reference.run_model(model.proto, run.feeds)
    return {name: run.values[name] for name in model.outputs}


def compare_results(model, ours, run, expected):
    """Where results lie outside the tolerance of the node that made them, on the reference's operands."""
    makers = {name: (n, i) for n in model.nodes for i, name in enumerate(outputs_of(n))}
    slacks = {}
    found = []
    for name, array in ours.items():
        node, index = makers[name]
        if node.proto.name not in slacks:
            operands, results = operands_of(node, run.values), [run.values[o] for o in outputs_of(node)]
            with numpy.errstate(all="ignore"):
                slacks[node.proto.name] = slack.of(node, operands, results, model.sampler.opset, set(model.constants))
        difference = tolerance.difference(array, expected[name], slacks[node.proto.name][index])
        if difference:
            found.append(f"{name} of {node.proto.op_type}: {difference}")
    return found


def disturbed_values(model, run, generator):
    """All values by the reference, each result disturbed within the tolerance of its node."""
    values = {v.name: run.values[v.name] for v in model.sampler.values if v.source != "node"}
    opset, constants = model.sampler.opset, set(model.constants)
    for node in model.nodes:
        operands = operands_of(node, values)
        results, _ = reference.run_node(node.proto, operands, opset, constants)
        with numpy.errstate(all="ignore"):
            slacks = slack.of(node, operands, results, opset, constants)
        for name, result, most in zip(outputs_of(node), results, slacks):
            if result.dtype in et.FLOATS:
                noise = generator.choice([-1.0, 1.0], result.shape) * most
                with numpy.errstate(all="ignore"):
                    result = numpy.asarray((result.astype(et.F64) + noise).astype(result.dtype))
            values[name] = result
    return values


def is_carried(model, ours, unfused, run):
    """None when two of our results may differ by rounding carried on, else what is further off."""
    generator = numpy.random.default_rng(1)
    spread = {name: 0.0 for name in ours}
    for _ in range(DISTURBED_RUNS):
        try:
            values = disturbed_values(model, run, generator)
        except Refused:
            return None
        for name in ours:
            a, b = values[name], run.values[name]
            if a.shape != b.shape:
                spread[name] = numpy.inf
                continue
            with numpy.errstate(all="ignore"):
                away = numpy.abs(a.astype(et.F64) - b.astype(et.F64))
            # An element may move where its neighbours do: sorting, sums along an axis.
            away = numpy.where(numpy.isfinite(away) | (numpy.isnan(a.astype(et.F64)) & numpy.isnan(b.astype(et.F64))), away, numpy.inf)
            spread[name] = max(spread[name], numpy.nan_to_num(away, nan=0.0, posinf=numpy.inf).max(initial=0.0))
    for name, array in ours.items():
        if spread[name] == numpy.inf or (array.dtype not in et.FLOATS and spread[name] > 0):
            continue
        found = tolerance.difference(array, unfused[name], slack.CARRIED_FACTOR * spread[name])
        if found:
            return f"{name}: {found}"
    return None


def check_nodes(model, all_values):
    """Verdict of the nodes alone, for all runs."""
    known = None
    for run, ours in zip(model.runs, all_values):
        values = {**model.constants, **run.feeds, **ours}
        for node in model.nodes:
            found = check_node(model, node, values)
            if found and not found[0]:
                return Verdict("wrong", found[1])
            known = known or (found and found[1])
    return Verdict("known", known) if known else Verdict("equal")


def run_compiled(cli, proto, model, folder, name, options=()):
    """Compiled once for all sizes; where that asks for extents, for each size alone."""
    try:
        return compiled_run.run(cli, proto, model.runs, folder, name, model.is_symbolic, options)
    except Failed as failure:
        if "must be bound with --shape" not in str(failure) and "compiles for the values that it is given" not in str(failure):
            raise
    return compiled_run.run(cli, proto, model.runs, folder, name, False, options)


def verdict_on(failure, where=""):
    reason = known_differences.refusal(str(failure)) if failure.verdict == "refused" else None
    return Verdict("known", f"[{reason}]") if reason else Verdict(failure.verdict, f"{where}{failure}")


def judge(cli, model, folder, every_node=True):
    try:
        expected = [run_whole(model, run) for run in model.runs]
    except Refused as error:
        return Verdict("invalid", str(error))
    try:
        results = run_compiled(cli, model.proto, model, folder, "model")
        differences = [d for args in zip(model.runs, results, expected) for d in compare_results(model, args[1], args[0], args[2])]
        if not differences and not every_node:
            return Verdict("equal")
        every = run_compiled(cli, with_all_outputs(model), model, folder, "nodes")
    except Failed as failure:
        return verdict_on(failure)
    verdict = check_nodes(model, every)
    if verdict.is_fault or not differences:
        return verdict
    for run, ours, unfused in zip(model.runs, results, every):
        beyond = is_carried(model, ours, unfused, run)
        if beyond:
            return Verdict("wrong", f"every node alone is right, the model as it is differs from it: {beyond}")
    return verdict if verdict.kind == "known" else Verdict("carried", differences[0])


def judge_levels(cli, model, folder, levels):
    """The same model as code for several CPUs: integers equal, floats within rounding."""
    first = None
    for level in levels:
        try:
            results = run_compiled(cli, model.proto, model, folder, level, ("--cpu", level))
        except Failed as failure:
            return verdict_on(failure, f"--cpu {level}: ")
        first = first or results
        for run, ours, others in zip(model.runs, results, first):
            if all(tolerance.difference(ours[name], others[name], 0.0) is None for name in ours):
                continue
            beyond = is_carried(model, ours, others, run)
            if beyond:
                return Verdict("wrong", f"--cpu {level} against {levels[0]}: {beyond}")
    return Verdict("equal")
