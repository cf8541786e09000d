"""The table: one row per ONNX operator, with how to draw its operands and attributes, and how far its
results may lie from the reference's. The rows stand by family in rows_*.py."""
import dataclasses
import importlib
import typing

from tolerance import EXACT

FAMILIES = ["math", "activation", "shape", "movement", "selection", "reduction", "generator", "nn", "pooling", "normalization", "quantization",
            "recurrent", "attention", "signal", "vision", "control_flow"]

# Operators of the importers that are not drawn.
LEFT_OUT = {
    **dict.fromkeys(["RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"],
                    "draws are random, each implementation's own"),
    **dict.fromkeys(["ConcatFromSequence", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase",
                     "SequenceInsert", "SequenceLength", "SplitToSequence"],
                    "values are no tensors: tests/frontends/sequences_test.cpp")}


@dataclasses.dataclass(frozen=True)
class Row:
    op: str
    domain: str
    sample: typing.Callable  # (sampler, operator): adds the node by sampler.emit
    tolerance: object        # or a function of (node, operands, results) that gives what is allowed per result
    first: int               # the first operator set that has it
    family: str              # its rows_*.py
    alone: int               # 0, or the one operator set at which it can be run, in models of its own

    @property
    def name(self):
        return f"{self.domain}:{self.op}" if self.domain else self.op


ROWS = {}


def row(ops, tolerance=EXACT, domain="", first=13, alone=0):
    """Decorates the sampling function of one or several operators, named in one string."""
    def add(function):
        for op in ops.split():
            entry = Row(op, domain, function, tolerance, first, function.__module__.removeprefix("rows_"), alone)
            if entry.name in ROWS:
                raise ValueError(f"two rows for {entry.name}")
            ROWS[entry.name] = entry
        return function
    return add


def load():
    for family in FAMILIES:
        importlib.import_module("rows_" + family)
    return ROWS


def uncovered(read):
    """(operators that the compiler reads and the table lacks, rows for operators that it does not read)."""
    known = set(ROWS) | set(LEFT_OUT)
    return sorted(set(read) - known), sorted(set(ROWS) - set(read))
